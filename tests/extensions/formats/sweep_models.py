"""Random models for `sweep.py`, one maker per library, with what the library itself says of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.extensions.formats.sweep_graphs import graph
from treesens.compiler.query.predicted_classes import sure_classes

__all__ = ["LIBRARIES", "Made", "Said", "Untrained", "sure_classes"]


class Untrained(Exception):
    """The library itself refused to train such a model."""


@dataclass(frozen=True)
class Said:
    """What a trained object says of rows: margins [rows, outputs] and labels [rows], each None if it has none."""

    margins: Any = None
    labels: Any = None


@dataclass(frozen=True)
class Made:
    """A model as files or live objects, rows of its kind, and the trained object's own predictions."""

    name: str
    sources: tuple[object, ...]
    rows: np.ndarray
    library: Callable[[np.ndarray], Said] | None = None


def _data(rng: np.random.Generator, *, missing: bool) -> np.ndarray:
    """Rows float64[n, f] with ties, zeros of both signs, tiny and large numbers."""
    n, f = int(rng.integers(40, 120)), int(rng.integers(1, 6))
    columns = []
    for _ in range(f):
        kind = rng.integers(5)
        column = [
            lambda: rng.normal(size=n),
            lambda: rng.integers(-3, 4, n) / 4.0,
            lambda: rng.choice([0.0, -0.0, 1e-36, -1e-36, 1e-40, 1.0], n),
            lambda: rng.lognormal(0, 4, n),
            lambda: rng.integers(0, 2, n).astype(float),
        ][kind]()
        if missing and rng.random() < 0.4:
            column = np.where(rng.random(n) < 0.2, np.nan, column)
        columns.append(column)
    return np.column_stack(columns)


def _score(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    clean = np.nan_to_num(np.tanh(x))
    return np.asarray(clean @ rng.normal(size=x.shape[1]) + rng.normal(0, 0.3, len(x)))


def _labels(x: np.ndarray, kind: str, rng: np.random.Generator, classes: int = 3) -> np.ndarray:
    score = _score(x, rng)
    if kind == "two":
        return (score > np.quantile(score, rng.uniform(0.2, 0.8))).astype(int)
    if kind == "many":
        found = np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))
        found[:classes] = np.arange(classes)
        return found
    if kind == "positive":
        return np.exp(np.clip(score, -3, 3)) * rng.choice([1e-2, 1.0, 100.0]) + 1e-3
    if kind == "share":
        return 1 / (1 + np.exp(-score))
    if kind == "grades":
        return np.clip(np.round(score + 1), 0, 3).astype(int)
    if kind == "values":
        return np.column_stack([score, -score + rng.normal(size=len(score))])
    return score * rng.choice([1e-3, 1.0, 1e4]) + rng.choice([0.0, 10.0])


def _trained(train: Callable[[], Any]) -> Any:
    try:
        return train()
    except Exception as error:  # whatever a library says of its own options
        raise Untrained(str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__) from error


# --- XGBoost ---------------------------------------------------------------------------------------------------------------

_XGBOOST = {
    "two": ["binary:logistic", "binary:logitraw", "binary:hinge", "reg:logistic"],
    "many": ["multi:softmax", "multi:softprob"],
    "value": [
        "reg:squarederror",
        "reg:absoluteerror",
        "reg:pseudohubererror",
        "reg:quantileerror",
        "reg:expectileerror",
    ],
    "positive": ["reg:squaredlogerror", "count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"],
    "grades": ["rank:pairwise", "rank:ndcg", "rank:map"],
    "values": ["reg:squarederror"],
    "labels": ["binary:logistic"],
}


def xgboost_model(number: int, rng: np.random.Generator, folder: Path) -> Made:
    import xgboost

    pairs = [(kind, objective) for kind, names in _XGBOOST.items() for objective in names]
    kind, objective = pairs[number % len(pairs)]
    x = _data(rng, missing=True)
    classes = int(rng.integers(3, 6))
    y = (_labels(x, "values", rng) > 0).astype(int) if kind == "labels" else _labels(x, kind, rng, classes)
    if objective == "rank:map":
        y = (y > 1).astype(int)
    options: dict[str, Any] = {
        "objective": objective,
        "booster": str(rng.choice(["gbtree", "gbtree", "dart"])),
        "max_depth": int(rng.integers(1, 7)),
        "learning_rate": float(rng.choice([1e-6, 0.01, 0.3, 1.0])),
        "tree_method": str(rng.choice(["hist", "exact", "approx"])),
        "gamma": float(rng.choice([0.0, 0.0, 0.1, 1e9])),
        "max_bin": int(rng.choice([2, 16, 256])),
        "num_parallel_tree": int(rng.choice([1, 1, 3])),
        "subsample": float(rng.choice([1.0, 0.7])),
        "nthread": 1,
        "seed": int(rng.integers(1000)),
        "verbosity": 0,
    }
    if options["booster"] == "dart":
        options |= {"rate_drop": 0.4, "one_drop": 1}
    if rng.random() < 0.3 and kind not in ("values", "labels"):
        options["base_score"] = float(rng.uniform(0.05, 0.95))
    if kind == "many":
        options["num_class"] = classes
    if objective == "reg:quantileerror":
        options["quantile_alpha"] = [0.2, 0.5] if rng.random() < 0.5 else 0.3
    if objective == "reg:expectileerror":
        options["expectile_alpha"] = 0.3
    rounds = int(rng.choice([0, 1, 5, 20]))
    matrix = xgboost.DMatrix(x, None if objective == "survival:aft" else y)
    if objective == "survival:aft":
        matrix.set_float_info("label_lower_bound", y)
        matrix.set_float_info("label_upper_bound", y * 2)
    if kind == "grades":
        matrix.set_group([len(x) // 2, len(x) - len(x) // 2])
    booster = _trained(lambda: xgboost.train(options, matrix, rounds))
    path = folder / ("model.json" if rng.random() < 0.5 else "model.ubj")
    _trained(lambda: booster.save_model(path))

    def said(rows: np.ndarray) -> Said:
        data = xgboost.DMatrix(rows)
        margins = booster.predict(data, output_margin=True, strict_shape=True)
        # Without trees the wrapper ends in an error of its own.
        if kind not in ("two", "many") or objective == "reg:logistic" or not rounds:
            return Said(margins)
        wrapper = xgboost.XGBClassifier()
        wrapper.load_model(path)
        return Said(margins, wrapper.predict(rows))

    return Made(f"{objective}, {rounds} rounds, {options['booster']}", (path, booster), x, said)


# --- LightGBM --------------------------------------------------------------------------------------------------------------

_LIGHTGBM = {
    "two": ["binary"],
    "many": ["multiclass", "multiclassova"],
    "value": ["regression", "regression_l1", "huber", "fair", "quantile", "mape", "sqrt"],
    "positive": ["poisson", "gamma", "tweedie"],
    "share": ["cross_entropy", "cross_entropy_lambda"],
    "grades": ["lambdarank", "rank_xendcg"],
    "scaled": ["binary", "multiclassova", "custom"],
}


def lightgbm_model(number: int, rng: np.random.Generator, folder: Path) -> Made:
    import lightgbm

    pairs = [(kind, objective) for kind, names in _LIGHTGBM.items() for objective in names]
    kind, objective = pairs[number % len(pairs)]
    x = _data(rng, missing=True)
    classes = int(rng.integers(3, 6))
    many = objective.startswith("multi")
    y = _labels(x, {"scaled": "many" if many else "two"}.get(kind, kind), rng, classes)
    options: dict[str, Any] = {
        "objective": {"sqrt": "regression"}.get(objective, objective),
        "boosting": str(rng.choice(["gbdt", "dart", "rf"])),
        "num_leaves": int(rng.integers(2, 20)),
        "learning_rate": float(rng.choice([1e-6, 0.01, 0.3])),
        "min_data_in_leaf": int(rng.choice([1, 5, 1000])),
        "min_sum_hessian_in_leaf": float(rng.choice([0.0, 1e-3])),
        "zero_as_missing": bool(rng.random() < 0.3),
        "use_missing": bool(rng.random() < 0.8),
        "boost_from_average": bool(rng.random() < 0.5),
        "linear_tree": bool(rng.random() < 0.05),
        "num_threads": 1,
        "verbose": -1,
        "seed": int(rng.integers(1000)),
    }
    if options["boosting"] == "rf":
        options |= {"bagging_freq": 1, "bagging_fraction": 0.7}
    if many:
        options["num_class"] = classes
    if kind == "scaled":
        options["sigmoid"] = float(rng.choice([0.5, 2.0]))
    if objective == "sqrt":
        options["reg_sqrt"] = True
    if objective == "custom":
        options["objective"] = lambda scores, data: (scores - data.get_label(), np.ones(len(scores)))
    group = [len(x) // 2, len(x) - len(x) // 2] if kind == "grades" else None
    rounds = int(rng.choice([1, 5, 15]))
    booster = _trained(lambda: lightgbm.train(options, lightgbm.Dataset(x, y, group=group), rounds))
    text = folder / "model.txt"
    booster.save_model(text)

    def said(rows: np.ndarray) -> Said:
        margins = booster.predict(rows, raw_score=True, num_threads=1).reshape(len(rows), -1)
        margins = margins / booster.current_iteration() if options["boosting"] == "rf" else margins
        if kind not in ("two", "many") and objective not in ("binary", "multiclassova"):
            return Said(margins)
        found = booster.predict(rows, num_threads=1).reshape(len(rows), -1)
        both = np.column_stack([1.0 - found[:, 0], found[:, 0]]) if found.shape[1] == 1 else found
        return Said(margins, both.argmax(axis=1))

    return Made(f"{kind} {objective}, {options['boosting']}", (text, booster), x, said)


# --- scikit-learn ----------------------------------------------------------------------------------------------------------

_FORESTS = ("RandomForest", "ExtraTrees")
_SKLEARN = [
    *[f"{name}{kind}" for name in ("DecisionTree", "ExtraTree") for kind in ("Classifier", "Regressor")],
    *[f"{name}{kind}" for name in _FORESTS for kind in ("Classifier", "Regressor")],
    *[f"{name}{kind}" for name in ("GradientBoosting", "HistGradientBoosting") for kind in ("Classifier", "Regressor")],
    "AdaBoostClassifier", "AdaBoostRegressor", "IsolationForest",
    "FixedThreshold", "TunedThreshold", "Calibrated", "Pipeline", "BaggingClassifier", "VotingClassifier",
]  # fmt: skip
_LOSSES = {
    "GradientBoostingClassifier": ["log_loss", "exponential"],
    "GradientBoostingRegressor": ["squared_error", "absolute_error", "huber", "quantile"],
    "HistGradientBoostingRegressor": ["squared_error", "absolute_error", "gamma", "poisson", "quantile"],
    "HistGradientBoostingClassifier": ["log_loss"],
}


def sklearn_model(number: int, rng: np.random.Generator, folder: Path) -> Made:
    from sklearn import calibration, ensemble, model_selection, pipeline, preprocessing, tree
    from threadpoolctl import threadpool_limits

    name = _SKLEARN[number % len(_SKLEARN)]
    x = _data(rng, missing=name.startswith("Hist"))
    classifier = not name.endswith("Regressor")
    losses = _LOSSES.get(name, [None])
    loss = losses[number // len(_SKLEARN) % len(losses)]
    seed = int(rng.integers(1000))
    two = loss == "exponential" or name in ("FixedThreshold", "TunedThreshold", "Calibrated") or rng.random() < 0.5
    y = _labels(x, ("two" if two else "many") if classifier else "positive", rng)
    if classifier and rng.random() < 0.4:
        y = np.array(["no", "yes", "a long one"])[y] if rng.random() < 0.5 else np.array([-7, 3, 12])[y]
    size: dict[str, Any] = {"random_state": seed, "max_depth": int(rng.integers(1, 6))}
    few = int(rng.integers(1, 12))
    rate = float(rng.choice([1e-6, 0.1, 1.0]))

    def build() -> Any:
        if name.startswith(("DecisionTree", "ExtraTree")) and not name.startswith("ExtraTrees"):
            return getattr(tree, name)(**size)
        if name.startswith(_FORESTS):
            return getattr(ensemble, name)(**size, n_estimators=few)
        if name.startswith("Grad"):
            init = "zero" if rng.random() < 0.2 else tree.DecisionTreeRegressor() if rng.random() < 0.1 else None
            return getattr(ensemble, name)(**size, n_estimators=few, learning_rate=rate, loss=loss, init=init)
        if name.startswith("Hist"):
            more = {"quantile": 0.3} if loss == "quantile" else {}
            return getattr(ensemble, name)(
                **size, max_iter=few, learning_rate=rate, loss=loss, min_samples_leaf=3, **more
            )
        if name == "AdaBoostClassifier":
            return ensemble.AdaBoostClassifier(
                tree.DecisionTreeClassifier(max_depth=2), n_estimators=few, random_state=seed
            )
        if name in ("AdaBoostRegressor", "IsolationForest", "BaggingClassifier"):
            return getattr(ensemble, name)(n_estimators=few, random_state=seed)
        forest = ensemble.RandomForestClassifier(**size, n_estimators=few)
        inner = forest if rng.random() < 0.5 else ensemble.GradientBoostingClassifier(**size, n_estimators=few)
        if name == "VotingClassifier":
            return ensemble.VotingClassifier([("a", forest), ("b", inner)], voting="soft")
        if name == "Pipeline":
            return pipeline.make_pipeline(preprocessing.StandardScaler(), inner)
        positive = sorted(set(y.tolist()))[int(rng.random() < 0.8)]
        if name == "FixedThreshold":
            cut = float(rng.choice([0.1, 0.3, 0.5, 0.62, 0.9]))
            return model_selection.FixedThresholdClassifier(inner, threshold=cut, pos_label=positive)
        if name == "TunedThreshold":
            return model_selection.TunedThresholdClassifierCV(inner, cv=2, thresholds=9, scoring="balanced_accuracy")
        method = str(rng.choice(["sigmoid", "isotonic"]))
        return calibration.CalibratedClassifierCV(inner, method=method, ensemble=bool(rng.random() < 0.2), cv=2)

    def train() -> Any:
        with threadpool_limits(1):
            return build().fit(x, y)

    made = _trained(train)
    plain = name.startswith(("DecisionTree", "ExtraTree", *_FORESTS, "Grad", "Hist"))

    def said(rows: np.ndarray) -> Said:
        margins = None
        if plain:
            margins = made.predict_proba(rows) if classifier and not name.startswith(("Grad", "Hist")) else None
            margins = made.decision_function(rows) if classifier and margins is None else margins
            margins = made.predict(rows) if margins is None and loss not in ("gamma", "poisson") else margins
        return Said(margins, made.predict(rows) if classifier else None)

    return Made(f"{name} {loss}", (made,), x, said)


# --- CatBoost --------------------------------------------------------------------------------------------------------------

_CATBOOST = {
    "two": ["Logloss", "threshold"],
    "share": ["CrossEntropy"],
    "many": ["MultiClass", "MultiClassOneVsAll"],
    "value": ["RMSE", "MAE", "Quantile:alpha=0.3", "Huber:delta=1", "Expectile:alpha=0.3", "MAPE", "Lq:q=2.5", "LogCosh",
              "RMSEWithUncertainty", "MultiQuantile:alpha=0.2,0.6", "LogLinQuantile"],
    "positive": ["Poisson", "Tweedie:variance_power=1.5"],
    "grades": ["QueryRMSE", "PairLogit", "PairLogitPairwise", "YetiRank", "YetiRankPairwise", "QuerySoftMax",
               "QueryCrossEntropy", "StochasticFilter", "LambdaMart", "StochasticRank:metric=DCG"],
    "values": ["MultiRMSE"],
    "labels": ["MultiLogloss", "MultiCrossEntropy"],
    "survival": ["Cox", "SurvivalAft:dist=Normal"],
}  # fmt: skip


def catboost_model(number: int, rng: np.random.Generator, folder: Path) -> Made:
    import catboost

    pairs = [(kind, objective) for kind, names in _CATBOOST.items() for objective in names]
    kind, objective = pairs[number % len(pairs)]
    x = _data(rng, missing=True)
    classes = int(rng.integers(3, 6))
    if kind == "labels":
        y = (_labels(x, "values", rng) > 0).astype(int)
    elif kind == "survival":
        times = _labels(x, "positive", rng)
        y = np.column_stack([times, times * 2]) if "Aft" in objective else times
    else:
        y = _labels(x, kind, rng, classes)
    if objective.startswith(("QueryCross", "QuerySoft")):
        y = (y > 1).astype(float)
    if kind in ("two", "many") and objective != "threshold" and rng.random() < 0.3:
        y = np.array(["b", "a", "d", "c", "e"])[y]
    options: dict[str, Any] = {
        "loss_function": "Logloss" if objective == "threshold" else objective,
        "iterations": int(rng.integers(1, 10)),
        "depth": int(rng.integers(1, 5)),
        "learning_rate": float(rng.choice([1e-4, 0.1, 1.0])),
        "grow_policy": str(rng.choice(["SymmetricTree", "SymmetricTree", "Depthwise", "Lossguide"])),
        "nan_mode": str(rng.choice(["Min", "Max"])),
        "thread_count": 1,
        "random_seed": int(rng.integers(1000)),
        "verbose": 0,
        "allow_writing_files": False,
    }
    if rng.random() < 0.3 and objective in ("RMSE", "Logloss", "CrossEntropy", "Quantile:alpha=0.3", "MAPE"):
        options["boost_from_average"] = bool(rng.random() < 0.5)
    group = np.repeat(np.arange(-(-len(x) // 10)), 10)[: len(x)] if kind == "grades" else None

    def train() -> Any:
        kind_of = catboost.CatBoostClassifier if kind in ("two", "many", "share") else catboost.CatBoostRegressor
        model = catboost.CatBoost(options) if kind in ("labels", "grades", "survival") else kind_of(**options)
        return model.fit(catboost.Pool(x, y, group_id=group))

    made = _trained(train)
    if objective == "threshold":
        made.set_probability_threshold(float(rng.choice([0.1, 0.3, 0.5, 0.77, 0.999])))
    path = folder / "model.json"
    _trained(lambda: made.save_model(str(path), format="json"))

    def said(rows: np.ndarray) -> Said:
        margins = made.predict(rows, prediction_type="RawFormulaVal", thread_count=1)
        return Said(margins, made.predict(rows) if kind in ("two", "many", "share") else None)

    return Made(f"{objective} {options['grow_policy']}", (path, made), x, said)


# --- treelite --------------------------------------------------------------------------------------------------------------


def treelite_model(number: int, rng: np.random.Generator, folder: Path) -> Made:
    import treelite

    which = number % 3
    if which == 2:
        names = [n for n in range(12) if not _SKLEARN[n].startswith("Ada")]
        source = sklearn_model(names[number // 3 % len(names)] + len(_SKLEARN) * (number // 36), rng, folder)
        model = _trained(lambda: treelite.sklearn.import_model(source.sources[0]))
    elif which == 1:
        source = lightgbm_model(number // 3, rng, folder)
        model = _trained(lambda: treelite.frontend.load_lightgbm_model(source.sources[0]))
    else:
        source = xgboost_model(number // 3, rng, folder)
        model = _trained(lambda: treelite.frontend.from_xgboost(source.sources[1]))
    path = folder / "model.tl"
    model.serialize(path)
    return Made(f"treelite of {source.name}", (path,) if rng.random() < 0.2 else (model,), source.rows)


def onnx_model(number: int, rng: np.random.Generator, folder: Path) -> Made:
    made = graph(rng)
    width = made.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    rows = rng.choice([-1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, np.nan, 1e30], (50, width))
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())

    def said(rows: np.ndarray) -> Said:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(made.SerializeToString(), options)
        found = session.run(None, {"x": rows.astype(np.float32)})
        return Said(None, found[0] if len(found) == 2 else None)

    return Made(made.graph.name, (path,), rows, said)


Maker = Callable[[int, np.random.Generator, Path], Made]
LIBRARIES: dict[str, tuple[Maker, tuple[str, ...]]] = {
    "xgboost": (xgboost_model, (r"several labels at once", r"objective `reg:expectileerror`", r"vector leaves")),
    "lightgbm": (lightgbm_model, (r"linear trees", r"reg_sqrt", r"objective `cross_entropy_lambda`")),
    "sklearn": (
        sklearn_model,
        (
            r"(AdaBoostRegressor|IsolationForest|BaggingClassifier|VotingClassifier) is not supported",
            r"initial estimator DecisionTreeRegressor is not a constant",
            r"the mean of 2 calibrated models",
            r"more than two classes",
            r"does not preserve the order of the scores",
            r"the cut-off is a probability of .*the first class",
            r"the cut-off .* is not a probability",
            r"several labels",
        ),
    ),
    "catboost": (catboost_model, (r"loss function `[A-Za-z]+` is not supported",)),
    "treelite": (
        treelite_model,
        (r"postprocessor `[a-z_0-9]+` is not supported", r"models of kind `kIsolationForest`", r"several targets",
         r"a regressor with this postprocessor"),
    ),
    "onnx": (
        onnx_model,
        (
            r"of a classifier is not supported", r"of a regressor is not supported", r"expected SUM or AVERAGE",
            r"splits of mode `BRANCH_(EQ|NEQ)`", r"softmax of one score", r"probabilities with a base value",
            r"base values? (value )?(has|for)|two base values", r"has no weight in some leaves",
            r"the runtime predicts 0 and 1 instead", r"values for \d+ outputs", r"0 tree ensembles",
        ),
    ),
}  # fmt: skip
