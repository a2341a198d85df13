"""Literals: a Boolean variable or its negation as one integer, so that whole arrays of them are rewritten at once.

`2 * v` is the variable v, `2 * v + 1` its negation (the encoding of SAT solvers). Two constants complete it for rewrites.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array

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
