"""Case splits: a question with one alternative in place of each disjunction. No other module splits disjunctions.

The cases cover the question: if no case has an answer, the question has none; its optimum is the best optimum of the cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from treesens.compiler.query.query import AllOf, AnyOf, CellSet, Constraint, Query

MOST_CASES = 16
"""Maximum number of cases per question. Questions with more cases are not split, since each case would have too little time."""


def every_case(query: Query) -> list[Query]:
    """All questions with one alternative in place of every disjunction; the question itself if there are too many cases."""
    cases: list[Query] = []
    for case in _cases(query):
        if len(cases) == MOST_CASES:
            return [query]
        cases.append(case)
    return cases or [query]


def cases_of_one(query: Query) -> list[Query]:
    """One case per alternative of the first disjunction with at most `MOST_CASES` alternatives; [] if there is none.

    Disjunctions that consist of sets of cells do not become cases, because the search branches on cells anyway.
    """
    for place, constraint in enumerate(query.constraints):
        if isinstance(constraint, AnyOf) and 2 <= len(constraint.parts) <= MOST_CASES and not _of_cells(constraint):
            return list(_split(query, place, constraint))
    return []


def too_many_to_split(query: Query) -> int:
    """The number of alternatives in the longest disjunction that is too long to split; 0 if every disjunction can be split."""
    lengths = (len(c.parts) for c in query.constraints if isinstance(c, AnyOf) and not _of_cells(c))
    return max((length for length in lengths if length > MOST_CASES), default=0)


def _cases(query: Query) -> Iterator[Query]:
    for place, constraint in enumerate(query.constraints):
        if isinstance(constraint, AnyOf):
            for case in _split(query, place, constraint):
                yield from _cases(case)
            return
    yield query


def _split(query: Query, place: int, choice: AnyOf) -> Iterator[Query]:
    before, after = query.constraints[:place], query.constraints[place + 1 :]
    for part in choice.parts:
        yield replace(query, constraints=(*before, *after, *_conjuncts(part)))


def _conjuncts(part: Constraint) -> tuple[Constraint, ...]:
    """The parts of a conjunction, or the constraint itself."""
    return part.parts if isinstance(part, AllOf) else (part,)


def _of_cells(choice: AnyOf) -> bool:
    return all(isinstance(part, CellSet) for part in choice.parts)


def compiled_part(query: Query) -> Query:
    """The part of a question that the compiler handles at once: one row of a count, without a nonlinear objective."""
    goal = query.objective
    linear = goal is None or (goal.nearest is None and goal.probability is None)
    return replace(query, rows=None, objective=goal if linear else None)
