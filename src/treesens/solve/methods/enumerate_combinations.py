"""A small domain, closed by going through all combinations of its cells: what the walk finds becomes a result here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query
from treesens.compiler.result import Attempt, Proof, Result
from treesens.errors import MissingPackageError
from treesens.solve.bounds import left_open
from treesens.solve.combine import combine
from treesens.solve.conclude import conclude_found, conclude_none, leave_open, shown_objective
from treesens.solve.fits import MOST_COMBINATIONS
from treesens.solve.options import Options
from treesens.values.combinations import Combinations
from treesens.values.decide_values import Z3
from treesens.values.enumeration import Enumeration
from treesens.values.witness import Witness

_BACKEND = "native"

Enumerate = Callable[
    [Query, Options, Combinations, Callable[[], float], Callable[[Witness], None] | None, Witness | None], Result | None
]
"""Goes through combinations; the answer, or None if something stays open."""


def enumerate_combinations(
    query: Query,
    options: Options,
    combinations: Combinations,
    left: Callable[[], float],
    on_better: Callable[[Witness], None] | None,
    known_witness: Witness | None,
) -> Result | None:
    """The answer if the objective is a sum, or if there is none; None if the time was up or something stays unsettled."""
    walk = Enumeration(query, combinations, left, on_better, options.near, options.library_predict, known_witness)
    done = walk.run(combinations.all_of(query.constraints))
    return conclude_enumeration(walk) if done or walk.witness is not None else None


def close_by_enumeration(
    query: Query,
    options: Options,
    before: Result,
    budget: Budget,
    *,
    enumerate_all: Enumerate = enumerate_combinations,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """The result of a search, closed by going through all combinations of cells if it has left something open."""
    start = time.monotonic()

    combinations = Combinations.of(query, MOST_COMBINATIONS)
    if combinations is None:
        return before
    try:
        closed = enumerate_all(query, options, combinations, budget.left, on_better, before.witness)
    except MissingPackageError as error:
        return replace(before, notes=(*before.notes, f"left open: {error.message}: {error.remedy}"))
    if closed is None:
        return before
    seconds = time.monotonic() - start
    words = f"{combinations.total} combinations of cells were gone through"
    attempt = Attempt(_BACKEND, "exhaustive", "optimal", closed.verdict, words, {"solve": seconds})
    if closed.witness is not None and closed.witness is before.witness:
        closed = replace(before, objective=closed.objective, proof_dependencies=closed.proof_dependencies)
    if left_open(closed):
        # Each of the two may know more.
        return combine(before, replace(closed, attempts=(attempt,), seconds={**before.seconds, "exhausting": seconds}))
    return replace(
        closed,
        attempts=(*before.attempts, attempt),
        seconds={**before.seconds, "exhausting": seconds},
        size=before.size,
        pipeline=before.pipeline,
        warm_started=before.warm_started,
    )


def conclude_enumeration(walk: Enumeration) -> Result | None:
    """The answer of a walk that has ended; None if a combination stays unsettled."""
    if walk.unsettled:
        return None
    query, goal = walk.query, walk.query.objective
    if walk.witness is None and walk.doubtful:
        return None
    if walk.witness is None:
        return None if walk.numerical and not walk.library_agrees() else _conclude_none(walk)
    objective = None
    if goal is not None and walk.value is not None:
        bound = walk.value if not walk.better_open(goal) else walk.open_bound
        assert bound is not None
        objective = shown_objective(goal, walk.value, bound)
    answer = conclude_found(leave_open(query.name, witness=walk.witness, objective=objective, backend=_BACKEND))
    if objective is None:
        return answer
    premises = _premises(walk)
    if walk.ruled_out:
        rounding = "inputs that are better in exact arithmetic are ruled out by the library's rounded sums"
        premises = (*premises, rounding)
    return replace(answer, proof_dependencies=premises)


def _conclude_none(walk: Enumeration) -> Result:
    reason = f"{_BACKEND}: every one of {walk.combinations.total} combinations of cells is ruled out"
    proof, notes = Proof.EXACT, tuple[str, ...]()
    if walk.numerical:
        proof = Proof.LIBRARY
        notes = ("exact arithmetic knows inputs, within the numerical band; the arithmetic of the library knows none",)
    bare = leave_open(walk.query.name, notes=notes, backend=_BACKEND, proof_dependencies=_premises(walk))
    return conclude_none(bare, reason, proof)


def _premises(walk: Enumeration) -> tuple[str, ...]:
    """What a `none` or a bound of a walk rests on, apart from its own arithmetic."""
    return (f"values inside cells by {Z3} (exact)",) if walk.asked_z3 else ()
