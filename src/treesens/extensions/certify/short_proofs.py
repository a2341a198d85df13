"""Finds proofs of one line, without a search: two contradictory rows about one sum of scores, or a list of sums.

Two points have equal scores if no tree splits on the features in which they may differ (`values/score_clashes.py`). Weights
that make the two rows cancel give a leaf without messages; a search rounds rows and might miss the contradiction. For an
additive model with small parts, the proof only requests that the checker lists the sums of the parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from math import gcd, prod
from typing import Any, Final

import treesens.extensions.treesens_verify as checker
from treesens.compiler.model.cells import may_be_additive
from treesens.extensions.certify.statement import Statement
from treesens.values.score_clashes import Score, equal_scores, normal_form, rows_clash

MOST_ROWS = 64
"""Maximum number of rows that are compared in pairs."""

BY_SUMS: Final[dict[str, Any]] = {"apart": [], "nodes": [["sums"]]}

MOST_CHOICES = 20_000
"""Maximum number of combinations of cells of one part, the same limit as for the method that answers the question."""


def may_clash(statement: Statement) -> bool:
    """True if two rows contradict each other."""
    equal = equal_scores(statement.query)
    return next(_clashing(statement, equal), None) is not None


def _clashing(statement: Statement, equal: Mapping[Score, Score]) -> Iterator[tuple[int, int]]:
    rows = statement.rows[:MOST_ROWS]
    for one, other in itertools.combinations(range(len(rows)), 2):
        if rows_clash(rows[one], rows[other], equal):
            yield one, other


def proof_by_clash(statement: Statement, problem: checker.Problem) -> dict[str, Any] | None:
    """A proof by two contradictory rows that the checker accepts, or None."""
    equal = equal_scores(statement.query)
    for one, other in _clashing(statement, equal):
        weights = [0] * len(statement.rows)
        mine, yours = (_coefficient(statement, problem, row, equal) for row in (one, other))
        common = gcd(mine, yours) or 1
        weights[one], weights[other] = abs(yours) // common, abs(mine) // common
        leaf = [weights, 0, []]
        try:
            checker.Proof(problem).check([leaf])
        except checker.Rejected:
            continue
        return {"apart": [], "nodes": [leaf]}
    return None


def _coefficient(statement: Statement, problem: checker.Problem, row: int, equal: Mapping[Score, Score]) -> int:
    """The coefficient of the first score in the normal form of a row, in the checker's units."""
    normal = normal_form(statement.rows[row], equal)
    assert normal is not None
    place = normal[0][0][:2]
    found: int = sum(c for score, c in problem.coefficients[row].items() if equal.get(score, score) == place)
    return found


def may_be_refuted_by_sums(statement: Statement) -> bool:
    """True if a proof by sums is worth a try: one or two rows, and trees with few split features (a cheap check)."""
    query = statement.query
    return len(statement.rows) in (1, 2) and all(may_be_additive(query.models[p.model]) for p in query.points)


def has_small_parts(problem: checker.Problem) -> bool:
    """True if the trees form several groups, each with few combinations of cells."""
    sizes = [prod(problem.domain[v].bit_count() for v in variables) for variables, _ in checker.parts_of(problem)]
    return len(sizes) > 1 and max(sizes) <= MOST_CHOICES
