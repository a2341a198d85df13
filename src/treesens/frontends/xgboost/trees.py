"""Trees and features of an XGBoost document as columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import float32_of_decimals
from treesens.compiler.model import Feature, FeatureKind
from treesens.compiler.model.assemble import Order, order_nodes
from treesens.frontends.columns import MAX_FEATURES
from treesens.frontends.documents import Field
from treesens.frontends.xgboost.categories import category_labels, left_sets

_KINDS = {
    "float": FeatureKind.NUMERIC,
    "q": FeatureKind.NUMERIC,
    "int": FeatureKind.INTEGER,
    "i": FeatureKind.INDICATOR,
    "c": FeatureKind.CATEGORICAL,
}


class InexactDecimalError(Exception):
    """The error for a decimal so close to the middle between two float32 numbers that its text must be rounded directly."""


@dataclass(frozen=True, eq=False)
class Trees:
    """The tree fields of an Ensemble, in the same shapes. `in_file` is the number of all trees in the file."""

    features: tuple[Feature, ...]
    order: Order
    node_feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    default_left: NDArray[np.bool_]
    leaf_value: NDArray[np.float64]
    tree_output: NDArray[np.int32]
    tree_weight: NDArray[np.float64]
    category_set: NDArray[np.int32]
    set_offset: NDArray[np.int64]
    set_codes: NDArray[np.int32]
    in_file: int = 0


def read_features(learner: Field, count: Field) -> tuple[Feature, ...]:
    """Names and kinds of features; f0, f1, … if the file has no names. Category counts are set with the trees."""
    n = count.integer()
    if not 0 < n <= MAX_FEATURES:
        raise count.error(f"the number of features, {n}, is out of range")
    names, types = (field.texts() if (field := learner.get(key)) else [] for key in ("feature_names", "feature_types"))
    for key, given in (("feature_names", names), ("feature_types", types)):
        if given and len(given) != n:
            raise learner[key].error(f"expected {n} entries, one per feature, found {len(given)}")
    if len(set(names)) != len(names):
        raise learner["feature_names"].error("two features have the same name", "rename one of the columns and retrain")
    for kind in types:
        if kind not in _KINDS:
            raise learner["feature_types"].error(f"unknown feature type `{kind[:40]}`", f"known: {', '.join(_KINDS)}")
    return tuple(
        Feature(names[i] if names else f"f{i}", _KINDS[types[i]] if types else FeatureKind.NUMERIC) for i in range(n)
    )


def read_trees(
    booster: Field, features: tuple[Feature, ...], outputs: int, version: list[int], iteration_end: int | None
) -> Trees:
    """All trees of the booster, or the trees of its first `iteration_end` rounds."""
    kind = booster["name"].text()
    if kind not in ("gbtree", "dart"):
        raise booster["name"].error(
            f"booster `{kind[:40]}` is not a tree ensemble", "gbtree, dart and gblinear are supported"
        )
    model = (booster["gbtree"] if kind == "dart" else booster)["model"]
    trees = _by_id(model["trees"])
    info = model["tree_info"].integers()
    if len(info) != len(trees):
        raise model["tree_info"].error(f"expected {len(trees)} entries, one per tree, found {len(info)}")
    announced = model["gbtree_model_param"]["num_trees"]
    if announced.integer() != len(trees):
        raise announced.error(f"the file announces {announced.integer()} trees, but contains {len(trees)}")
    if ((info < 0) | (info >= outputs)).any():
        raise model["tree_info"].error(f"a tree adds to an output that does not exist ({outputs} outputs)")
    _check_rounds(model, len(trees))
    home = booster if kind == "dart" else model
    weight = home["weight_drop"].floats() if kind == "dart" or weights_in_model(booster) else np.ones(len(trees))
    if kind == "gbtree" and weights_in_model(booster) and version[:2] < [3, 4]:
        raise model["weight_drop"].error(
            f"XGBoost {'.'.join(map(str, version))} does not use weights of trees here; 3.4 is the first version that does",
            "load the model with the version that trained it and save it again",
        )
    if len(weight) != len(trees):
        raise home["weight_drop"].error(f"expected {len(trees)} weights, one per tree, found {len(weight)}")
    in_file = len(trees)
    if iteration_end is not None:
        keep = _trees_of_rounds(model, outputs, len(trees), iteration_end)
        trees, info, weight = trees[:keep], info[:keep], weight[:keep]
    made = _columns(
        trees, info, to_float32(weight, booster), features=features, outputs=outputs, model=model, version=version
    )
    return replace(made, in_file=in_file)


def weights_in_model(booster: Field) -> bool:
    """True if a file has the DART weights where XGBoost 3.4 writes them: in the model of a booster named `gbtree`."""
    return booster["name"].text() == "gbtree" and "weight_drop" in booster["model"]


def _by_id(listed: Field) -> list[Field]:
    """The trees by position. The library stores a tree at the position `id`, regardless of the tree's order in the file
    (gbtree_model.cc, LoadModel), and uses this position in `tree_info` and `weight_drop`.
    """
    trees = list(listed.items())
    ids = [tree["id"].integer() for tree in trees]
    places: list[Field | None] = [None] * len(trees)
    for tree, place in zip(trees, ids, strict=True):
        if not 0 <= place < len(trees):
            raise tree["id"].error(f"the number {place} is not a position among {len(trees)} trees")
        if places[place] is not None:
            raise tree["id"].error(f"two trees have the number {place}")
        places[place] = tree
    return [tree for tree in places if tree is not None]


def _check_rounds(model: Field, trees: int) -> None:
    """Checks the round offsets: the library uses all trees from the first to the last, regardless of the offsets in between."""
    pointers = model.get("iteration_indptr")
    if pointers is None:
        return
    ends = pointers.integers()
    if not len(ends) or ends[0] != 0 or ends[-1] != trees or (np.diff(ends) < 0).any():
        raise pointers.error(f"the round offsets do not ascend from 0 to {trees}, the number of trees")


def _trees_of_rounds(model: Field, outputs: int, trees: int, rounds: int) -> int:
    """The number of trees in the first `rounds` rounds."""
    pointers = model.get("iteration_indptr")
    if pointers is not None:
        ends = pointers.integers()
    else:
        per_round = outputs * model["gbtree_model_param"]["num_parallel_tree"].integer()
        if per_round < 1 or trees % per_round:
            raise model["gbtree_model_param"].error(f"{trees} trees do not form complete rounds of {per_round}")
        ends = np.arange(0, trees + 1, per_round)
    if not 0 <= rounds < len(ends):
        raise model.error(f"the model has {len(ends) - 1} rounds, not {rounds}", "choose another number of rounds")
    return int(ends[rounds])


def to_float32(values: NDArray[np.float64], field: Field) -> NDArray[np.float64]:
    """Numbers in a file, as float32. Raises InexactDecimalError if float64 values do not determine the float32 values."""
    narrow, unsure = float32_of_decimals(values)
    if unsure.any():
        raise InexactDecimalError(field.path)
    return narrow


def _gather(trees: list[Field], key: str, sizes: NDArray[np.int64], *, floats: bool = False) -> NDArray[np.float64]:
    """One array over all trees, with an entry for each node."""
    parts = [tree[key].floats() if floats else tree[key].integers() for tree in trees]
    for tree, part, size in zip(trees, parts, sizes, strict=True):
        if len(part) != size:
            raise tree[key].error(f"expected {size} entries, one per node, found {len(part)}")
    return np.concatenate([np.zeros(0, np.float64 if floats else np.int64), *parts])


def _columns(
    trees: list[Field],
    info: NDArray[np.int64],
    weight: NDArray[np.float64],
    *,
    features: tuple[Feature, ...],
    outputs: int,
    model: Field,
    version: list[int],
) -> Trees:
    sizes = np.array([tree["tree_param"]["num_nodes"].integer() for tree in trees], dtype=np.int64)
    widths = {max(1, tree["tree_param"]["size_leaf_vector"].integer()) for tree in trees}
    if len(widths) > 1 or (widths and next(iter(widths)) not in (1, outputs)):
        raise model["trees"].error(f"leaves contain {sorted(widths)} values, but the model has {outputs} outputs")
    vector = bool(widths) and next(iter(widths)) > 1
    left, right, feature, default = (
        _gather(trees, key, sizes).astype(np.int64)
        for key in ("left_children", "right_children", "split_indices", "default_left")
    )
    condition = _gather(trees, "split_conditions", sizes, floats=True)
    offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    # Vector leaves store their row number where scalar leaves store -1.
    order = order_nodes(offset, left, np.where(left == -1, -1, right), place=f"{model.place}: {model['trees'].path}")
    node, inner = order.node, order.inner
    _check_splits(
        trees, offset, node[inner], left=left, right=right, feature=feature, default=default, features=len(features)
    )

    types = [tree.get("split_type") for tree in trees]
    split_type = np.concatenate(
        [
            np.zeros(0, np.int64),
            *(t.integers() if t else np.zeros(s, np.int64) for t, s in zip(types, sizes, strict=True)),
        ]
    )
    if len(split_type) != len(left):
        raise model["trees"].error("split_type must have one entry per node")
    categorical = np.zeros(len(left), dtype=np.bool_)
    categorical[node[inner]] = split_type[node[inner]] == 1
    threshold = np.zeros(len(left))
    ordered = node[inner & ~categorical[node]]
    threshold[ordered] = to_float32(condition[ordered], model["trees"])
    if np.isnan(threshold).any():
        bad = int(np.flatnonzero(np.isnan(threshold))[0])
        tree = int(np.searchsorted(offset, bad, side="right")) - 1
        raise trees[tree]["split_conditions"].error(f"the threshold of node {bad - offset[tree]} is NaN")

    features, category_set, set_offset, set_codes = left_sets(
        trees,
        offset,
        node,
        categorical=categorical,
        feature=feature,
        features=features,
        labels=category_labels(model, len(features)),
    )
    leaf_nodes = node[~inner]
    value = (
        _vector_leaves(trees, right, offset, leaf_nodes, outputs=outputs, version=version)
        if vector
        else to_float32(condition[leaf_nodes], model["trees"])[:, None]
    )
    if not np.isfinite(value).all():
        raise model["trees"].error("a leaf value is not finite")
    return Trees(
        features=features,
        order=order,
        node_feature=np.where(inner, feature[node], -1).astype(np.int32),
        threshold=np.where(inner, threshold[node], 0.0),
        default_left=inner & (default[node] != 0),
        leaf_value=value,
        tree_output=np.where(vector, -1, info).astype(np.int32),
        tree_weight=weight,
        category_set=category_set,
        set_offset=set_offset,
        set_codes=set_codes,
    )


def _check_splits(
    trees: list[Field],
    offset: NDArray[np.int64],
    inner: NDArray[np.int64],
    *,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    feature: NDArray[np.int64],
    default: NDArray[np.int64],
    features: int,
) -> None:
    def refuse(bad: NDArray[np.bool_], key: str, message: str) -> None:
        if bad.any():
            at = int(inner[np.flatnonzero(bad)[0]])
            tree = int(np.searchsorted(offset, at, side="right")) - 1
            raise trees[tree][key].error(f"{message} (node {at - offset[tree]})")

    wrong = feature[inner] < 0
    refuse(wrong | (feature[inner] >= features), "split_indices", "a split uses a feature that does not exist")
    refuse((default[inner] < 0) | (default[inner] > 1), "default_left", "neither 0 nor 1")
    # The library uses left + 1 for the right child; a file that contradicts this would be ambiguous.
    refuse(right[inner] != left[inner] + 1, "right_children", "the right child does not follow the left child")


def _vector_leaves(
    trees: list[Field],
    right: NDArray[np.int64],
    offset: NDArray[np.int64],
    leaf_nodes: NDArray[np.int64],
    *,
    outputs: int,
    version: list[int],
) -> NDArray[np.float64]:
    """Leaf vectors (multi_output_tree): row numbers are in right_children, and values are in leaf_weights (3.1 and later)."""
    tree_of = np.searchsorted(offset, leaf_nodes, side="right") - 1
    value = np.zeros((len(leaf_nodes), outputs))
    for t, tree in enumerate(trees):
        mine = np.flatnonzero(tree_of == t)
        if "leaf_weights" not in tree:
            raise tree.error(
                f"vector leaves of XGBoost {'.'.join(map(str, version))} are not supported",
                "load the model with XGBoost 3.2 or later and save it again",
            )
        table = tree["leaf_weights"].floats()
        rows = right[leaf_nodes[mine]]
        if len(table) % outputs or ((rows < 0) | (rows >= len(table) // outputs)).any():
            raise tree["leaf_weights"].error("a leaf has no values")
        value[mine] = to_float32(table, tree["leaf_weights"]).reshape(-1, outputs)[rows]
    return value
