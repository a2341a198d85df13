"""Solves questions on small domains by enumerating all combinations of cells."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.query import Query
from treesens.compiler.result import Attempt, ObjectiveValue, Proof, Result
from treesens.errors import MissingPackageError
from treesens.extensions.methods.combinations import Combinations
from treesens.extensions.methods.decide_values import Z3
from treesens.extensions.methods.enumeration import Enumeration
from treesens.extensions.methods.joined_cells import best_cells
from treesens.extensions.methods.registered import MOST_COMBINATIONS
from treesens.solve.bounds import left_open
from treesens.solve.combine import combine
from treesens.solve.conclude import (
    Facts,
    conclude_facts,
    conclude_found,
    conclude_none,
    leave_open,
    shown_objective,
    shown_optimum,
)
from treesens.solve.fits import sums_scores
from treesens.solve.options import Options
from treesens.values.verify import Witness

_BACKEND = "native"

Enumerate = Callable[
    [Query, Options, Combinations, Callable[[], float], Callable[[Witness], None] | None, Witness | None], Result | None
]
"""A function that enumerates combinations and returns the answer, or None if some combination remains undecided."""


def enumerate_combinations(
    query: Query,
    options: Options,
    combinations: Combinations,
    left: Callable[[], float],
    on_better: Callable[[Witness], None] | None,
    known_witness: Witness | None,
) -> Result | None:
    """Answers a question without an objective, or with a sum as its objective; None if undecided or timed out."""
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
    """The result `before` of a search, completed by enumerating all combinations of cells if it is open."""
    start = time.monotonic()

    joined = _join_cells(query, options, before, on_better)
    if joined is not None:
        closed, words = joined
    else:
        combinations = Combinations.of(query, MOST_COMBINATIONS)
        if combinations is None:
            return before
        try:
            every = enumerate_all(query, options, combinations, budget.left, on_better, before.witness)
        except MissingPackageError as error:
            return replace(before, notes=(*before.notes, f"left open: {error.message}: {error.remedy}"))
        if every is None:
            return before
        closed, words = every, f"{combinations.total} combinations of cells were enumerated"
    seconds = time.monotonic() - start
    attempt = Attempt(_BACKEND, "exhaustive", "optimal", closed.verdict, words, {"solve": seconds})
    if closed.witness is not None and closed.witness is before.witness:
        closed = replace(before, objective=closed.objective, proof_dependencies=closed.proof_dependencies)
    if left_open(closed):
        # Either the search or the enumeration may have found more.
        return combine(before, replace(closed, attempts=(attempt,), seconds={**before.seconds, "exhausting": seconds}))
    return replace(
        closed,
        attempts=(*before.attempts, attempt),
        seconds={**before.seconds, "exhausting": seconds},
        size=before.size,
        pipeline=before.pipeline,
        warm_started=before.warm_started,
    )


def _join_cells(
    query: Query, options: Options, before: Result, on_better: Callable[[Witness], None] | None
) -> tuple[Result, str] | None:
    """The answer from the best cells of every point, with a description of the work; None if cells alone do not decide it.

    The number of steps is limited, so the remaining time is not checked.
    """
    goal = query.objective
    if goal is None or not sums_scores(goal):
        return None
    best = best_cells(query, MOST_COMBINATIONS)
    if best is None:
        return None
    words = f"the scores of {best.count} combinations of cells of one point were compared"
    if best.cells is None and before.witness is not None:
        return None
    if best.cells is None:
        reason = f"{_BACKEND}: every combination of cells is ruled out"
        return conclude_none(leave_open(query.name, backend=_BACKEND), reason), words

    def reached_by(witness: Witness) -> Fraction:
        return objective_form_value(goal, inputs_of(query, witness.values))

    def reach(witness: Witness) -> ObjectiveValue:
        return shown_optimum(goal, reached_by(witness), best.value)

    if before.witness is not None and reached_by(before.witness) == best.value:
        known = leave_open(query.name, witness=before.witness, objective=reach(before.witness), backend=_BACKEND)
        return conclude_found(known), words
    judged = conclude_facts(query, Facts(best.cells, False, "optimal"), options, reach=reach)
    if not isinstance(judged, Result) or left_open(judged):
        return None
    if on_better is not None and judged.witness is not None:
        on_better(judged.witness)
    return replace(judged, backend=_BACKEND), words


def conclude_enumeration(walk: Enumeration) -> Result | None:
    """The answer that follows from a completed walk; None if a combination remains undecided."""
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
        notes = ("exact arithmetic admits inputs within the numerical band, but the library's arithmetic admits none",)
    bare = leave_open(walk.query.name, notes=notes, backend=_BACKEND, proof_dependencies=_premises(walk))
    return conclude_none(bare, reason, proof)


def _premises(walk: Enumeration) -> tuple[str, ...]:
    """The assumptions, other than exact arithmetic, on which a `none` or a bound from a walk depends."""
    return (f"values inside cells by {Z3} (exact)",) if walk.asked_z3 else ()
