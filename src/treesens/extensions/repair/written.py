"""Repaired trees as what they are written from: the trees of the file in order, each with its leaves, and its copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int32Array
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Ensemble
from treesens.extensions.repair.forest import Copy


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree to write: the questions of `copy`, or (None) of tree `source` as it is, with new leaves.

    `values` float64[leaves of the tree, W] are what its leaves hold, in the order of the ensemble or of `copy.leaves`; None
    leaves the tree of the file as it is.
    """

    source: int
    copy: Copy | None = None
    values: FloatArray | None = None


class Writer(Protocol):
    """Puts trees into a model file that was read. `leaf_type` are the numbers that a leaf of the file can hold."""

    leaf_type: NumberType

    def written(self, trees: Sequence[Tree]) -> bytes:
        """The content of the file with other trees; those of one source are together, in the order of the sources."""
        ...


def nodes_in_file(
    ensemble: Ensemble, tree: int, left: Sequence[int], right: Sequence[int], root: int = 0
) -> dict[int, int]:
    """The node of the file for every node of a tree of the ensemble: both are walked side by side from their roots.

    `left` and `right` are the file's own children within the tree.
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
    """The leaf numbers of every tree, int32[leaves of it]."""
    order = np.argsort(ensemble.leaf_tree, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(ensemble.leaf_tree, minlength=ensemble.n_trees))
    return np.split(order, ends[:-1])


def contributions(ensemble: Ensemble) -> FloatArray:
    """What every leaf adds to the margins, float64[leaves, W], rounded: no proof rests on it."""
    return np.asarray(units(ensemble)[ensemble.leaf_tree][:, None] * ensemble.leaf_value)


def units(ensemble: Ensemble) -> FloatArray:
    """What a leaf of 1 in each tree adds to a margin, float64[trees]."""
    return np.asarray(ensemble.tree_weight / ensemble.average)
