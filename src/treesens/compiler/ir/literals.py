"""Literals: a Boolean variable or its negation as one integer, so that whole arrays of them are rewritten at once.

`2 * v` is the variable v, `2 * v + 1` its negation (the encoding of SAT solvers). Two constants complete it for rewrites.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, distinct, row_of
from treesens.compiler.ir.module import Module
from treesens.compiler.ir.ops import LeafImplies, LeafSum

FALSE: Final = -2
TRUE: Final = -1
"""Constants among literals; `literal ^ 1` negates them too (-2 ^ 1 == -1)."""


def positive(variables: Any) -> Int32Array:
    return np.asarray(variables, np.int32) * np.int32(2)


def negative(variables: Any) -> Int32Array:
    return np.asarray(variables, np.int32) * np.int32(2) + np.int32(1)


def variable_of(literals: Int32Array) -> Int32Array:
    return np.asarray(literals >> 1, np.int32)


def is_negative(literals: Int32Array) -> BoolArray:
    return (literals & 1).astype(bool)


def literal_values(literals: Int32Array, assignment: BoolArray) -> BoolArray:
    """Truth of each literal (constants included) under `assignment` [..., variables]; shape [..., literals]."""
    constant = literals < 0
    variable = np.where(constant, 0, literals >> 1)
    if assignment.shape[-1] == 0:
        values = np.zeros((*assignment.shape[:-1], len(literals)), bool)
    else:
        values = assignment[..., variable] ^ (literals & 1).astype(bool)
    return np.where(constant, literals == TRUE, values)


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
