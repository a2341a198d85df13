"""Reads the nodes from the attributes of ONNX's tree operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import NumberType, next_down_array
from treesens.compiler.model import Task
from treesens.errors import ModelError
from treesens.extensions.formats.onnx.known import TABLE
from treesens.frontends.columns import Nodes
from treesens.frontends.documents import check_names
from treesens.links import Identity, Link, Logistic, Raw, Softmax

_LINKS = {"NONE": Identity(), "LOGISTIC": Logistic(), "SOFTMAX": Softmax()}
_MODES = (b"BRANCH_LEQ", b"BRANCH_LT", b"BRANCH_GTE", b"BRANCH_GT", b"LEAF")
_MAX_OUTPUTS = 100_000


@dataclass(frozen=True, eq=False)
class Attributes:
    """The attributes of an operator; errors state the attribute's name."""

    node: Any
    place: str
    _found: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._found.update({a.name: a for a in self.node.attribute})

    def error(self, name: str, message: str) -> ModelError:
        return ModelError(
            message, place=f"{self.place}: {self.node.op_type}.{name}", remedy="damaged file; convert the model again"
        )

    def values(self) -> dict[str, Any]:
        """Every attribute with its value: a list, a number, a text or a tensor."""
        return {name: a.t.dims if a.HasField("t") else a for name, a in self._found.items()}

    def has(self, name: str) -> bool:
        return name in self._found

    def ints(self, name: str) -> NDArray[np.int64]:
        return np.array(self._found[name].ints if self.has(name) else (), dtype=np.int64)

    def floats(self, name: str) -> NDArray[np.float64]:
        if self.has(f"{name}_as_tensor"):
            raise self.error(f"{name}_as_tensor", "values in double precision are not supported")
        return np.array(self._found[name].floats if self.has(name) else (), dtype=np.float64)

    def strings(self, name: str) -> list[bytes]:
        return list(self._found[name].strings) if self.has(name) else []

    def text(self, name: str, default: str) -> str:
        return self._found[name].s.decode("ascii", "replace") if self.has(name) else default

    def integer(self, name: str, default: int) -> int:
        return int(self._found[name].i) if self.has(name) else default


@dataclass(frozen=True, eq=False)
class Read:
    """The nodes of an operator, and further fields of the Ensemble."""

    nodes: Nodes
    tree_output: NDArray[Any]
    base: NDArray[np.float64]
    link: Link
    task: Task
    classes: tuple[str | int, ...] = ()
    average: int = 1
    decides_at: float | None = None
    notes: tuple[str, ...] = ()


def read_trees(operator: str, a: Attributes) -> Read:
    """The trees of a TreeEnsembleClassifier or TreeEnsembleRegressor. Raises ModelError for bad attributes."""
    check_names(TABLE, a.values(), a.place, operator)
    transform = a.text("post_transform", "NONE")
    base = a.floats("base_values")
    if operator == "TreeEnsembleRegressor":
        return _regressor(a, transform, base)
    classes: tuple[str | int, ...] = tuple(s.decode("utf-8", "replace") for s in a.strings("classlabels_strings"))
    numbers = tuple(a.ints("classlabels_int64s").tolist())
    if classes and numbers:
        raise a.error("classlabels_int64s", "the classes have both text and number labels")
    named, classes = bool(classes), classes or numbers
    if not 2 <= len(classes) <= _MAX_OUTPUTS or len(set(classes)) < len(classes):
        raise a.error("classlabels_int64s", f"there are {len(classes)} classes, or one is repeated")
    if transform not in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        raise a.error("post_transform", f"`{transform[:20]}` of a classifier is not supported")
    if len(classes) > 2:
        return _many_classes(a, classes, _LINKS.get(transform, Raw()), base)
    ids = set(a.ints("class_ids").tolist())
    if ids == {0, 1} and not named and classes != (0, 1):
        # In this case the runtime returns 0 and 1, whatever the labels.
        raise a.error("classlabels_int64s", f"the runtime predicts 0 and 1 instead of {classes[0]} and {classes[1]}")
    return (_one_score if ids == {0} else _two_scores)(a, classes, transform, base)


def _regressor(a: Attributes, transform: str, base: NDArray[np.float64]) -> Read:
    """Reads sums per target. The runtime ignores LOGISTIC and SOFTMAX for a regressor with one target."""
    outputs = a.integer("n_targets", 1)
    how = a.text("aggregate_function", "SUM")
    if how not in ("SUM", "AVERAGE"):
        raise a.error("aggregate_function", f"expected SUM or AVERAGE over trees, found `{how[:20]}`")
    known = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO") if outputs == 1 else ("NONE", "LOGISTIC")
    if transform not in known:
        raise a.error("post_transform", f"`{transform[:20]}` of a regressor is not supported")
    nodes, output, given = _nodes(a, "target", outputs)
    trees = len(nodes.tree_offset) - 1
    base = _base(a, base, outputs)
    _check_bases(a, base, given)
    link = Identity() if outputs == 1 else _LINKS[transform]
    return Read(nodes, output, base, link, Task.REGRESSION, average=trees if how == "AVERAGE" else 1)


def _many_classes(a: Attributes, classes: tuple[str | int, ...], link: Link, base: NDArray[np.float64]) -> Read:
    """Reads one score per class; the label is the first class with the greatest score among classes with a weight or a base."""
    nodes, output, given = _nodes(a, "class", len(classes))
    # A class without weights has no score, so it is not predicted even if all other scores are negative.
    if not len(base) and not given.all() and not (a.floats("class_weights") > 0).all():
        missing = classes[int(np.flatnonzero(~given)[0])]
        raise a.error("class_ids", f"class {missing!r} has no weight in some leaves, and therefore no score there")
    base = _base(a, base, len(classes))
    _check_bases(a, base, given)
    return Read(nodes, output, base, link, Task.MULTICLASS, classes)


def _positive(a: Attributes) -> bool:
    """True if no weight is negative; a single score is then a probability, which is compared with 1/2."""
    return bool((a.floats("class_weights") >= 0).all())


def _one_score(a: Attributes, classes: tuple[str | int, ...], transform: str, base: NDArray[np.float64]) -> Read:
    """Reads two classes with one score s: probabilities 1 - s and s if no weight is negative; else s is a margin."""
    nodes, output, given = _nodes(a, "class", 1)
    if len(base) > 1:
        raise a.error("base_values", "two base values for trees with one score are not supported")
    if transform in ("SOFTMAX", "SOFTMAX_ZERO"):
        raise a.error("post_transform", "the softmax of one score is not supported")
    base = base if len(base) else np.zeros(1)
    _check_bases(a, base, given)
    if not _positive(a):
        link = Logistic() if transform == "LOGISTIC" else Raw()
        return Read(nodes, output, base, link, Task.BINARY, classes)
    if transform == "LOGISTIC":
        return Read(nodes, output, base, Logistic(), Task.BINARY, classes, decides_at=0.5)
    if base.any():
        raise a.error("base_values", "probabilities with a base value are not supported")
    # The runtime subtracts the sum from 1; adding negated weights and then 1 rounds in the same way. The second score is the
    # greater one if it is above 1/2.
    both = Nodes(
        nodes.tree_offset,
        nodes.left,
        nodes.right,
        nodes.feature,
        nodes.threshold,
        nodes.default_left,
        np.concatenate([-nodes.leaf_value, nodes.leaf_value], axis=1),
    )
    return Read(both, np.full(len(output), -1), np.array([1.0, 0.0]), Identity(), Task.BINARY, classes)


def _two_scores(a: Attributes, classes: tuple[str | int, ...], transform: str, base: NDArray[np.float64]) -> Read:
    """Reads two classes of which the second has its own score: the second class is predicted if its score is above 0.

    If the first class has no weights and no weight is negative, the second score is compared with 1/2.
    """
    nodes, output, given = _nodes(a, "class", 2)
    alone = set(a.ints("class_ids").tolist()) == {1}
    if not given[1] or (len(base) == 1 and not alone and not given[0]):
        raise a.error("class_ids", "a class has no weight in some leaves; the runtime applies another rule there")
    if len(base) > 1:
        raise a.error("base_values", "two base values are not supported if both classes have scores")
    # A single base value belongs to the first class alone, if this class has a score.
    base = np.array([base[0] if len(base) and not alone else 0.0, 0.0])
    link = {"NONE": Identity(), "SOFTMAX": Softmax()}.get(transform, Raw())
    decides_at = 0.5 if alone and _positive(a) else 0.0
    return Read(nodes, output, base, link, Task.BINARY, classes, decides_at=decides_at)


def _base(a: Attributes, base: NDArray[np.float64], outputs: int) -> NDArray[np.float64]:
    if len(base) not in (0, outputs):
        raise a.error("base_values", f"{len(base)} values for {outputs} outputs")
    return base if len(base) else np.zeros(outputs)


def _check_bases(a: Attributes, base: NDArray[np.float64], given: NDArray[np.bool_]) -> None:
    """Refuses base values of outputs that lack a weight in some leaves, because the runtime may omit such base values."""
    if (base.astype(bool) & ~given).any():
        raise a.error("base_values", "an output with a base value has no weight in some leaves")


def _nodes(a: Attributes, kind: str, outputs: int) -> tuple[Nodes, NDArray[np.int64], NDArray[np.bool_]]:
    """The nodes, the output of each tree (-1: all outputs), and flags for outputs that have a weight for every row."""
    if not 0 < outputs <= _MAX_OUTPUTS:
        raise a.error(kind, f"{outputs} outputs are not plausible")
    tree_ids, node_ids = a.ints("nodes_treeids"), a.ints("nodes_nodeids")
    n = len(tree_ids)
    if not n:
        raise a.error("nodes_treeids", "there are no nodes")
    columns = {key: a.ints(f"nodes_{key}") for key in ("nodeids", "featureids", "truenodeids", "falsenodeids")}
    values, modes = a.floats("nodes_values"), a.strings("nodes_modes")
    tracks = a.ints("nodes_missing_value_tracks_true")
    tracks = tracks if len(tracks) else np.zeros(n, dtype=np.int64)
    if not np.isin(tracks, (0, 1)).all():
        raise a.error("nodes_missing_value_tracks_true", "a flag is neither 0 nor 1; the runtime treats only 1 as true")
    lengths = {key: len(column) for key, column in columns.items()}
    lengths |= {"values": len(values), "modes": len(modes), "missing_value_tracks_true": len(tracks)}
    for key, length in lengths.items():
        if length != n:
            raise a.error(f"nodes_{key}", f"{length} entries for {n} nodes")
    if unknown := set(modes) - set(_MODES):
        first_unknown = unknown.pop().decode("ascii", "replace")
        raise a.error("nodes_modes", f"splits of mode `{first_unknown[:20]}` are not supported")
    if (np.diff(tree_ids) < 0).any():
        raise a.error("nodes_treeids", "the trees are not in order")
    first = np.flatnonzero(np.diff(tree_ids, prepend=tree_ids[0] - 1))
    offset = np.append(first, n).astype(np.int64)
    # Maps (tree, node id) to a position; the ids of a tree may be in any order.
    place = {key: i for i, key in enumerate(zip(tree_ids.tolist(), node_ids.tolist(), strict=True))}
    if len(place) != n:
        raise a.error("nodes_nodeids", "two nodes of a tree have the same number")
    mode = np.array([_MODES.index(m) for m in modes])
    inner = mode < 4
    start = np.repeat(offset[:-1], np.diff(offset))

    def child(key: str) -> NDArray[np.int64]:
        found = [place.get(k, -1) for k in zip(tree_ids.tolist(), columns[key].tolist(), strict=True)]
        at = np.array(found, dtype=np.int64)
        if (inner & (at < 0)).any():
            raise a.error(f"nodes_{key}", "a child does not exist")
        return np.where(inner, at - start, -1)

    yes, no = child("truenodeids"), child("falsenodeids")
    led = np.bincount(np.concatenate([(yes + start)[inner], (no + start)[inner]]), minlength=n)
    led[offset[:-1]] += 1
    if not led.all():
        raise a.error("nodes_modes", "the runtime treats a node without a parent as another root")
    flipped = (mode == 2) | (mode == 3)  # x >= t and x > t swap the sides of x < t and x <= t
    strict = (mode == 1) | (mode == 2)
    # x < t is x <= u for the float u below t.
    threshold = np.where(strict, next_down_array(values, NumberType.FLOAT32), values)
    if np.isnan(values[inner]).any() or (strict & inner & np.isneginf(values)).any():
        raise a.error("nodes_values", "a threshold is NaN or -infinity")
    leaf_value, output, given = _weights(a, kind, place, offset, inner, outputs)
    nodes = Nodes(
        tree_offset=offset,
        left=np.where(flipped, no, yes),
        right=np.where(flipped, yes, no),
        feature=np.where(inner, columns["featureids"], -1),
        threshold=np.where(inner, threshold, 0.0),
        # NaN goes to the false branch, which is on the left of flipped nodes, unless the node tracks NaN as true.
        default_left=inner & ((tracks != 0) != flipped),
        leaf_value=leaf_value,
    )
    return nodes, output, given


def _weights(
    a: Attributes,
    kind: str,
    place: dict[tuple[int, int], int],
    offset: NDArray[np.int64],
    inner: NDArray[np.bool_],
    outputs: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]:
    trees, ids = a.ints(f"{kind}_treeids"), a.ints(f"{kind}_nodeids")
    which, weight = a.ints(f"{kind}_ids"), a.floats(f"{kind}_weights")
    if not len(trees) == len(ids) == len(which) == len(weight):
        raise a.error(f"{kind}_ids", "the weights differ in length")
    if ((which < 0) | (which >= outputs)).any():
        raise a.error(f"{kind}_ids", "an output does not exist")
    at = np.array([place.get(k, -1) for k in zip(trees.tolist(), ids.tolist(), strict=True)], dtype=np.int64)
    if (at < 0).any() or inner[at].any():
        raise a.error(f"{kind}_nodeids", "a weight belongs to no leaf")
    if len(np.unique(at * outputs + which)) != len(at):
        raise a.error(f"{kind}_nodeids", "a leaf has two weights for one output")
    n, n_trees = len(inner), len(offset) - 1
    tree = np.searchsorted(offset, at, side="right") - 1
    leaves = np.bincount(np.searchsorted(offset, np.flatnonzero(~inner), side="right") - 1, minlength=n_trees)
    counts = np.zeros((n_trees, outputs), dtype=np.int64)
    np.add.at(counts, (tree, which), 1)
    given = (counts == leaves[:, None]).any(axis=0)
    fed = counts > 0
    if (fed.sum(axis=1) <= 1).all():
        # Every tree feeds a single output: one number per leaf is enough.
        value = np.zeros((n, 1))
        value[at, 0] = weight
        return value, np.argmax(fed, axis=1).astype(np.int64), given
    value = np.zeros((n, outputs))
    value[at, which] = weight
    return value, np.full(n_trees, -1, dtype=np.int64), given
