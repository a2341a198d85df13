"""The least largest distance from a row (linf), by the engine alone: which radius is the first with an answer?

The boxes around a row are nested, and a box of cells comes within reach at one of finitely many radii. Each decision sees only
what its box leaves of the trees: of the models' own (`backends/native/least_level.py`), or of those of a question that is
compiled once (`backends/native/boxed_question.py`). Where the values of the answer fall short of what their cells allow, or the
library's arithmetic is against it, the search by whole questions (`bisection`) takes over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from treesens.backends.native.boxed_question import LevelOutcome, boxed_question
from treesens.backends.native.least_level import least_level_on_trees
from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.evaluate import Inputs, objective_form_value
from treesens.compiler.query.query import Objective, Query
from treesens.compiler.result import ObjectiveValue, Result, Verdict
from treesens.errors import BackendError
from treesens.solve.conclude import (
    FALLS_SHORT,
    TreeFacts,
    attempt_of,
    conclude_contradiction,
    conclude_tree_search,
    shown_objective,
)
from treesens.solve.method import OpenQuestion
from treesens.solve.options import Options
from treesens.values.radii import Radii, radii_of
from treesens.values.verify import Rejected, Witness


def answer_least_radius(
    query: Query, options: Options, budget: Budget, on_better: Callable[[Witness], None] | None = None
) -> Result | None:
    """The answer with its bound; None where this search has none to give."""
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
    result = _judged(query, query.objective, radii, found, options)
    if result is None:
        return None
    if result.witness is not None and on_better is not None:
        on_better(result.witness)
    seconds = {"build": built - start, "solve": time.perf_counter() - built}
    attempt = attempt_of(_facts(found), result, options, seconds)
    return replace(result, attempts=(attempt,), seconds=seconds, pipeline=options.pipeline, backend="native")


def _on_trees(query: Query, radii: Radii, options: Options, budget: Budget) -> LevelOutcome | None:
    """The least level without compiling anything, if the question is one about scores."""
    if options.pipeline != "default" or options.verify_each:
        return None
    memory = options.memory_limit
    return least_level_on_trees(query, radii.level, budget, hints=options.hints, seed=options.seed, memory=memory)


def _judged(query: Query, goal: Objective, radii: Radii, found: LevelOutcome, options: Options) -> Result | None:
    """From the engine's facts to an answer: a verified witness, and the exact radius below which there is none."""

    def reach(witness: Witness) -> ObjectiveValue | Rejected:
        value = objective_form_value(goal, Inputs(witness.values, witness.cells, witness.exact))
        bound = radii.distance(found.low)
        return FALLS_SHORT if value < bound or (found.closed and value > bound) else shown_objective(goal, value, bound)

    # The value nearest to the row's own is as good as its cell allows.
    near = preferred_row(query, goal, options.near)
    judged = conclude_tree_search(replace(query, objective=None), _facts(found), options, near=near, reach=reach)
    return None if isinstance(judged, Rejected) or judged.verdict is Verdict.UNKNOWN else judged


def _facts(found: LevelOutcome) -> TreeFacts:
    statistics = {"nodes": float(found.nodes), "decisions": float(found.decisions)}
    return TreeFacts(found.cells, found.none, "optimal" if found.closed else found.reason, statistics=statistics)


def preferred_row(query: Query, goal: Objective, near: FloatArray | None) -> FloatArray:
    """The values of the row that the objective names, float64[features]; what is preferred elsewhere."""
    row = np.full(len(query.space.names), np.nan) if near is None else near.copy()
    for term in goal.distances:
        row[term.feature] = term.row
    return row


def search_least_radius(question: OpenQuestion, budget: Budget) -> Result | None:
    """The method, as `solve/methods/registry.py` names it."""
    return answer_least_radius(question.query, question.options, budget, question.on_better)
