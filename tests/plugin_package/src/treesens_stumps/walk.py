"""walk: a way to answer that tries every combination of cells of all points, for small domains."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.query import Query
from treesens.solve.conclude import Facts
from treesens.solve.fits import needs_refinement, sums_scores
from treesens.solve.method import Method, OpenQuestion
from treesens.solve.options import Options
from treesens.values.verify import Witness, verify_cells

COMBINATIONS = 2_000


def fits(query: Query, options: Options) -> bool:
    """True if cells decide the question and there are few combinations of them."""
    legal = prod(int(cells.sum()) for cells in query.space.legal) ** len(query.points)
    return (
        options.backend == "auto"
        and legal <= COMBINATIONS
        and sums_scores(query.objective)
        and not needs_refinement(query)
    )


def search(question: OpenQuestion, budget: Budget) -> Facts | None:
    """The best of all combinations, which is the bound as well; None if time or the library's rounding leaves one open."""
    query, best, cells = question.query, None, None
    legal = [np.flatnonzero(cells).tolist() for cells in query.space.legal] * len(query.points)
    for combination in product(*legal):
        point = np.array(combination, np.int32).reshape(len(query.points), -1)
        judged = verify_cells(query, point, library_predict=question.options.library_predict)
        if budget.over or (not isinstance(judged, Witness) and (judged.numerical or judged.possible)):
            return None
        if not isinstance(judged, Witness):
            continue
        if query.objective is None:
            return Facts(point, none=False, ended="satisfied")
        value = objective_form_value(query.objective, inputs_of(query, judged.values))
        if best is None or (value > best if query.objective.maximize else value < best):
            best, cells = value, point
    return Facts(cells, none=cells is None, ended="optimal", bound=best)


METHOD = Method(
    name="walk",
    questions=f"domains of at most {COMBINATIONS:,} combinations of cells that decide the question",
    fits=fits,
    proves="verdict and bound, by judging every combination",
    run="treesens_stumps.walk:search",
    before="brief search, small domain",
)
