"""What the leaves of a module imply, whichever op says it."""

from __future__ import annotations

import numpy as np

from treesens.compiler.base.arrays import Int32Array, distinct, row_of
from treesens.compiler.ir.module import Module
from treesens.compiler.ir.ops import LeafImplies, LeafSum


def leaf_implications(module: Module) -> tuple[Int32Array, Int32Array]:
    """All pairs (leaf variable, implied literal) of the module, from `Path` and `LeafSum`; duplicates removed.

    A leaf sum of at most a literal says that each of its leaves implies that literal. The converse direction of an
    equality row needs no pair: the other leaves of the tree imply the negation by another row.
    """
    leaves = [op.leaves for op in module.ops_of(LeafImplies)]
    literals = [op.literals for op in module.ops_of(LeafImplies)]
    for op in module.ops_of(LeafSum):
        leaves.append(op.leaves)
        literals.append(op.literals[row_of(op.indptr)])
    if not leaves:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    key = distinct(np.concatenate(leaves).astype(np.int64) << 32 | np.concatenate(literals).astype(np.int64))
    return (key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32)
