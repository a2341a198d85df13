"""Questions about scores answered by the tree path, for a moment, before anything is compiled.

Most questions are decided in milliseconds, of which lowering and the passes would take nine tenths. What is not decided in that
moment, and every answer that the library's arithmetic does not confirm, takes the compiled path.
"""

from __future__ import annotations

import time
from dataclasses import replace

from treesens.backends.native.tree_question import TreeOutcome, decide_on_trees
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.cases import every_case
from treesens.compiler.query.query import Query
from treesens.compiler.query.rounding import harden
from treesens.compiler.result import Result
from treesens.solve.conclude import TreeFacts, attempt_of, conclude_tree_search, leave_rejected
from treesens.solve.fits import is_large
from treesens.solve.method import OpenQuestion
from treesens.solve.methods.trees_optimum import optimise_on_trees
from treesens.solve.options import Options
from treesens.values.verify import Rejected


def answer_on_trees(query: Query, options: Options, budget: Budget) -> Result | None:
    """A final answer; None if there is none yet.

    About large models all is said here: the compiled path takes several times as long and the memory for the same, and
    nobody but the engine could read what comes of it. There an open question is `unknown`.
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
    judged = [(found, conclude_tree_search(query, _facts(found), options), time.perf_counter() - start)]
    if _wants_clearance(*judged[0][:2]):
        found = _decide(harden(query), options, budget)
        # What is harder has no answer: that says nothing about the question.
        if found is not None and found.cells is not None:
            judged.append(
                (found, conclude_tree_search(query, _facts(found), options), time.perf_counter() - start - judged[0][2])
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
    """The method, as `solve/methods/registry.py` names it."""
    result = answer_on_trees(question.query, question.options, budget)
    if result is not None:
        question.show(result)
    return result


def _wants_clearance(found: TreeOutcome, judged: Result | Rejected) -> bool:
    """Whether only the last digits stand against a point: others may be clear of them. The trees are there already."""
    return found.reason == "rounding" or (isinstance(judged, Rejected) and judged.numerical)


def _facts(found: TreeOutcome) -> TreeFacts:
    rounded = found.reason == "rounding"
    return TreeFacts(found.cells, found.none, _ended(found), rounded, found.near, found.statistics)


def _ended(found: TreeOutcome) -> str:
    """How the search ended, in the words of a termination."""
    if found.none:
        return "infeasible"
    if found.cells is not None or found.reason == "rounding":
        return "satisfied"
    return {"memory": "memory", "stopped": "interrupted"}.get(found.reason, "time")


def _decide(query: Query, options: Options, budget: Budget) -> TreeOutcome | None:
    """As `decide_on_trees`; a question with a short disjunction from the answers to its cases, which share the time."""
    # Which case comes first decides which of several answers is shown.
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
    # How near a case has come says nothing about the others.
    return replace(left, near=None, statistics={**left.statistics, "nodes": nodes, "cases": float(len(every))})
