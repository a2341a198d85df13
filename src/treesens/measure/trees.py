"""The trees that a search for shares follows, as arrays: of a model, of forests beside it, with groups of features as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from treesens.compiler.base.arrays import Int32Array, Int64Array
from treesens.compiler.model.cells import Bytes, CellEnsemble
from treesens.compiler.model.grid import Grid


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """Nodes of trees over the cells of a grid, as those of a `CellEnsemble`; leaves are numbered from 0 over all trees."""

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

    @staticmethod
    def of(model: CellEnsemble) -> TreeArrays:
        """The trees of a model."""
        return TreeArrays(
            model.grid, model.root, model.feature, model.cut, model.left, model.right, model.leaf, model.default_left,
            model.category_set, model.set_offset, model.set_member,
        )  # fmt: skip

    def beside(self, other: TreeArrays, leaves: int) -> TreeArrays:
        """These trees, whose leaves are `leaves`, and after them the others over the same grid."""
        nodes, sets, members = len(self.feature), len(self.set_offset) - 1, self.set_offset[-1]
        return replace(
            self,
            root=_joined(self.root, other.root + nodes),
            feature=_joined(self.feature, other.feature),
            cut=_joined(self.cut, other.cut),
            left=_joined(self.left, _moved(other.left, nodes)),
            right=_joined(self.right, _moved(other.right, nodes)),
            leaf=_joined(self.leaf, _moved(other.leaf, leaves)),
            default_left=np.concatenate([self.default_left, other.default_left]),
            category_set=_joined(self.category_set, _moved(other.category_set, sets)),
            set_offset=np.concatenate([self.set_offset, other.set_offset[1:] + members]).astype(np.int64),
            set_member=np.concatenate([self.set_member, other.set_member]),
        )

    def with_sets(self, grid: Grid, nodes: Int64Array, features: Sequence[int], sets: Sequence[Bytes]) -> TreeArrays:
        """The trees over another grid, on which some nodes look up another feature in a set: bytes[n_cells] for each."""
        feature, category_set = self.feature.copy(), self.category_set.copy()
        feature[nodes] = features
        category_set[nodes] = len(self.set_offset) - 1 + np.arange(len(nodes))
        ends = self.set_offset[-1] + np.cumsum([len(s) for s in sets], dtype=np.int64)
        return replace(
            self,
            grid=grid,
            feature=feature,
            category_set=category_set,
            set_offset=np.concatenate([self.set_offset, ends]).astype(np.int64),
            set_member=np.concatenate([self.set_member, *sets]).astype(np.uint8),
        )


def _moved(numbers: Int32Array, by: int) -> Int32Array:
    """Numbers after so many others; -1 stays what it is."""
    return np.where(numbers < 0, numbers, numbers + np.int32(by)).astype(np.int32)


def _joined(first: Int32Array, second: Int32Array) -> Int32Array:
    return np.concatenate([first, second]).astype(np.int32)
