"""CatBoost models: Reads JSON files (catboost is not needed), `.cbm` files (with catboost) and live CatBoost objects.

How CatBoost evaluates (version 1.2): inputs are cast to float32; a split tests `x > border`, and in this reader inputs that
satisfy the test take the right child. NaN is below all borders or, if the feature's `nan_value_treatment` is `AsTrue`, above
all borders. Trees are oblivious: split i gives bit i of the leaf's number. Sums are float64, start at 0, and follow the order
of the trees; the bias is added last. Trees identify categories by hashes; a file saved with its pool contains their names.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import NumberType, float_of
from treesens.compiler.model import Accumulation, Feature, ModelSource, Task
from treesens.errors import ModelError
from treesens.extensions.formats.catboost.known import TABLE
from treesens.extensions.formats.catboost.library import NativeCatBoost, json_of_binary, pool_of
from treesens.extensions.formats.catboost.names import UnnamedError, as_number, names_of_categories
from treesens.extensions.formats.catboost.questions import (
    Above,
    Among,
    Categories,
    Question,
    Table,
    border_of,
    float_question,
    statistic,
)
from treesens.extensions.formats.catboost.trees import MAX_DEPTH, nested, nested_leaves, oblivious
from treesens.frontends.base import LoadedModel
from treesens.frontends.columns import Nodes, as_categorical, directions_of, ensemble_of, feature_tuple, stack_trees
from treesens.frontends.documents import Field, check_document, is_json, parse_document
from treesens.links import Exp, Identity, Link, Logistic, Softmax

_MAX_OUTPUTS = 100_000
_LINKS = {
    "Logloss": (Task.BINARY, Logistic()),
    "CrossEntropy": (Task.BINARY, Logistic()),
    "MultiClass": (Task.MULTICLASS, Softmax()),
    "MultiClassOneVsAll": (Task.MULTICLASS, Logistic()),
    "Poisson": (Task.REGRESSION, Exp()),
    "Tweedie": (Task.REGRESSION, Exp()),
    **dict.fromkeys(
        ("RMSE", "MAE", "Quantile", "Huber", "Expectile", "MAPE", "Lq", "MultiRMSE"), (Task.REGRESSION, Identity())
    ),
    **dict.fromkeys(
        ("QueryRMSE", "PairLogit", "PairLogitPairwise", "YetiRank", "YetiRankPairwise"), (Task.RANKING, Identity())
    ),
}

_BINARY = b"CBM1"
"""The first bytes of a file from `save_model`, unless another format is named."""
_AS_JSON = (
    "save it as JSON with its rows: catboost.CatBoost().load_model('m.cbm').save_model('m.json', format='json', "
    "pool=catboost.Pool(X, cat_features=[..]))"
)


class CatBoostFrontend:
    """Reads files of save_model, in JSON or in the default format."""

    name = "catboost"
    library = "catboost"

    def recognises_bytes(self, head: bytes) -> bool:
        return (is_json(head) and b'"features_info"' in head) or head.startswith(_BINARY)

    def recognises_object(self, obj: object) -> bool:
        catboost = sys.modules.get("catboost")
        return catboost is not None and isinstance(obj, catboost.CatBoost)

    def load(self, path: Path, data: bytes) -> LoadedModel:
        if not data.startswith(_BINARY):
            return self._read(data, str(path), path.stem)
        try:
            read = self._read(json_of_binary(path, len(data)), str(path), path.stem)
        except UnnamedError as error:
            raise ModelError(error.message, place=str(path), remedy=_AS_JSON) from None
        source = replace(read.ensemble.source, format="catboost-cbm", sha256=hashlib.sha256(data).hexdigest())
        return replace(read, ensemble=replace(read.ensemble, source=source))

    def from_object(self, obj: Any) -> LoadedModel:
        return self.with_rows(obj, None)

    def with_rows(self, obj: Any, rows: Any) -> LoadedModel:
        """The model of a live object; `rows`, a data frame or None, contains the names of its categories."""
        place = f"<{type(obj).__name__}>"
        if not obj.is_fitted():
            raise ModelError("the model has not been fitted", place=place, remedy="fit it first")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            try:
                obj.save_model(str(path), format="json", pool=pool_of(obj, rows))
            except sys.modules["catboost"].CatBoostError as error:
                reason = str(error).splitlines()[0].rpartition(": ")[2]
                raise ModelError(
                    f"catboost cannot save the model as JSON: {reason}", place=place, remedy="use numbers or categories"
                ) from None
            return self._read(path.read_bytes(), place, "model")

    def _read(self, data: bytes, place: str, name: str) -> LoadedModel:
        root = Field(parse_document(data, place), place)
        inputs = _inputs(root["features_info"], root.get("ctr_data"))
        scale, bias = _scale_and_bias(root["scale_and_bias"])
        task, link, classes = _objective(root["model_info"], len(bias))
        cut = _threshold(root["model_info"], task)
        if scale != 1:
            raise root["scale_and_bias"].error(f"scores are multiplied by {scale}", "call set_scale_and_bias(1, bias)")
        trees, leaves, same_leaves = _trees(root, inputs, len(bias))
        check_document(TABLE, root.value, place)
        source = ModelSource("catboost-json", sha256=hashlib.sha256(data).hexdigest(), path=place)
        nodes = stack_trees(trees)
        ensemble = ensemble_of(
            nodes,
            inputs.features,
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
            # The default 1/2 corresponds to margin 0, the cut-off of all other models.
            decides_at=None if cut is None else -math.log(1 / float(cut) - 1) + 0.0,
            probability_cut=cut,
        )
        library = NativeCatBoost(data, leaves, bias, inputs.names)
        return LoadedModel(
            ensemble,
            self.name,
            library.margins,
            library.leaf_ids if same_leaves else None,
            predicts=partial(library.predicts, ensemble=ensemble),
            monotone=_monotone(root["model_info"], ensemble.feature_names),
        )


@dataclass(frozen=True, eq=False)
class _Inputs:
    """The features of a model. Splits number floats and categories separately; `floats` and `coded` map numbers to columns."""

    features: tuple[Feature, ...]
    floats: Mapping[int, int]
    coded: Mapping[int, int]
    nan_left: NDArray[np.bool_]
    names: Mapping[int, Sequence[Any]]
    """The categories of a column in the library's form, in code order."""
    known: Categories


def _inputs(info: Field, tables: Field | None) -> _Inputs:
    for other in ("text_features", "embedding_features"):
        if other in info and len(info[other].value):
            raise info[other].error(
                f"models with {other.replace('_', ' ')} are not supported", "train without these columns"
            )
    numbers = list(info["float_features"].items()) if "float_features" in info else []
    categories = list(info["categorical_features"].items()) if "categorical_features" in info else []
    n = len(numbers) + len(categories)
    names, nan_left = [""] * n, np.ones(n, dtype=np.bool_)
    floats: dict[int, int] = {}
    coded: dict[int, int] = {}
    for field in numbers + categories:
        of_kind = floats if len(floats) < len(numbers) else coded
        column, number = field["flat_feature_index"].integer(), field["feature_index"].integer()
        if not 0 <= column < n or names[column] or number in of_kind:
            raise field.error("the columns of the features are not a permutation")
        of_kind[number] = column
        named = field.get("feature_id")
        names[column] = (named.text() if named else "") or f"f{column}"
        if of_kind is coded:
            continue
        treatment = field["nan_value_treatment"].text()
        if treatment not in ("AsIs", "AsFalse", "AsTrue"):
            raise field["nan_value_treatment"].error(f"unknown treatment `{treatment[:20]}`")
        if treatment == "AsTrue" and field["has_nans"].value is not True:
            # In this case the library compares NaN itself, and ignores the treatment.
            raise field["has_nans"].error("a treatment of missing values is set, but training had no missing values")
        nan_left[column] = treatment != "AsTrue"
    labels = names_of_categories(info, tables, coded)
    features = list(feature_tuple(names, info.place))
    for column, known in labels.items():
        feature = as_categorical(features[column], len(known), [as_number(name) for name, _ in known])
        features[column] = replace(feature, needs_value=True)  # the library refuses missing categories
    return _Inputs(
        tuple(features),
        floats,
        coded,
        nan_left,
        {column: [name for name, _ in known] for column, known in labels.items()},
        Categories({column: [value for _, value in known] for column, known in labels.items()}),
    )


def _options(info: Field) -> Field:
    """The options of training."""
    options: Any = info["params"].value
    if isinstance(options, str):
        try:
            options = json.loads(options)
        except (ValueError, RecursionError):
            raise info["params"].error("not JSON") from None
    return Field(options, info.place, f"{info.path}.params")


def _monotone(info: Field, names: Sequence[str]) -> dict[str, int]:
    """The training constraints of the model."""
    flat = _options(info).get("flat_params")
    given = None if flat is None or not isinstance(flat.value, dict) else flat.value.get("monotone_constraints")
    return directions_of(given, names, info.place)


def _objective(info: Field, outputs: int) -> tuple[Task, Link, tuple[str | int, ...]]:
    loss = _options(info)["loss_function"]["type"].text()
    if loss not in _LINKS:
        raise info["params"].error(f"loss function `{loss[:40]}` is not supported", f"known: {', '.join(_LINKS)}")
    task, link = _LINKS[loss]
    if task in (Task.REGRESSION, Task.RANKING):
        return task, link, ()
    given, kind = _class_names(info, outputs)
    if not isinstance(given.value, list) or not all(isinstance(c, (int, str, float)) for c in given.value):
        raise given.error("expected a list of class names")
    classes = tuple(c if isinstance(c, (int, str)) and not isinstance(c, bool) else str(c) for c in given.value)
    if loss == "CrossEntropy" and not classes:
        classes = (0, 1)  # a model trained on probabilities predicts 0 and 1
    if kind is not None and kind.value == "Integer" and not all(isinstance(c, int) for c in classes):
        raise given.error("the classes are whole numbers, but one of their names is not a whole number")
    if len(set(classes)) < len(classes):
        raise given.error("two classes have the same name")
    if len(classes) < 2 or (task is Task.BINARY) != (len(classes) == 2):
        raise given.error(f"{len(classes)} classes for `{loss}`")
    return task, link, classes


def _class_names(info: Field, outputs: int) -> tuple[Field, Field | None]:
    """The names of the classes and their type. Files before 0.24 have no `class_params`: the names are options of training, or
    the numbers 0, 1, ..
    """
    if "class_params" in info:
        return info["class_params"]["class_names"], info["class_params"].get("class_label_type")
    if "multiclass_params" in info:
        raise info["multiclass_params"].error("the classes of this version are not supported", "train it again")
    options = _options(info).get("data_processing_options")
    named = options.get("class_names") if options is not None else None
    if named is not None and named.value:
        return named, None
    return Field(list(range(max(outputs, 2))), info.place, info.path), None


def _threshold(info: Field, task: Task) -> Fraction | None:
    """The probability above which the second of two classes is predicted (`set_probability_threshold`); None for 1/2.

    CatBoost compares the raw score with -log(1 / p - 1), in float64.
    """
    given = info.get("binclass_probability_threshold")
    if given is None or task is not Task.BINARY:
        return None
    cut = float_of(str(given.value)) if isinstance(given.value, (str, int, float)) else None
    if cut is None or not 0 < cut < 1:
        raise given.error(
            f"the threshold `{str(given.value)[:40]}` is not a probability between 0 and 1",
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
        raise field.error(f"{len(values)} outputs are not plausible")
    return float(Field([parts[0].value], field.place, field.path).floats()[0]), values


def _trees(root: Field, inputs: _Inputs, outputs: int) -> tuple[list[Nodes], NDArray[np.float64], bool]:
    """The trees, the leaf values [L, W] in file order, and True if the library's leaf ids are the node numbers."""
    question = partial(_question, inputs=inputs, splits=_numbered(root, inputs))
    found: list[Nodes] = []
    leaves: list[float] = []
    if "oblivious_trees" not in root:
        for tree in root["trees"].items():
            found.append(nested(tree, question, outputs, inputs.nan_left))
            leaves += nested_leaves(tree)
        return found, np.array(leaves).reshape(-1, outputs), False
    for tree in root["oblivious_trees"].items():
        fields = tree.get("splits")
        asked = [question(split) for split in fields.items()] if fields and fields.value else []
        values = tree["leaf_values"].floats()
        if len(asked) > MAX_DEPTH or len(values) != outputs << len(asked):
            raise tree["leaf_values"].error(f"{len(values)} values for {len(asked)} splits and {outputs} outputs")
        found.append(oblivious(asked, values.reshape(-1, outputs), inputs.nan_left))
        leaves += values.tolist()
    return found, np.array(leaves).reshape(-1, outputs), True


def _numbered(root: Field, inputs: _Inputs) -> list[Question]:
    """All splits in the library's numbering: first on numbers, then on categories, then on statistics of categories."""
    info = root["features_info"]
    floats, coded, ctrs = (
        list(info[kind].items()) if kind in info else [] for kind in ("float_features", "categorical_features", "ctrs")
    )
    found: list[Question] = []
    for field in floats:
        column = inputs.floats[field["feature_index"].integer()]
        borders = field["borders"]
        found += [Above(column, border_of(border)) for border in (borders.items() if borders.value else ())]
    for field in coded:
        column = inputs.coded[field["feature_index"].integer()]
        for value in field["values"].items() if "values" in field else ():
            found.append(inputs.known.among(column, value.integer() & 0xFFFFFFFF))
    for ctr in ctrs:
        made = statistic(ctr, root["ctr_data"], inputs.floats, inputs.coded, inputs.known)
        found += [made.above(border_of(border)) for border in ctr["borders"].items()]
    return found


def _question(split: Field, inputs: _Inputs, splits: Sequence[Question]) -> Question:
    """The split of a node. The file identifies each split both by number and by its fields, which must agree."""
    kind, number = split["split_type"].text(), split["split_index"].integer()
    if not 0 <= number < len(splits):
        raise split["split_index"].error("a split that does not exist")
    found = splits[number]
    said = _said(split, kind, inputs)
    agree = isinstance(found, Table | Among) if said is None else _same(found, said)
    if not agree:
        raise split["split_index"].error(f"the node's fields do not match the split with the node's number, {number}")
    return found


def _same(one: Question, other: Question) -> bool:
    if isinstance(one, Among) and isinstance(other, Among):
        return one.column == other.column and np.array_equal(one.yes, other.yes)
    return not isinstance(one, Among) and one == other


def _said(split: Field, kind: str, inputs: _Inputs) -> Question | None:
    """The split in a node's own fields; None for a split on a statistic, which the file identifies only by number."""
    if kind == "FloatFeature":
        return float_question(split, inputs.floats)
    if kind == "OneHotFeature":
        number = split["cat_feature_index"].integer()
        if number not in inputs.coded:
            raise split["cat_feature_index"].error("a split uses a feature that does not exist")
        column = inputs.coded[number]
        return inputs.known.among(column, split["value"].integer() & 0xFFFFFFFF)
    if kind != "OnlineCtr":
        raise split["split_type"].error(f"splits of kind `{kind[:40]}` are not supported", "use numbers and categories")
    return None
