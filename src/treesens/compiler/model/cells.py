"""Ensembles over the integer cells of a grid: the form that the compiler and the engine use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import Bytes
from treesens.compiler.model.cell_trees import CellTrees
from treesens.compiler.model.grid import Grid
from treesens.errors import DataError

if TYPE_CHECKING:
    from treesens.compiler.model.ensemble import Ensemble

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

_LEAVES_AT_ONCE = 1 << 15
"""Number of leaves whose boxes are computed together."""


@dataclass(frozen=True, eq=False)
class LeafBoxes:
    """The input cells of every leaf, as CSR: leaf l has the literals offset[l]:offset[l+1], each on a different feature.

    If `mask` is -1, a literal allows the cells lo..hi of its feature (none if lo > hi), and the missing cell if `missing` is
    set. Otherwise, the literal allows the cells flagged in mask_member[mask_offset[mask]:mask_offset[mask + 1]]; these flags
    include the missing cell. Features without a literal are free. A leaf with an empty literal is never reached.
    """

    offset: Int64
    feature: Int32
    lo: Int32
    hi: Int32
    missing: Bools
    mask: Int32
    mask_offset: Int64
    mask_member: Bytes
    grid: Grid

    def allowed(self, literal: int) -> Bools:
        """The cells that a literal allows in its feature, bool[n_cells]."""
        feature = self.grid[int(self.feature[literal])]
        mask = int(self.mask[literal])
        if mask >= 0:
            inside: Bools = np.not_equal(self.mask_member[self.mask_offset[mask] : self.mask_offset[mask + 1]], 0)
            return inside
        allowed = np.zeros(feature.n_cells, dtype=np.bool_)
        allowed[self.lo[literal] : self.hi[literal] + 1] = True
        if feature.missing:
            allowed[feature.missing_cell] = self.missing[literal]
        return allowed

    @cached_property
    def empty(self) -> Bools:
        """Marks literals that allow no cell, bool[literals]."""
        none: Bools = (self.lo > self.hi) & ~self.missing
        counts = np.add.reduceat(np.append(self.mask_member, 0).astype(np.int64), self.mask_offset[:-1])
        masked = self.mask >= 0
        if masked.any():
            none[masked] = counts[self.mask[masked]] == 0
        return none

    @cached_property
    def reachable(self) -> Bools:
        """Marks leaves that can be reached, bool[leaves]."""
        owner = np.repeat(np.arange(len(self.offset) - 1), np.diff(self.offset))
        reachable: Bools = np.bincount(owner[self.empty], minlength=len(self.offset) - 1) == 0
        return reachable


@dataclass(frozen=True, eq=False)
class CellEnsemble(CellTrees):
    """The trees of an ensemble over a grid that contains all cuts of the ensemble."""

    ensemble: Ensemble

    @property
    def n_leaves(self) -> int:
        return self.ensemble.n_leaves

    def leaves(self, cells: Int32) -> Int32:
        """The leaf in every tree, int32[rows, trees], of `cells`, int32[rows, features]. Raises DataError for invalid cells."""
        rows = np.ascontiguousarray(cells, dtype=np.int32)
        if rows.ndim != 2 or rows.shape[1] != len(self.grid):
            raise DataError(f"expected a matrix with {len(self.grid)} columns of cells, not shape {rows.shape}")
        if rows.size and not ((rows >= 0) & (rows < self.grid.n_cells)).all():
            raise DataError("a cell is outside the grid")
        out = np.empty((rows.shape[0], self.n_trees), dtype=np.int32)
        self.engine.reach_leaves(rows, out)
        return out

    def left_cells(self, node: int) -> Bools:
        """Marks the cells of the node's feature that go left, bool[n_cells]."""
        if self.feature[node] < 0:
            raise IndexError(f"node {node} is a leaf")
        feature = self.grid[int(self.feature[node])]
        s = int(self.category_set[node])
        if s >= 0:
            return self.set_member[self.set_offset[s] : self.set_offset[s] + feature.n_cells].astype(np.bool_)
        goes = np.asarray(np.arange(feature.n_cells) <= self.cut[node])
        if feature.missing:
            goes[feature.missing_cell] = bool(self.default_left[node])
        return goes

    @cached_property
    def parent(self) -> Int32:
        """The parent of every node, -1 for roots, int32[nodes]."""
        parent = np.full(len(self.feature), -1, dtype=np.int32)
        inner = np.flatnonzero(self.feature >= 0).astype(np.int32)
        parent[self.left[inner]] = inner
        parent[self.right[inner]] = inner
        return parent

    def leaf_boxes(self) -> LeafBoxes:
        """The cells per feature that reach each leaf: the paths from the leaves to the roots, intersected per feature."""
        at = np.flatnonzero(self.feature < 0).astype(np.int32)
        at = at[np.argsort(self.leaf[at], kind="stable")]
        # In chunks, since the splits above all leaves together would take ten times the memory of the boxes.
        chunks = [self._literals(at[i : i + _LEAVES_AT_ONCE]) for i in range(0, max(1, len(at)), _LEAVES_AT_ONCE)]
        owner, feature, lo, hi, missing, mask = (
            np.concatenate(parts) for parts in zip(*(chunk[:6] for chunk in chunks), strict=True)
        )
        masks = [chunk[6] for chunk in chunks]
        # Masks are numbered within their chunk.
        before = np.cumsum([0, *(len(of_chunk) for of_chunk in masks)])
        lengths = [len(chunk[0]) for chunk in chunks]
        mask = np.where(mask < 0, mask, mask + np.repeat(before[:-1], lengths)).astype(np.int32)
        members = [member for of_chunk in masks for member in of_chunk]
        per_leaf = np.bincount(owner, minlength=self.n_leaves)
        return LeafBoxes(
            offset=np.concatenate([[0], np.cumsum(per_leaf)]).astype(np.int64),
            feature=feature,
            lo=lo,
            hi=hi,
            missing=missing,
            mask=mask,
            mask_offset=np.concatenate([[0], np.cumsum([len(m) for m in members])]).astype(np.int64),
            mask_member=np.concatenate([np.zeros(0, np.uint8), *members]).astype(np.uint8),
            grid=self.grid,
        )

    def _literals(self, at: Int32) -> tuple[Int32, Int32, Int32, Int32, Bools, Int32, list[Bytes]]:
        """For the leaves at the nodes `at`, one literal per feature on the path, sorted by leaf and feature: leaf, feature, lo,
        hi, missing, mask; and the masks.
        """
        owner, node, went_left = self._paths(at)
        feature = self.feature[node]
        # Sorting groups the splits that form one literal.
        order = np.lexsort((feature, owner))
        owner, node, went_left, feature = owner[order], node[order], went_left[order], feature[order]
        if not len(owner):
            none = np.zeros(0, np.int32)
            return none, none, none, none, np.zeros(0, np.bool_), none, []
        start = np.flatnonzero((np.diff(owner, prepend=-1) != 0) | (np.diff(feature, prepend=-1) != 0))
        has_missing = self.grid.missing_cells >= 0
        last = self.grid.n_cells - has_missing - 1
        lo = np.maximum.reduceat(np.where(went_left, 0, self.cut[node] + 1), start).astype(np.int32)
        hi = np.minimum.reduceat(np.where(went_left, self.cut[node], last[feature]), start).astype(np.int32)
        follows = (self.default_left[node] != 0) == went_left
        missing = np.logical_and.reduceat(follows, start) & has_missing[feature[start]]
        mask, masks = self._masks(node, went_left, start)
        categorical = mask >= 0
        lo[categorical], hi[categorical] = 0, -1
        for literal in np.flatnonzero(categorical):
            cell = self.grid[int(feature[start[literal]])].missing_cell
            missing[literal] = cell >= 0 and bool(masks[mask[literal]][cell])
        return owner[start], feature[start], lo, hi, missing, mask, masks

    def _paths(self, at: Int32) -> tuple[Int32, Int32, Bools]:
        """All splits above the leaves at nodes `at`: (leaf, node of the split, went left), level by level upwards."""
        owner = self.leaf[at]
        owners, nodes, sides = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], [np.zeros(0, np.bool_)]
        while True:
            up = self.parent[at]
            inside = up >= 0
            if not inside.any():
                return np.concatenate(owners), np.concatenate(nodes), np.concatenate(sides)
            at, owner, up = at[inside], owner[inside], up[inside]
            owners.append(owner)
            nodes.append(up)
            sides.append(self.left[up] == at)
            at = up

    def _masks(self, node: Int32, went_left: Bools, start: Int64) -> tuple[Int32, list[Bytes]]:
        """Byte masks for the literals that use category sets. Few models have many category sets, so a loop is fast enough."""
        mask = np.full(len(start), -1, dtype=np.int32)
        masks: list[Bytes] = []
        end = np.append(start[1:], len(node))
        by_set = np.logical_or.reduceat(self.category_set[node] >= 0, start)
        for literal in np.flatnonzero(by_set):
            allowed: Bools | None = None
            for k in range(start[literal], end[literal]):
                goes = self.left_cells(int(node[k]))
                goes = goes if went_left[k] else ~goes
                allowed = goes if allowed is None else allowed & goes
            assert allowed is not None
            mask[literal] = len(masks)
            masks.append(allowed.astype(np.uint8))
        return mask, masks


MOST_FEATURES_OF_A_TREE = 3
"""Maximum number of features in the first tree of an additive model; in most other models the first tree has more features."""


def may_be_additive(model: CellEnsemble) -> bool:
    """True if the first tree splits on few features, so that the trees may be additive: a cheap, necessary condition."""
    if model.n_trees == 0:
        return False
    last = int(model.root[1]) if model.n_trees > 1 else len(model.feature)
    features = model.feature[int(model.root[0]) : last]
    return len(set(features[features >= 0][:64].tolist())) <= MOST_FEATURES_OF_A_TREE
