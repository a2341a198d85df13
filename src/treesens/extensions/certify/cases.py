"""Questions that no statement can say, as several that each can be said: every input of the question answers one of them.

A disjunction is one case per part. At most k changes between two points are one case per set of k features that may vary.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations

from treesens.compiler.query.query import AllOf, AnyOf, AtLeast, CellSet, Constraint, Query, SameExcept
from treesens.values.stated_changes import counted_changes, least_changes

MOST = 64
"""Cases of one question: each is proved by itself."""


def cases_of(query: Query, extra: tuple[AtLeast, ...] = ()) -> list[tuple[Query, tuple[AtLeast, ...]]] | None:
    """The cases of a question with `extra` rows; None if it is one case itself, or would be too many.

    A case in which the points have to differ in more features than may vary is left out.
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


def without_objective(query: Query, extra: tuple[AtLeast, ...]) -> tuple[Query, tuple[AtLeast, ...]]:
    """The question with limits of changes among `extra` rows and no conjunctions, and the other rows."""
    limits = (row for row in extra if row.form.changes)
    bare = replace(query, objective=None, constraints=tuple(flat((*query.constraints, *limits))))
    return bare, tuple(row for row in extra if not row.form.changes)


def flat(constraints: Iterable[Constraint]) -> Iterator[Constraint]:
    """Constraints, with the parts of conjunctions in their place, and what the two ways of a distance are in place of it."""
    for constraint in constraints:
        yield from flat(constraint.parts) if isinstance(constraint, AllOf) else (constraint,)


def parted(query: Query) -> list[Query] | None:
    """The question by the parts of its first constraint that has some; None if there is none."""
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
    """Whether the points have to differ in more features than may vary."""
    free = frozenset(range(len(query.space.names)))
    for link in query.constraints:
        if isinstance(link, SameExcept):
            free &= link.varied
    known = filter(None, map(least_changes, query.constraints))
    return any(len(counted & free) < least for counted, least in known)


def _by_changes(query: Query, others: tuple[Constraint, ...], counted: frozenset[int], most: int) -> list[Query] | None:
    """One case per set of features that may differ; what is not counted may differ as before. None if these are too many."""
    free = frozenset(range(len(query.space.names)))
    for link in others:
        if isinstance(link, SameExcept):
            free &= link.varied
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
