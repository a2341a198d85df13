"""The best value of a sum of scores of large models, by the tree path: nothing is compiled.

The compiled path takes several times as long and the memory for the same. Smaller models take it all the same: its
passes pay there.
"""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

from treesens.backends.native.tree_question import TreeOptimum, maximise_on_trees
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.floats import NumberType, ceil_to, floor_to
from treesens.compiler.base.kept import is_reused
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.query import Objective, Query
from treesens.compiler.query.rounding import harden
from treesens.compiler.result import ObjectiveValue, Result, Sense
from treesens.solve.bounds import consistent, of_form, shown_value
from treesens.solve.conclude import TreeFacts, attempt_of, conclude_tree_search, leave_rejected
from treesens.solve.options import Options
from treesens.values.verify import Rejected, Witness

_TERMINATIONS = {
    "optimal": "optimal",
    "infeasible": "infeasible",
    "rounding": "satisfied",
    "memory": "memory",
    "stopped": "interrupted",
}


def optimise_on_trees(query: Query, options: Options, budget: Budget) -> Result | None:
    """The best verified point with the bound that is proved of all; None if the question needs the compiled path."""
    goal = query.objective
    # Certificates are made from what was compiled.
    if goal is None or is_reused():
        return None
    start = time.perf_counter()
    found = _search(query, options, budget)
    if found is None:
        return None
    judged = _judged(query, found, options)
    attempts = [attempt_of(_facts(found), judged, options, {"solve": time.perf_counter() - start})]
    if found.ended == "rounding" or (isinstance(judged, Rejected) and judged.numerical):
        # Other points may be clear of the last digits. The bound of the question itself holds.
        between = time.perf_counter()
        again = _search(harden(query), options, budget)
        if again is not None and again.cells is not None:
            judged = _judged(query, replace(again, bound=found.bound), options)
            seconds = {"solve": time.perf_counter() - between}
            attempts.append(attempt_of(_facts(again), judged, options, seconds))
    if isinstance(judged, Rejected):
        if judged.none is not None:
            return None
        judged = leave_rejected(query.name, judged)
    seconds = {"build": 0.0, "solve": time.perf_counter() - start}
    return replace(judged, backend="native", pipeline=options.pipeline, seconds=seconds, attempts=tuple(attempts))


def _search(query: Query, options: Options, budget: Budget) -> TreeOptimum | None:
    tolerance, offset = of_form(query.objective, options.closeness)
    return maximise_on_trees(
        query,
        budget,
        tolerance=tolerance,
        offset=offset,
        hints=options.hints,
        seed=options.seed,
        memory=options.memory_limit,
        threads=options.threads,
    )


def _judged(query: Query, found: TreeOptimum, options: Options) -> Result | Rejected:
    goal = query.objective
    assert goal is not None

    def reach(witness: Witness) -> ObjectiveValue:
        return shown_optimum(goal, objective_form_value(goal, inputs_of(query, witness.values)), found.bound)

    return conclude_tree_search(query, _facts(found), options, reach=reach)


def _facts(found: TreeOptimum) -> TreeFacts:
    ended = _TERMINATIONS.get(found.ended, "time")
    return TreeFacts(found.cells, found.none, ended, found.ended == "rounding", statistics=found.statistics)


def shown_optimum(goal: Objective, value: Fraction, bound: Fraction | None) -> ObjectiveValue:
    """Value and bound as people read them; the bound is rounded away from the value."""
    reached, limit = float(value), None
    if bound is not None:
        limit = float(value) if bound == value else (ceil_to if goal.maximize else floor_to)(bound, NumberType.FLOAT64)
        limit = consistent(limit, reached, maximize=goal.maximize, exact=True, who="native")
        limit = shown_value(goal, limit)
    return ObjectiveValue(shown_value(goal, reached), limit, Sense.of(goal.maximize), goal.kind)
