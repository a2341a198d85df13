"""Checks the invariants of an Ensemble's columns, once after loading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from treesens.errors import ModelError

if TYPE_CHECKING:
    from treesens.compiler.model.ensemble import Ensemble


def validate(e: Ensemble) -> None:
    """Raises ModelError for the first violated invariant."""

    def require(condition: object, message: str) -> None:
        if not condition:
            raise ModelError(message, place=e.name, remedy="the model is damaged or its frontend is wrong")

    trees, nodes, leaves, outputs = e.n_trees, e.n_nodes, e.n_leaves, e.n_outputs
    require(e.n_features > 0, "a model needs at least one feature")
    require(outputs > 0, "a model needs at least one output")
    require(len(set(e.feature_names)) == e.n_features, "two features have the same name")
    require(len(e.tree_offset) == trees + 1 == len(e.tree_weight) + 1, "tree arrays differ in length")
    require(e.tree_offset[0] == 0 and e.tree_offset[-1] == nodes, "tree_offset does not span the nodes")
    require((np.diff(e.tree_offset) > 0).all(), "a tree has no nodes")
    for name in ("threshold", "left", "right", "default_left", "node_leaf", "category_set", "zero_missing"):
        require(len(getattr(e, name)) == nodes, f"{name} must have one entry per node")
    require(e.leaf_value.ndim == 2 and len(e.leaf_value) == leaves == len(e.leaf_node), "leaf arrays differ in length")
    width = e.leaf_value.shape[1]
    require(width in (1, outputs), f"leaves hold {width} values, the model has {outputs} outputs")
    for name in ("leaf_value", "tree_weight", "base"):
        require(np.isfinite(getattr(e, name)).all(), f"{name} is not finite everywhere")
    require(((e.tree_output >= -1) & (e.tree_output < outputs)).all(), "tree_output is out of range")
    require(width == 1 or (e.tree_output == -1).all(), "vector leaves feed all outputs")
    require(outputs == 1 or width > 1 or (e.tree_output >= 0).all(), "tree_output is -1, but leaves are no vectors")
    require(e.average >= 1, "average must be at least 1")
    e.link.validate(e, require)
    require(e.blend is None or e.blend.trees[-1][1] <= trees, "the trees of a member are missing")
    require(
        e.ties is None
        or (len(e.ties.factors) == len(e.classes) == outputs > 1 and e.cutoff is None and e.blend is None),
        "ties are defined for the scores of several classes",
    )
    require(
        e.decides_at is None or (np.isfinite(e.decides_at) and len(e.classes) == 2 and e.cutoff is None),
        "decides_at requires exactly two classes and no cut-off",
    )
    require(e.average == 1 or not e.accumulation.base_first, "an average requires that the base is added last")
    if e.accumulation.weighs_sums:
        require(e.average == 1, "sums that are weighted as a whole cannot also be averaged")
        weights = set(zip(e.tree_output.tolist(), e.tree_weight.tolist(), strict=True))
        require(len(weights) == len(set(e.tree_output.tolist())), "the trees of an output have different weights")
        require(len(weights) == 1 or -1 not in e.tree_output, "the trees of an output have different weights")
    kinds = e.accumulation.number_type
    require(e.accumulation.base_type.holds(e.base).all(), "base is not of the type of the library's sums")
    for name in ("leaf_value", "tree_weight"):
        require(kinds.holds(getattr(e, name)).all(), f"{name} is not {kinds.value}, the type of the library's sums")

    inner = np.flatnonzero(e.node_feature >= 0)
    require((e.node_feature >= -1).all() and (e.node_feature < e.n_features).all(), "a feature index is out of range")
    tree_end = e.tree_offset[1:][e.node_tree[inner]]
    for side in (e.left, e.right):
        require((side[inner] > inner).all() and (side[inner] < tree_end).all(), "children must follow their parent")
    roots = e.tree_offset[:-1]
    parents = np.bincount(np.concatenate([e.left[inner], e.right[inner]]), minlength=nodes)
    parents[roots] += 1
    require((parents == 1).all(), "a node has no parent, or more than one")
    at_leaves = np.flatnonzero(e.node_feature < 0)
    require((e.node_leaf[inner] == -1).all(), "an inner node has a leaf number")
    require(np.array_equal(e.node_leaf[at_leaves], np.arange(leaves)), "leaves are not numbered in node order")
    require(np.array_equal(e.leaf_tree, e.node_tree[at_leaves]), "leaf_tree is wrong")

    sets = len(e.set_offset) - 1
    require(sets >= 0 and e.set_offset[0] == 0 and e.set_offset[-1] == len(e.set_codes), "set_offset is wrong")
    require((np.diff(e.set_offset) >= 0).all(), "set_offset decreases")
    require(((e.category_set >= -1) & (e.category_set < sets)).all(), "category_set is out of range")
    require((e.category_set[at_leaves] == -1).all(), "a leaf has a category set")
    count = np.array([f.categories for f in e.features], dtype=np.int64)
    require((count >= 0).all(), "a feature has a negative number of categories")
    require(
        np.array_equal(e.category_set[inner] >= 0, count[e.node_feature[inner]] > 0),
        "categorical features must split by sets, ordered features by thresholds",
    )
    require(not np.isnan(e.threshold[inner][e.category_set[inner] < 0]).any(), "a threshold is NaN")
    require(0 <= e.zero_band < 1 and e.number_type.holds(e.zero_band).all(), "zero_band must be in [0, 1)")
    flagged = np.flatnonzero(e.zero_missing)
    require(not flagged.size or e.zero_band > 0, "zero_missing needs a zero_band")
    require(
        (e.node_feature[flagged] >= 0).all() and (e.category_set[flagged] < 0).all(),
        "zero_missing needs splits by thresholds",
    )
    for f in e.features:
        require(f.labels is None or len(f.labels) == f.categories, f"labels of `{f.name}` and its categories differ")
    split = inner[e.category_set[inner] >= 0]
    set_limit = np.full(sets, np.iinfo(np.int64).max)
    np.minimum.at(set_limit, e.category_set[split], count[e.node_feature[split]])
    owner = np.repeat(np.arange(sets), np.diff(e.set_offset))
    require(((e.set_codes >= 0) & (e.set_codes <= set_limit[owner])).all(), "a category code is out of range")
