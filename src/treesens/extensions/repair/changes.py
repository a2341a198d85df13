"""Which trees and leaves of a repaired model are others than before."""

from __future__ import annotations

from typing import Any

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.extensions.repair.program import Variables


def changes_of(variables: Variables, values: FloatArray, *, alone: bool) -> dict[str, Any]:
    """Which trees and leaves are others than before, and by how much."""
    n = len(variables.own)
    ensemble = variables.forest.ensemble
    moved = np.abs(values[:n] - variables.own).reshape(-1, variables.width).max(axis=1, initial=0.0)
    trees = np.unique(ensemble.leaf_tree[variables.leaf[moved > 0]])
    copies = sum(
        bool(values[start : start + len(copy.leaves)].any())
        for copy, start in zip(variables.copies, variables.start.tolist(), strict=False)
    )
    return {
        "changes": {
            "trees": ensemble.n_trees,
            "trees_that_ask": len(variables.forest.concerned),
            "trees_changed": len(trees),
            "trees_replaced": alone,
            "trees_added": copies,
            "leaves": ensemble.n_leaves,
            "leaves_changed": int((moved > 0).sum()),
            "largest_change_of_a_leaf": float(moved.max(initial=0.0)),
        }
    }
