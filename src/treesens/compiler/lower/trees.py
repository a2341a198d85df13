"""Trees: leaf indicators and the rows of eqs. root_const and non_root_const of the paper.

Let TSet and FSet be the leaves under the left and the right child of an inner node with guard literal p. Then sum(TSet) <= p
and sum(FSet) <= not p; at the root, both are equalities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array, concatenated_ranges, groups_of, indptr_of
from treesens.compiler.ir import FALSE, TRUE, ExactlyOne, LeafSum
from treesens.compiler.lower.builder import Builder
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.query.forest import ForestTerm


@dataclass(frozen=True)
class LeafLayout:
    """Leaves in depth-first order, in which the leaves under each node form one range.

    `start` and `count`, int64[nodes], define the range of each node; `leaf`, int32[leaves], is the leaf number at each
    position; `offset`, int64[trees+1], delimits the trees.
    """

    start: Int64Array
    count: Int64Array
    leaf: Int32Array
    offset: Int64Array


def leaf_layout(model: CellEnsemble) -> LeafLayout:
    """Computes the positions of the leaves under every node level by level, without recursion, for trees of any depth."""
    inner = model.feature >= 0
    nodes = len(inner)
    levels: list[Int64Array] = [model.root.astype(np.int64)]
    while True:
        here = levels[-1][inner[levels[-1]]]
        if len(here) == 0:
            break
        levels.append(np.concatenate((model.left[here], model.right[here])).astype(np.int64))
    count = np.where(inner, 0, 1).astype(np.int64)
    for level in reversed(levels):
        here = level[inner[level]]
        count[here] = count[model.left[here]] + count[model.right[here]]
    start = np.zeros(nodes, np.int64)
    offset = indptr_of(count[model.root])
    start[model.root] = offset[:-1]
    for level in levels:
        here = level[inner[level]]
        start[model.left[here]] = start[here]
        start[model.right[here]] = start[here] + count[model.left[here]]
    leaf = np.zeros(int(offset[-1]), np.int32)
    ends = np.concatenate(levels)
    ends = ends[~inner[ends]]
    leaf[start[ends]] = model.leaf[ends]
    return LeafLayout(start, count, leaf, offset)


def lower_trees(builder: Builder) -> None:
    """Adds, for every point, an exactly-one block and the rows of all inner nodes. Each model is laid out only once."""
    layouts = {model: leaf_layout(builder.query.models[model]) for model in {p.model for p in builder.query.points}}
    for number, point in enumerate(builder.query.points):
        model = builder.query.models[point.model]
        layout = layouts[point.model]
        variables = builder.fresh(len(layout.leaf))
        trees = np.arange(len(model.root), dtype=np.int32)
        builder.units[number] = ExactlyOne(point.model, (number,), trees, layout.offset, layout.leaf, variables)
        rows = _node_rows(builder, model, layout, number, variables)
        if len(rows.literals):
            builder.ops.append(rows)


def forest_unit(builder: Builder, term: ForestTerm) -> ExactlyOne:
    """The leaves of a forest at a point. The trees are added when first used, as the trees of a further model."""
    key = term.point, term.forest
    if key not in builder.forest_units:
        known = {forest: unit.model for (_, forest), unit in builder.forest_units.items()}
        number = known.get(term.forest, len(builder.query.models) + len(known))
        layout = leaf_layout(term.trees)
        variables = builder.fresh(len(layout.leaf))
        trees = np.arange(term.trees.n_trees, dtype=np.int32)
        builder.forest_units[key] = ExactlyOne(number, (term.point,), trees, layout.offset, layout.leaf, variables)
        rows = _node_rows(builder, term.trees, layout, term.point, variables)
        if len(rows.literals):
            builder.ops.append(rows)
    return builder.forest_units[key]


def _node_rows(builder: Builder, model: CellEnsemble, layout: LeafLayout, point: int, variables: Int32Array) -> LeafSum:
    inner = np.flatnonzero(model.feature >= 0)
    literal = _guards(builder, model, inner, point)
    at_root = np.zeros(len(model.feature), bool)
    at_root[model.root] = True
    # Both sides of every node: left leaves imply the guard, right leaves imply its negation.
    child = np.concatenate((model.left[inner], model.right[inner]))
    literals = np.concatenate((literal, literal ^ 1)).astype(np.int32)
    equality = np.concatenate((at_root[inner], at_root[inner]))
    counts = layout.count[child]
    base = int(variables[0]) if len(variables) else 0
    leaves = (concatenated_ranges(layout.start[child], counts) + base).astype(np.int32)
    constant = literals < 0
    if constant.any():
        # A guard that every cell satisfies (or none) needs no row on one side, and makes the leaves on the other unreachable.
        rows = np.repeat(np.arange(len(child)), counts)
        for leaf in leaves[(literals == FALSE)[rows]]:
            builder.fact(int(leaf) * 2 + 1)
        keep = ~constant
        leaves = leaves[keep[rows]]
        counts, literals, equality = counts[keep], literals[keep], equality[keep]
    return LeafSum(indptr_of(counts), leaves, literals, equality)


def _guards(builder: Builder, model: CellEnsemble, inner: Int64Array, point: int) -> Int32Array:
    """The literal "goes left" for every inner node."""
    features = builder.query.space.grid.features
    result = np.full(len(inner), TRUE, np.int32)
    feature = model.feature[inner]
    plain = model.category_set[inner] < 0
    used, order, first = groups_of(feature)
    for f, mine in zip(used, np.split(order, first)[1:], strict=True):
        grid = features[f]
        block = builder.order(int(f), point)
        by_cells = mine
        if not grid.missing:
            # The guard "cell <= cut" is an order predicate; with a cut past the last cell it is always true.
            at_cuts, by_cells = mine[plain[mine]], mine[~plain[mine]]
            padded = np.concatenate((block.variables.astype(np.int32) * 2, np.full(1, TRUE, np.int32)))
            cut = model.cut[inner[at_cuts]]
            result[at_cuts] = np.where(cut < 0, FALSE, padded[np.minimum(cut, len(padded) - 1)])
        for row in by_cells:
            mask: BoolArray = model.left_cells(int(inner[row]))
            result[row] = builder.inside(point, int(f), mask)
    return result
