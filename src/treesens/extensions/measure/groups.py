"""Folds `onehot` groups for a measure: a group becomes one feature with the members as its values.

In every input, one member of a group is 1 and the other members are 0. A search therefore has a single feature with one cell
per member, at the index of the first member; the other members keep their indices and have a single cell, so no tree splits on
them. Tests of members become tests of this feature.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from treesens.compiler.base.arrays import Bytes, FloatArray, Int32Array, Int64Array
from treesens.compiler.model.cell_trees import CellTrees
from treesens.compiler.model.grid import FeatureGrid, Grid
from treesens.compiler.query.query import AllOf, CellSet, Constraint, OneHot, Query
from treesens.errors import UsageError
from treesens.extensions.measure.measure import Measure


@dataclass(frozen=True, eq=False)
class Group:
    """A group of features of which exactly one is 1: their indices, and for each member the cells that contain 0 and 1."""

    members: tuple[int, ...]
    zeros: tuple[int, ...]
    ones: tuple[int, ...]

    @property
    def place(self) -> int:
        """The index of the merged feature in a search."""
        return self.members[0]

    def cells_of(self, member: int) -> Int32Array:
        """The cell of `member` when each member in turn is the one equal to 1, int32[members]."""
        at = self.members.index(member)
        cells = np.full(len(self.members), self.zeros[at], np.int32)
        cells[at] = self.ones[at]
        return cells


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a question over its grid."""

    grid: Grid
    groups: tuple[Group, ...] = ()

    @property
    def members(self) -> frozenset[int]:
        return frozenset(f for group in self.groups for f in group.members)

    @property
    def counts(self) -> dict[int, int]:
        """The number of cells of every member in a search: 1, except for the first member of a group."""
        return {f: len(g.members) if f == g.place else 1 for g in self.groups for f in g.members}

    def folded_grid(self) -> Grid:
        """The grid of a search."""
        if not self.groups:
            return self.grid
        grids = list(self.grid)
        for group in self.groups:
            kind = grids[group.place].number_type
            for f in group.members:
                cells = len(group.members) if f == group.place else 1
                grids[f] = FeatureGrid(grids[f].name, kind, np.zeros(0), categories=cells - 1)
        return Grid(tuple(grids))

    def folded_trees(self, trees: CellTrees) -> CellTrees:
        """The trees with tests of members replaced by tests of the merged feature."""
        if not self.groups:
            return trees
        of = {f: group for group in self.groups for f in group.members}
        nodes = np.flatnonzero(np.isin(trees.feature, list(of)))
        places: list[int] = []
        sets: list[Bytes] = []
        for node in nodes.tolist():
            f = int(trees.feature[node])
            places.append(of[f].place)
            sets.append(_goes_left(trees, node, of[f].cells_of(f)))
        return trees.with_sets(self.folded_grid(), nodes, places, sets)

    def folded_rows(self, cells: Int32Array) -> Int32Array:
        """The rows of `cells`, int32[rows, features], in a search's features; every row must satisfy the groups."""
        folded = cells.copy()
        for group in self.groups:
            members = list(group.members)
            ones = cells[:, members] == np.array(group.ones)
            if not (ones.sum(axis=1) == 1).all():
                raise ValueError("a row does not have exactly one member of a group equal to 1")
            folded[:, members] = 0
            folded[:, group.place] = np.argmax(ones, axis=1)
        return folded

    def unfolded_rows(self, folded: Int32Array) -> Int32Array:
        """The rows of a search converted back to cells of all features."""
        cells = folded.copy()
        for group in self.groups:
            for f in group.members:
                cells[:, f] = group.cells_of(f)[folded[:, group.place]]
        return cells

    def unfolded_box(self, low: Int32Array, high: Int32Array) -> tuple[Int32Array, Int32Array]:
        """The first and last cells of a search box, for all features; both contain the same inputs that satisfy the groups."""
        first, last = low.copy(), high.copy()
        for group in self.groups:
            start, end = int(low[group.place]), int(high[group.place])
            for f in group.members:
                cells = group.cells_of(f)[start : end + 1]
                everything = len(cells) == len(group.members)
                first[f] = 0 if everything else cells.min()
                last[f] = self.grid[f].n_cells - 1 if everything else cells.max()
        return first, last

    def legal_rows(self, cells: Int32Array) -> Int64Array:
        """The indices of the rows of `cells`, int32[rows, features], that satisfy the groups."""
        good = np.ones(len(cells), bool)
        for group in self.groups:
            member_cells = cells[:, list(group.members)]
            ones = member_cells == np.array(group.ones)
            good &= (ones | (member_cells == np.array(group.zeros))).all(axis=1) & (ones.sum(axis=1) == 1)
        return np.flatnonzero(good)

    def everyone(self, measure: Measure) -> list[FloatArray]:
        """For each feature, the shares of its cells, float64[n_cells], under a measure over the folded grid."""
        shares = [measure.shares(f) for f in range(len(self.grid))]
        for group in self.groups:
            of_group = shares[group.place]
            for f in group.members:
                share = np.bincount(group.cells_of(f), of_group, minlength=self.grid[f].n_cells)
                shares[f] = share.astype(np.float64)
        return shares

    def varied(self, varied: Collection[int]) -> list[int]:
        """The features that a search varies if the features `varied` may differ between two points.

        A group with a single varied member cannot change. Raises UsageError if several but not all members are varied.
        """
        found = set(varied) - self.members
        for group in self.groups:
            varied_members = set(varied) & set(group.members)
            if varied_members == set(group.members) and len(varied_members) > 1:
                found.add(group.place)
            elif len(varied_members) > 1:
                names = ", ".join(f"`{self.grid[f].name}`" for f in group.members)
                raise UsageError(
                    "a share must vary either a whole `onehot` group or exactly one of its features",
                    remedy=f"vary all of {names}",
                )
        return sorted(found)


def _goes_left(trees: CellTrees, node: int, cells: Int32Array) -> Bytes:
    """True for the cells that a node sends to the left, uint8[cells]; the missing cell must not be among `cells`."""
    number = int(trees.category_set[node])
    goes: Bytes = cells <= trees.cut[node]
    if number >= 0:
        goes = trees.set_member[trees.set_offset[number] + cells]
    return goes.astype(np.uint8)


def groups_of(query: Query) -> Groups:
    """The `onehot` groups of the first point of a question. Raises UsageError if two groups share a feature."""
    found = []
    for rule in _rules(query.constraints):
        if rule.point == 0:
            members = tuple(c.feature for c in rule.members)
            ends = [query.space.grid[f].cell_of(np.array([0.0, 1.0])).tolist() for f in members]
            found.append(Group(members, tuple(z for z, _ in ends), tuple(o for _, o in ends)))
    groups = Groups(query.space.grid, tuple(found))
    if len(groups.members) < sum(len(g.members) for g in found):
        raise UsageError("shares need `onehot` groups without common features", remedy="leave one of them out")
    return groups


def _rules(constraints: Sequence[Constraint]) -> list[OneHot]:
    inner = [c for part in constraints if isinstance(part, AllOf) for c in _rules(part.parts)]
    return [c for c in constraints if isinstance(c, OneHot)] + inner


def allows_group(groups: Groups, constraint: CellSet) -> bool:
    """True if a cell set of a group member allows both 0 and 1."""
    for group in groups.groups:
        if constraint.feature in group.members:
            return bool(constraint.mask[np.unique(group.cells_of(constraint.feature))].all())
    return False
