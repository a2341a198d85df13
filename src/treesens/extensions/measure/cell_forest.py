"""Builds ensembles of trees over cells; each node sends a run of cells, or a set of categories, to the left."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.model.ensemble import Ensemble
from treesens.compiler.model.grid import FeatureGrid, Grid
from treesens.compiler.model.kinds import LEARNT, Accumulation, Feature, ModelSource, Task
from treesens.compiler.query.forest import SHIFT
from treesens.extensions.measure.pair_tables import PairTables
from treesens.links import Identity


@dataclass
class ForestBuilder:
    """Builds trees node by node, parents before their children."""

    grid: Grid
    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    default_left: list[bool] = field(default_factory=list)
    category_set: list[int] = field(default_factory=list)
    leaf: list[int] = field(default_factory=list)
    """The leaf values in units of 2**-SHIFT; 0 for inner nodes."""
    roots: list[int] = field(default_factory=list)
    sets: dict[tuple[int, ...], int] = field(default_factory=dict)

    def begin_tree(self) -> None:
        self.roots.append(len(self.feature))

    def add_leaf(self, value: int) -> int:
        """Adds a leaf; returns its number."""
        return self._node(-1, np.nan, default_left=False, category_set=-1, value=value)

    def add_split(self, feature: int, goes_left: BoolArray) -> int:
        """Adds a node that sends the cells in `goes_left` to the left, and returns its number; `join` sets the children.

        For an ordered feature, the cells must be the first ones, with or without the missing cell.
        """
        grid = self.grid[feature]
        missing = bool(grid.missing and goes_left[grid.missing_cell])
        present = goes_left[: grid.present_cells]
        if grid.categories:
            codes = tuple(np.flatnonzero(present).tolist())
            number = self.sets.setdefault(codes, len(self.sets))
            return self._node(feature, np.nan, default_left=missing, category_set=number)
        return self._node(feature, _cut(grid, present), default_left=missing, category_set=-1)

    def join(self, node: int, left: int, right: int) -> None:
        self.left[node], self.right[node] = left, right

    def _node(self, feature: int, threshold: float, *, default_left: bool, category_set: int, value: int = 0) -> int:
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.left.append(-1)
        self.right.append(-1)
        self.default_left.append(default_left)
        self.category_set.append(category_set)
        self.leaf.append(value)
        return len(self.feature) - 1

    def finish(self, name: str, features: tuple[Feature, ...]) -> Ensemble:
        """The trees as an ensemble with one output, which is the sum of the leaves."""
        feature = np.array(self.feature, np.int32)
        ends = feature < 0
        offset = np.array([*self.roots, len(feature)], np.int64)
        codes = [np.array(chosen, np.int32) for chosen in self.sets]
        leaves = int(ends.sum())
        numbers = np.where(ends, np.cumsum(ends) - 1, -1)
        trees = len(self.roots)
        return Ensemble(
            name=name,
            features=features,
            number_type=self.grid[0].number_type,
            comparison="<",
            tree_offset=offset,
            node_feature=feature,
            threshold=np.array(self.threshold),
            left=np.array(self.left, np.int32),
            right=np.array(self.right, np.int32),
            default_left=np.array(self.default_left, bool),
            node_leaf=numbers.astype(np.int32),
            leaf_value=Unit(SHIFT).doubles(np.array(self.leaf, np.int64)[ends]).reshape(leaves, 1),
            leaf_tree=np.repeat(np.arange(trees), np.diff(offset))[ends].astype(np.int32),
            leaf_node=np.arange(leaves, dtype=np.int32),
            tree_output=np.zeros(trees, np.int32),
            tree_weight=np.ones(trees),
            base=np.zeros(1),
            link=Identity(),
            task=Task.REGRESSION,
            accumulation=Accumulation.FLOAT64_BASE_FIRST,
            source=ModelSource(LEARNT),
            category_set=np.array(self.category_set, np.int32),
            set_offset=np.concatenate(([0], np.cumsum([len(c) for c in codes]))).astype(np.int64),
            set_codes=np.concatenate([np.zeros(0, np.int32), *codes]),
        ).validate()


def _cut(grid: FeatureGrid, present: BoolArray) -> float:
    """The cut above exactly the cells in `present`, which must be the first cells. Infinite for all cells and for no cell."""
    count = int(np.count_nonzero(present))
    if not present[:count].all():
        raise ValueError(f"the cells of `{grid.name}` that go left are not the first ones")
    if count == 0:
        return -np.inf
    return float(grid.cuts[count - 1]) if count <= len(grid.cuts) else np.inf


def forest_of_pairs(pairs: PairTables, grid: Grid, features: tuple[Feature, ...]) -> Ensemble:
    """The pair tables as trees: one tree per feature, which splits on the feature's parent, then on the feature."""
    builder = ForestBuilder(grid)
    for f, table in enumerate(pairs.tables):
        if table.any() or f == 0:
            builder.begin_tree()
            _add_lines(builder, pairs, f, table, 0, len(table))
    return builder.finish("typical by chow-liu", features)


def _add_lines(builder: ForestBuilder, pairs: PairTables, f: int, table: Int64Array, low: int, high: int) -> int:
    """Adds the lines low .. high-1 of a table. Each split on the parent's group halves the lines, until all lines are equal."""
    if (table[low:high] == table[low]).all():
        return _add_entries(builder, f, pairs.groups[f], table[low], 0, table.shape[1])
    middle = (low + high) // 2
    parent = int(pairs.parent[f])
    node = builder.add_split(parent, np.asarray(pairs.groups[parent] < middle))
    left = _add_lines(builder, pairs, f, table, low, middle)
    builder.join(node, left, _add_lines(builder, pairs, f, table, middle, high))
    return node


def _add_entries(builder: ForestBuilder, f: int, group: Int32Array, line: Int64Array, low: int, high: int) -> int:
    """Adds the entries low .. high-1 of a line."""
    if (line[low:high] == line[low]).all():
        return builder.add_leaf(int(line[low]))
    middle = (low + high) // 2
    node = builder.add_split(f, np.asarray(group < middle))
    left = _add_entries(builder, f, group, line, low, middle)
    builder.join(node, left, _add_entries(builder, f, group, line, middle, high))
    return node
