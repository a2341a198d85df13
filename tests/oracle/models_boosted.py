"""Models of XGBoost, LightGBM and CatBoost, small, with leaves on a coarse grid half of the time (ties, exact sums)."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracle import sums
from tests.oracle.models import Columns, Model, frame, matrix, targets, training
from tests.oracle.spaces import Feature

COUNTS = {"binary": 2, "multi": 3, "regression": 0}
LINKS = {"binary": "logit", "multi": "softmax", "regression": "identity"}


def folder() -> Path:
    """Where model files of this process live."""
    global _FOLDER  # noqa: PLW0603
    if _FOLDER is None:
        _FOLDER = tempfile.TemporaryDirectory(prefix="oracle-")
    return Path(_FOLDER.name)


_FOLDER: Any = None


def coarse(value: float) -> float:
    """A leaf on a grid of eighths, never all zero."""
    return float(np.round(value * 8) / 8)


def draw_trees(rng: np.random.Generator, features: Sequence[Feature], kind: str) -> int:
    """How many rounds; wide models get many, so that searches are long."""
    few = 7 if kind != "multi" else 3
    return int(rng.integers(few, 30 if kind != "multi" else 8) if len(features) > 12 else rng.integers(1, few))


# XGBoost ---------------------------------------------------------------------------------------------------------------


def train_xgboost(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    import pandas as pd
    import xgboost as xgb

    columns = training(rng, features, int(rng.integers(40, 200)))
    y = targets(rng, columns, COUNTS[kind])
    trees, depth = draw_trees(rng, features, kind), int(rng.integers(1, 5))
    poisson = kind == "regression" and rng.random() < 0.3
    if poisson:
        y = np.abs(y)
    objective = {"binary": "binary:logistic", "multi": "multi:softprob", "regression": "reg:squarederror"}[kind]
    settings: dict[str, Any] = {
        "objective": "count:poisson" if poisson else objective, "max_depth": depth, "eta": float(rng.choice([0.3, 0.5, 1.0])),
        "min_child_weight": 0, "lambda": 0.0 if rng.random() < 0.5 else 1.0, "nthread": 1, "seed": 1,
        "tree_method": "hist", "max_cat_to_onehot": int(rng.choice([1, 8])),
    }  # fmt: skip
    plain = rng.random() < 0.5
    if plain and not poisson:
        settings["base_score"] = 0.5 if kind != "regression" else 0.0
    if rng.random() < 0.15:
        settings |= {"booster": "dart", "rate_drop": 0.3}
    if kind == "multi":
        settings["num_class"] = 3
    labelled = any(f.codes == "label" for f in features)
    names = [f.name for f in features]
    if any(c in n for n in names for c in "[]<"):
        raise ValueError("xgboost takes no such names")
    types = ["c" if f.codes == "code" else "q" for f in features]

    def matrix_of(c: Columns) -> Any:
        if labelled:
            shown = frame(c, features)
            for f, t in zip(features, types, strict=True):
                if t == "c":
                    shown[f.name] = pd.Categorical(shown[f.name], categories=[float(k) for k in range(8)])
            return xgb.DMatrix(shown, enable_categorical=True)
        return xgb.DMatrix(matrix(c, np.float32), feature_names=names, feature_types=types, enable_categorical=True)

    if labelled and "c" in types:
        raise ValueError("one kind of categories per model")
    if not all(label.isascii() for f in features for label in f.labels):
        raise ValueError("xgboost cuts names that are not ASCII at the wrong places")
    booster = xgb.train(settings, _with_label(matrix_of(columns), y), trees)
    path = folder() / f"{name}.{rng.integers(1 << 40)}.json"
    booster.save_model(path)
    style = str(rng.choice(["coarse", "spread", "as trained"], p=[0.6, 0.25, 0.15])) if plain and not poisson else ""
    if style in ("coarse", "spread"):
        change = coarse if style == "coarse" else lambda v: float(np.float32(sums.spread(rng, v, 9)))
        path.write_text(_changed_xgboost(json.loads(path.read_text()), change))
        booster = xgb.Booster(model_file=str(path))
    if rng.random() < 0.3 and not labelled:
        path = path.rename(path.with_suffix(".ubj"))
        booster.save_model(path)
    return _xgboost_model(booster, path, name, kind, features, matrix_of, trees, poisson, style)


def _with_label(m: Any, y: np.ndarray) -> Any:
    m.set_label(y)
    return m


def _changed_xgboost(model: dict[str, Any], change: Callable[[float], float]) -> str:
    """Other leaves, in the file of the library."""
    booster = model["learner"]["gradient_booster"]
    booster = booster.get("gbtree", booster)
    for tree in booster["model"]["trees"]:
        for n, left in enumerate(tree["left_children"]):
            if left == -1:
                value = change(tree["split_conditions"][n])
                tree["split_conditions"][n] = value
                tree["base_weights"][n] = value
    return json.dumps(model, ensure_ascii=False)


def _xgboost_model(
    booster: Any, path: Path, name: str, kind: str, features: Sequence[Feature], matrix_of: Any, trees: int,
    poisson: bool, style: str,
) -> Model:  # fmt: skip
    shown = booster.trees_to_dataframe()
    splits = shown[shown["Feature"] != "Leaf"]
    numeric = splits[splits["Split"].notna()]
    thresholds = {str(f): sorted(map(float, np.float32(g["Split"].to_numpy()))) for f, g in numeric.groupby("Feature")}
    names = tuple(f.name for f in features)
    outputs = 3 if kind == "multi" else 1

    def margins(c: Columns) -> np.ndarray:
        return np.asarray(booster.predict(matrix_of(c), output_margin=True), float).reshape(-1, outputs)

    def classes(c: Columns) -> np.ndarray:
        given = booster.predict(matrix_of(c))
        return np.asarray(given > 0.5 if kind == "binary" else given.argmax(axis=1)).astype(int)

    def shorten(count: int) -> Model:
        cut = booster[:count]
        file = path.with_suffix(f".{count}.json")
        cut.save_model(file)
        return _xgboost_model(cut, file, name, kind, features, matrix_of, count, poisson, style)

    def exact(c: Columns) -> tuple[np.ndarray, int]:
        leaves = np.asarray(booster.predict(matrix_of(c), pred_leaf=True), int).reshape(len(c[0]), -1)
        return sums.sums_of(leaves, sums.xgboost_leaves(json.loads(booster.save_raw("json"))))

    # The base is 0 if it is plain; dart weighs trees, which is no plain sum of leaves.
    summed = (
        style != ""
        and kind != "multi"
        and json.loads(booster.save_config())["learner"]["gradient_booster"]["name"] == "gbtree"
    )
    return Model(
        name, "xgboost", kind, "exp" if poisson else LINKS[kind], str(path), margins,
        classes if kind != "regression" else None, lambda c: booster.predict(matrix_of(c), pred_leaf=True),
        tuple("012"[: COUNTS[kind]]), thresholds, True, tuple(n in set(splits["Feature"]) for n in names),
        bool(splits["Category"].notna().any()), True, np.float32, shorten, trees, dyadic=style == "coarse", feature_names=names,
        sums_of=exact if summed else None,
    )  # fmt: skip


# LightGBM --------------------------------------------------------------------------------------------------------------


def train_lightgbm(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    import lightgbm as lgb

    columns = training(rng, features, int(rng.integers(40, 200)))
    y = targets(rng, columns, COUNTS[kind])
    trees = draw_trees(rng, features, kind)
    poisson = kind == "regression" and rng.random() < 0.3
    if poisson:
        y = np.abs(y)
    objective = {"binary": "binary", "multi": "multiclass", "regression": "regression"}[kind]
    link = LINKS[kind]
    if kind == "multi" and rng.random() < 0.3:
        objective, link = "multiclassova", "ova"
    settings: dict[str, Any] = {
        "objective": "poisson" if poisson else objective, "num_leaves": int(rng.integers(2, 12)),
        "max_depth": int(rng.integers(1, 5)), "learning_rate": 0.5, "min_data_in_leaf": 1, "min_data_per_group": 1,
        "cat_smooth": 0, "cat_l2": 0, "min_data_in_bin": 1,
        "max_cat_to_onehot": int(rng.choice([1, 4])), "verbose": -1, "num_threads": 1, "seed": 1, "deterministic": True,
        "boost_from_average": bool(rng.random() < 0.5), "zero_as_missing": bool(rng.random() < 0.1),
        "feature_pre_filter": False, "use_missing": bool(rng.random() < 0.95),
    }  # fmt: skip
    if rng.random() < 0.15:
        settings["boosting"] = "dart"
    if kind == "multi":
        settings["num_class"] = 3
    labelled = any(f.codes == "label" for f in features)
    codes = [i for i, f in enumerate(features) if f.codes == "code"]
    if labelled and codes:
        raise ValueError("one kind of categories per model")
    names = [f.name for f in features]
    if any(not set(n) - set(' []{}:,"') == set(n) for n in names):
        raise ValueError("lightgbm takes no such names")

    def inputs(c: Columns) -> Any:
        return frame(c, features) if labelled else matrix(c)

    data = lgb.Dataset(
        inputs(columns),
        y,
        feature_name=names,
        categorical_feature="auto" if labelled else codes,
        params={"verbose": -1},
    )
    booster = lgb.train(settings, data, trees)
    text = booster.model_to_string()
    style = str(rng.choice(["coarse", "spread", "as trained"], p=[0.4, 0.2, 0.4])) if not poisson else ""
    if style in ("coarse", "spread"):
        change = coarse if style == "coarse" else lambda v: sums.spread(rng, v, 14)
        text = re.sub(r"(?m)^tree_sizes=.*\n", "", text)
        text = re.sub(
            r"(?m)^leaf_value=(.*)$",
            lambda m: "leaf_value=" + " ".join(repr(change(float(v))) for v in m[1].split()),
            text,
        )
    model = _lightgbm_model(text, name, kind, "exp" if poisson else link, features, inputs, style)
    model.celled = not settings["zero_as_missing"]  # 0 has a cell of its own then
    return model


def _lightgbm_model(
    text: str, name: str, kind: str, link: str, features: Sequence[Feature], inputs: Any, style: str, trees: int = -1
) -> Model:
    import lightgbm as lgb

    booster = lgb.Booster(model_str=text)
    if trees > 0:
        booster = lgb.Booster(model_str=booster.model_to_string(num_iteration=trees))
    path = folder() / f"{name}.{abs(hash((text, trees)))}.txt"
    path.write_text(booster.model_to_string())
    outputs = 3 if kind == "multi" else 1
    thresholds, used, categorical = _lightgbm_splits(booster, [f.name for f in features])

    def margins(c: Columns) -> np.ndarray:
        return np.asarray(booster.predict(inputs(c), raw_score=True), float).reshape(-1, outputs)

    def classes(c: Columns) -> np.ndarray:
        given = booster.predict(inputs(c))
        return np.asarray(given > 0.5 if kind == "binary" else given.argmax(axis=1)).astype(int)

    def exact(c: Columns) -> tuple[np.ndarray, int]:
        leaves = np.asarray(booster.predict(inputs(c), pred_leaf=True), int).reshape(len(c[0]), -1)
        return sums.sums_of(leaves, sums.lightgbm_leaves(path.read_text()))

    return Model(
        name, "lightgbm", kind, link, str(path), margins, classes if kind != "regression" else None,
        lambda c: booster.predict(inputs(c), pred_leaf=True), tuple("012"[: COUNTS[kind]]), thresholds, False,
        tuple(f.name in used for f in features), categorical, False, np.float64,
        lambda n: _lightgbm_model(text, name, kind, link, features, inputs, style, n), booster.num_trees(),
        dyadic=style == "coarse", feature_names=tuple(f.name for f in features),
        sums_of=exact if kind != "multi" and link != "exp" else None,
    )  # fmt: skip


ZERO = float(np.float32(1e-35))
"""LightGBM's `kZeroThreshold` (include/LightGBM/meta.h): with `zero_as_missing`, numbers up to it are missing."""


def _lightgbm_splits(booster: Any, names: list[str]) -> tuple[dict[str, list[float]], set[str], bool]:
    thresholds: dict[str, list[float]] = {}
    used: set[str] = set()
    categorical = False

    def visit(node: dict[str, Any]) -> None:
        nonlocal categorical
        if "split_feature" not in node:
            return
        name = names[node["split_feature"]]
        used.add(name)
        if node["decision_type"] == "==":
            categorical = True
        else:
            mine = thresholds.setdefault(name, [])
            mine.append(float(node["threshold"]))
            if node["missing_type"] == "Zero":  # numbers next to 0 go where missing ones go
                mine += [-ZERO, ZERO]
        visit(node["left_child"])
        visit(node["right_child"])

    for tree in booster.dump_model()["tree_info"]:
        visit(tree["tree_structure"])
    return thresholds, used, categorical


# CatBoost --------------------------------------------------------------------------------------------------------------


def train_catboost(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    import catboost

    columns = training(rng, features, int(rng.integers(40, 150)))
    y = targets(rng, columns, COUNTS[kind])
    labelled = [f.name for f in features if f.codes != "number"]
    made = catboost.CatBoostRegressor if kind == "regression" else catboost.CatBoostClassifier
    for c, f in zip(columns, features, strict=True):
        if f.codes != "number" and (set(f.labels) - set(c.tolist()) or f.missing or f.missing_text):
            raise ValueError("the model knows the categories of the training part alone, and none that is missing")
    options: dict[str, Any] = {"one_hot_max_size": int(rng.choice([1, 1, 2]))} if labelled else {}
    if labelled and rng.random() < 0.3:
        options["max_ctr_complexity"] = 1
    model = made(
        iterations=int(rng.integers(1, 5)), depth=int(rng.integers(1, 4)), learning_rate=0.5, thread_count=1, random_seed=1,
        allow_writing_files=False, verbose=0, nan_mode=str(rng.choice(["Min", "Max"])), boost_from_average=False,
        grow_policy=str(rng.choice(["SymmetricTree", "Lossguide", "Depthwise"])),
        border_count=int(rng.choice([3, 254])), l2_leaf_reg=float(rng.choice([0.1, 3.0])), **options,
    )  # fmt: skip
    pool = catboost.Pool(
        _catboost_rows(columns, features), y, cat_features=labelled, feature_names=[f.name for f in features]
    )
    try:
        model.fit(pool)
    except catboost.CatBoostError as error:
        raise ValueError(str(error)) from None
    return _catboost_model(model, name, kind, features, live=bool(rng.random() < 0.3) and not labelled, pool=pool)


def _catboost_rows(columns: Columns, features: Sequence[Feature]) -> Any:
    """A matrix of numbers, or of numbers and texts."""
    if all(f.codes == "number" for f in features):
        return matrix(columns, np.float32)
    made = np.empty((len(columns[0]), len(columns)), dtype=object)
    for i, c in enumerate(columns):
        made[:, i] = c if features[i].codes != "number" else c.astype(np.float32)
    return made


def _catboost_model(
    model: Any, name: str, kind: str, features: Sequence[Feature], *, live: bool, pool: Any = None
) -> Model:
    path = folder() / f"{name}.{id(model)}.{np.random.default_rng().integers(1 << 40)}.json"
    model.save_model(str(path), format="json", pool=pool)
    outputs = 3 if kind == "multi" else 1
    # With categories, combinations of features have borders of their own.
    info = json.loads(path.read_text())["features_info"]
    tables = {tuple(e.get("cat_feature_index") for e in ctr["elements"]) for ctr in info.get("ctrs", [])}
    if any((f["feature_index"],) not in tables for f in info.get("categorical_features", [])):
        raise ValueError("the file does not tell which categories such a column has")
    borders = {f["feature_id"]: set(map(np.float32, f["borders"] or [])) for f in info.get("float_features", [])}
    numbers = {f["feature_index"]: f["feature_id"] for f in info.get("float_features", [])}
    asked = {f["feature_id"] for f in info.get("categorical_features", [])}
    for element in (e for ctr in info.get("ctrs", []) for e in ctr["elements"]):
        if "border" in element:
            borders[numbers[element["float_feature_index"]]].add(np.float32(element["border"]))
    borders = {feature: sorted(map(float, cuts)) for feature, cuts in borders.items()}

    def margins(c: Columns) -> np.ndarray:
        rows = _catboost_rows(c, features)
        return np.asarray(model.predict(rows, prediction_type="RawFormulaVal"), float).reshape(-1, outputs)

    def classes(c: Columns) -> np.ndarray:
        return np.asarray(model.predict(_catboost_rows(c, features), prediction_type="Class"), int).reshape(-1)

    def shorten(count: int) -> Model:
        cut = model.copy()
        cut.shrink(count)
        return _catboost_model(cut, name, kind, features, live=live, pool=pool)

    cuttable = model.get_param("grow_policy") == "SymmetricTree"

    def save(place: Path) -> str:
        model.save_model(str(place / f"{name}.json"), format="json", pool=pool)
        return f"{name}.json"

    return Model(
        name, "catboost", kind, LINKS[kind], model if live else str(path), margins,
        classes if kind != "regression" else None, None,
        tuple("012"[: COUNTS[kind]]), borders, False,
        tuple(bool(borders.get(f.name)) or f.name in asked for f in features), bool(asked), False,
        np.float32, shorten if cuttable else None, model.tree_count_, save=save, feature_names=tuple(f.name for f in features),
    )  # fmt: skip
