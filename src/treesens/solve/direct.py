"""Decisions about scores by the engine on the trees themselves, for a moment, before anything is compiled.

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
from treesens.compiler.result import Attempt, Proof, Result, Verdict, Witness
from treesens.compiler.verify import verify_cells
from treesens.solve.options import Options

_MOMENT = 1.0
_SHARE = 1 / 8
"""Seconds at most, and of the time."""
_MOST_CASES = 8
"""Cases of a question with disjunctions that are decided one by one."""
_LONG = 2 / 3
"""Of the time, for questions about what is typical."""


def answer_directly(query: Query, options: Options, budget: Budget) -> Result | None:
    """An answer that stands; None where there is none yet."""
    if options.backend not in {"auto", "native"} or options.pipeline != "default" or options.verify_each:
        return None
    start = time.perf_counter()
    # With the trees of a forest the way through the IR takes several times as long for the same.
    part = budget.share(_LONG) if names_forests(query) else budget.share(_SHARE).within(_MOMENT)
    found = _decide(query, options, part)
    if found is None or not (found.none or found.cells is not None):
        return None
    solved = time.perf_counter()
    result = _judged(query, found, options)
    if result is None:
        return None
    seconds = {"build": 0.0, "solve": time.perf_counter() - start}
    words = "infeasible" if found.none else "satisfied"
    attempt = Attempt(
        "native", options.pipeline, words, result.verdict, "", {"solve": solved - start}, statistics=found.statistics
    )
    return Result(
        query.name,
        result.verdict,
        result.reason,
        proof=result.proof,
        witness=result.witness,
        backend="native",
        pipeline=options.pipeline,
        seconds=seconds,
        attempts=(attempt,),
        notes=result.notes,
    )


def _decide(query: Query, options: Options, budget: Budget) -> DirectOutcome | None:
    """As `decide_directly`; a question with a short disjunction from the answers to its cases, which share the time."""
    cases = _cases(query)
    every: list[DirectOutcome] = []
    for number, case in enumerate(cases):
        part = budget.share(1 / (len(cases) - number))
        found = decide_directly(case, part, hints=options.hints, seed=options.seed, memory=options.memory_limit)
        if found is None or found.cells is not None:
            return found
        every.append(found)
    if len(every) <= 1:
        return every[0] if every else None
    left = next((found for found in every if not found.none), every[-1])
    nodes = sum(found.statistics.get("nodes", 0.0) for found in every)
    return replace(left, statistics={**left.statistics, "nodes": nodes, "cases": float(len(every))})


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


def _judged(query: Query, found: DirectOutcome, options: Options) -> Result | None:
    if found.cells is None:
        return Result(query.name, Verdict.NONE, "native: infeasible", proof=Proof.EXACT)
    witness = verify_cells(query, found.cells, near=options.near, library_predict=options.library_predict)
    if not isinstance(witness, Witness):
        return None
    notes = ("a constraint holds by less than the numerical band",) if witness.in_band else ()
    return Result(query.name, Verdict.FOUND, "verified", witness=witness, notes=notes)
