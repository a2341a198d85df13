"""The least distance from a row in l1, l2 or l0, or the best sum of features, by the tree path (`engine/levels/cost_search`).

Every cell has a cost, its least distance from the row's value, and the costs of a point add up. A sum of features is its value
where each is best, and the distance from there. Values can be as near as their
cells allow if nothing relates them: then the cheapest cells are the answer. What this search has no answer to, and what the
library's arithmetic does not confirm, takes the compiled path.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import nextafter, sqrt

from treesens.backends.native.least_cost import CostOutcome, is_rounded, least_cost_on_trees
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.floats import NumberType, ceil_to, floor_to
from treesens.compiler.base.units import Unit
from treesens.compiler.query.evaluate import Inputs, objective_form_value
from treesens.compiler.query.query import Objective, Query
from treesens.compiler.result import ObjectiveValue, Result, Verdict
from treesens.solve.conclude import FALLS_SHORT, TreeFacts, attempt_of, conclude_tree_search, shown_objective
from treesens.solve.method import OpenQuestion
from treesens.solve.methods.least_radius import preferred_row
from treesens.solve.options import Options
from treesens.values.feature_ranges import distances_from_best
from treesens.values.row_costs import CellCosts, costs_of_cells, costs_of_terms
from treesens.values.verify import Rejected, Witness

_CLOSE = Fraction(1, 10**6)
"""Values of a closed answer may be so much of themselves above the bound: rounding of costs to the units of the engine."""
_MOMENT = 0.5
"""Seconds for a forest: most rows take a tenth of that, and of what is left the search over all trees at once proves more."""


def answer_least_cost(
    query: Query, options: Options, budget: Budget, on_better: Callable[[Witness], None] | None = None
) -> Result | None:
    """The answer with its bound; None where this search has none to give."""
    goal = query.objective
    assert goal is not None
    start = time.perf_counter()
    apart = distances_from_best(query, goal) if goal.kind == "features" else (goal.distances, Fraction(0))
    if apart is None or (goal.values and not apart[0]):
        return None
    terms, best = apart
    costs = costs_of_terms(query.space, terms) if goal.values else costs_of_cells(goal.form.costs)
    if costs is None:
        return None
    rounded = is_rounded(query)
    part = budget.within(_MOMENT) if rounded else budget
    found = least_cost_on_trees(
        query, costs.cost, part, hints=options.hints, seed=options.seed, memory=options.memory_limit
    )
    result = None if found is None else _judged(query, goal, costs, best, found, options)
    if found is None or result is None or (rounded and not found.closed):
        return None
    if result.witness is not None and on_better is not None:
        on_better(result.witness)
    seconds = {"build": 0.0, "solve": time.perf_counter() - start}
    attempt = attempt_of(_facts(found), result, options, seconds)
    return replace(result, attempts=(attempt,), seconds=seconds, pipeline=options.pipeline, backend="native")


def _judged(
    query: Query, goal: Objective, costs: CellCosts, best: Fraction, found: CostOutcome, options: Options
) -> Result | None:
    """From the engine's facts to an answer: a verified witness, and what nothing costs less than.

    `best` is the value of an answer that costs nothing.
    """

    def reach(witness: Witness) -> ObjectiveValue | Rejected:
        value = objective_form_value(goal, Inputs(witness.values, witness.cells, witness.exact))
        least, cost = Unit(costs.shift).value(found.low), best - value if goal.maximize else value - best
        if cost < least or (found.closed and cost - least > _CLOSE * cost):
            return FALLS_SHORT
        shown = shown_objective(goal, value, None)
        bound = shown_bound(goal, best - least if goal.maximize else best + least)
        return replace(shown, bound=(max if goal.maximize else min)(bound, shown.value))

    # The value nearest to the row's own is as good as its cell allows; of features the objective itself says which one is.
    features = goal.kind == "features"
    near = None if features else preferred_row(query, goal, options.near)
    asked = query if features else replace(query, objective=None)
    judged = conclude_tree_search(asked, _facts(found), options, near=near, reach=reach)
    return None if isinstance(judged, Rejected) or judged.verdict is Verdict.UNKNOWN else judged


def _facts(found: CostOutcome) -> TreeFacts:
    none = found.closed and found.cells is None
    ended = ("infeasible" if none else "optimal") if found.closed else found.reason
    return TreeFacts(found.cells, none, ended, statistics=found.statistics)


def shown_bound(goal: Objective, bound: Fraction) -> float:
    """A proved bound as people read it, rounded outward."""
    shown = bound * goal.unit + goal.offset
    least = (ceil_to if goal.maximize else floor_to)(shown, NumberType.FLOAT64)
    if goal.kind != "distance l2":
        return least
    root = sqrt(max(0.0, least))
    return nextafter(root, 0.0) if Fraction(root) ** 2 > bound else root


def search_least_cost(question: OpenQuestion, budget: Budget) -> Result | None:
    """The method, as `solve/methods/registry.py` names it."""
    return answer_least_cost(question.query, question.options, budget, question.on_better)
