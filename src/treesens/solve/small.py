"""Questions over small domains: a short search, and then a walk through all combinations of cells."""

from __future__ import annotations

from collections.abc import Callable

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result, Witness
from treesens.solve.bounds import left_open
from treesens.solve.enumeration import FIRST, finish_by_enumeration, is_small, walk_combinations
from treesens.solve.enumeration_rows import through_rows
from treesens.solve.options import Options


def answer_small(
    query: Query,
    search: Callable[..., Result],
    options: Options,
    budget: Budget,
    on_better: Callable[[Witness], None] | None,
) -> Result | None:
    """The answer to a question over a small domain: what a short search leaves open is gone through. None if it is large."""
    if not is_small(query):
        return None
    result = search(query, options, budget.share(1 / 2).within(FIRST), on_better=on_better)
    if not left_open(result):
        return result
    nearest = query.objective is not None and query.objective.nearest is not None
    walk = through_rows if nearest else walk_combinations
    return finish_by_enumeration(query, options, result, budget, walk=walk, on_better=on_better)
