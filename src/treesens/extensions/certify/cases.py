"""Splits questions outside the statement format into cases inside it, such that every answer also answers one of the cases.

A disjunction has one case per part. A limit of k changes between two points has one case per set of k features that may vary. A
sum of probabilities is replaced by score rows that it implies: the initial rows of the search, and the rows added for wrong
candidates of the search (`compiler/query/probabilities.py`). Each score row follows from the sum alone, in any alternative.

If there are too many cases, they form a tree of alternatives, in which one part may prove many cases: a proof for a question in
which some alternatives are chosen covers all cases below this question. Contradictory score rows are tried first, because two
such rows are a part for all cases that contain both rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.probabilities import relaxed
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    CellSet,
    Constraint,
    ProbabilitySum,
    Query,
    SameExcept,
    parts_in,
)
from treesens.compiler.result import Certified
from treesens.extensions.certify.statement import domains_of
from treesens.values.stated_changes import counted_changes, least_changes

MOST = 64
"""Maximum number of cases of one question; each case is proved by itself."""
MOST_NODES, MOST_TRIED = 4096, 512
"""Maximum number of visited nodes in a tree of alternatives, and of nodes with a proof attempt."""
_BITS = 64

Refuted: TypeAlias = tuple[Query, tuple[AtLeast, ...]]
"""A question and additional rows that have no common answer."""
Lines: TypeAlias = Sequence[tuple[ProbabilitySum, Constraint]]


def cases_of(query: Query, extra: tuple[AtLeast, ...] = ()) -> list[Refuted] | None:
    """The cases of a question with `extra` rows; None for a single case, or for too many cases.

    Cases whose points must differ in more features than may vary are omitted.
    """
    bare, rest = without_objective(query, extra)
    found: list[Query] = []
    waiting = [bare]
    while waiting:
        one = waiting.pop()
        parts = parted(one)
        if parts is None:
            found += [] if agree_too_much(one) else [one]
        else:
            waiting += parts
        if len(found) + len(waiting) > MOST:
            return None
    return None if found == [bare] else [(one, rest) for one in reversed(found)]


def without_objective(query: Query, extra: tuple[AtLeast, ...]) -> Refuted:
    """Returns the question without conjunctions but with the change limits in `extra`, and the other `extra` rows."""
    limits = (row for row in extra if row.form.changes)
    bare = replace(query, objective=None, constraints=tuple(flat((*query.constraints, *limits))))
    return bare, tuple(row for row in extra if not row.form.changes)


def flat(constraints: Iterable[Constraint]) -> Iterator[Constraint]:
    """Yields the constraints; conjunctions, such as the two directions of a distance, are flattened."""
    for constraint in constraints:
        yield from flat(constraint.parts) if isinstance(constraint, AllOf) else (constraint,)


def parted(query: Query) -> list[Query] | None:
    """One question per part of the first constraint that has several parts; None if no constraint has several parts."""
    for place, constraint in enumerate(query.constraints):
        others = (*query.constraints[:place], *query.constraints[place + 1 :])
        if isinstance(constraint, AnyOf) and not all(isinstance(part, CellSet) for part in constraint.parts):
            return [replace(query, constraints=tuple(flat((*others, part)))) for part in constraint.parts]
        counted = counted_changes(constraint)
        if counted is not None:
            parts = _by_changes(query, others, *counted)
            if parts is not None:
                return parts
    return None


def agree_too_much(query: Query) -> bool:
    """True if the points have to differ in more features than may vary."""
    free = frozenset(range(len(query.space.names)))
    for equal in query.constraints:
        if isinstance(equal, SameExcept):
            free &= equal.varied
    known = filter(None, map(least_changes, query.constraints))
    return any(len(counted & free) < least for counted, least in known)


def _by_changes(query: Query, others: tuple[Constraint, ...], counted: frozenset[int], most: int) -> list[Query] | None:
    """One case per set of counted features that may differ; other features may always differ. None for too many cases."""
    free = frozenset(range(len(query.space.names)))
    for equal in others:
        if isinstance(equal, SameExcept):
            free &= equal.varied
    mine = sorted(free & counted)
    kept = tuple(c for c in others if not isinstance(c, SameExcept))
    if most < 0:
        return []
    if math.comb(len(mine), min(most, len(mine))) > MOST:
        return None
    uncounted = free - frozenset(mine)
    return [
        replace(query, constraints=(SameExcept(0, 1, uncounted | frozenset(chosen)), *kept))
        for chosen in combinations(mine, min(most, len(mine)))
    ]


def no_lines(_: Query) -> Lines:
    """Returns no further implied rows: the initial rows are added without a search."""
    return ()


def with_lines(query: Query, lines: Lines) -> Query:
    """The question with the rows that its sums of probabilities imply; the same inputs satisfy both questions."""
    return replace(query, constraints=tuple(_with_lines(c, lines) for c in query.constraints))


def _with_lines(constraint: Constraint, lines: Lines) -> Constraint:
    if isinstance(constraint, AllOf | AnyOf):
        return replace(constraint, parts=tuple(_with_lines(part, lines) for part in constraint.parts))
    if not isinstance(constraint, ProbabilitySum):
        return constraint
    mine = (line for row, line in lines if row == constraint)
    return AllOf((constraint, *dict.fromkeys(flat([relaxed(constraint), *mine]))))


def proved_in_parts(
    query: Query, extra: tuple[AtLeast, ...], prove: Callable[[Refuted], Certified], budget: Budget
) -> list[Certified] | None:
    """Certificates of parts of a question with `extra` rows; every case contains a proved part. None if the budget or MOST is
    too small. The checker decides what the parts prove together.
    """
    bare, rest = without_objective(query, extra)
    if not _has_sets_above(bare):
        return None
    waiting, found, proved, tried = parted(bare) or [], list[Certified](), list[frozenset[Constraint]](), 0
    for _ in range(MOST_NODES):
        if not waiting:
            return found
        one = waiting.pop()
        asked = frozenset(one.constraints)
        if agree_too_much(one) or any(part <= asked for part in proved):
            continue
        if tried == MOST_TRIED or len(found) == MOST or budget.over:
            return None
        tried += 1
        core = _contradiction(one)
        made = prove((core or one, () if core else rest))
        if made.path:
            found.append(made)
            proved.append(frozenset((core or one).constraints))
            continue
        parts = parted(one)
        if parts is None:
            return None
        waiting += parts
    return None


def _has_sets_above(query: Query) -> bool:
    """True if every feature that has a set of values in some alternative also has a set of values outside the alternatives.

    A feature without any set is never missing. So a part without the alternative's set would claim less than the case.
    """
    own = {(p, f) for p, f, _ in domains_of(query)}
    own |= {(c.point, c.feature) for c in query.constraints if isinstance(c, CellSet)}
    return all((c.point, c.feature) in own for c in parts_in(query.constraints) if isinstance(c, CellSet))


def _contradiction(query: Query) -> Query | None:
    """The question reduced to its sets and two contradictory rows, which bound one sum of scores from both sides; or None."""
    rows = [c for c in query.constraints if isinstance(c, AtLeast) and c.form.scores]
    for one, other in itertools.combinations(rows, 2):
        if _contradict(one, other):
            sets = (c for c in query.constraints if isinstance(c, CellSet))
            return replace(query, constraints=(*sets, one, other))
    return None


def _contradict(one: AtLeast, other: AtLeast) -> bool:
    forms = [replace(row.form, scores=()) for row in (one, other)]
    if any(form != type(form)() for form in forms):
        return False
    mine, yours = ({(t.point, t.output): t.coefficient for t in row.form.scores} for row in (one, other))
    if mine.keys() != yours.keys() or len(mine) != len(one.form.scores) or len(yours) != len(other.form.scores):
        return False
    ratios = {-yours[place] / mine[place] for place in mine if mine[place]}
    if len(ratios) != 1 or (ratio := ratios.pop()) <= 0:
        return False
    least, _ = (one.bound * ratio + other.bound).enclose(_BITS)
    return least > 0 or (least == Fraction(0) and (one.strict or other.strict))
