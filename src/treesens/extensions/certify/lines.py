"""Sums of probabilities by what follows from them for scores, which statements can say.

With every sum stand the rows that the search begins with, and those that its wrong candidates have added
(`compiler/query/probabilities.py`). Each follows from that sum alone, so it may stand with it in any alternative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from treesens.compiler.query.probabilities import relaxed
from treesens.compiler.query.query import AllOf, AnyOf, Constraint, ProbabilitySum, Query
from treesens.extensions.certify.cases import flat

Lines: TypeAlias = Sequence[tuple[ProbabilitySum, Constraint]]


def no_lines(_: Query) -> Lines:
    """What follows, if nobody looks for it: the rows that a search begins with are there anyway."""
    return ()


def with_lines(query: Query, lines: Lines) -> Query:
    """The question with what follows from its sums of probabilities beside each of them: the same inputs satisfy it."""
    return replace(query, constraints=tuple(_with_lines(c, lines) for c in query.constraints))


def _with_lines(constraint: Constraint, lines: Lines) -> Constraint:
    if isinstance(constraint, AllOf | AnyOf):
        return replace(constraint, parts=tuple(_with_lines(part, lines) for part in constraint.parts))
    if not isinstance(constraint, ProbabilitySum):
        return constraint
    mine = (line for row, line in lines if row == constraint)
    return AllOf((constraint, *dict.fromkeys(flat([relaxed(constraint), *mine]))))
