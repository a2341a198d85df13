"""Proofs by the sums that parts of an additive model attain: nothing but the word that the checker is to list them."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import treesens.extensions.treesens_verify as checker
from treesens.compiler.model.additive import may_be_additive
from treesens.extensions.certify.statement import Statement

BY_SUMS: Final[dict[str, Any]] = {"apart": [], "nodes": [["sums"]]}
MOST_CHOICES = 20_000
"""Combinations of cells of one part, as of the method that answers."""


def may_be_refuted_by_sums(statement: Statement) -> bool:
    """Whether it is worth a look: one row or two, and trees that ask for few features; cheap, and no promise."""
    query = statement.query
    return len(statement.rows) in (1, 2) and all(may_be_additive(query.models[p.model]) for p in query.points)


def has_small_parts(problem: checker.Problem) -> bool:
    """Whether trees fall apart into groups whose cells can be listed."""
    sizes = [prod(problem.domain[v].bit_count() for v in variables) for variables, _ in checker.parts_of(problem)]
    return len(sizes) > 1 and max(sizes) <= MOST_CHOICES
