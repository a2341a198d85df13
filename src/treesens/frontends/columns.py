"""Converts the nodes of a file, in any order, to the columns of an Ensemble.

`Nodes` stores the nodes of all trees as columns; `Growing` collects the nodes of one tree. Monotone constraints give a
direction per feature, by position or name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import whole_of
from treesens.compiler.model import Ensemble, Feature, FeatureKind
from treesens.compiler.model.assemble import order_nodes
from treesens.errors import ModelError

Bools = NDArray[np.bool_]
# Limits on numbers in files (docs/trust.md): a few bytes can declare a size that exceeds any memory.
MAX_FEATURES = 100_000
MAX_CATEGORIES = 100_000
# Maximum bytes of all category sets; a larger total means a damaged file or needs another representation.
MAX_SET_BYTES = 1 << 26
_DAMAGED = "the file is damaged or of another format; save the model again"


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of all trees, tree after tree, with the numbers that they have in the file.

    tree_offset [T+1]; left, right [N] are numbers within the tree, -1 at leaves (a root is the first node of its tree);
    feature, threshold, default_left [N] as in Ensemble; leaf_value [N, W]; leaf_id [N] is the library's id of a leaf
    (its number within the tree by default); left_sets holds bool[categories + 1] for nodes that split by category.
    """

    tree_offset: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]
    feature: NDArray[Any]
    threshold: NDArray[Any]
    default_left: NDArray[Any]
    leaf_value: NDArray[np.float64]
    leaf_id: NDArray[Any] | None = None
    zero_missing: NDArray[Any] | None = None
    left_sets: Mapping[int, Bools] = field(default_factory=dict)


class Growing:
    """A tree that a reader builds node by node, the root first; leaves contain `width` values."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.left: list[int] = []
        self.right: list[int] = []
        self.sets: dict[int, NDArray[np.bool_]] = {}
        self._feature: list[int] = []
        self._threshold: list[float] = []
        self._default_left: list[bool] = []
        self._value: list[Sequence[float] | NDArray[np.float64]] = []
        self._leaf_id: list[int] = []

    def __len__(self) -> int:
        return len(self.left)

    def inner(self, feature: int, threshold: float, *, missing_left: bool) -> int:
        """Adds a node that splits on a feature. The caller sets the node's children and, for a split by category, its set."""
        return self._add(feature, threshold, missing_left, np.zeros(self.width), -1)

    def leaf(self, values: Sequence[float] | NDArray[np.float64], leaf_id: int = -1) -> int:
        """Adds a leaf; `leaf_id` is the leaf's number in the library, if any."""
        return self._add(-1, 0.0, False, values, leaf_id)

    def _add(
        self,
        feature: int,
        threshold: float,
        missing_left: bool,
        values: Sequence[float] | NDArray[np.float64],
        leaf_id: int,
    ) -> int:
        self.left.append(-1)
        self.right.append(-1)
        self._feature.append(feature)
        self._threshold.append(threshold)
        self._default_left.append(missing_left)
        self._value.append(values)
        self._leaf_id.append(leaf_id)
        return len(self.left) - 1

    def nodes(self) -> Nodes:
        """The nodes added so far."""
        feature, named = np.array(self._feature, dtype=np.int64), np.array(self._leaf_id, dtype=np.int64)
        return Nodes(
            tree_offset=np.array([0, len(feature)]),
            left=np.array(self.left, dtype=np.int64),
            right=np.array(self.right, dtype=np.int64),
            feature=feature,
            threshold=np.array(self._threshold, dtype=np.float64),
            default_left=np.array(self._default_left, dtype=np.bool_),
            leaf_value=np.array(self._value, dtype=np.float64).reshape(len(feature), self.width),
            leaf_id=named if (named[feature < 0] >= 0).all() else None,
            left_sets=self.sets,
        )


def stack_trees(trees: Sequence[Nodes]) -> Nodes:
    """Concatenates the nodes of several trees (each with its own offsets from 0)."""
    starts = np.concatenate([[0], np.cumsum([tree.tree_offset[-1] for tree in trees])]).astype(np.int64)

    def join(name: str, dtype: Any) -> NDArray[Any]:
        return np.concatenate([np.zeros(0, dtype), *(getattr(tree, name) for tree in trees)])

    offsets = [tree.tree_offset[:-1] + start for tree, start in zip(trees, starts, strict=False)]
    first = trees[0] if trees else None
    return Nodes(
        tree_offset=np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
        left=join("left", np.int64),
        right=join("right", np.int64),
        feature=join("feature", np.int64),
        threshold=join("threshold", np.float64),
        default_left=join("default_left", np.bool_),
        leaf_value=np.concatenate([tree.leaf_value for tree in trees]) if trees else np.zeros((0, 1)),
        leaf_id=join("leaf_id", np.int64) if first is not None and first.leaf_id is not None else None,
        zero_missing=join("zero_missing", np.bool_) if first is not None and first.zero_missing is not None else None,
        left_sets={
            int(start) + n: mask
            for tree, start in zip(trees, starts, strict=False)
            for n, mask in tree.left_sets.items()
        },
    )


def check_set_bytes(total: int, place: str) -> None:
    """Raises ModelError if category sets would exceed the limit, before they are created."""
    if total > MAX_SET_BYTES:
        raise ModelError(
            f"the category sets of all splits take {total} bytes",
            place=place,
            remedy="use fewer categories per feature",
        )


def pack_sets(
    masks: Mapping[int, Bools], nodes: int, place: str = ""
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Left sets per node as (set of every node, set_offset, set_codes) of an Ensemble, with equal sets merged."""
    check_set_bytes(sum(len(mask) for mask in masks.values()), place)
    numbers: dict[bytes, int] = {}
    sets: list[NDArray[np.int32]] = []
    of_node = np.full(nodes, -1, dtype=np.int32)
    for n, mask in masks.items():
        key = mask.tobytes()
        if key not in numbers:
            numbers[key] = len(sets)
            sets.append(np.flatnonzero(mask).astype(np.int32))
        of_node[n] = numbers[key]
    offset = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    return of_node, offset, np.concatenate([np.zeros(0, np.int32), *sets])


def ensemble_of(nodes: Nodes, features: tuple[Feature, ...], place: str, **facts: Any) -> Ensemble:
    """The validated ensemble of these nodes; `facts` holds the other fields of Ensemble. Raises ModelError with the place."""

    def refuse(bad: Bools, message: str) -> None:
        if bad.any():
            n = int(order.node[np.flatnonzero(bad)[0]])
            tree = int(np.searchsorted(nodes.tree_offset, n, side="right")) - 1
            at = f"{message} (tree {tree}, node {n - nodes.tree_offset[tree]})"
            raise ModelError(at, place=place, remedy=_DAMAGED)

    order = order_nodes(
        nodes.tree_offset.astype(np.int64), nodes.left.astype(np.int64), nodes.right.astype(np.int64), place=place
    )
    node, inner = order.node, order.inner
    feature, threshold = nodes.feature[node], nodes.threshold[node]
    refuse(inner & ((feature < 0) | (feature >= len(features))), "a split uses a feature that does not exist")
    category_set, set_offset, set_codes = pack_sets(nodes.left_sets, len(nodes.left), place)
    category_set = np.where(inner, category_set[node], -1)
    ordered = inner & (category_set < 0)
    refuse(ordered & np.isnan(threshold), "a threshold is NaN")
    by_category = np.array([f.categories > 0 for f in features])
    mixed = by_category[np.where(inner, feature, 0)] & ordered
    refuse(mixed, "a categorical feature is split by a threshold")
    value = nodes.leaf_value[node[~inner]]
    finite = np.ones(len(node), dtype=np.bool_)
    finite[~inner] = np.isfinite(value).all(axis=1)
    refuse(~finite, "a leaf value is not finite")
    classes = facts.get("classes", ())
    if len(set(classes)) != len(classes):
        raise ModelError("two classes have the same name", place=place, remedy=_DAMAGED)
    flags = np.zeros(len(nodes.left), np.bool_) if nodes.zero_missing is None else nodes.zero_missing
    try:
        return Ensemble(
            features=features,
            tree_offset=order.tree_offset,
            node_feature=np.where(inner, feature, -1).astype(np.int32),
            threshold=np.where(ordered, threshold, 0.0),
            left=order.left,
            right=order.right,
            default_left=inner & (nodes.default_left[node] != 0),
            node_leaf=order.node_leaf,
            leaf_value=value,
            leaf_tree=order.leaf_tree,
            leaf_node=order.leaf_id if nodes.leaf_id is None else nodes.leaf_id[node[~inner]].astype(np.int32),
            category_set=category_set.astype(np.int32),
            set_offset=set_offset,
            set_codes=set_codes,
            zero_missing=ordered & flags[node],
            **facts,
        ).validate()
    except ModelError as error:
        raise ModelError(error.message, place=place, remedy=error.remedy) from None


def feature_tuple(names: Sequence[str], place: str) -> tuple[Feature, ...]:
    """Numeric features with these names. Raises ModelError if two names are equal."""
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ModelError(
            f"two features are called `{twice}`", place=place, remedy="rename one of the columns and train again"
        )
    return tuple(Feature(name) for name in names)


def as_categorical(
    feature: Feature, count: int, labels: Sequence[object] | None, truncates: bool = False, mark: str | None = None
) -> Feature:
    """The feature with codes 0..count-1; labels are kept only if their number is `count`."""
    named = plain_labels(labels) if labels is not None and len(labels) == count else None
    return replace(
        feature, kind=FeatureKind.CATEGORICAL, categories=count, labels=named, truncates=truncates, mark=mark
    )


def plain_labels(labels: Sequence[object]) -> tuple[str, ...] | tuple[int | float, ...] | None:
    """Category labels as Python numbers if all labels are finite numbers, otherwise as text; None if two labels are equal."""
    given = [label.item() if isinstance(label, np.generic) else label for label in labels]
    numbers = [_plain_number(v) for v in given if isinstance(v, (int, float)) and not isinstance(v, bool)]
    named: tuple[str, ...] | tuple[int | float, ...] = tuple(str(v) for v in given)
    if len(numbers) == len(given) and all(math.isfinite(v) for v in numbers):
        named = tuple(numbers)
    return named if len(set(named)) == len(named) else None


def _plain_number(value: float) -> int | float:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def labels_of_texts(texts: Sequence[str]) -> tuple[str, ...] | tuple[int | float, ...]:
    """Labels for categories stored as text, as in a table: numbers if all texts are canonical numbers, otherwise texts. Also
    texts if two of them, such as `1` and `1.0`, are the same number.
    """
    numbers = [n for text in texts if (n := _number_written(text)) is not None]
    return tuple(numbers) if len(set(numbers)) == len(texts) else tuple(texts)


def _number_written(text: str) -> int | float | None:
    """The number whose canonical text is `text`, otherwise None."""
    try:
        value = float(text)
    except ValueError:
        return None
    if not math.isfinite(value) or text not in (repr(value), str(int(value))):
        return None
    return int(value) if value.is_integer() else value


def bits_of(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """The bits of `words`, a bit set in 32-bit words, lowest bit first."""
    return np.unpackbits(np.ascontiguousarray(words, dtype="<u4").view(np.uint8), bitorder="little").astype(np.bool_)


_DIRECTIONS = {"-1": -1, "0": 0, "1": 1}


def directions_of(given: Any, names: Sequence[str], place: str) -> dict[str, int]:
    """1 or -1 by feature, from a list, a mapping or a text such as `(1,0,-1)`; features without a constraint are omitted.
    Raises ModelError for other forms and unknown features.
    """
    if given is None:
        return {}
    if isinstance(given, str):
        words = given.strip().strip("()[]").replace(",", " ").split()
        return directions_of(words, names, place) if words else {}
    if isinstance(given, Mapping):
        pairs = [(_name(key, names, place), value) for key, value in given.items()]
    else:
        values = np.asarray(given, dtype=object).ravel().tolist()
        if len(values) > len(names):
            raise _unclear(f"expected {len(names)} directions, one per feature, found {len(values)}", place)
        pairs = list(zip(names, values, strict=False))
    known = {name: _DIRECTIONS.get(str(value)) for name, value in pairs}
    if wrong := [name for name, sign in known.items() if sign is None]:
        raise _unclear(f"the direction of `{wrong[0]}` is not -1, 0 or 1", place)
    return {name: sign for name, sign in known.items() if sign}


def _name(key: Any, names: Sequence[str], place: str) -> str:
    if key in names:
        return str(key)
    number = whole_of(str(key))
    if number is None or not 0 <= number < len(names):
        raise _unclear(f"unknown feature `{str(key)[:40]}`", place)
    return names[number]


def _unclear(what: str, place: str) -> ModelError:
    return ModelError(f"monotone constraints: {what}", place=place, remedy="save the model again with its library")
