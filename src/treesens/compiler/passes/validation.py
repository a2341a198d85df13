"""Validates one step of a pipeline: does the output of a pass have the declared relation to its input, on this module?

A pass maps variables in both directions: `postsolve` takes assignments of its output M' to its input M, and the forward map F
takes assignments of M to M'. Two statements are checked, each only if the relation claims it:

    found survives:  M'(y) implies M(postsolve(y)), and its objective is at least that of y
    none survives:   M(x) implies M'(F(x)), and its objective is at least that of x

Both together make optimal values equal. A statement is refuted by a point of its premise that violates a row of its conclusion:
a module with the premise, a selector per row that implies the negation of the row, and a clause of all selectors. Rows of the
conclusion that occur in the premise, as integers over the same variables, are implied and left out.

Source: Pnueli, Siegel and Singerman, Translation validation (TACAS 1998).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations
from math import gcd
from typing import TypeAlias

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, indptr_of
from treesens.compiler.base.budget import check_in, steadily
from treesens.compiler.ir import TRUE, Bool, Clauses, Equal, Facts, Linear, Membership, Module, Objective, Op
from treesens.compiler.ir.evaluate import assignments_of, objective_value, satisfies, violations
from treesens.compiler.ir.module import FALSE
from treesens.compiler.ir.rewrite import Substitution
from treesens.compiler.legalise.rows import RowBlock, to_rows
from treesens.compiler.passes.base import Chain, Forward, IdentityPostsolve, Postsolve, Relation, Rewrite

_MOST_SCORES = 12
"""Maximum number of score rows whose sums are tried."""
BRUTE_COMBINATIONS = 2_000_000
"""Maximum number of combinations that `brute` tries per module."""

Row: TypeAlias = tuple[int, tuple[tuple[int, int], ...], int]
"""(guard, terms, low): if the literal `guard` is true, the sum of coefficient * variable over `terms` is at least `low`.
Variables ascend, coefficients have no common divisor."""
Left: TypeAlias = Callable[[Module, list[Row]], list[Row]]
"""The rows that a premise is not known to imply."""


class Outcome(Enum):
    """The result of a validation."""

    PROVED = "proved"
    COUNTEREXAMPLE = "counterexample"
    OPEN = "open"


class Claim(Enum):
    """What a relation claims about a module's verdicts."""

    FOUND = "found"
    NONE = "none"


def claims_of(relation: Relation) -> tuple[Claim, ...]:
    """The verdicts that survive a pass with this relation."""
    return tuple(
        claim
        for claim, lost in ((Claim.FOUND, Relation.RELAXATION), (Claim.NONE, Relation.RESTRICTION))
        if relation is not lost
    )


@dataclass(frozen=True, eq=False)
class Check:
    """A statement about one step: `refuter` is a module whose solutions refute the statement; None if the statement is proved
    without a search. An assignment of the refuter starts with the variables of the premise.
    """

    rewrite: Rewrite
    claim: Claim
    premise: Module
    refuter: Module | None
    forward: Forward | None = None
    derived: bool = False
    """True if the forward map follows from the postsolve, so that another map may exist."""

    def counterexample(self, assignment: BoolArray) -> str | None:
        """Describes the counterexample in an assignment of the refuter; None if both modules, evaluated, do not confirm it."""
        point = assignment[: self.premise.variables]
        before, after = self.rewrite.before, self.rewrite.result.module
        if self.claim is Claim.FOUND:
            image, premise, conclusion = self.rewrite.result.postsolve.recover(point), self.premise, before
            worse, cells = _compares(self.rewrite) and _objective_falls(after, point, before, image), image
        else:
            assert self.forward is not None
            image, premise, conclusion = self.forward.apply(point), before, after
            worse, cells = _compares(self.rewrite) and _objective_falls(before, point, after, image), point
        if not satisfies(premise, point[None, :])[0]:
            return None
        broken = violations(conclusion, image)
        if not broken and not worse:
            return None
        side = "input" if self.claim is Claim.FOUND else "output"
        what = f"violates {', '.join(broken[:3])} of the {side}" if broken else "has another value of the objective"
        kind = "the output" if self.claim is Claim.FOUND else "the input"
        return f"a solution of {kind} {what}: {cells_text(before, cells)}"


def cells_text(module: Module, assignment: BoolArray) -> str:
    """The cells of an assignment, as `POINT.FEATURE in cell N`; at most eight."""
    cells = module.cells(assignment)
    known = [
        f"{point}.{feature.name} in cell {cells[p, f]}"
        for p, point in enumerate(module.points)
        for f, feature in enumerate(module.features)
    ]
    return ", ".join(known[:8]) + (", …" if len(known) > 8 else "")


def check_of(rewrite: Rewrite, claim: Claim, left: Left = lambda _premise, rows: rows) -> Check | str:
    """The statement that a verdict survives a step; the reason as text if the maps of the pass are not symbolic.

    `left(premise, rows)` returns the rows of a conclusion that it cannot derive from the premise.
    """
    before, after = rewrite.before, rewrite.result.module
    back = symbolic(rewrite.result.postsolve, before.variables)
    if claim is Claim.FOUND:
        if back is None:
            return "the postsolve is not a substitution"
        premise = _without_implied(after)
        conclusion = _conclusion(_without_implied(before), premise, back.target)
        goal = _gain(after.objective, before.objective, back.target) if _compares(rewrite) else None
        return Check(rewrite, claim, premise, _refuter(premise, conclusion, goal, left))
    forward = rewrite.result.forward
    derived = forward is None
    if forward is None:
        forward = None if back is None else inverse(back, after.variables)
    if forward is None:
        return "the forward map is missing: a variable of the output is not the image of a variable of the input"
    premise = _with_definitions(before, forward)
    conclusion = _conclusion(after, premise, forward.target)
    goal = _gain(before.objective, after.objective, forward.target) if _compares(rewrite) else None
    refuter = _refuter(premise, conclusion, goal, left)
    return Check(rewrite, claim, before, refuter, forward, derived)


def misfit(rewrite: Rewrite) -> str | None:
    """The reason why the maps of a pass cannot belong to its modules, or None."""
    old, new = rewrite.before.variables, rewrite.result.module.variables
    back, forward = symbolic(rewrite.result.postsolve, old), rewrite.result.forward
    if back is None and isinstance(rewrite.result.postsolve, IdentityPostsolve | Substitution | Chain):
        return None if _holds_another(rewrite.result.postsolve) else f"the postsolve does not yield {old} variables"
    if back is not None and (len(back.target) != old or _outside(back.target, new) or back.variables != new):
        return f"the postsolve does not map {new} variables to {old}"
    if forward is not None:
        known = old
        for literals in forward.definitions:
            if _outside(literals, known):
                return "a definition of the forward map uses a later variable"
            known += 1
        if len(forward.target) != new or _outside(forward.target, known):
            return f"the forward map does not map {old} variables to {new}"
    return None


def _outside(literals: Int32Array, variables: int) -> bool:
    return bool(len(literals)) and not (literals.min() >= FALSE and literals.max() < 2 * variables)


def _holds_another(postsolve: Postsolve) -> bool:
    """True if a part of a postsolve is of an unknown class, so that its map is not symbolic."""
    if type(postsolve) is Chain:
        return any(map(_holds_another, postsolve.steps))
    return type(postsolve) not in {IdentityPostsolve, Substitution}


def symbolic(postsolve: Postsolve, variables: int) -> Substitution | None:
    """A postsolve as one substitution of the `variables` of a pass's input; None if it has no such form.

    Subclasses may recover differently, and have no such form.
    """
    if type(postsolve) is IdentityPostsolve:
        return Substitution.identity(variables)
    if type(postsolve) is Substitution:
        return postsolve
    if type(postsolve) is not Chain:
        return None
    whole = Substitution.identity(variables)
    for step in postsolve.steps:
        part = symbolic(step, whole.variables)
        if part is None or len(part.target) != whole.variables:
            return None
        target = whole.target
        mapped = np.where(target < 0, target, part.target[np.maximum(target, 0) >> 1] ^ (target & 1))
        whole = Substitution(mapped.astype(np.int32), part.variables)
    return whole


def inverse(back: Substitution, variables: int) -> Forward | None:
    """The forward map of a substitution: every new variable has the value of the first old variable that is mapped to it; None
    if a new variable is not the image of any old variable.
    """
    target = np.full(variables, FALSE, np.int32)
    known = np.zeros(variables, bool)
    kept = np.flatnonzero(back.target >= 0)[::-1]  # assigned backwards, so that the first variable wins
    new = back.target[kept] >> 1
    target[new] = kept * 2 + (back.target[kept] & 1)
    known[new] = True
    return Forward(target) if known.all() else None


# --- rows -------------------------------------------------------------------------------------------------------------------


def _without_implied(module: Module) -> Module:
    """The module without rows that are declared to follow from others, and that a backend may omit."""
    return replace(module, ops=tuple(op for op in module.ops if not (isinstance(op, Linear) and op.implied)))


def rows_of(module: Module, known: Collection[int] = ()) -> list[Row]:
    """All blocks and ops as rows in normal form, without those whose `id` is in `known`."""
    conditional = [op for op in module.ops if isinstance(op, Linear) and id(op) not in known]
    rest = replace(module, ops=tuple(op for op in module.ops if not isinstance(op, Linear)))
    rows = [row for block in to_rows(rest, known).blocks for row in _block_rows(block)]
    for op in conditional:
        terms = zip(op.variables.tolist(), map(int, op.coefficients), strict=True)
        rows.append((int(op.when), tuple(terms), int(op.bound)))
    return [row for one in steadily(rows) if (row := _normal(*one)) is not None]


def _block_rows(block: RowBlock) -> Iterator[Row]:
    variables, coefficients = block.variables.tolist(), [int(c) for c in block.coefficients]
    starts = block.indptr.tolist()
    low, high = [int(x) for x in block.low], [int(x) for x in block.high]
    for i in range(block.count):
        terms = list(zip(variables[starts[i] : starts[i + 1]], coefficients[starts[i] : starts[i + 1]], strict=True))
        if block.has_low[i]:
            yield TRUE, tuple(terms), low[i]
        if block.has_high[i]:
            yield TRUE, tuple((v, -c) for v, c in terms), -high[i]


def _normal(guard: int, terms: tuple[tuple[int, int], ...], low: int) -> Row | None:
    """A row in normal form; None if all assignments satisfy it."""
    total = dict(terms)
    if len(total) < len(terms):
        total = dict.fromkeys(total, 0)
        for variable, coefficient in terms:
            total[variable] += coefficient
    kept = tuple(sorted((v, c) for v, c in total.items() if c))
    coefficients = [c for _, c in kept]
    if guard == FALSE or sum(c for c in coefficients if c < 0) >= low:
        return None
    divisor = gcd(*coefficients)
    if divisor > 1:
        return guard, tuple((v, c // divisor) for v, c in kept), -(-low // divisor)
    return guard, kept, low if kept else 1


def _conclusion(module: Module, premise: Module, target: Int32Array) -> list[Row]:
    """The rows of a module under a map into the premise, without those that the premise evidently contains."""
    if not np.array_equal(target, np.arange(module.variables) * 2):
        return _left(_mapped(rows_of(module), target), rows_of(premise))
    known = {id(part) for part in (*premise.blocks, *premise.ops)}
    if any(one is not other for one, other in zip(module.blocks, premise.blocks, strict=False)):
        known -= {id(op) for op in premise.ops_of(Membership)}  # these refer to blocks by position
    return _mapped(rows_of(module, known), target)


def clause_of(row: Row) -> list[int] | None:
    """The literals of a row that is a clause; otherwise None."""
    guard, terms, low = row
    if any(abs(c) != 1 for _, c in terms) or low != 1 - sum(c < 0 for _, c in terms):
        return None
    return [*([] if guard == TRUE else [guard ^ 1]), *(2 * v + (c < 0) for v, c in terms)]


def _mapped(rows: list[Row], target: Int32Array) -> list[Row]:
    """The rows over the variables of an image: variable v is replaced by the literal or constant `target[v]`."""
    return [row for row in _images(rows, target) if row is not None]


def _images(rows: list[Row], target: Int32Array) -> list[Row | None]:
    """The image of each row; None if all assignments satisfy it."""
    to = target.tolist()
    made: list[Row | None] = []
    for guard, terms, low in steadily(rows):
        image, shifted = _image(terms, to)
        literal = guard if guard < 0 else to[guard >> 1] ^ (guard & 1)
        made.append(_normal(literal, image, low - shifted))
    return made


def _image(terms: tuple[tuple[int, int], ...], to: list[int]) -> tuple[tuple[tuple[int, int], ...], int]:
    """Terms under a map of variables to literals, and the constant that the map adds."""
    made, constant = [], 0
    for variable, coefficient in terms:
        literal = to[variable]
        if literal >= 0:
            made.append((literal >> 1, -coefficient if literal & 1 else coefficient))
        if literal == TRUE or (literal >= 0 and literal & 1):
            constant += coefficient
    return tuple(made), constant


def _compares(rewrite: Rewrite) -> bool:
    """True if the relation of a step includes the optimal value."""
    return rewrite.before.optimises and rewrite.step.relation in {Relation.EQUIVALENT, Relation.EQUISATISFIABLE}


def _objective_falls(one: Module, point: BoolArray, other: Module, image: BoolArray) -> bool:
    """True if the image of a point has a smaller objective value; a missing objective is 0."""
    shift = max(_shift(one.objective), _shift(other.objective))
    return _value(other.objective, image, shift) < _value(one.objective, point, shift)


def _shift(goal: Objective | None) -> int:
    return 0 if goal is None else goal.shift


def _value(goal: Objective | None, point: BoolArray, shift: int) -> int:
    return 0 if goal is None or goal.surrogate else objective_value(goal, point) << (shift - goal.shift)


def _gain(one: Objective | None, other: Objective | None, target: Int32Array) -> Row | None:
    """The row that the `other` objective, under a map, is at least the objective `one`; None if it always is."""
    shift = max(_shift(one), _shift(other))
    terms, low = _form(one, -1, shift)
    mine, least = _form(other, 1, shift)
    image, constant = _image(mine, target.tolist())
    return _normal(TRUE, (*terms, *image), low + least - constant)


def _form(goal: Objective | None, sign: int, shift: int) -> tuple[tuple[tuple[int, int], ...], int]:
    """The terms of an objective times `sign`, and the negated constant, in units of 2**-shift."""
    if goal is None or goal.surrogate:
        return (), 0
    scale = sign << (shift - goal.shift) if sign > 0 else -(1 << (shift - goal.shift))
    terms = zip(goal.variables.tolist(), (int(c) * scale for c in goal.coefficients), strict=True)
    return tuple(terms), -goal.constant * scale


# --- modules that refute ----------------------------------------------------------------------------------------------------


def _with_definitions(module: Module, forward: Forward) -> Module:
    """The module with a variable per definition of a forward map, equal to the conjunction of its literals."""
    count = len(forward.definitions)
    if not count:
        return module
    clauses: list[list[int]] = []
    for number, literals in enumerate(forward.definitions):
        defined = 2 * (module.variables + number)
        clauses += [[defined ^ 1, literal] for literal in literals.tolist() if literal != TRUE]
        clauses.append([defined, *(literal ^ 1 for literal in literals.tolist() if literal != TRUE)])
    clauses = [[x for x in clause if x != FALSE] for clause in clauses if TRUE not in clause]
    block = Bool("definitions", np.arange(module.variables, module.variables + count, dtype=np.int32))
    return module.with_ops(_clauses(clauses), variables=module.variables + count, blocks=(*module.blocks, block))


def _clauses(clauses: list[list[int]]) -> Clauses:
    return Clauses(indptr_of([len(clause) for clause in clauses]), np.array([x for c in clauses for x in c], np.int32))


def _refuter(premise: Module, conclusion: list[Row], goal: Row | None, left: Left) -> Module | None:
    """The premise with a violated row of the conclusion; None if rows of the premise imply all of them."""
    rows = list(dict.fromkeys((*conclusion, *(() if goal is None else (goal,)))))
    if rows := left(premise, rows) if rows else rows:
        known = rows_of(premise)
        rows = _left(rows, known)
    if rows:
        # The same modulo the variables that the premise fixes or equates.
        same = _classes(premise)
        images = _images(rows, same)
        kept = set(_left([image for image in images if image is not None], _mapped(known, same)))
        rows = [row for row, image in zip(rows, images, strict=True) if image in kept]
    if not rows:
        return None
    first = premise.variables
    selectors = np.arange(first, first + len(rows), dtype=np.int32)
    clauses: list[list[int]] = [(selectors * 2).tolist()]
    ops: list[Op] = []
    for selector, row in zip((selectors * 2).tolist(), rows, strict=True):
        check_in()
        guard, terms, low = row
        if (clause := clause_of(row)) is not None:
            # A clause is violated by one assignment of its variables.
            clauses += [[selector ^ 1, literal ^ 1] for literal in clause]
        else:
            if guard != TRUE:
                clauses.append([selector ^ 1, guard])
            variables, negated = np.array([v for v, _ in terms], np.int32), [-c for _, c in terms]
            wide = sum(map(abs, negated)) + abs(low) >= 2**61
            coefficients = np.array(negated, object if wide else np.int64)
            ops.append(Linear("broken", variables, coefficients, 1 - low, 0, when=selector))
    block = Bool("broken rows", selectors)
    return replace(
        premise,
        variables=first + len(rows),
        blocks=(*premise.blocks, block),
        ops=(*premise.ops, *ops, _clauses(clauses)),
        objective=None,
        warm_start=None,
    )


def _left(rows: list[Row], known: list[Row]) -> list[Row]:
    """The rows that neither a known row, nor the sum of two known scores, implies."""
    least: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
    for guard, terms, low in known:
        least[guard, terms] = max(low, least.get((guard, terms), low))
    rows = [(guard, terms, low) for guard, terms, low in rows if least.get((guard, terms), low - 1) < low]
    if any(_is_score(row) for row in rows):
        scores = [row for row in dict.fromkeys(known) if _is_score(row)][:_MOST_SCORES]
        sums = [_normal(TRUE, (*one[1], *other[1]), one[2] + other[2]) for one, other in combinations(scores, 2)]
        for total in filter(None, sums):
            rows = [row for row in rows if (row[0], row[1]) != total[:2] or row[2] > total[2]]
    return rows


def _is_score(row: Row) -> bool:
    return row[0] == TRUE and any(abs(c) != 1 for _, c in row[1])


def _classes(module: Module) -> Int32Array:
    """For every variable, a literal or constant to which facts and equalities of a module make it equal, int32[variables]."""
    parent = list(range(0, 2 * module.variables, 2))

    def root(literal: int) -> int:
        sign = 0
        while literal >= 0 and parent[literal >> 1] != literal & ~1:
            sign, literal = sign ^ (literal & 1), parent[literal >> 1]
        return literal ^ sign

    pairs = [pair for op in module.ops_of(Equal) for pair in zip(op.left.tolist(), op.right.tolist(), strict=True)]
    pairs += [(literal, TRUE) for op in module.ops_of(Facts) for literal in op.literals.tolist()]
    for one, other in steadily(pairs):
        a, b = root(one), root(other)
        if a >> 1 == b >> 1:
            continue  # known, or a contradiction, which is left to the solver
        low, high = min(a, b), max(a, b)
        parent[high >> 1] = low ^ (high & 1)
    return np.array([root(2 * v) for v in range(module.variables)], np.int32)


def lost_by(check: Check, assignment: BoolArray) -> Module:
    """The output of a step, restricted to solutions that are at least as good as a point of its input: infeasible if the pass
    loses the point's verdict under every forward map.
    """
    before, after = check.rewrite.before, check.rewrite.result.module
    rest = replace(after, objective=None, warm_start=None)
    goal, own = after.objective, before.objective
    if not _compares(check.rewrite):
        return rest
    shift = max(_shift(own), _shift(goal))
    terms, low = _form(goal, 1, shift)
    row = _normal(TRUE, terms, low + _value(own, assignment[: before.variables], shift))
    if row is None:
        return rest
    variables, coefficients = np.array([v for v, _ in row[1]], np.int32), np.array([c for _, c in row[1]], object)
    small = coefficients.astype(np.int64) if sum(abs(c) for _, c in row[1]) < 2**61 else coefficients
    return rest.with_ops(Linear("at least as good", variables, small, row[2], 0))


# --- brute force ------------------------------------------------------------------------------------------------------------


def refute_by_brute_force(rewrite: Rewrite, claim: Claim) -> str | None:
    """A counterexample to a claim of a pass among all solutions of its input and output, in words; None if there is none.

    Without a forward map, `none` is checked by the existence of solutions and by the optimal value. Raises `UsageError` for
    modules with too many combinations.
    """
    before, after = rewrite.before, rewrite.result.module
    if claim is Claim.FOUND:
        check = Check(rewrite, claim, _without_implied(after), None)
        return _first_refuted(check, check.premise)
    back = symbolic(rewrite.result.postsolve, before.variables)
    forward = rewrite.result.forward or (None if back is None else inverse(back, after.variables))
    check = Check(rewrite, claim, before, None, forward, rewrite.result.forward is None)
    found = None if forward is None else _first_refuted(check, before)
    if forward is not None and (found is None or not check.derived or rewrite.step.relation is Relation.EQUIVALENT):
        return found
    for chunk in assignments_of(before, BRUTE_COMBINATIONS):
        for point in chunk[satisfies(before, chunk)]:
            left = lost_by(check, point)
            if not any(satisfies(left, part).any() for part in assignments_of(left, BRUTE_COMBINATIONS)):
                return f"the output has no solution for this one of the input: {cells_text(before, point)}"
            if not _compares(rewrite):
                return None
    return None


def _first_refuted(check: Check, premise: Module) -> str | None:
    for chunk in assignments_of(premise, BRUTE_COMBINATIONS):
        for point in chunk[satisfies(premise, chunk)]:
            if (found := check.counterexample(point)) is not None:
                return found
    return None
