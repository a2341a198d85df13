"""Finds the least distance from a row, or the best sum of features, by the engine alone.

For l1, l2, l0 and sums, the tree path searches for the least cost (`engine/levels/cost_search`).

The cost of a cell is the least distance from the row's value to the cell, and the costs of a point are summed. For a sum of
features, a cell's cost is its distance from the best value. Without relations, values can be as near to the row as their cells
allow, so the cheapest cells determine the answer. Other questions, and answers that are not verified, use the compiled path.

For linf, the search finds the least radius with an answer. The boxes around a row are nested, and new cells enter the box only
at finitely many radii. Each decision uses only the trees inside its box: the trees of the models (`least_level_on_trees`), or
trees of a question that is compiled only once (`backends/native/boxed_question.py`). If no values attain the radius of their
cells, or the library rejects the values, a search with whole questions (`bisection`) follows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import nextafter, sqrt

import numpy as np

from treesens.backends.native.boxed_question import LevelOutcome, boxed_question
from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.base.floats import NumberType, ceil_to, floor_to
from treesens.compiler.query.evaluate import Inputs, objective_form_value
from treesens.compiler.query.query import Objective, Query
from treesens.compiler.result import ObjectiveValue, Result, Verdict
from treesens.errors import BackendError
from treesens.extensions.methods.cost_search import CostOutcome, is_rounded, least_cost_on_trees, least_level_on_trees
from treesens.solve.conclude import (
    FALLS_SHORT,
    Facts,
    attempt_of,
    conclude_contradiction,
    conclude_facts,
    shown_objective,
)
from treesens.solve.method import OpenQuestion
from treesens.solve.options import Options
from treesens.values.objective_ranges import distances_from_best
from treesens.values.radii import Radii, radii_of
from treesens.values.row_costs import CellCosts, costs_of_cells, costs_of_terms
from treesens.values.verify import Rejected, Witness

_CLOSE = Fraction(1, 10**6)
"""Maximum relative gap between a closed answer and its bound; costs are rounded to the engine's units."""
_MOMENT = 0.5
"""Seconds for a forest. Most rows need a tenth of this time; for other rows, the search over all trees proves more."""


def answer_least_cost(
    query: Query, options: Options, budget: Budget, on_better: Callable[[Witness], None] | None = None
) -> Result | None:
    """The answer with its bound; None if this search finds no answer."""
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
    """The answer from the engine's facts: a verified witness and a lower bound on the cost; None if unconfirmed.

    `best` is the value of an answer with a cost of 0.
    """

    def reach(witness: Witness) -> ObjectiveValue | Rejected:
        value = objective_form_value(goal, Inputs(witness.values, witness.cells, witness.exact))
        least, cost = Unit(costs.shift).value(found.low), best - value if goal.maximize else value - best
        if cost < least or (found.closed and cost - least > _CLOSE * cost):
            return FALLS_SHORT
        shown = shown_objective(goal, value, None)
        bound = shown_bound(goal, best - least if goal.maximize else best + least)
        return replace(shown, bound=(max if goal.maximize else min)(bound, shown.value))

    # The value nearest to the row's value is the best in its cell; for sums of features, the objective chooses the value.
    features = goal.kind == "features"
    near = None if features else preferred_row(query, goal, options.near)
    asked = query if features else replace(query, objective=None)
    judged = conclude_facts(asked, _facts(found), options, near=near, reach=reach)
    return None if isinstance(judged, Rejected) or judged.verdict is Verdict.UNKNOWN else judged


def _facts(found: CostOutcome) -> Facts:
    none = found.closed and found.cells is None
    ended = ("infeasible" if none else "optimal") if found.closed else found.reason
    return Facts(found.cells, none, ended, statistics=found.statistics)


def shown_bound(goal: Objective, bound: Fraction) -> float:
    """A proved bound for display, rounded outward."""
    shown = bound * goal.unit + goal.offset
    least = (ceil_to if goal.maximize else floor_to)(shown, NumberType.FLOAT64)
    if goal.kind != "distance l2":
        return least
    root = sqrt(max(0.0, least))
    return nextafter(root, 0.0) if Fraction(root) ** 2 > bound else root


def search_least_cost(question: OpenQuestion, budget: Budget) -> Result | None:
    """The method named in `solve/methods/registry.py`."""
    return answer_least_cost(question.query, question.options, budget, question.on_better)


def answer_least_radius(
    query: Query, options: Options, budget: Budget, on_better: Callable[[Witness], None] | None = None
) -> Result | None:
    """The answer with its bound; None if this search finds no answer."""
    assert query.objective is not None
    start = time.perf_counter()
    built = start
    radii = radii_of(query.space, query.objective.distances)
    found = _on_trees(query, radii, options, budget)
    if found is None:
        places = [term.places[0] for term in query.objective.values]
        try:
            question = boxed_question(replace(query, objective=None), places, verify_each=options.verify_each)
        except BackendError:
            return None
        if question.decided is not None:
            return conclude_contradiction(query.name, question.decided)
        built = time.perf_counter()
        found = question.least_level(radii.level, budget, seed=options.seed, memory=options.memory_limit)
    result = _judged_radius(query, query.objective, radii, found, options)
    if result is None:
        return None
    if result.witness is not None and on_better is not None:
        on_better(result.witness)
    seconds = {"build": built - start, "solve": time.perf_counter() - built}
    attempt = attempt_of(_radius_facts(found), result, options, seconds)
    return replace(result, attempts=(attempt,), seconds=seconds, pipeline=options.pipeline, backend="native")


def _on_trees(query: Query, radii: Radii, options: Options, budget: Budget) -> LevelOutcome | None:
    """The least level without compilation, if the question is about scores; otherwise None."""
    if options.pipeline != "default" or options.verify_each:
        return None
    memory = options.memory_limit
    return least_level_on_trees(query, radii.level, budget, hints=options.hints, seed=options.seed, memory=memory)


def _judged_radius(query: Query, goal: Objective, radii: Radii, found: LevelOutcome, options: Options) -> Result | None:
    """The answer from the engine's facts: a verified witness, and the exact radius below which no answer exists."""

    def reach(witness: Witness) -> ObjectiveValue | Rejected:
        value = objective_form_value(goal, Inputs(witness.values, witness.cells, witness.exact))
        bound = radii.distance(found.low)
        return FALLS_SHORT if value < bound or (found.closed and value > bound) else shown_objective(goal, value, bound)

    # The value nearest to the row's value is the best in its cell.
    near = preferred_row(query, goal, options.near)
    judged = conclude_facts(replace(query, objective=None), _radius_facts(found), options, near=near, reach=reach)
    return None if isinstance(judged, Rejected) or judged.verdict is Verdict.UNKNOWN else judged


def _radius_facts(found: LevelOutcome) -> Facts:
    statistics = {"nodes": float(found.nodes), "decisions": float(found.decisions)}
    return Facts(found.cells, found.none, "optimal" if found.closed else found.reason, statistics=statistics)


def preferred_row(query: Query, goal: Objective, near: FloatArray | None) -> FloatArray:
    """The row's values for the features of the objective, float64[features]; for other features, the preferred values."""
    row = np.full(len(query.space.names), np.nan) if near is None else near.copy()
    for term in goal.distances:
        row[term.feature] = term.row
    return row


def search_least_radius(question: OpenQuestion, budget: Budget) -> Result | None:
    """The method named in `solve/methods/registry.py`."""
    return answer_least_radius(question.query, question.options, budget, question.on_better)
