"""Models of scikit-learn, alone, behind pipelines, and converted to ONNX and treelite."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracle.models import Columns, Model, frame, matrix, targets, training
from tests.oracle.models_boosted import COUNTS, folder, train_lightgbm, train_xgboost
from tests.oracle.spaces import Feature, column

CLASS_NAMES = [(0, 1, 2), (0, 1, 2), (1, 2, 3), ("no", "yes", "maybe"), ("good", "not so", "bad")]


def estimator_of(rng: np.random.Generator, kind: str, *, converted: bool = False) -> tuple[Any, str]:
    """An untrained estimator and the link of its outputs."""
    from sklearn import ensemble, tree

    depth, trees = int(rng.integers(1, 5)), int(rng.choice([1, 2, 3, 4, 4]))
    common = {"max_depth": depth, "random_state": int(rng.integers(100))}
    bags = {**common, "n_estimators": trees, "max_features": None if rng.random() < 0.5 else "sqrt"}
    steps = {**common, "n_estimators": int(rng.integers(1, 5)), "learning_rate": 0.5}
    if kind == "regression":
        choices: list[Any] = [
            (tree.DecisionTreeRegressor(**common), "identity"),
            (ensemble.RandomForestRegressor(**bags), "identity"),
            (ensemble.ExtraTreesRegressor(**bags), "identity"),
            (ensemble.GradientBoostingRegressor(**steps), "identity"),
        ]
    else:
        link = "logit" if kind == "binary" else "softmax"
        choices = [
            (tree.DecisionTreeClassifier(**common), "identity"),
            (ensemble.RandomForestClassifier(**bags, bootstrap=bool(rng.random() < 0.5)), "identity"),
            (ensemble.ExtraTreesClassifier(**bags), "identity"),
            (ensemble.GradientBoostingClassifier(**steps), link),
        ]
        if not converted and rng.random() < 0.2:
            choices = [(ensemble.AdaBoostClassifier(n_estimators=trees, random_state=1), "votes")]
    return choices[int(rng.integers(len(choices)))]


def train_sklearn(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    columns = training(rng, features, int(rng.integers(30, 150)))
    if any(f.missing or f.missing_text for f in features):
        columns = [np.where(np.isnan(c), np.nanmedian(c), c) if rng.random() < 0.3 else c for c in columns]
    y = targets(rng, columns, COUNTS[kind])
    labels = CLASS_NAMES[int(rng.integers(len(CLASS_NAMES)))][: COUNTS[kind]]
    estimator, link = estimator_of(rng, kind)
    estimator.fit(_shown(columns, features), np.array(labels)[y] if kind != "regression" else y)
    dyadic = bool(rng.random() < 0.4) and link == "identity"
    if dyadic:
        _coarse_trees(estimator)
    return _sklearn_model(estimator, name, "sklearn", kind, link, features, dyadic)


def _shown(columns: Columns, features: Sequence[Feature]) -> Any:
    return frame(columns, features)


def trees_of(estimator: Any) -> list[Any]:
    """The fitted trees of any estimator."""
    if hasattr(estimator, "tree_"):
        return [estimator]
    return list(np.asarray(estimator.estimators_, dtype=object).reshape(-1))


def _coarse_trees(estimator: Any) -> None:
    """Leaves on a grid, so that sums are exact and ties occur; the rows of a classifier keep the sum 1."""
    for one in trees_of(estimator):
        value = one.tree_.value
        if not hasattr(one, "classes_"):
            value[...] = np.round(value * 8) / 8
        elif value.shape[2] == 2:
            value[..., 0] = np.round(value[..., 0] * 4) / 4
            value[..., 1] = 1 - value[..., 0]
        else:
            best = value.argmax(axis=2)
            value[...] = 0
            np.put_along_axis(value, best[..., None], 1.0, axis=2)


def _sklearn_model(
    estimator: Any, name: str, frontend: str, kind: str, link: str, features: Sequence[Feature], dyadic: bool,
    thresholds: Any = None,
) -> Model:  # fmt: skip
    names = tuple(f.name for f in features)
    found, used = thresholds if thresholds is not None else _thresholds(estimator, names)

    def margins(c: Columns) -> np.ndarray:
        x = _shown(c, features)
        if kind == "regression":
            return np.asarray(estimator.predict(x), float).reshape(-1, 1)
        if link == "identity":
            return np.asarray(estimator.predict_proba(x), float)
        given = np.asarray(estimator.decision_function(x), float)
        return given.reshape(len(given), -1)

    def classes(c: Columns) -> np.ndarray:
        return np.searchsorted(estimator.classes_, estimator.predict(_shown(c, features)))

    def leaves(c: Columns) -> np.ndarray:
        return np.asarray(estimator.apply(_shown(c, features))).reshape(len(c[0]), -1)

    def shorten(count: int) -> Model:
        cut = copy.deepcopy(estimator)
        cut.estimators_ = cut.estimators_[:count]
        if hasattr(cut, "n_estimators"):
            cut.n_estimators = count
        if hasattr(cut, "n_estimators_"):
            cut.n_estimators_ = count
        return _sklearn_model(cut, name, frontend, kind, link, features, dyadic)

    def save(place: Path) -> str:
        import pickle

        (place / f"{name}.pickle").write_bytes(pickle.dumps(estimator))
        return f"{name}.pickle"

    alone = hasattr(estimator, "apply") and link != "votes"
    return Model(
        name, frontend, kind, link, estimator, margins, classes if kind != "regression" else None, leaves if alone else None,
        tuple(str(c) for c in estimator.classes_) if kind != "regression" else (), found, False, used, False, False,
        np.float32 if alone or link == "votes" else np.float64,
        shorten if hasattr(estimator, "estimators_") and link == "identity" else None,
        len(np.asarray(getattr(estimator, "estimators_", [0]), dtype=object).reshape(-1)), save=save, dyadic=dyadic,
        feature_names=names,
    )  # fmt: skip


def _thresholds(estimator: Any, names: tuple[str, ...]) -> tuple[dict[str, list[float]], tuple[bool, ...]]:
    found: dict[str, list[float]] = {}
    for one in trees_of(estimator):
        for feature, value in zip(one.tree_.feature, one.tree_.threshold, strict=True):
            if feature >= 0:
                found.setdefault(names[feature], []).append(float(value))
    return found, tuple(n in found for n in names)


# Histogram boosting ----------------------------------------------------------------------------------------------------


def train_histogram(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    from sklearn import ensemble

    columns = training(rng, features, int(rng.integers(40, 150)))
    y = targets(rng, columns, COUNTS[kind])
    made = ensemble.HistGradientBoostingRegressor if kind == "regression" else ensemble.HistGradientBoostingClassifier
    codes = [f.codes == "code" for f in features]
    labelled = any(f.codes == "label" for f in features)
    if labelled and any(codes):
        raise ValueError("one kind of categories per model")
    for c, f in zip(columns, features, strict=True):
        if f.codes != "number" and set(f.labels or [v for v in f.stored if v == v]) - set(c):  # noqa: PLR0124
            raise ValueError("the model knows the categories of the training part alone")
    estimator = made(
        max_iter=int(rng.integers(1, 5)), max_depth=int(rng.integers(1, 5)), learning_rate=0.5, min_samples_leaf=2,
        categorical_features="from_dtype" if labelled else codes, random_state=1, l2_regularization=float(rng.choice([0, 1])),
    ).fit(_shown(columns, features), y)  # fmt: skip
    found: dict[str, list[float]] = {}
    used: set[int] = set()
    categorical = False
    order = [i for i, f in enumerate(features) if f.codes != "number"]
    order += [i for i, f in enumerate(features) if f.codes == "number"]
    for iteration in estimator._predictors:
        for tree in iteration:
            for node in tree.nodes[tree.nodes["is_leaf"] == 0]:
                place = order[node["feature_idx"]] if any(codes) or labelled else int(node["feature_idx"])
                used.add(place)
                categorical |= bool(node["is_categorical"])
                if not node["is_categorical"] and np.isfinite(node["num_threshold"]):
                    found.setdefault(features[place].name, []).append(float(node["num_threshold"]))
    link = {"binary": "logit", "multi": "softmax", "regression": "identity"}[kind]
    model = _sklearn_model(
        estimator,
        name,
        "sklearn hist",
        kind,
        link,
        features,
        False,
        (found, tuple(i in used for i in range(len(features)))),
    )
    model.categorical, model.leaves_of, model.shorten, model.trees = categorical, None, None, 4
    model.real = np.float64
    return model


# Pipelines -------------------------------------------------------------------------------------------------------------


def train_pipeline(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    from sklearn import compose, impute, pipeline, preprocessing

    columns = training(rng, features, int(rng.integers(40, 150)))
    y = targets(rng, columns, COUNTS[kind])
    numeric = [f.name for f in features if f.codes == "number"]
    coded = [f.name for f in features if f.codes != "number"]
    gaps = any(np.isnan(c).any() for c, f in zip(columns, features, strict=True) if f.codes == "number")
    scalers = [
        preprocessing.StandardScaler,
        preprocessing.MinMaxScaler,
        preprocessing.MaxAbsScaler,
        preprocessing.RobustScaler,
    ]
    steps: list[Any] = [scalers[int(rng.integers(4))]()] if rng.random() < 0.8 else ["passthrough"]
    if gaps or any(f.missing or f.missing_text for f in features):
        steps.insert(0, impute.SimpleImputer(strategy=str(rng.choice(["mean", "median", "most_frequent"]))))
    parts: list[Any] = []
    if numeric:
        parts.append(("numbers", pipeline.make_pipeline(*steps), numeric))
    if coded:
        encoder = (
            preprocessing.OneHotEncoder(handle_unknown="ignore")
            if rng.random() < 0.6
            else preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        )
        parts.append(("labels", encoder, coded))
    if coded and any(f.missing for f in features if f.codes != "number"):
        raise ValueError("no missing labels in pipelines")
    if any(set(f.labels) - set(c) for c, f in zip(columns, features, strict=True) if f.codes == "label"):
        raise ValueError("an encoder knows the labels of the training part alone")
    estimator, link = estimator_of(rng, kind, converted=True)
    columned = (
        compose.ColumnTransformer(parts)
        if coded or rng.random() < 0.5
        else steps[0]
        if len(steps) == 1
        else pipeline.make_pipeline(*steps)
    )
    whole = pipeline.make_pipeline(columned, estimator)
    whole.fit(_objects(columns, features), y)
    found = _pulled_back(
        whole,
        features,
        numeric if coded or isinstance(columned, compose.ColumnTransformer) else [f.name for f in features],
    )
    model = _sklearn_model(
        whole, name, "sklearn pipeline", kind, link, features, False, (found, (True,) * len(features))
    )
    model.margins_of = _piped(whole, features, kind, link)
    model.classes_of = (
        (lambda c: np.searchsorted(whole.classes_, whole.predict(_objects(c, features))))
        if kind != "regression"
        else None
    )
    model.leaves_of, model.shorten, model.real, model.trees = None, None, np.float64, 4
    # An imputer gives missing values the cell of another value.
    model.celled = not gaps and not any(f.missing or f.missing_text for f in features)
    return model


def _objects(columns: Columns, features: Sequence[Feature]) -> Any:
    import pandas as pd

    return pd.DataFrame({f.name: c for c, f in zip(columns, features, strict=True)})


def _piped(whole: Any, features: Sequence[Feature], kind: str, link: str) -> Any:
    def margins(c: Columns) -> np.ndarray:
        x = _objects(c, features)
        if kind == "regression":
            return np.asarray(whole.predict(x), float).reshape(-1, 1)
        given = np.asarray(whole.predict_proba(x) if link == "identity" else whole.decision_function(x), float)
        return given.reshape(len(x), -1)

    return margins


def _pulled_back(whole: Any, features: Sequence[Feature], numeric: list[str]) -> dict[str, list[float]]:
    """The last value of each real column that goes left, for every threshold behind the scalers, by bisection of floats."""
    found: dict[str, list[float]] = {}
    for i, f in enumerate(features):
        if f.codes != "number":
            continue
        place = numeric.index(f.name)
        cuts = {
            t
            for one in trees_of(whole[-1])
            for n, t in zip(one.tree_.feature, one.tree_.threshold, strict=True)
            if n == place
        }
        if cuts:
            found[f.name] = _last_at_most(whole[:-1], features, i, place, np.array(sorted(cuts)))
    return found


def _last_at_most(front: Any, features: Sequence[Feature], i: int, place: int, cuts: np.ndarray) -> list[float]:
    """For every cut the largest float of feature `i` that the front does not send above it (in float32, as trees read it). Of a
    column of few values, too: two cuts between two of them are two cells, which learnt scores count.
    """

    def scaled(values: np.ndarray) -> np.ndarray:
        rest = [np.repeat(column(f.stored[:1]), len(values)) for f in features]
        sent = front.transform(_objects([*rest[:i], values, *rest[i + 1 :]], features))
        whole = sent.toarray() if hasattr(sent, "toarray") else np.asarray(sent)
        return whole[:, place].astype(np.float32).astype(float)

    given = column(features[i].stored).astype(float)
    given = np.unique(given[~np.isnan(given)])
    low, high = np.full(len(cuts), given[0] - 1), np.full(len(cuts), given[-1] + 1)
    for _ in range(64):
        middle = low + (high - low) / 2
        left = scaled(middle) <= cuts
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    return [float(x) for x in low]


# Calibration -----------------------------------------------------------------------------------------------------------


def train_calibrated(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    from sklearn import calibration, frozen

    if kind == "regression":
        raise ValueError("classes are calibrated")
    base = train_sklearn(rng, features, name, kind)
    if base.link == "votes":
        raise ValueError("AdaBoost is refused inside")
    columns = training(rng, features, int(rng.integers(40, 120)))
    if any(f.missing or f.missing_text for f in features):
        raise ValueError("the calibration of scikit-learn checks its rows")
    way = str(rng.choice(["sigmoid", "isotonic"]))
    whole = calibration.CalibratedClassifierCV(frozen.FrozenEstimator(base.source), method=way)
    whole.fit(_shown(columns, features), base.source.classes_[targets(rng, columns, COUNTS[kind])])
    fitted = whole.calibrated_classifiers_[0].calibrators[0]
    if any(getattr(c, "a_", -1.0) >= 0 for c in whole.calibrated_classifiers_[0].calibrators):
        raise ValueError("a calibration that turns the order of the scores round is refused")
    found = (base.thresholds, base.used)
    if kind == "multi":
        return _compared(rng, whole, name, features, found, base.real)
    model = _sklearn_model(whole, name, "calibrated", kind, "calibrated", features, False, found)
    model.margins_of = lambda c: np.asarray(whole.predict_proba(_shown(c, features)), float)
    model.leaves_of, model.shorten, model.trees, model.real = None, None, 100, base.real
    model.sigmoid = way == "sigmoid"
    if way == "isotonic":
        model.knots = tuple(float(end) for y in fitted.y_thresholds_ for end in (y, 1 - y))
    return model


def _compared(
    rng: np.random.Generator, whole: Any, name: str, features: Sequence[Feature], found: Any, real: type
) -> Model:
    """A calibration of several classes with one calibrator for each: classes alone are asked of it."""
    _refuse_ties(rng, whole, features)
    model = _sklearn_model(whole, name, "calibrated", "multi", "counted", features, False, found)
    count = len(whole.classes_)
    # It has no scores: what stands for them is 1 for the class that it predicts, and no question asks about it.
    model.margins_of = lambda c: np.eye(count)[np.searchsorted(whole.classes_, whole.predict(_shown(c, features)))]
    model.leaves_of, model.shorten, model.trees, model.real = None, None, 100, real
    return model


def _refuse_ties(rng: np.random.Generator, whole: Any, features: Sequence[Feature]) -> None:
    """ValueError if the library's last digits decide between the best classes of some of many rows."""
    best = np.sort(whole.predict_proba(_shown(training(rng, features, 2000), features)), axis=1)
    if (best[:, -1] - best[:, -2] < 1e-9).any():
        raise ValueError("last digits decide about a class")


def _thresholds_of_all(
    members: Sequence[Any], features: Sequence[Feature]
) -> tuple[dict[str, list[float]], tuple[bool, ...]]:
    """Of several models together: the thresholds by feature, and which features any of them asks about."""
    names = tuple(f.name for f in features)
    told = [_thresholds(member, names)[0] for member in members]
    found = {n: [t for one in told for t in one.get(n, [])] for n in names if any(n in one for one in told)}
    return found, tuple(n in found for n in names)


def _small(estimator: Any) -> Any:
    """An untrained estimator of few trees, which are small."""
    most = {"n_estimators": 2, "max_depth": 2}
    known = estimator.get_params()
    return estimator.set_params(**{name: min(known[name], value) for name, value in most.items() if name in known})


def train_vote(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    """A mean of the probabilities of two or three models: a soft vote, or the folds of a calibration."""
    from sklearn import calibration, ensemble

    if kind == "regression":
        raise ValueError("classes are asked of votes")
    if any(f.missing or f.missing_text for f in features):
        raise ValueError("votes check their rows")
    columns = training(rng, features, int(rng.integers(60, 150)))
    y = np.asarray(CLASS_NAMES[int(rng.integers(len(CLASS_NAMES)))][: COUNTS[kind]])
    y = y[targets(rng, columns, COUNTS[kind])]
    drawn = [estimator_of(rng, kind, converted=True)[0] for _ in range(int(rng.integers(2, 4)))]
    if kind == "multi":
        # Solvers that search cells alone need long for sums of ratios.
        drawn = [_small(e) for e in drawn[:2]]
    if rng.random() < 0.5:
        weights = None if rng.random() < 0.5 else [float(w) for w in rng.choice([0.2, 0.3, 1.0, 2.0], len(drawn))]
        whole = ensemble.VotingClassifier([(f"e{i}", e) for i, e in enumerate(drawn)], voting="soft", weights=weights)
    else:
        whole = calibration.CalibratedClassifierCV(drawn[0], method=str(rng.choice(["sigmoid", "isotonic"])), cv=2)
    whole.fit(_shown(columns, features), y)
    folds = getattr(whole, "calibrated_classifiers_", ())
    if any(getattr(c, "a_", -1.0) >= 0 for fold in folds for c in fold.calibrators):
        raise ValueError("a calibration that turns the order of the scores round is refused")
    if kind == "multi":
        _refuse_ties(rng, whole, features)
    members = [fold.estimator for fold in folds] or whole.estimators_
    told = _thresholds_of_all(members, features)
    model = _sklearn_model(whole, name, "sklearn vote", kind, "calibrated", features, False, told)
    model.margins_of = lambda c: np.asarray(whole.predict_proba(_shown(c, features)), float)
    model.leaves_of, model.shorten, model.trees, model.real = None, None, 100, np.float32
    model.sigmoid = True  # compared up to the last digits: a mean of steps has no knots
    return model


def train_count(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    """Counted votes of two to four models, perhaps with weights whose sums are ties in decimals alone."""
    from sklearn import ensemble

    if kind == "regression":
        raise ValueError("classes are asked of counted votes")
    if any(f.missing or f.missing_text for f in features):
        raise ValueError("votes check their rows")
    columns = training(rng, features, int(rng.integers(60, 150)))
    known = CLASS_NAMES[int(rng.integers(len(CLASS_NAMES)))][: COUNTS[kind]]
    y = np.asarray(known)[targets(rng, columns, len(known))]
    drawn = [estimator_of(rng, kind, converted=True)[0] for _ in range(int(rng.integers(2, 5)))]
    weights = None if rng.random() < 0.5 else [float(w) for w in rng.choice([0.1, 0.2, 0.3, 1.0, 2.0], len(drawn))]
    whole = ensemble.VotingClassifier([(f"e{i}", e) for i, e in enumerate(drawn)], voting="hard", weights=weights)
    whole.fit(_shown(columns, features), y)
    told = _thresholds_of_all(whole.estimators_, features)
    model = _sklearn_model(whole, name, "sklearn count", kind, "counted", features, False, told)
    # It has no scores: what stands for them is 1 for the class that it predicts, and no question asks about it.
    model.margins_of = lambda c: np.eye(len(known))[np.searchsorted(whole.classes_, whole.predict(_shown(c, features)))]
    model.leaves_of, model.shorten, model.trees, model.real = None, None, 100, np.float32
    return model


def train_stack(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    """A stack of two or three forests or trees: a logistic function of a sum of votes, or a softmax of several."""
    from sklearn import ensemble, linear_model, tree

    if kind == "regression":
        raise ValueError("classes are asked of stacks")
    if any(f.missing or f.missing_text for f in features):
        raise ValueError("stacks check their rows")
    columns = training(rng, features, int(rng.integers(60, 150)))
    known = CLASS_NAMES[int(rng.integers(len(CLASS_NAMES)))][: COUNTS[kind]]
    y = np.asarray(known)[targets(rng, columns, len(known))]
    few = {
        "n_estimators": int(rng.integers(2, 5)),
        "max_depth": int(rng.integers(1, 4)),
        "random_state": int(rng.integers(99)),
    }
    drawn = [
        ensemble.RandomForestClassifier(**few),
        ensemble.ExtraTreesClassifier(**few),
        tree.DecisionTreeClassifier(max_depth=2),
    ]
    kept = drawn[: int(rng.integers(2, 4))]
    whole = ensemble.StackingClassifier(
        [(f"e{i}", e) for i, e in enumerate(kept)], linear_model.LogisticRegression(), cv=2
    )
    whole.fit(_shown(columns, features), y)
    told = _thresholds_of_all(whole.estimators_, features)
    link = "logit" if kind == "binary" else "softmax"
    model = _sklearn_model(whole, name, "sklearn stack", kind, link, features, False, told)
    model.leaves_of, model.shorten, model.trees, model.real = None, None, 100, np.float32
    return model


WITHOUT_SCORES = ("calibrated", "vote", "counted vote")
"""Trainers whose models have probabilities or classes alone: the oracle knows no raw scores of them."""
OF_CLASSES = ("votes", "counted")
"""Links of models of which classes are asked, and no classes by a factor."""


# Converted models ------------------------------------------------------------------------------------------------------


def train_onnx(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    import onnxruntime
    import skl2onnx

    columns = training(rng, features, int(rng.integers(30, 120)))
    y = targets(rng, columns, COUNTS[kind])
    estimator, link = estimator_of(rng, kind, converted=True)
    if link != "identity":
        raise ValueError("raw scores are not asked of ONNX")
    estimator.fit(matrix(columns, np.float32), y)
    kinds = [("x", skl2onnx.common.data_types.FloatTensorType([None, len(features)]))]
    options = {"zipmap": False} if kind != "regression" else None
    proto = skl2onnx.to_onnx(
        estimator,
        initial_types=kinds,
        target_opset={"": 15, "ai.onnx.ml": 3},
        options={id(estimator): options} if options else None,
    )
    path = folder() / f"{name}.{rng.integers(1 << 40)}.onnx"
    path.write_bytes(proto.SerializeToString())
    one_thread = onnxruntime.SessionOptions()
    one_thread.intra_op_num_threads = one_thread.inter_op_num_threads = (
        1  # with several, sums depend on the size of the batch
    )
    session = onnxruntime.InferenceSession(str(path), one_thread, providers=["CPUExecutionProvider"])
    names = tuple(f"f{i}" for i in range(len(features)))
    _, used = _thresholds(estimator, tuple(f.name for f in features))
    found = _onnx_thresholds(proto, tuple(f.name for f in features))  # the converter has its own way to float32

    def run(c: Columns) -> Any:
        return session.run(None, {"x": matrix(c, np.float32)})

    def margins(c: Columns) -> np.ndarray:
        return np.asarray(run(c)[0 if kind == "regression" else 1], float).reshape(len(c[0]), -1)

    assert names
    return Model(
        name, "onnx", kind, link, str(path), margins,
        (lambda c: np.asarray(run(c)[0]).astype(int)) if kind != "regression" else None, None,
        tuple("012"[: COUNTS[kind]]), found, False, used, False, True, np.float32, None,
        len(trees_of(estimator)), feature_names=tuple(f.name for f in features),
    )  # fmt: skip


def _onnx_thresholds(proto: Any, names: tuple[str, ...]) -> dict[str, list[float]]:
    """What the nodes of the file compare with."""
    found: dict[str, list[float]] = {}
    for node in proto.graph.node:
        told = {a.name: a for a in node.attribute}
        if "nodes_modes" not in told:
            continue
        lists = (told["nodes_featureids"].ints, told["nodes_values"].floats, told["nodes_modes"].strings)
        for feature, value, mode in zip(*lists, strict=True):
            if mode != b"LEAF":
                found.setdefault(names[feature], []).append(float(value))
    return found


def train_treelite(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    import treelite

    made, base, single = _imported_by_treelite(rng, features, name, kind)
    path = folder() / f"{name}.{rng.integers(1 << 40)}.tl"
    made.serialize(str(path))
    kind_of = np.float32 if single else np.float64
    outputs = 3 if kind == "multi" else 2 if kind == "binary" and base.link == "identity" else 1
    raw = base.link != "identity"
    found = _treelite_thresholds(
        made, base.feature_names
    )  # LightGBM's splits of leaves that are equal are no longer there

    def margins(c: Columns) -> np.ndarray:
        given = treelite.gtil.predict(made, matrix(c, kind_of), nthread=1, pred_margin=raw)
        return np.asarray(given, float).reshape(len(c[0]), -1)[:, :outputs]

    def classes(c: Columns) -> np.ndarray:
        scores = margins(c)
        return (scores[:, 0] > 0).astype(int) if outputs == 1 else scores.argmax(axis=1)

    def save(place: Path) -> str:
        made.serialize(str(place / f"{name}.tl"))
        return f"{name}.tl"

    return Model(
        name, "treelite", kind, base.link, made if rng.random() < 0.3 else str(path), margins,
        classes if kind != "regression" else None, None, tuple("012"[: COUNTS[kind]]), found, base.strict, base.used,
        False, single, kind_of, None, base.trees, save=save, dyadic=base.dyadic, feature_names=base.feature_names,
    )  # fmt: skip


def _treelite_thresholds(made: Any, names: tuple[str, ...]) -> dict[str, list[float]]:
    """What the nodes of the file compare with."""
    found: dict[str, list[float]] = {}
    for tree in json.loads(made.dump_as_json(pretty_print=False))["trees"]:
        for node in tree["nodes"]:
            if "threshold" in node:
                found.setdefault(names[node["split_feature_id"]], []).append(float(node["threshold"]))
    return found


def _imported_by_treelite(
    rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str
) -> tuple[Any, Model, bool]:
    """A model as treelite imports it, what it was made from, and whether it reads float32."""
    import treelite

    source = str(rng.choice(["xgboost", "lightgbm", "sklearn"]))
    if source == "sklearn":
        base = train_sklearn(rng, features, name, kind)
        if base.link == "votes" or any(f.missing or f.missing_text for f in features):
            raise ValueError("treelite imports no AdaBoost, and no missing values of scikit-learn")
        try:
            return treelite.sklearn.import_model(base.source), base, False
        except treelite.TreeliteError as error:
            raise ValueError(str(error)) from error
    base = (train_xgboost if source == "xgboost" else train_lightgbm)(rng, features, name, kind)
    if base.categorical or base.link in ("exp", "ova"):
        raise ValueError("treelite models are asked over numbers")
    if source == "lightgbm":
        return treelite.frontend.load_lightgbm_model(base.source), base, False
    if not base.source.endswith(".json"):
        raise ValueError("treelite reads JSON")
    return treelite.frontend.load_xgboost_model(base.source, format_choice="use_suffix"), base, True
