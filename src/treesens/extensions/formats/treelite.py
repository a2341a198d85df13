"""Reads treelite checkpoints and live treelite models, evaluated as in GTIL, treelite's reference implementation.

GTIL (gtil/predict.cc of version 4): inputs and thresholds have the model's threshold type; NaN goes to the default child; a
category that is below 0, or not in the list, does not match. Leaves are added to 0 in the leaf type, in the order of the trees,
and optionally averaged; then float64 base scores are added. The checkpoint lacks other steps of the training library
(scikit-learn's cast to float32, LightGBM's zero band), so the model is read as treelite evaluates it.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import NumberType, float32_of_decimals
from treesens.compiler.model import Accumulation, ModelSource, Task
from treesens.compiler.model.evaluate import Predicted
from treesens.errors import ModelError
from treesens.extensions.formats.apart import read_apart
from treesens.frontends.base import LoadedModel
from treesens.frontends.columns import (
    MAX_CATEGORIES,
    MAX_FEATURES,
    Nodes,
    as_categorical,
    check_set_bytes,
    ensemble_of,
    feature_tuple,
    stack_trees,
)
from treesens.frontends.documents import Field, Table, check_document, inside, irrelevant, optional, used
from treesens.links import Exp, Identity, Link, Logistic, Raw, Softmax

_LINKS = {
    "identity": Identity(),
    "identity_multiclass": Identity(),
    "sigmoid": Logistic(),
    "multiclass_ova": Logistic(),
    "softmax": Softmax(),
    "exponential": Exp(),
    "hinge": Raw(),
}
_OF_SEVERAL = ("identity", "identity_multiclass", "multiclass_ova", "softmax")
"""Postprocessors that apply to all classes of a target; all other postprocessors apply only to the first score."""
_TASKS = {
    "kBinaryClf": Task.BINARY,
    "kMultiClf": Task.MULTICLASS,
    "kRegressor": Task.REGRESSION,
    "kLearningToRank": Task.RANKING,
}
_TYPES = {"float32": NumberType.FLOAT32, "float64": NumberType.FLOAT64}
_MAX_OUTPUTS = 100_000
# A damaged checkpoint may crash the process that opens it, so another process opens it first.
_DUMP = """
model = treelite.Model.deserialize(sys.argv[3])
for number in range(model.num_tree):
    tree = model.get_tree_accessor(number)
    for name in ("node_type", "cleft", "cright", "split_index", "default_left", "leaf_value", "threshold", "cmp"):
        if len(tree.get_field(name)) != tree.get_field("num_nodes")[0]:  # treelite would read what lies behind it in memory
            sys.exit(f"tree {number}: {name} has no value for some nodes")
text = model.dump_as_json(pretty_print=False)
sys.stdout.write(text)
if '"threshold":,' in text:
    import json
    trees = [model.get_tree_accessor(i).get_field("threshold").tolist() for i in range(model.num_tree)]
    sys.stdout.write("\\n" + json.dumps(trees))
"""

_NO_THRESHOLD = '"threshold":,'
"""Treelite's text for an infinite threshold, which scikit-learn writes at splits for missing values."""


TABLE: Table = {
    "model": {
        **used(
            "average_tree_output",
            "base_scores",
            "class_id",
            "leaf_output_type",
            "num_class",
            "num_feature",
            "num_target",
        ),
        **used("postprocessor", "sigmoid_alpha", "target_id", "task_type", "threshold_type"),
        "trees": inside("tree"),
        **irrelevant("the leaves determine the number of outputs", ("leaf_vector_shape",)),
        **irrelevant("a parameter of an unsupported postprocessor", ("ratio_c",)),
        **irrelevant("a user's comment", ("attributes",)),
    },
    "tree": {"nodes": inside("node"), **irrelevant("given by the nodes", ("has_categorical_split", "num_nodes"))},
    "node": {
        **used("node_id"),
        **optional("a split", used("leaf_value")),
        **optional("a leaf", used("default_left", "left_child", "right_child", "split_feature_id")),
        **optional("a leaf, or a split on a category", used("comparison_op", "threshold")),
        **optional("a leaf, or a split on a number", used("category_list", "category_list_right_child")),
        **irrelevant("given by the node's fields", ("node_type",)),
        **irrelevant("training counts", ("data_count", "gain", "sum_hess")),
    },
}
"""Every field of the dump (version 4)."""


def _parsed(text: str) -> Any:
    """The dump as JSON. Thresholds that are missing from the dump are in a second line, as one array per tree."""
    dump, _, thresholds = text.partition("\n")
    root = json.loads(dump.replace(_NO_THRESHOLD, '"threshold":null,'))
    if not thresholds.strip():
        return root
    for tree, values in zip(root["trees"], json.loads(thresholds), strict=True):
        for node in tree["nodes"]:
            if "threshold" in node and node["threshold"] is None:
                node["threshold"] = values[node["node_id"]]
    return root


class TreeliteFrontend:
    """Reads checkpoints of treelite 4 with the library."""

    name = "treelite"
    library = "treelite"
    reads_with = "treelite"

    def recognises_bytes(self, head: bytes) -> bool:
        # The version as three int32, then the types of thresholds and leaves (2: float32, 3: float64).
        if len(head) < 14:
            return False
        version = struct.unpack("<3i", head[:12])
        return 3 <= version[0] <= 9 and all(0 <= v < 100 for v in version) and head[12] in (2, 3) and head[13] in (2, 3)

    def recognises_object(self, obj: object) -> bool:
        treelite = sys.modules.get("treelite")
        return treelite is not None and isinstance(obj, treelite.Model)

    def load(self, path: Path, data: bytes) -> LoadedModel:
        return self._read(_dumped(data, str(path)), data, str(path), path.stem)

    def from_object(self, obj: Any) -> LoadedModel:
        text = obj.dump_as_json(pretty_print=False)
        if _NO_THRESHOLD in text:
            trees = [obj.get_tree_accessor(i).get_field("threshold").tolist() for i in range(obj.num_tree)]
            text = f"{text}\n{json.dumps(trees)}"
        return self._read(text, bytes(obj.serialize_bytes()), "<treelite.Model>", "model")

    def _read(self, text: str, data: bytes, place: str, name: str) -> LoadedModel:
        try:
            root = Field(_parsed(text), place)
        except (ValueError, RecursionError, LookupError, TypeError):
            raise ModelError("treelite's dump of the model is not JSON", place=place, remedy="save it again") from None
        check_document(TABLE, root.value, place)
        kind, leaf_kind = (_type(root[key]) for key in ("threshold_type", "leaf_output_type"))
        outputs, task, link = _outputs(root)
        width = root["num_feature"].integer()
        if not 0 < width <= MAX_FEATURES:
            raise root["num_feature"].error(f"{width} features are not plausible")
        fields = list(root["trees"].items())
        tree_output = _tree_outputs(root, len(fields), outputs)
        counts: dict[int, int] = {}
        raw = [list(tree["nodes"].items()) for tree in fields]
        _count_categories(raw, counts)
        trees = [_nodes(nodes, counts, outputs if tree_output[i] < 0 else 1, kind) for i, nodes in enumerate(raw)]
        features = tuple(
            as_categorical(f, counts[i], None) if i in counts else f
            for i, f in enumerate(feature_tuple([f"f{i}" for i in range(width)], place))
        )
        per_output = len(trees) if (tree_output < 0).any() else len(trees) // outputs
        single = leaf_kind is NumberType.FLOAT32
        ensemble = ensemble_of(
            stack_trees(trees),
            features,
            place,
            name=name,
            number_type=kind,
            comparison="<=",
            tree_output=tree_output,
            tree_weight=np.ones(len(trees)),
            base=root["base_scores"].floats(),
            link=link,
            task=task,
            accumulation=Accumulation.FLOAT32_WIDE_BASE_LAST if single else Accumulation.FLOAT64_BASE_LAST,
            average=max(1, per_output) if root["average_tree_output"].value else 1,
            classes={Task.BINARY: (0, 1), Task.MULTICLASS: tuple(range(outputs))}.get(task, ()),
            source=ModelSource("treelite", sha256=hashlib.sha256(data).hexdigest(), path=place),
        )
        library = NativeTreelite(data, kind, outputs)
        note = "read as treelite evaluates it, which may differ from the library that trained the model"
        return LoadedModel(
            ensemble,
            self.name,
            library.margins,
            library.leaf_ids,
            (note,),
            predicts=None if not link.is_known else library.predicts,
        )


def _treelite() -> Any:
    try:
        import treelite
    except ImportError:
        raise ModelError(
            "treelite checkpoints need treelite, which is not installed", remedy="pip install 'treesens[treelite]'"
        ) from None
    return treelite


def _dumped(data: bytes, place: str) -> str:
    _treelite()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tl"
        path.write_bytes(data)
        return read_apart(
            "import treelite", _DUMP, [str(path)], len(data), "treelite cannot read the checkpoint", place
        )


def _type(field: Field) -> NumberType:
    if field.text() not in _TYPES:
        raise field.error(f"unknown type `{field.text()[:20]}`")
    return _TYPES[field.text()]


def _outputs(root: Field) -> tuple[int, Task, Link]:
    targets, classes = root["num_target"].integer(), root["num_class"].integers()
    if targets != len(classes) or targets < 1 or (classes < 1).any() or int(classes.sum()) > _MAX_OUTPUTS:
        raise root["num_class"].error("the numbers of targets and classes are not plausible")
    if targets > 1 and (classes > 1).any():
        raise root["num_class"].error(
            "several targets with several classes are not supported", "pass one model per target"
        )
    outputs = targets if targets > 1 else int(classes[0])
    kind, after = root["task_type"], root["postprocessor"]
    if kind.text() not in _TASKS:
        raise kind.error(f"models of kind `{kind.text()[:30]}` are not supported", f"supported: {', '.join(_TASKS)}")
    if after.text() not in _LINKS:
        raise after.error(f"postprocessor `{after.text()[:30]}` is not supported", f"supported: {', '.join(_LINKS)}")
    if int(classes[0]) > 1 and after.text() not in _OF_SEVERAL:
        raise after.error("treelite applies this postprocessor only to the first of several classes")
    task, link = _TASKS[kind.text()], _LINKS[after.text()]
    if task is Task.MULTICLASS and outputs == 2:
        task = Task.BINARY
    if isinstance(link, Logistic) and root["sigmoid_alpha"].value != 1:
        link = Raw()
    if task is Task.BINARY and outputs == 1 and link.is_linear:
        link = Raw()
    if not link.is_known and task is Task.REGRESSION:
        raise after.error("a regressor with this postprocessor is not supported")
    return outputs, task, link


def _tree_outputs(root: Field, trees: int, outputs: int) -> NDArray[np.int64]:
    target, label = root["target_id"].integers(), root["class_id"].integers()
    if len(root["base_scores"].floats()) != outputs:
        raise root["base_scores"].error(f"{len(root['base_scores'].floats())} base scores for {outputs} outputs")
    if not len(target) == len(label) == trees:
        raise root["class_id"].error(f"{len(label)} entries for {trees} trees")
    # treelite does not check the output to which it writes a leaf.
    for ids, key, most in ((target, "target_id", root["num_target"].integer()), (label, "class_id", outputs)):
        if ((ids < -1) | (ids >= most)).any():
            raise root[key].error(f"a tree adds to an output that does not exist: expected -1 to {most - 1}")
    if outputs == 1:
        return np.zeros(trees, dtype=np.int64)
    which = target if root["num_target"].integer() > 1 else label
    if (which >= outputs).any() or len(set((which < 0).tolist())) > 1:
        raise root["class_id"].error("an output does not exist, or trees for one and for all outputs are mixed")
    return np.maximum(which, -1)


def _count_categories(trees: list[list[Field]], counts: dict[int, int]) -> None:
    """The number of codes of each categorical feature, from the categories that are listed in its splits."""
    splits = []
    for nodes in trees:
        for node in nodes:
            if "category_list" not in node:
                continue
            feature, codes = node["split_feature_id"].integer(), node["category_list"].integers()
            if ((codes < 0) | (codes >= MAX_CATEGORIES)).any():
                raise node["category_list"].error("a category code is out of range")
            counts[feature] = max(counts.get(feature, 1), int(codes.max(initial=0)) + 1)
            splits.append(feature)
    check_set_bytes(sum(counts[f] + 1 for f in splits), trees[0][0].place if trees and trees[0] else "")


def _nodes(nodes: list[Field], counts: dict[int, int], width: int, kind: NumberType) -> Nodes:
    n = len(nodes)
    child = np.full((n, 2), -1, dtype=np.int64)
    feature, threshold = np.full(n, -1, dtype=np.int64), np.zeros(n)
    default, value = np.zeros(n, dtype=np.bool_), np.zeros((n, width))
    sets = {}
    for i, node in enumerate(nodes):
        if node["node_id"].integer() != i:
            raise node["node_id"].error(f"expected node {i}")
        if "leaf_value" in node:
            given = node["leaf_value"]
            numbers = given.value if isinstance(given.value, list) else [given.value]
            leaf = Field(numbers, given.place, given.path).floats()
            if len(leaf) != width:
                raise given.error(f"{len(leaf)} values for {width} outputs")
            value[i] = leaf
            continue
        child[i] = node["left_child"].integer(), node["right_child"].integer()
        feature[i] = node["split_feature_id"].integer()
        default[i] = bool(node["default_left"].value)
        if "category_list" in node:
            listed = np.zeros(counts[int(feature[i])] + 1, dtype=np.bool_)
            listed[node["category_list"].integers()] = True
            sets[i] = ~listed if node["category_list_right_child"].value else listed
            continue
        threshold[i], flip = _threshold(node, kind)
        if flip:
            child[i] = child[i][::-1]
            default[i] = not default[i]
    return Nodes(np.array([0, n]), child[:, 0], child[:, 1], feature, threshold, default, value, left_sets=sets)


def _threshold(node: Field, kind: NumberType) -> tuple[float, bool]:
    """The threshold t for which a comparison is equivalent to `x <= t`, and whether the children are exchanged."""
    given, operator = node["threshold"], node["comparison_op"].text()
    value = float(Field([given.value], given.place, given.path).floats()[0])
    if kind is NumberType.FLOAT32:
        value = float(float32_of_decimals(value)[0])
    if np.isnan(value) or operator not in ("<", "<=", ">", ">="):
        raise node.error(f"the split {operator[:5]} {value} is not supported")
    if operator in ("<", ">="):
        if np.isneginf(value):
            raise given.error("no number lies below -infinity")
        value = float(np.nextafter(kind.dtype.type(value), kind.dtype.type(-np.inf)))
    return value, operator in (">", ">=")


class NativeTreelite:
    """Predictions of treelite's GTIL."""

    def __init__(self, data: bytes, kind: NumberType, outputs: int) -> None:
        self._data, self._kind, self._outputs = data, kind, outputs
        self._model: Any = None

    def _call(self, name: str, rows: NDArray[np.float64], **options: Any) -> NDArray[Any]:
        treelite = _treelite()
        if self._model is None:
            self._model = treelite.Model.deserialize_bytes(self._data)
        with np.errstate(over="ignore"):
            x = np.asarray(rows, dtype=np.float64).astype(self._kind.dtype)
        try:
            return np.asarray(getattr(treelite.gtil, name)(self._model, x, nthread=1, **options))
        except treelite.TreeliteError as error:
            raise ModelError(f"treelite refused to predict: {error}") from None

    def margins(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Margins [rows, n_outputs] in the leaf type of the model."""
        return self._call("predict", rows, pred_margin=True).reshape(len(rows), self._outputs)

    def predicts(self, rows: NDArray[np.float64]) -> Predicted:
        """The postprocessed margins; treelite does not predict classes."""
        found = self._call("predict", rows).reshape(len(rows), self._outputs)
        # treelite computes exponentials of several classes in float32, even for float64 models.
        return Predicted(found.astype(np.float32) if self._outputs > 1 else found, None)

    def leaf_ids(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Node numbers of leaves int32[rows, trees]."""
        return self._call("predict_leaf", rows).reshape(len(rows), -1).astype(np.int32)
