"""The operations of the IR: a small closed union, matched exhaustively. A new kind of operation needs a page under docs/adr/.

Equation names are those of the paper (Varshney et al., ICLR 2026).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from treesens.compiler.base.arrays import ArrayRecord, BoolArray, Int32Array, Int64Array, IntegerArray


@dataclass(frozen=True, eq=False)
class LeafImplies(ArrayRecord):
    """A leaf implies its guards: leaves[i] -> literals[i]; int32[n] each."""

    leaves: Int32Array
    literals: Int32Array


@dataclass(frozen=True, eq=False)
class LeafSum(ArrayRecord):
    """Aggregated form (eqs. root_const, non_root_const): the sum of all leaves in row i is at most literals[i].

    `indptr` int64[r+1], `leaves` int32[nnz], `literals` int32[r]; `equality`, bool[r], marks rows whose sum equals the literal.
    All leaves in a row belong to one tree and one point, so that the sum is 0 or 1. Equalities occur at roots, in pairs: the
    leaves left of the root add up to its guard, and the leaves right of the root add up to the guard's negation.
    """

    indptr: Int64Array
    leaves: Int32Array
    literals: Int32Array
    equality: BoolArray


@dataclass(frozen=True, eq=False)
class Equal(ArrayRecord):
    """Pairs of equal literals (eq. same, UnAff): left[i] == right[i]; int32[n] each."""

    left: Int32Array
    right: Int32Array


@dataclass(frozen=True, eq=False)
class Clauses(ArrayRecord):
    """Disjunctions of literals in CSR form: `indptr` int64[r+1], `literals` int32[nnz]. An empty row is false."""

    indptr: Int64Array
    literals: Int32Array


@dataclass(frozen=True, eq=False)
class Linear(ArrayRecord):
    """Exact row: sum of coefficients[i] * variables[i] >= bound, all in units of 2**-shift.

    `variables`, int32[n], are distinct; `coefficients` are int64[n] (Python integers where int64 is not exact); `bound` is an
    integer. If `when` is a literal (not -1 = TRUE), the row is enforced only if that literal is true. `implied` rows follow
    from other rows: they help solvers, and a backend may omit them.
    """

    name: str
    variables: Int32Array
    coefficients: IntegerArray
    bound: int
    shift: int
    when: int = -1
    implied: bool = False


@dataclass(frozen=True, eq=False)
class Membership(ArrayRecord):
    """Membership: members[i] is true iff the cell of order block orders[i] is in the runs of row i.

    `members`, int32[r], are variables, and `orders`, int32[r], are indices into the module's blocks. `indptr`, int64[r+1],
    delimits the runs of each row: cells `low` to `high` (inclusive), int32[nnz]; runs are ascending and disjoint. Guards that
    are not intervals (categories, missing directions) are compiled to members.
    """

    members: Int32Array
    orders: Int32Array
    indptr: Int64Array
    low: Int32Array
    high: Int32Array


@dataclass(frozen=True, eq=False)
class Facts(ArrayRecord):
    """Literals that must be true, int32[n]."""

    literals: Int32Array


Op: TypeAlias = LeafImplies | LeafSum | Equal | Clauses | Linear | Membership | Facts


@dataclass(frozen=True, eq=False)
class Objective(ArrayRecord):
    """Maximise the sum of coefficients[i] * variables[i] + constant, in units of 2**-shift (lowering negates minimisation).

    A `surrogate` objective only steers a solver towards feasibility (Obj-bin, Obj-multi): its value has no meaning, and a
    solver may stop at the first feasible point.
    """

    variables: Int32Array
    coefficients: IntegerArray
    constant: int
    shift: int
    surrogate: bool = False


@dataclass(frozen=True, eq=False)
class Start(ArrayRecord):
    """Variables that are true in a presumed solution, int32[n]; all other variables are false.

    A start proves nothing about the module: a solver may only start its search from this point.
    """

    variables: Int32Array
