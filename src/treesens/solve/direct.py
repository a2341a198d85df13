"""Questions about scores answered by the engine on the trees themselves, for a moment, before anything is compiled.

Most questions are decided in milliseconds, of which lowering and the passes would take nine tenths. What is not decided in that
moment, and every answer that the library's arithmetic does not confirm, takes the usual way.
"""

from __future__ import annotations

import time
from dataclasses import replace

from treesens.backends.native.direct import DirectOutcome, decide_directly
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.evaluate import linear_constraints
from treesens.compiler.query.query import AllOf, AnyOf, Constraint, Query
from treesens.compiler.query.rounding import harden
from treesens.compiler.result import Result
from treesens.compiler.verify import Rejected
from treesens.solve.conclude import TreeFacts, attempt_of, conclude_tree_search, leave_rejected
from treesens.solve.direct_optimum import optimise_directly
from treesens.solve.options import Options

_MOMENT = 1.0
_PER_LEAF = 2e-5
"""Seconds at most, and for every leaf of all points: about what the way through the IR takes until it can begin."""
_SHARE = 1 / 8
"""Of the time."""
_MOST_CASES = 8
"""Cases of a question with disjunctions that are decided one by one."""
_MANY_LEAVES = 200_000
"""Of all points together: a module of them has millions of nonzeros."""
_LONG = 2 / 3
"""Of the time, for questions about what is typical."""


def answer_directly(query: Query, options: Options, budget: Budget) -> Result | None:
    """An answer that stands; None where there is none yet.

    About large models all is said here: the way through the IR takes several times as long and the memory for the same, and
    nobody but the engine could read what comes of it. There an open question is `unknown`.
    """
    if options.backend not in {"auto", "native"} or options.pipeline != "default" or options.verify_each:
        return None
    start = time.perf_counter()
    large = is_large(query)
    if query.objective is not None:
        return optimise_directly(query, options, budget) if large else None
    part = budget if large else _first_part(query, budget)
    found = _decide(query, options, part)
    if found is None or found.reason == "internal":
        return None
    if not (large or found.none or found.cells is not None or found.reason == "rounding"):
        return None
    judged = [(found, conclude_tree_search(query, _facts(found), options), time.perf_counter() - start)]
    if _wants_clearance(*judged[0][:2]):
        found = _decide(harden(query), options, part)
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


def is_large(query: Query) -> bool:
    """Whether the trees of the points have so many leaves that no solver but the engine could read a module of them."""
    return _leaves(query) >= _MANY_LEAVES


def _leaves(query: Query) -> int:
    return sum(query.models[point.model].n_leaves for point in query.points)


def _first_part(query: Query, budget: Budget) -> Budget:
    if names_forests(query):  # the way through the IR takes several times as long for the same
        return budget.share(_LONG)
    return budget.share(_SHARE).within(_MOMENT + _PER_LEAF * _leaves(query))


def _wants_clearance(found: DirectOutcome, judged: Result | Rejected) -> bool:
    """Whether only the last digits stand against a point: others may be clear of them. The trees are there already."""
    return found.reason == "rounding" or (isinstance(judged, Rejected) and judged.numerical)


def _facts(found: DirectOutcome) -> TreeFacts:
    rounded = found.reason == "rounding"
    return TreeFacts(found.cells, found.none, _ended(found), rounded, found.near, found.statistics)


def _ended(found: DirectOutcome) -> str:
    """How the search ended, in the words of a termination."""
    if found.none:
        return "infeasible"
    if found.cells is not None or found.reason == "rounding":
        return "satisfied"
    return {"memory": "memory", "stopped": "interrupted"}.get(found.reason, "time")


def _decide(query: Query, options: Options, budget: Budget) -> DirectOutcome | None:
    """As `decide_directly`; a question with a short disjunction from the answers to its cases, which share the time."""
    cases = _cases(query)
    every: list[DirectOutcome] = []
    for number, case in enumerate(cases):
        part = budget.share(1 / (len(cases) - number))
        found = decide_directly(
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


def _cases(query: Query) -> list[Query]:
    """The question with one alternative of every disjunction in place of it; itself alone if those are too many."""
    done: list[Query] = []
    todo = [query]
    while todo:
        if len(done) + len(todo) > _MOST_CASES:
            return [query]
        case = todo.pop()
        place = next((n for n, constraint in enumerate(case.constraints) if isinstance(constraint, AnyOf)), None)
        if place is None:
            done.append(case)
            continue
        choice = case.constraints[place]
        assert isinstance(choice, AnyOf)
        todo += [_with(case, place, part) for part in choice.parts]
    return done


def _with(query: Query, place: int, part: Constraint) -> Query:
    """The question with another constraint in a place; the parts of a conjunction stand for themselves."""
    parts = part.parts if isinstance(part, AllOf) else (part,)
    return replace(query, constraints=(*query.constraints[:place], *query.constraints[place + 1 :], *parts))


def names_forests(query: Query) -> bool:
    """Whether a constraint of a question brings trees along that are learnt from rows."""
    return any(row.form.forests for row in linear_constraints(query.constraints))
