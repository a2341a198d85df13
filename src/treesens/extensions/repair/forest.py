"""The trees of a model that split on certain features, their means over the features, and the trees passed to a writer.

The mean of a tree over the features F is a sum of trees without splits on F: one copy per combination of directions at the
splits on F, weighted by the share of the table's rows with this combination. Copies with equal splits are merged into a single
copy, whose leaf values are weighted sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from treesens.binder.terms import predicts_probabilities
from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Ensemble
from treesens.data.rows import cells_of_rows
from treesens.errors import ModelError


@dataclass(frozen=True, eq=False)
class Copy:
    """A copy of `tree` without the splits on some features.

    `node` int32[N] holds the ensemble's nodes whose splits are copied, parents first and siblings next to each other; `left`
    and `right` int32[N] are child positions in `node`, or -1 at leaves. For each i, the value of the leaf at `position[i]` has
    a summand: `weight[i]` times the value of the ensemble's leaf `leaf[i]`. The weight is a share of the table's rows.
    """

    tree: int
    node: Int32Array
    left: Int32Array
    right: Int32Array
    position: Int32Array
    leaf: Int32Array
    weight: FloatArray

    @cached_property
    def leaves(self) -> Int32Array:
        """The positions of the leaves, int32[L]."""
        return np.flatnonzero(self.left < 0).astype(np.int32)


@dataclass(frozen=True)
class _Part:
    """A node of a copy that is being built: `node` is its index in the ensemble; the children are None at a leaf."""

    node: int
    left: _Part | None = None
    right: _Part | None = None


class Forest:
    """An ensemble with its `changed` trees: trees that split on features in `varied` or `ordered`, but not on features in
    `kept`. The changed trees that split on `varied` are `averaged`.

    Raises ModelError if each leaf has several raw scores, because such models cannot be written to a file.
    """

    def __init__(
        self, ensemble: Ensemble, varied: Sequence[int], kept: Sequence[int] = (), ordered: Sequence[int] = ()
    ) -> None:
        if (ensemble.tree_output < 0).any() and not predicts_probabilities(ensemble):
            raise ModelError(
                "the leaves of the model have a value for every output",
                place=ensemble.name,
                remedy="train with one tree per output; leaves with several values cannot be repaired",
            )
        self.ensemble = ensemble
        self.varied = frozenset(varied)
        self.cells = ensemble.on(ensemble.grid(missing=True))
        asked = [set(ensemble.node_feature[a:b].tolist()) for a, b in self._spans]
        self.concerned = [t for t, names in enumerate(asked) if names & (self.varied | set(ordered))]
        self.changed = [t for t in self.concerned if not asked[t] & set(kept)]
        self.averaged = [t for t in self.changed if asked[t] & self.varied]
        self._left: dict[int, BoolArray] = {}

    @property
    def _spans(self) -> list[tuple[int, int]]:
        offset = self.ensemble.tree_offset.tolist()
        return list(pairwise(offset))

    def rows(self, matrix: FloatArray) -> Int32Array:
        """The rows of `matrix`, float64[rows, features], as cells int32[rows, features]; NaN is missing."""
        with np.errstate(over="ignore", invalid="ignore"):
            return cells_of_rows(self.cells.grid, matrix)

    def left_cells(self, node: int) -> BoolArray:
        """The cells of the node's feature that go left."""
        if node not in self._left:
            self._left[node] = self.cells.left_cells(node)
        return self._left[node]

    def copies(self, tree: int, cells: Int32Array) -> list[Copy]:
        """The mean of a tree over the varied features, weighted by the rows of `cells`, int32[rows, features]."""
        start, end = self._spans[tree]
        inner = [n for n in range(start, end) if int(self.ensemble.node_feature[n]) in self.varied]
        answers = np.stack([self.left_cells(n)[cells[:, self.ensemble.node_feature[n]]] for n in inner], axis=1)
        ways, counts = np.unique(answers, axis=0, return_counts=True)
        groups: dict[Any, tuple[_Part, list[tuple[list[int], float]]]] = {}
        for way, count in zip(ways, counts.tolist(), strict=True):
            part = self._restricted(start, dict(zip(inner, way.tolist(), strict=True)))
            nodes, left, _ = _laid_out(part)
            leaves = [self.cells.leaf[n] for n, child in zip(nodes, left, strict=True) if child < 0]
            _, members = groups.setdefault(self._key(part), (part, []))
            members.append((leaves, count / len(cells)))
        return [self._copy(tree, part, members) for part, members in groups.values()]

    def _restricted(self, node: int, answers: Mapping[int, bool]) -> _Part:
        if self.cells.feature[node] < 0:
            return _Part(node)
        if node in answers:
            side = self.cells.left if answers[node] else self.cells.right
            return self._restricted(int(side[node]), answers)
        left, right = (self._restricted(int(side[node]), answers) for side in (self.cells.left, self.cells.right))
        return _Part(node, left, right)

    def _key(self, part: _Part) -> Any:
        """A key that is equal for copies with the same splits."""
        if part.left is None or part.right is None:
            return None
        feature = int(self.cells.feature[part.node])
        return feature, self.left_cells(part.node).tobytes(), self._key(part.left), self._key(part.right)

    def _copy(self, tree: int, part: _Part, members: list[tuple[list[int], float]]) -> Copy:
        node, left, right = (np.array(column, dtype=np.int32) for column in _laid_out(part))
        at = np.flatnonzero(left < 0).astype(np.int32)
        leaf = np.concatenate([leaves for leaves, _ in members]).astype(np.int32)
        weight = np.repeat([weight for _, weight in members], len(at))
        return Copy(tree, node, left, right, np.tile(at, len(members)), leaf, weight)

    def reached(self, copy: Copy, cells: Int32Array) -> Int64Array:
        """For each row, the leaf of a copy that the row reaches, int64[rows], as an index into the leaves of the copy."""
        at = np.zeros(len(cells), dtype=np.int64)
        for position, (node, left) in enumerate(zip(copy.node.tolist(), copy.left.tolist(), strict=True)):
            if left < 0:
                continue
            here = np.flatnonzero(at == position)
            goes = self.left_cells(node)[cells[here, self.cells.feature[node]]]
            at[here] = np.where(goes, left, copy.right[position])
        return np.searchsorted(copy.leaves, at)


def _laid_out(part: _Part) -> tuple[list[int], list[int], list[int]]:
    """Node numbers by level, with siblings next to each other, and the positions of the children."""
    parts, left, right = [part], [], []
    for one in parts:
        if one.left is None or one.right is None:
            left.append(-1)
            right.append(-1)
            continue
        left.append(len(parts))
        right.append(len(parts) + 1)
        parts += [one.left, one.right]
    return [one.node for one in parts], left, right


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree to write: the splits of `copy` (or, without a copy, of the tree `source`) with new leaves.

    `values`, float64[leaves of the tree, W], holds the leaf values, in the order of the ensemble or of `copy.leaves`; None
    leaves the tree in the file unchanged.
    """

    source: int
    copy: Copy | None = None
    values: FloatArray | None = None


class Writer(Protocol):
    """Writes trees into a loaded model file. `leaf_type` is the number type of leaves in the file."""

    leaf_type: NumberType

    def written(self, trees: Sequence[Tree]) -> bytes:
        """The content of the file with these trees, which must be in the order of their sources."""
        ...


def nodes_in_file(
    ensemble: Ensemble, tree: int, left: Sequence[int], right: Sequence[int], root: int = 0
) -> dict[int, int]:
    """For every node of an ensemble's tree, the node in the file; both trees are traversed in parallel from their roots.

    `left` and `right` are the children according to the file, as indices within the tree.
    """
    found, todo = {}, [(int(ensemble.tree_offset[tree]), root)]
    while todo:
        mine, theirs = todo.pop()
        found[mine] = theirs
        if ensemble.node_feature[mine] >= 0:
            todo.append((int(ensemble.left[mine]), int(left[theirs])))
            todo.append((int(ensemble.right[mine]), int(right[theirs])))
    return found


def leaves_of_trees(ensemble: Ensemble) -> list[Int32Array]:
    """For each tree, its leaf numbers, int32[leaves of the tree]."""
    order = np.argsort(ensemble.leaf_tree, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(ensemble.leaf_tree, minlength=ensemble.n_trees))
    return np.split(order, ends[:-1])


def contributions(ensemble: Ensemble) -> FloatArray:
    """The contribution of every leaf to the margins, float64[leaves, W]. It is rounded, because no proof depends on it."""
    return np.asarray(units(ensemble)[ensemble.leaf_tree][:, None] * ensemble.leaf_value)


def units(ensemble: Ensemble) -> FloatArray:
    """The margin that a leaf value of 1 adds in each tree, float64[trees]."""
    return np.asarray(ensemble.tree_weight / ensemble.average)
