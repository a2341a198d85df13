"""CatBoost models: JSON files read without catboost, and live CatBoost objects.

How CatBoost evaluates (version 1.2): inputs are cast to float32; a split is `x > border`, which goes right here, so that
`x <= border` goes left; NaN is below all borders, or above them where its feature says `AsTrue`. A tree is oblivious: split
i gives bit i of the leaf's number. Sums are float64 from 0 in the order of the trees, the bias comes last.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import NumberType, float32_of_decimals
from treesens.compiler.base.numbers import float_of
from treesens.compiler.model import Accumulation, Ensemble, Feature, Link, ModelSource, Task
from treesens.compiler.model.predicted import Predicted, positions
from treesens.errors import ModelError
from treesens.frontends.base import LoadedModel
from treesens.frontends.catboost_fields import TABLE
from treesens.frontends.columns import Nodes, ensemble_of, feature_tuple, stack_trees
from treesens.frontends.documents import is_json, parse_document
from treesens.frontends.fields import Field
from treesens.frontends.known_fields import check_document

_MAX_DEPTH = 20
_MAX_OUTPUTS = 100_000
_LINKS = {
    "Logloss": (Task.BINARY, Link.LOGISTIC),
    "CrossEntropy": (Task.BINARY, Link.LOGISTIC),
    "MultiClass": (Task.MULTICLASS, Link.SOFTMAX),
    "MultiClassOneVsAll": (Task.MULTICLASS, Link.LOGISTIC),
    "Poisson": (Task.REGRESSION, Link.EXP),
    "Tweedie": (Task.REGRESSION, Link.EXP),
    **dict.fromkeys(
        ("RMSE", "MAE", "Quantile", "Huber", "Expectile", "MAPE", "Lq", "MultiRMSE"), (Task.REGRESSION, Link.IDENTITY)
    ),
    **dict.fromkeys(
        ("QueryRMSE", "PairLogit", "PairLogitPairwise", "YetiRank", "YetiRankPairwise"), (Task.RANKING, Link.IDENTITY)
    ),
}


class CatBoostFrontend:
    """Reads what save_model(format="json") writes, of models whose features are all floats."""

    name = "catboost"
    library = "catboost"

    def recognises_bytes(self, head: bytes) -> bool:
        return is_json(head) and b'"features_info"' in head

    def recognises_object(self, obj: object) -> bool:
        catboost = sys.modules.get("catboost")
        return catboost is not None and isinstance(obj, catboost.CatBoost)

    def load(self, path: Path, data: bytes) -> LoadedModel:
        return self._read(data, str(path), path.stem)

    def from_object(self, obj: Any) -> LoadedModel:
        place = f"<{type(obj).__name__}>"
        if not obj.is_fitted():
            raise ModelError("the model has not been fitted", place=place, remedy="fit it first")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            obj.save_model(str(path), format="json")
            return self._read(path.read_bytes(), place, "model")

    def _read(self, data: bytes, place: str, name: str) -> LoadedModel:
        root = Field(parse_document(data, place), place)
        features, columns, nan_left = _features(root["features_info"])
        task, link, classes = _objective(root["model_info"])
        cut = _threshold(root["model_info"], task)
        scale, bias = _scale_and_bias(root["scale_and_bias"])
        if scale != 1:
            raise root["scale_and_bias"].error(f"scores are multiplied by {scale}", "call set_scale_and_bias(1, bias)")
        trees, oblivious = _trees(root, columns, nan_left, len(bias))
        check_document(TABLE, root.value, place)
        source = ModelSource("catboost-json", sha256=hashlib.sha256(data).hexdigest(), path=place)
        nodes = stack_trees(trees)
        ensemble = ensemble_of(
            nodes,
            features,
            place,
            name=name,
            source=source,
            number_type=NumberType.FLOAT32,
            comparison="<=",
            tree_output=np.full(len(trees), 0 if len(bias) == 1 else -1),
            tree_weight=np.ones(len(trees)),
            base=bias,
            link=link,
            task=task,
            accumulation=Accumulation.FLOAT64_BASE_LAST,
            ranks_scores=True,
            classes=classes,
            # 1/2 is the margin 0, as for every other model.
            decides_at=None if cut is None else -math.log(1 / float(cut) - 1) + 0.0,
            probability_cut=cut,
        )
        library = NativeCatBoost(data, nodes.leaf_value[nodes.left < 0], bias)
        return LoadedModel(
            ensemble,
            self.name,
            library.margins,
            library.leaf_ids if oblivious else None,
            predicts=partial(library.predicts, ensemble=ensemble),
        )


def _features(info: Field) -> tuple[tuple[Feature, ...], dict[int, int], NDArray[np.bool_]]:
    """Features by column, the column of every float feature, and whether NaN lies below its borders."""
    for other in ("categorical_features", "text_features", "embedding_features", "ctrs"):
        if other in info and len(info[other].value):
            # One-hot splits and tables of CTRs are about hashes of the texts, which a file holds without the texts.
            raise info[other].error(
                f"models with {other.replace('_', ' ')} are not supported: the file has hashes, and no names to ask about",
                "encode such columns as numbers before training; a pipeline with an OrdinalEncoder in front keeps their names",
            )
    fields = list(info["float_features"].items())
    n = len(fields)
    names, columns, nan_left = [""] * n, {}, np.ones(n, dtype=np.bool_)
    for field in fields:
        column, number = field["flat_feature_index"].integer(), field["feature_index"].integer()
        if not 0 <= column < n or names[column] or number in columns:
            raise field.error("the columns of the features are no permutation")
        columns[number] = column
        named = field.get("feature_id")
        names[column] = (named.text() if named else "") or f"f{column}"
        treatment = field["nan_value_treatment"].text()
        if treatment not in ("AsIs", "AsFalse", "AsTrue"):
            raise field["nan_value_treatment"].error(f"unknown treatment `{treatment[:20]}`")
        nan_left[column] = treatment != "AsTrue"
    return feature_tuple(names, info.place), columns, nan_left


def _objective(info: Field) -> tuple[Task, Link, tuple[str | int, ...]]:
    options: Any = info["params"].value
    if isinstance(options, str):
        try:
            options = json.loads(options)
        except (ValueError, RecursionError):
            raise info["params"].error("not JSON") from None
    loss = Field(options, info.place, f"{info.path}.params")["loss_function"]["type"].text()
    if loss not in _LINKS:
        raise info["params"].error(f"loss function `{loss[:40]}` is not supported", f"known: {', '.join(_LINKS)}")
    task, link = _LINKS[loss]
    if task in (Task.REGRESSION, Task.RANKING):
        return task, link, ()
    given = info["class_params"]["class_names"]
    if not isinstance(given.value, list) or not all(isinstance(c, (int, str, float)) for c in given.value):
        raise given.error("expected a list of class names")
    classes = tuple(c if isinstance(c, (int, str)) and not isinstance(c, bool) else str(c) for c in given.value)
    if loss == "CrossEntropy" and not classes:
        classes = (0, 1)  # trained on probabilities, it predicts 0 and 1
    if len(classes) < 2 or (task is Task.BINARY) != (len(classes) == 2):
        raise given.error(f"{len(classes)} classes for `{loss}`")
    return task, link, classes


def _threshold(info: Field, task: Task) -> Fraction | None:
    """The probability above which the second of two classes is predicted (`set_probability_threshold`), if it is not 1/2.

    CatBoost compares the raw score with -log(1 / p - 1), in float64.
    """
    given = info.get("binclass_probability_threshold")
    if given is None or task is not Task.BINARY:
        return None
    cut = float_of(str(given.value)) if isinstance(given.value, (str, int, float)) else None
    if cut is None or not 0 < cut < 1:
        raise given.error(
            f"the threshold `{str(given.value)[:40]}` is no probability between 0 and 1",
            "call set_probability_threshold with such a number",
        )
    return None if cut == 0.5 else Fraction(repr(cut))


def _scale_and_bias(field: Field) -> tuple[float, NDArray[np.float64]]:
    parts = list(field.items())
    if len(parts) != 2:
        raise field.error("expected a scale and a bias")
    bias = parts[1] if isinstance(parts[1].value, list) else Field([parts[1].value], field.place, field.path)
    values = bias.floats()
    if not 0 < len(values) <= _MAX_OUTPUTS:
        raise field.error(f"{len(values)} outputs make no sense")
    return float(Field([parts[0].value], field.place, field.path).floats()[0]), values


def _trees(root: Field, columns: dict[int, int], nan_left: NDArray[np.bool_], outputs: int) -> tuple[list[Nodes], bool]:
    if "oblivious_trees" in root:
        return [_oblivious(tree, columns, nan_left, outputs) for tree in root["oblivious_trees"].items()], True
    return [_nested(tree, columns, nan_left, outputs) for tree in root["trees"].items()], False


def _split(split: Field, columns: dict[int, int]) -> tuple[int, float]:
    """Column and border of a split."""
    kind = split["split_type"].text()
    if kind != "FloatFeature":
        raise split["split_type"].error(f"splits of kind `{kind[:40]}` are not supported", "use float features only")
    number = split["float_feature_index"].integer()
    if number not in columns:
        raise split["float_feature_index"].error("a split uses a feature that does not exist")
    border = split["border"]
    narrow, unsure = float32_of_decimals(Field([border.value], border.place, border.path).floats())
    if unsure.any() or np.isnan(narrow).any():
        raise border.error("the border is no float32")
    return columns[number], float(narrow[0])


def _oblivious(tree: Field, columns: dict[int, int], nan_left: NDArray[np.bool_], outputs: int) -> Nodes:
    """Node j of level k is number 2**k - 1 + j, where j are the bits of the k splits above."""
    split_fields = tree.get("splits")
    splits = [_split(s, columns) for s in split_fields.items()] if split_fields and split_fields.value else []
    depth = len(splits)
    values = tree["leaf_values"].floats()
    if depth > _MAX_DEPTH or len(values) != outputs << depth:
        raise tree["leaf_values"].error(f"{len(values)} values for {depth} splits and {outputs} outputs")
    level = np.repeat(np.arange(depth), 1 << np.arange(depth))
    within = np.arange(len(level)) - ((1 << level) - 1)
    left = (2 << level) - 1 + within
    leaves = np.full(1 << depth, -1)
    feature = np.array([f for f, _ in splits], dtype=np.int64)[level]
    threshold = np.array([b for _, b in splits], dtype=np.float64)[level]
    return Nodes(
        tree_offset=np.array([0, len(level) + len(leaves)]),
        left=np.concatenate([left, leaves]),
        right=np.concatenate([left + (1 << level), leaves]),
        feature=np.concatenate([feature, leaves]),
        threshold=np.concatenate([threshold, np.zeros(len(leaves))]),
        default_left=np.concatenate([nan_left[feature], leaves > 0]),
        leaf_value=np.concatenate([np.zeros((len(level), outputs)), values.reshape(-1, outputs)]),
        leaf_id=np.concatenate([np.full(len(level), -1), np.arange(1 << depth)]),
    )


def _nested(tree: Field, columns: dict[int, int], nan_left: NDArray[np.bool_], outputs: int) -> Nodes:
    """Trees of other growing policies: nested objects."""
    rows: list[tuple[int, int, int, float, Sequence[float]]] = []
    todo: list[tuple[Field, int, int]] = [(tree, -1, 0)]
    links: list[list[int]] = []
    while todo:
        node, parent, side = todo.pop()
        at = len(rows)
        links.append([-1, -1])
        if parent >= 0:
            links[parent][side] = at
        if "split" in node:
            feature, border = _split(node["split"], columns)
            rows.append((at, parent, feature, border, [0.0] * outputs))
            todo += [(node["right"], at, 1), (node["left"], at, 0)]
            continue
        given = node["value"]
        value = Field(given.value if isinstance(given.value, list) else [given.value], given.place, given.path).floats()
        if len(value) != outputs:
            raise given.error(f"{len(value)} values for {outputs} outputs")
        rows.append((at, parent, -1, 0.0, value.tolist()))
    child = np.array(links, dtype=np.int64)
    feature_of = np.array([row[2] for row in rows], dtype=np.int64)
    return Nodes(
        tree_offset=np.array([0, len(rows)]),
        left=child[:, 0],
        right=child[:, 1],
        feature=feature_of,
        threshold=np.array([row[3] for row in rows]),
        default_left=(feature_of >= 0) & nan_left[np.maximum(feature_of, 0)],
        leaf_value=np.array([row[4] for row in rows], dtype=np.float64).reshape(-1, outputs),
    )


class NativeCatBoost:
    """Predictions of the catboost library itself, from the JSON document.

    Its reader of JSON rounds decimals carelessly and changes leaf values and bias in the last bit, so that a model which is
    saved and loaded does not predict quite as before; `leaves` [L, outputs] of the file, in its order, and `bias` put them
    right again.
    """

    def __init__(self, data: bytes, leaves: NDArray[np.float64], bias: NDArray[np.float64]) -> None:
        self._data, self._leaves, self._bias = data, leaves, bias
        self._model: Any = None

    def _load(self, catboost: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            path.write_bytes(self._data)
            model = catboost.CatBoost()
            model.load_model(str(path), format="json")
        rounded = np.asarray(model.get_leaf_values())
        if rounded.shape != self._leaves.ravel().shape or not np.allclose(rounded, self._leaves.ravel(), rtol=1e-12):
            raise ModelError("catboost reads other leaf values from the file", remedy="report this model, please")
        model.set_leaf_values(np.ascontiguousarray(self._leaves.ravel()))
        model.set_scale_and_bias(1.0, self._bias.tolist() if len(self._bias) > 1 else float(self._bias[0]))
        self._model = model

    def _call(self, name: str, rows: NDArray[np.float64], **options: Any) -> NDArray[Any]:
        try:
            import catboost
        except ImportError:
            raise ModelError(
                "replay in CatBoost itself needs catboost, which is not installed",
                remedy="pip install 'treesens[catboost]'",
            ) from None
        try:
            if self._model is None:
                self._load(catboost)
            x = np.ascontiguousarray(rows, dtype=np.float64)
            return np.asarray(getattr(self._model, name)(x, thread_count=1, **options))
        except catboost.CatBoostError as error:
            raise ModelError(f"catboost refused to predict: {str(error).splitlines()[-1]}") from None

    def margins(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Raw formula values float64[rows, n_outputs]."""
        return self._call("predict", rows, prediction_type="RawFormulaVal").reshape(len(rows), len(self._bias))

    def predicts(self, rows: NDArray[np.float64], ensemble: Ensemble) -> Predicted:
        """Probabilities, exponents or raw values, and the class, as CatBoost names these kinds of prediction."""
        kind = {Link.EXP: "Exponent", Link.IDENTITY: "RawFormulaVal"}.get(ensemble.link, "Probability")
        found = self._call("predict", rows, prediction_type=kind).reshape(len(rows), -1)
        if not ensemble.classes:
            return Predicted(found, None)
        labels = self._call("predict", rows, prediction_type="Class")
        return Predicted(found[:, -len(self._bias) :], positions(labels, ensemble.classes))

    def leaf_ids(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Leaf numbers int32[rows, trees]."""
        return self._call("calc_leaf_indexes", rows).reshape(len(rows), -1).astype(np.int32)
