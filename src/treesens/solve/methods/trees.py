"""Answers questions about scores by a brief search on the tree path, before anything is compiled.

Most questions are decided in milliseconds; lowering and the passes would take nine tenths of the time. Questions that this
short search leaves open, and answers that are invalid in the library's arithmetic, are passed to the compiled path.

In large models, the best value of a sum of scores is searched for here: the compiled path takes several times the time and
memory. Smaller models still use the compiled path, since its passes pay off for them.
"""

from __future__ import annotations

import time
from dataclasses import replace

from treesens.backends.native.tree_question import TreeOptimum, TreeOutcome, decide_on_trees, maximise_on_trees
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.cases import every_case
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.query import Query
from treesens.compiler.query.rounding import harden
from treesens.compiler.result import ObjectiveValue, Result
from treesens.runtime.kept import is_reused
from treesens.solve.bounds import of_form
from treesens.solve.conclude import Facts, attempt_of, conclude_facts, leave_rejected, shown_optimum
from treesens.solve.fits import is_large
from treesens.solve.method import OpenQuestion
from treesens.solve.options import Options
from treesens.values.verify import Rejected, Witness


def answer_on_trees(query: Query, options: Options, budget: Budget) -> Result | None:
    """A final answer; None if the question is still open and must take the compiled path.

    Questions about large models are answered only here: the compiled path takes several times the time and memory, and only the
    engine could read its output. For large models, an open question is `unknown`.
    """
    start = time.perf_counter()
    large = is_large(query)
    if query.objective is not None:
        return optimise_on_trees(query, options, budget) if large else None
    found = _decide(query, options, budget)
    if found is None or found.reason == "internal":
        return None
    if not (large or found.none or found.cells is not None or found.reason == "rounding"):
        return None
    judged = [(found, conclude_facts(query, _facts(found), options), time.perf_counter() - start)]
    if _wants_clearance(*judged[0][:2]):
        found = _decide(harden(query), options, budget)
        # A stronger question without an answer says nothing about this one.
        if found is not None and found.cells is not None:
            judged.append(
                (found, conclude_facts(query, _facts(found), options), time.perf_counter() - start - judged[0][2])
            )
    last = judged[-1][1]
    if isinstance(last, Rejected) and (not large or last.none is not None):
        return None
    if isinstance(last, Rejected):
        last = leave_rejected(query.name, last)
    attempts = tuple(attempt_of(_facts(f), result, options, {"solve": seconds}) for f, result, seconds in judged)
    seconds = {"build": 0.0, "solve": time.perf_counter() - start}
    return replace(last, backend="native", pipeline=options.pipeline, seconds=seconds, attempts=attempts)


def search_trees(question: OpenQuestion, budget: Budget) -> Result | None:
    """Entry point named in `solve/methods/registry.py`."""
    result = answer_on_trees(question.query, question.options, budget)
    if result is not None:
        question.show(result)
    return result


def _wants_clearance(found: TreeOutcome, judged: Result | Rejected) -> bool:
    """True if only rounding rejects the point: other points may satisfy all constraints by a clear margin."""
    return found.reason == "rounding" or (isinstance(judged, Rejected) and judged.numerical)


def _facts(found: TreeOutcome) -> Facts:
    rounded = found.reason == "rounding"
    return Facts(found.cells, found.none, _ended(found), rounded, found.near, found.statistics)


def _ended(found: TreeOutcome) -> str:
    """The termination recorded for the search."""
    if found.none:
        return "infeasible"
    if found.cells is not None or found.reason == "rounding":
        return "satisfied"
    return {"memory": "memory", "stopped": "interrupted"}.get(found.reason, "time")


def _decide(query: Query, options: Options, budget: Budget) -> TreeOutcome | None:
    """Like `decide_on_trees`; a short disjunction is split into cases, which share the time."""
    # The order of cases decides which of several answers is shown.
    cases = every_case(query)[::-1]
    every: list[TreeOutcome] = []
    for number, case in enumerate(cases):
        part = budget.share(1 / (len(cases) - number))
        found = decide_on_trees(
            case,
            part,
            hints=options.hints,
            seed=options.seed,
            memory=options.memory_limit,
            threads=options.threads,
        )
        if found is None or found.cells is not None:
            return found
        every.append(found)
    if len(every) <= 1:
        return every[0] if every else None
    left = next((found for found in every if not found.none), every[-1])
    nodes = sum(found.statistics.get("nodes", 0.0) for found in every)
    # A case's near miss says nothing about the other cases.
    return replace(left, near=None, statistics={**left.statistics, "nodes": nodes, "cases": float(len(every))})


_TERMINATIONS = {
    "optimal": "optimal",
    "infeasible": "infeasible",
    "rounding": "satisfied",
    "memory": "memory",
    "stopped": "interrupted",
}


def optimise_on_trees(query: Query, options: Options, budget: Budget) -> Result | None:
    """The best verified point with a proved bound over all points; None if the question needs the compiled path."""
    goal = query.objective
    # Certificates are made from compiled problems.
    if goal is None or is_reused():
        return None
    start = time.perf_counter()
    found = _search(query, options, budget)
    if found is None:
        return None
    judged = _judged(query, found, options)
    attempts = [attempt_of(_optimum_facts(found), judged, options, {"solve": time.perf_counter() - start})]
    if found.ended == "rounding" or (isinstance(judged, Rejected) and judged.numerical):
        # Other points may clear the numerical band. The bound of the question itself holds.
        between = time.perf_counter()
        again = _search(harden(query), options, budget)
        if again is not None and again.cells is not None:
            judged = _judged(query, replace(again, bound=found.bound), options)
            seconds = {"solve": time.perf_counter() - between}
            attempts.append(attempt_of(_optimum_facts(again), judged, options, seconds))
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

    return conclude_facts(query, _optimum_facts(found), options, reach=reach)


def _optimum_facts(found: TreeOptimum) -> Facts:
    ended = _TERMINATIONS.get(found.ended, "time")
    return Facts(found.cells, found.none, ended, found.ended == "rounding", statistics=found.statistics)
