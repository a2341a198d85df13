"""The cases. The name of a function is the name of the case, and the text in `@case` is its purpose."""

from __future__ import annotations

from treesens.compiler.ir import Objective
from treesens.extensions.conformance.cases import BIG, MAKERS, Case, Sketch, case, equal, leaf_sum, lits, maximise, nots

# --- blocks ------------------------------------------------------------------------------------------------------------


@case("no variables, blocks or ops: satisfied")
def empty(s: Sketch) -> None:
    s.cells = ()


@case("an empty clause and no variables: infeasible")
def empty_contradiction(s: Sketch) -> None:
    s.cells = ()
    s.clause([])


@case("only order blocks, one block with a single cell")
def orders(s: Sketch) -> None:
    s.order(0)
    s.order(1, cells=[2])


@case("a chain is a constraint by type: cell <= 0 and not cell <= 1 is infeasible")
def chain(s: Sketch) -> None:
    p = s.order(0)
    s.fact(2 * int(p[0]), 2 * int(p[1]) + 1)


@case("exactly one leaf per tree by type: infeasible if all leaves are denied")
def no_leaf(s: Sketch) -> None:
    p = s.order(0)
    (leaves,) = s.stumps([2 * int(p[1])])
    s.fact(*nots(leaves))


@case("exactly one leaf per tree by type: two leaves that nothing else separates, both required")
def two_leaves(s: Sketch) -> None:
    p = s.order(0)
    leaves = s.leaves(2)
    s.ops.append(leaf_sum([([int(leaves[0])], 2 * int(p[1]), True), ([int(leaves[1])], 2 * int(p[1]) + 1, True)]))
    s.linear(leaves, [1, 1], 2)


@case("cells that were dropped: tables refer to cells of the grid, predicates to the remaining cells")
def dropped_cells(s: Sketch) -> None:
    s.cells = (9,)
    p = s.order(0, cells=[1, 4, 5, 8])
    member = s.table(0, [[(2, 4), (6, 8)]])
    s.fact(2 * int(member[0]), 2 * int(p[0]) + 1)
    s.linear(p, [-1, -1, -1], -1)


@case("cells that the domain forbids: holes of one cell and of several cells, with cells on both sides, at two points")
def holes(s: Sketch) -> None:
    s.cells = (9, 3)
    p, q = s.order(0, 0), s.order(0, 1)
    for v in (p, q):
        # The runs are cell 1 and cells 4 to 6; none of them touches an end.
        s.clause([2 * int(v[0]), 2 * int(v[1]) + 1], [2 * int(v[3]), 2 * int(v[6]) + 1])
    for point, v in enumerate((p, q)):
        guards = [2 * int(x) for x in v]
        s.stumps(guards, point, first=len(guards) * point)
    # The cells just above a hole: 2 for one point, 7 for the other.
    s.linear([int(p[2]), int(p[1]), int(q[7]), int(q[6])], [1, -1, 1, -1], 2)


# --- ops ---------------------------------------------------------------------------------------------------------------


@case("paths with positive and negative guards")
def path(s: Sketch) -> None:
    p, q = s.order(0), s.order(1)
    first, second = s.stumps([2 * int(p[1]), 2 * int(q[0]) + 1])
    s.linear([int(first[0]), int(second[0])], [1, 1], 2)


@case("leaf sums: equality at the root, inequality below, over a tree of three leaves")
def leaf_sums(s: Sketch) -> None:
    p, q = s.order(0), s.order(1)
    leaves = s.leaves(3).tolist()
    root, inner = 2 * int(p[0]), 2 * int(q[1])
    s.ops.append(
        leaf_sum(
            [
                (leaves[:2], root, True),
                (leaves[2:], root ^ 1, True),
                (leaves[:1], inner, False),
                (leaves[1:2], inner ^ 1, False),
            ]
        )
    )
    s.linear(leaves, [5, -3, 2], 5)


@case("leaf sums that contradict each other")
def leaf_sums_infeasible(s: Sketch) -> None:
    p = s.order(0)
    leaves = s.leaves(2).tolist()
    s.ops.append(leaf_sum([(leaves[:1], 2 * int(p[2]), True), (leaves[1:], 2 * int(p[2]) + 1, True)]))
    s.linear(leaves, [-1, 1], 1)
    s.fact(2 * int(p[2]))


@case("two points whose predicates are equal (eq. same), and whose scores must differ: infeasible")
def equal_copies(s: Sketch) -> None:
    p, q = s.order(0, 0), s.order(0, 1)
    (left,) = s.stumps([2 * int(p[1])], 0)
    (right,) = s.stumps([2 * int(q[1])], 1)
    s.ops.append(equal(lits(p), lits(q)))
    s.linear([int(left[0]), int(right[0])], [1, -1], 1)


@case("two points whose copies are equal in one feature and free in the other feature")
def equal_except(s: Sketch) -> None:
    p, q = s.order(0, 0), s.order(0, 1)
    u, v = s.order(1, 0), s.order(1, 1)
    left = s.stumps([2 * int(p[1]), 2 * int(u[0])], 0)
    right = s.stumps([2 * int(q[1]), 2 * int(v[0])], 1)
    s.ops.append(equal(lits(p), lits(q)))
    s.linear([int(left[1][0]), int(right[1][0])], [1, -1], 1)
    s.linear([int(left[0][0]), int(right[0][0])], [1, 1], 2)


@case("two points that share a predicate: a leaf implies the predicate at one point and its negation at the other")
def other_signs(s: Sketch) -> None:
    p = s.order(0, 0, 1)
    (left,) = s.stumps([2 * int(p[1])], 0)
    (right,) = s.stumps([2 * int(p[1]) + 1], 1)
    s.linear([int(left[0]), int(right[0])], [1, -1], 1)


@case("two points that share an order block and an exactly-one block")
def shared_blocks(s: Sketch) -> None:
    p = s.order(0, 0, 1)
    u, v = s.order(1, 0), s.order(1, 1)
    (both,) = s.stumps([2 * int(p[1])], 0, 1)
    (left,) = s.stumps([2 * int(u[0])], 0, first=1)
    (right,) = s.stumps([2 * int(v[0])], 1, first=1)
    s.linear([int(both[0]), int(left[0])], [3, 4], 7)
    s.linear([int(both[0]), int(right[0])], [-3, -4], -3)


@case("equality of a literal and a negated literal")
def equal_negated(s: Sketch) -> None:
    free = s.free(3)
    s.ops.append(equal([2 * int(free[0]), 2 * int(free[1]) + 1], [2 * int(free[1]) + 1, 2 * int(free[2])]))
    s.linear(free, [1, 1, 1], 2)


@case("clauses over predicates and free Booleans")
def clauses(s: Sketch) -> None:
    p, free = s.order(0), s.free(3)
    a, b, c = lits(free)
    s.clause([a, b, 2 * int(p[0])], [a ^ 1, c], [b ^ 1, c ^ 1], [c, 2 * int(p[1]) + 1], [2 * int(p[2])])


@case("clauses that no assignment satisfies: all eight signs of three Booleans")
def clauses_infeasible(s: Sketch) -> None:
    a, b, c = lits(s.free(3))
    s.clause(*[[a ^ i, b ^ j, c ^ k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])


@case("facts of both signs")
def facts(s: Sketch) -> None:
    p, free = s.order(0), s.free(2)
    s.fact(2 * int(p[2]), 2 * int(p[0]) + 1, 2 * int(free[0]), 2 * int(free[1]) + 1)


@case("a fact and its negation: infeasible")
def facts_infeasible(s: Sketch) -> None:
    free = s.free(1)
    s.fact(2 * int(free[0]))
    s.fact(2 * int(free[0]) + 1)


@case("a row with negative coefficients and a negative bound")
def linear(s: Sketch) -> None:
    free = s.free(4)
    s.linear(free, [3, -5, 2, -7], -4)
    s.linear(free, [-1, 1, -1, 1], 1)


@case("a satisfied and a violated row without terms")
def linear_empty(s: Sketch) -> None:
    s.free(1)
    s.linear([], [], 0)
    s.linear([], [], 1)


@case("a dyadic row that only one assignment satisfies, exactly at the bound")
def linear_tight(s: Sketch) -> None:
    free = s.free(3)
    s.linear(free, [2**30 + 1, 2**29 + 3, -(2**28)], 2**30 + 2**29 + 4, shift=30)


@case("a row that even the best assignment violates by 2**-10: infeasible by far more than any tolerance")
def linear_missed(s: Sketch) -> None:
    free = s.free(3)
    s.linear(free, [2**30 + 1, 2**29 + 3, -(2**28)], 2**30 + 2**29 + 4 + 2**20, shift=30)


@case("a row that is missed by 2**-30: infeasible, and below the tolerances of floating-point solvers")
def linear_missed_by_a_bit(s: Sketch) -> None:
    free = s.free(3)
    s.linear(free, [2**30 + 1, 2**29 + 3, -(2**28)], 2**30 + 2**29 + 5, shift=30)


@case("an implied row, which may be left out")
def linear_implied(s: Sketch) -> None:
    free = s.free(3)
    s.linear(free, [2, 2, 2], 3)
    s.linear(free, [1, 1, 1], 2, implied=True)


@case("rows that are enforced only if a positive or a negative literal is true")
def when(s: Sketch) -> None:
    p, free = s.order(0), s.free(3)
    w, a, b = free.tolist()
    s.linear([a, b], [1, 1], 2, when=2 * w)
    s.linear([a, b], [-1, -1], 0, when=2 * w + 1)
    s.linear([a], [1], 1, when=2 * int(p[0]) + 1)
    s.clause([2 * w, 2 * int(p[0]) + 1])


@case("conditional rows that cannot all be satisfied: infeasible")
def when_infeasible(s: Sketch) -> None:
    free = s.free(3)
    w, a, b = free.tolist()
    s.linear([a, b], [7, 7], 15, when=2 * w)
    s.linear([a, b], [-7, 3], 4, when=2 * w + 1)


@case("a conditional row over scores, whose condition is one of its own variables")
def when_on_itself(s: Sketch) -> None:
    p = s.order(0)
    (leaves,) = s.stumps([2 * int(p[1])])
    w = int(p[0])
    s.linear([w, int(leaves[0]), int(leaves[1])], [-2, 1, -1], 0, when=2 * w + 1)
    s.linear(leaves, [-1, 1], 1)


@case("members of tables: inner runs, several runs, no run, every cell; guards of leaves")
def table(s: Sketch) -> None:
    s.cells = (6,)
    s.order(0)
    members = s.table(0, [[(1, 2)], [(0, 0), (3, 3), (5, 5)], [], [(0, 5)]])
    first, second = s.stumps([2 * int(members[0]), 2 * int(members[1]) + 1])
    s.linear([int(first[0]), int(second[1])], [1, 1], 1)
    s.linear([int(first[0]), int(second[0])], [1, -1], -1)
    s.fact(2 * int(members[2]) + 1, 2 * int(members[3]))


@case("members of two tables that exclude each other, both required: infeasible")
def table_infeasible(s: Sketch) -> None:
    s.cells = (6,)
    s.order(0)
    members = s.table(0, [[(1, 1), (4, 4)], [(0, 0), (2, 3), (5, 5)]])
    s.fact(*lits(members))


@case("a table member in a row and as the condition of a row")
def table_when(s: Sketch) -> None:
    s.cells = (5, 3)
    p = s.order(0)
    s.order(1)
    member = int(s.table(0, [[(1, 1), (3, 3)]])[0])
    s.linear([member, int(p[2])], [2, -1], 2)
    s.linear([int(p[3])], [-1], 0, when=2 * member + 1)


# --- objectives --------------------------------------------------------------------------------------------------------


@case("a maximum subject to a row, with a constant and a shift")
def maximum(s: Sketch) -> Objective:
    free = s.free(5)
    s.linear(free, [-3, -4, -5, -6, -7], -12)
    return maximise(free, [5, 6, 7, 9, 11], constant=-3, shift=2)


@case("a minimum, negated as in lowering")
def minimum(s: Sketch) -> Objective:
    free = s.free(5)
    s.linear(free, [3, 4, 5, 6, 7], 12)
    return maximise(free, [-5, -6, -7, -9, -11], constant=4)


@case("a maximum of scores of two points, subject to a gap")
def maximum_of_scores(s: Sketch) -> Objective:
    p, q = s.order(0, 0), s.order(1, 0)
    u, v = s.order(0, 1), s.order(1, 1)
    left = s.stumps([2 * int(p[1]), 2 * int(q[0])], 0)
    right = s.stumps([2 * int(u[1]), 2 * int(v[0])], 1)
    s.ops.append(equal(lits(p), lits(u)))
    terms = [int(x) for pair in (*left, *right) for x in pair]
    s.linear(terms[:4], [4, -1, 2, -6], 3)
    s.linear(terms[4:], [-4, 1, -2, 6], 1)
    return maximise(terms, [8, -3, 4, -12, -8, 2, -4, 12], shift=3)


@case("an objective without a feasible point")
def maximum_infeasible(s: Sketch) -> Objective:
    free = s.free(3)
    s.linear(free, [1, 1, 1], 2)
    s.linear(free, [-1, -1, -1], -1)
    return maximise(free, [1, 2, 3])


@case("an objective that is constant")
def maximum_constant(s: Sketch) -> Objective:
    free = s.free(2)
    s.clause(lits(free))
    return maximise([], [], constant=7, shift=1)


@case("a guide only steers the search: any feasible point is an answer, and no bound exists")
def guide(s: Sketch) -> Objective:
    free = s.free(4)
    s.linear(free, [1, 2, 3, 4], 5)
    return maximise(free, [-1, 1, -1, 1], surrogate=True)


@case("a guide over an infeasible module")
def guide_infeasible(s: Sketch) -> Objective:
    free = s.free(2)
    s.linear(free, [1, 1], 2)
    s.linear(free, [-1, 0], 0)
    return maximise(free, [1, 1], surrogate=True)


# --- big numbers -------------------------------------------------------------------------------------------------------


@case("a row with coefficients beyond 2**62, which is decided by the size of the coefficients")
def big(s: Sketch) -> None:
    free = s.free(3)
    s.linear(free, [3 * BIG, -2 * BIG, BIG], 4 * BIG, shift=70)


@case("a row with coefficients beyond 2**62, which is infeasible by a wide margin")
def big_infeasible(s: Sketch) -> None:
    free = s.free(3)
    s.linear(free, [3 * BIG, -2 * BIG, BIG], 5 * BIG, shift=70)


@case("a row with coefficients beyond 2**62, which the last bit of the coefficients decides")
def big_by_a_bit(s: Sketch) -> None:
    free = s.free(3)
    s.linear(free, [BIG + 1, BIG, BIG - 1], 2 * BIG + 1, shift=70)
    s.clause(nots(free))


@case("a conditional row with coefficients beyond 2**62")
def big_when(s: Sketch) -> None:
    free = s.free(3)
    s.linear(free[:2], [BIG, 2 * BIG], 2 * BIG, shift=70, when=2 * int(free[2]))
    s.linear(free[:2], [-BIG, -2 * BIG], 0, shift=70, when=2 * int(free[2]) + 1)
    s.clause(lits(free[:1]))


@case("int64 coefficients whose least sum overflows if it is rounded carelessly")
def near_int64(s: Sketch) -> None:
    free = s.free(3)
    big = 2**60
    s.linear(free[:2], [-big, big + 1], 1, when=2 * int(free[2]))
    s.fact(2 * int(free[2]))


@case("an objective with coefficients beyond 2**62")
def big_maximum(s: Sketch) -> Objective:
    free = s.free(3)
    s.clause(nots(free))
    return maximise(free, [5 * BIG, 3 * BIG, 4 * BIG], constant=-BIG, shift=70)


# --- all of them -----------------------------------------------------------------------------------------------------------


def cases() -> list[Case]:
    """All cases, in order."""
    made: list[Case] = []
    for name, about, make in MAKERS:
        sketch = Sketch(points=("a", "b") if "two points" in about else ("a",))
        objective = make(sketch)
        made.append(Case(name, about, sketch.module(name, objective)))
    return made
