"""Decisions about scores by the engine on the trees themselves, for a moment, before anything is compiled.

Most questions are decided in milliseconds, of which lowering and the passes would take nine tenths. What is not decided in that
moment, and every answer that the library's arithmetic does not confirm, takes the usual way.
"""

from __future__ import annotations

import time

from treesens.backends.native.direct import DirectOutcome, decide_directly
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.evaluate import linear_constraints
from treesens.compiler.query.query import Query
from treesens.compiler.result import Attempt, Proof, Result, Verdict, Witness
from treesens.compiler.verify import verify_cells
from treesens.solve.options import Options

_MOMENT = 1.0
_SHARE = 1 / 8
"""Seconds at most, and of the time."""
_LONG = 2 / 3
"""Of the time, for questions about what is typical."""


def answer_directly(query: Query, options: Options, budget: Budget) -> Result | None:
    """An answer that stands; None where there is none yet."""
    if options.backend not in {"auto", "native"} or options.pipeline != "default" or options.verify_each:
        return None
    start = time.perf_counter()
    # With the trees of a forest the way through the IR takes several times as long for the same.
    part = budget.share(_LONG) if names_forests(query) else budget.share(_SHARE).within(_MOMENT)
    found = decide_directly(query, part, hints=options.hints, seed=options.seed, memory=options.memory_limit)
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
