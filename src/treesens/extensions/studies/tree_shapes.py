"""What the trees alone prove of shapes: a sum falls by no more than its trees fall, each by itself.

For a tree the largest fall in a feature is exact: over all pairs of leaves that two inputs reach which agree elsewhere, the
first one with a smaller value of the feature. A sum of trees none of which falls does not fall. This proves what training with
monotone constraints has built, because the constraint is kept in every tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import BoolArray, Int64Array
from treesens.compiler.base.budget import steadily
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.model.cells import CellEnsemble, LeafBoxes

_MOST_PAIRS = 4_000_000
"""Pairs of leaves times features of one tree; of a larger tree only the range of its values is known."""
_LARGEST = 1 << 61


@dataclass(frozen=True)
class TreeShapes:
    """What no score exceeds, by feature: the largest fall and the largest rise, exactly."""

    falls: list[Fraction]
    rises: list[Fraction]


def tree_shapes(model: CellEnsemble, output: int, legal: Sequence[BoolArray]) -> TreeShapes:
    """Bounds of one output of a model, over the `legal` cells of every feature, bool[n_cells] each."""
    ensemble, boxes = model.ensemble, model.leaf_boxes()
    scaled = ensemble.scaled_contributions
    column = scaled.values[:, output if scaled.values.shape[1] > 1 else 0]
    falls, rises = [0] * ensemble.n_features, [0] * ensemble.n_features
    mine = np.flatnonzero((ensemble.tree_output == output) | (ensemble.tree_output == -1))
    order = np.argsort(ensemble.leaf_tree, kind="stable")
    ends = np.searchsorted(ensemble.leaf_tree[order], [mine, mine + 1])
    for start, end in steadily(list(zip(*ends.tolist(), strict=True))):
        leaves = order[start:end]
        leaves = leaves[boxes.reachable[leaves]]
        _add_tree(boxes, legal, leaves, column, falls, rises)
    per = Unit(scaled.shift).size / ensemble.average
    return TreeShapes([fall * per for fall in falls], [rise * per for rise in rises])


def widest_shapes(model: CellEnsemble, output: int) -> TreeShapes:
    """Bounds that cost nothing: no two sums are further apart than the leaves of their trees."""
    ensemble = model.ensemble
    scaled = ensemble.scaled_contributions
    column = scaled.values[:, output if scaled.values.shape[1] > 1 else 0]
    mine = (ensemble.tree_output == output) | (ensemble.tree_output == -1)
    leaves = np.flatnonzero(mine[ensemble.leaf_tree])
    trees, values = ensemble.leaf_tree[leaves].tolist(), column[leaves].tolist()
    highest: dict[int, int] = {}
    lowest: dict[int, int] = {}
    for tree, value in zip(trees, values, strict=True):
        highest[tree], lowest[tree] = max(value, highest.get(tree, value)), min(value, lowest.get(tree, value))
    width = sum(int(highest[tree]) - int(lowest[tree]) for tree in highest)
    bound = width * Unit(scaled.shift).size / ensemble.average
    return TreeShapes([bound] * ensemble.n_features, [bound] * ensemble.n_features)


def _add_tree(
    boxes: LeafBoxes,
    legal: Sequence[BoolArray],
    leaves: Int64Array,
    column: NDArray[Any],
    falls: list[int],
    rises: list[int],
) -> None:
    """Adds the falls and rises of one tree."""
    spans = [range(int(boxes.offset[leaf]), int(boxes.offset[leaf + 1])) for leaf in leaves]
    used = sorted({int(boxes.feature[literal]) for span in spans for literal in span})
    if not used:
        return
    values = column[leaves]
    if max(abs(int(values.max())), abs(int(values.min()))) > _LARGEST:
        values = values.astype(object)  # differences of int64 beyond this one wrap around
    if len(leaves) ** 2 * len(used) > _MOST_PAIRS:
        width = int(values.max()) - int(values.min())
        for feature in used:
            falls[feature] += width
            rises[feature] += width
        return
    literals = {(row, int(boxes.feature[one])): one for row, span in enumerate(spans) for one in span}
    reached = np.ones(len(leaves), dtype=np.bool_)
    apart = np.zeros((len(leaves), len(leaves)), dtype=np.int64)
    alone: dict[int, tuple[BoolArray, BoolArray]] = {}
    for feature in used:
        given = [literals.get((row, feature), -1) for row in range(len(leaves))]
        allowed = np.stack([legal[feature] if one < 0 else boxes.allowed(one) & legal[feature] for one in given])
        meets, before = _relations(allowed, boxes.grid[feature].present_cells)
        reached &= allowed.any(axis=1)
        apart += ~meets
        alone[feature] = meets, before
    both = reached[:, None] & reached[None, :]
    differences = values[:, None] - values[None, :]
    for feature, (meets, before) in alone.items():
        pairs = both & before & (apart == ~meets)
        falls[feature] += max(0, int(np.where(pairs, differences, 0).max()))
        rises[feature] += max(0, int(np.where(pairs, -differences, 0).max()))


def _relations(allowed: BoolArray, present_cells: int) -> tuple[BoolArray, BoolArray]:
    """Which leaves share a cell of a feature, and which (row) have a present cell below one of another (column), bool[n, n].
    `allowed` bool[n, n_cells] are the cells of each leaf.
    """
    meets = (allowed.astype(np.float32) @ allowed.T.astype(np.float32)) > 0
    present = allowed[:, :present_cells]
    some = present.any(axis=1)
    lowest = np.where(some, present.argmax(axis=1), present_cells)
    highest = np.where(some, present_cells - 1 - present[:, ::-1].argmax(axis=1), -1)
    return np.asarray(meets), np.asarray(lowest[:, None] < highest[None, :])
