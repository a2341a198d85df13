"""Ordered leaves: if every tree is non-decreasing (or non-increasing) in a feature, so is their sum, however it is rounded.

Two leaves of a tree are ordered in a feature if one leaf has smaller values and the boxes intersect in all other features. The
nearest ordered leaves are an isotonic regression on this partial order (Barlow and Brunk, JASA 1972), solved per tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int64Array
from treesens.extensions.repair.forest import Forest
from treesens.extensions.repair.limits import least_dual
from treesens.extensions.repair.program import Variables

_Box = Mapping[int, BoolArray]


@dataclass(frozen=True)
class Direction:
    """A sum of outputs times `weights`, float64[outputs], must not decrease (`sign` 1) or not increase (-1) in a feature."""

    feature: int
    sign: int
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class _Part:
    """The order of one tree. The leaves are the variables `at`, int64[leaves]; for each pair, the value of leaf `low` must not
    exceed the value of leaf `high` (both int64[pairs], indices into `at`). The pairs in `few` imply all other pairs.
    """

    at: Int64Array
    low: Int64Array
    high: Int64Array
    few: Int64Array

    def is_kept(self, values: FloatArray) -> bool:
        """True if `values`, float64[leaves], are ordered."""
        return bool((values[self.low] <= values[self.high]).all())

    def nearest(self, values: FloatArray, metric: FloatArray) -> FloatArray:
        """The ordered values nearest to `values`; errors of the solver are corrected, so that the order holds exactly."""
        forms = np.zeros((len(self.few), len(values)))
        each = np.arange(len(self.few))
        forms[each, self.low[self.few]] = 1.0
        forms[each, self.high[self.few]] = -1.0
        scaled = forms / metric
        found = values - scaled.T @ least_dual(scaled @ forms.T, forms @ values, 0)
        while not self.is_kept(found):
            np.maximum.at(found, self.high, found[self.low])
        return np.asarray(found)


class Order:
    """The order of the leaves of all changed trees and their copies; `metric`, float64[variables], weights squared changes."""

    def __init__(self, variables: Variables, directions: Sequence[Direction], metric: FloatArray) -> None:
        self.metric, self.width = metric, variables.width
        self._parts: list[tuple[int, _Part]] = []
        forest = variables.forest
        trees: list[tuple[int, list[tuple[int, _Box]]]] = [
            (t, [(int(variables.of_leaf[leaf]), box) for leaf, box in _boxes_of_tree(forest, t)])
            for t in forest.changed
        ]
        for copy, start in zip(variables.copies, variables.start.tolist(), strict=False):
            places = {int(position): int(start) + self.width * i for i, position in enumerate(copy.leaves)}
            boxes = _boxes(forest, copy.node.tolist(), copy.left.tolist(), copy.right.tolist(), 0)
            trees.append((copy.tree, [(places[position], box) for position, box in boxes]))
        for tree, leaves in trees:
            output = int(forest.ensemble.tree_output[tree])
            for column in range(self.width):
                part = _part(leaves, directions, output if self.width == 1 else column, forest)
                if part is not None:
                    self._parts.append((column, part))

    def kept(self, values: FloatArray) -> FloatArray:
        """The ordered values nearest to `values`, tree by tree. If a leaf has two probabilities, their sum does not change."""
        result = values.copy()
        for column, part in self._parts:
            at = part.at + column
            if part.is_kept(result[at]):
                continue
            found = part.nearest(result[at], self.metric[at])
            if self.width == 2:
                result[part.at + 1 - column] += result[at] - found
            result[at] = found
        return result


def _part(leaves: list[tuple[int, _Box]], directions: Sequence[Direction], output: int, forest: Forest) -> _Part | None:
    """The order of a tree's leaves for one output; None if no two leaves are ordered."""
    mine = [(d.feature, d.sign * np.sign(d.weights[output])) for d in directions if d.weights[output] != 0]
    before = np.zeros((len(leaves), len(leaves)), dtype=np.bool_)
    for feature, sign in mine:
        present = forest.cells.grid[feature].present_cells
        ends = [_ends(box.get(feature), present) for _, box in leaves]
        for i, (_, one) in enumerate(leaves):
            for j, (_, two) in enumerate(leaves):
                if i != j and ends[i][0] < ends[j][1] and _meet(one, two, feature):
                    before[(i, j) if sign > 0 else (j, i)] = True
    if not before.any():
        return None
    low, high = np.nonzero(before)
    # If a < b < c, the pair (a, c) is redundant. In a cycle, all leaves must be equal, and no pair is dropped.
    acyclic = not (before & before.T).any()
    between = (before.astype(np.int64) @ before.astype(np.int64)) > 0
    few = np.flatnonzero(~between[low, high]) if acyclic else np.arange(len(low))
    return _Part(np.array([at for at, _ in leaves], dtype=np.int64), low, high, few)


def _ends(mask: BoolArray | None, present: int) -> tuple[int, int]:
    """The first and the last present cell of a leaf; (present, -1) for a leaf that only missing values reach."""
    if mask is None:
        return 0, present - 1
    cells = np.flatnonzero(mask[:present])
    return (int(cells[0]), int(cells[-1])) if len(cells) else (present, -1)


def _meet(one: _Box, two: _Box, but: int) -> bool:
    """True if two boxes have common cells in every feature except `but`."""
    return all(f == but or f not in two or bool((mask & two[f]).any()) for f, mask in one.items())


def _boxes_of_tree(forest: Forest, tree: int) -> list[tuple[int, _Box]]:
    cells = forest.cells
    root, end = int(forest.ensemble.tree_offset[tree]), int(forest.ensemble.tree_offset[tree + 1])
    left = [int(n) - root if cells.feature[root + i] >= 0 else -1 for i, n in enumerate(cells.left[root:end])]
    right = [int(n) - root for n in cells.right[root:end]]
    return [(int(cells.leaf[root + at]), box) for at, box in _boxes(forest, list(range(root, end)), left, right, 0)]


def _boxes(
    forest: Forest, node: Sequence[int], left: Sequence[int], right: Sequence[int], root: int
) -> list[tuple[int, _Box]]:
    """The leaves of a tree by position; each leaf has the cells of the features on which its path splits."""
    found: list[tuple[int, _Box]] = []
    todo: list[tuple[int, dict[int, BoolArray]]] = [(root, {})]
    while todo:
        at, box = todo.pop()
        if left[at] < 0:
            found.append((at, box))
            continue
        feature, goes = int(forest.cells.feature[node[at]]), forest.left_cells(node[at])
        for child, mask in ((left[at], goes), (right[at], ~goes)):
            here = mask if feature not in box else box[feature] & mask
            todo.append((child, {**box, feature: here}))
    return found
