"""Trees over the integer cells of a grid: node arrays, and the single object that represents them in the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens._engine import CheckedTrees
from treesens.compiler.base.arrays import Bytes, Int32Array, Int64Array, frozen
from treesens.compiler.model.grid import Grid


@dataclass(frozen=True, eq=False)
class CellTrees:
    """Trees with cell comparisons: an inner node sends a cell left iff cell <= cut.

    Node arrays [nodes] have children after parents and feature -1 at leaves; `leaf` is the leaf number or -1. `default_left` is
    true where the missing cell goes left. A node with s = category_set >= 0 looks up the cell in
    set_member[set_offset[s]:set_offset[s + 1]], one byte per cell of its feature, including the missing cell. All arrays are
    read-only: the engine reads them without a copy."""

    grid: Grid
    root: Int32Array
    feature: Int32Array
    cut: Int32Array
    left: Int32Array
    right: Int32Array
    leaf: Int32Array
    default_left: Bytes
    category_set: Int32Array
    set_offset: Int64Array
    set_member: Bytes

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __getstate__(self) -> dict[str, Any]:
        """The fields without the engine's object, which another process must create for itself."""
        return {name: value for name, value in self.__dict__.items() if name != "engine"}

    @property
    def n_trees(self) -> int:
        return len(self.root)

    @property
    def n_leaves(self) -> int:
        return int(self.leaf.max(initial=-1)) + 1

    @cached_property
    def engine(self) -> CheckedTrees:
        """The trees as an object of the engine, which checks them once."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        return CheckedTrees(**arrays, missing_cell=self.grid.missing_cells, cell_count=self.grid.n_cells)

    def with_sets(self, grid: Grid, nodes: Int64Array, features: Sequence[int], sets: Sequence[Bytes]) -> CellTrees:
        """The trees over another grid, where the given nodes test other features by sets, bytes[n_cells] each."""
        feature, category_set = self.feature.copy(), self.category_set.copy()
        feature[nodes] = features
        category_set[nodes] = len(self.set_offset) - 1 + np.arange(len(nodes))
        ends = self.set_offset[-1] + np.cumsum([len(s) for s in sets], dtype=np.int64)
        return CellTrees(
            grid,
            self.root,
            feature,
            self.cut,
            self.left,
            self.right,
            self.leaf,
            self.default_left,
            category_set,
            np.concatenate([self.set_offset, ends]).astype(np.int64),
            np.concatenate([self.set_member, *sets]).astype(np.uint8),
        )


_ARRAYS = tuple(field.name for field in fields(CellTrees) if field.name != "grid")


def side_by_side(parts: Sequence[CellTrees]) -> CellTrees:
    """Concatenates trees over one grid, and their leaves; a single part is returned unchanged."""
    if len(parts) == 1:
        return parts[0]
    nodes = [len(part.feature) for part in parts]
    sets = [len(part.set_offset) - 1 for part in parts]
    leaves = [part.n_leaves for part in parts]
    offsets = _moved([part.set_offset[1:] for part in parts], [len(part.set_member) for part in parts])
    return CellTrees(
        parts[0].grid,
        root=_moved([part.root for part in parts], nodes),
        feature=np.concatenate([part.feature for part in parts]),
        cut=np.concatenate([part.cut for part in parts]),
        left=_moved([part.left for part in parts], nodes),
        right=_moved([part.right for part in parts], nodes),
        leaf=_moved([part.leaf for part in parts], leaves),
        default_left=np.concatenate([part.default_left for part in parts]),
        category_set=_moved([part.category_set for part in parts], sets),
        set_offset=np.concatenate([np.zeros(1, np.int64), offsets]),
        set_member=np.concatenate([part.set_member for part in parts]),
    )


def _moved(numbers: Sequence[NDArray[Any]], sizes: Sequence[int]) -> NDArray[Any]:
    """Concatenates the numbers of all parts, each shifted by the total `sizes` of the preceding parts; -1 is unchanged."""
    before = np.cumsum([0, *sizes[:-1]])
    return np.concatenate(
        [np.where(part < 0, part, part + by).astype(part.dtype) for part, by in zip(numbers, before, strict=True)]
    )
