"""Merges two results of one question by one rule.

The merged result has the better value with its point, the tighter bound with its evidence, and the attempts and notes of both
results. Results that contradict each other are an internal error: one of the two results is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from treesens.compiler.query.query import Query
from treesens.compiler.result import ObjectiveValue, Proof, Result, Sense, Verdict
from treesens.errors import InternalError
from treesens.solve.bounds import consistent
from treesens.solve.conclude import IN_BAND, leave_open

_PROOFS = (Proof.UNVALIDATED, Proof.LIBRARY, Proof.BOUND, Proof.TOLERANCE, Proof.EXACT)
"""Kinds of evidence, the weakest first."""

TWO_ARITHMETICS = (
    "numerical band: some parts have no answer only in the library's arithmetic, others only in exact arithmetic; "
    "neither arithmetic rules out all parts"
)


def proof_of_parts(proofs: Iterable[Proof | None]) -> Proof | None:
    """The weakest of the proofs that the parts have no answer; together they prove that the whole question has no answer.

    None if the proofs are about two arithmetics: an input near a tie may belong to one part in the library's arithmetic and to
    another part in exact arithmetic, and both proofs would miss this input.
    """
    known = {proof or Proof.BOUND for proof in proofs}
    if Proof.LIBRARY in known and len(known) > 1:
        return None
    return min(known, key=_PROOFS.index)


def combine(one: Result, other: Result) -> Result:
    """Merges two search results of one question; of two equally good points, the first result's point is kept.

    Raises `InternalError` if one result proves the opposite of the other.
    """
    check_agreement(one, other)
    attempts = (*one.attempts, *other.attempts)
    first, second = one.objective, other.objective
    if one.verdict is not Verdict.FOUND or other.verdict is not Verdict.FOUND or first is None or second is None:
        kept = one if other.verdict is Verdict.UNKNOWN else other
        return replace(kept, attempts=attempts, notes=notes_of(kept, (one, other)))
    better = second.value > first.value if first.sense == Sense.MAXIMIZE else second.value < first.value
    kept, left = (other, one) if better else (one, other)
    return replace(with_tighter_bound(kept, left), attempts=attempts, notes=notes_of(kept, (one, other)))


def notes_of(kept: Result, others: Iterable[Result]) -> tuple[str, ...]:
    """The notes of all results without duplicates; notes on a witness are kept only for the witness that is kept."""
    left = (note for other in others for note in other.notes if note != IN_BAND)
    return tuple(dict.fromkeys((*kept.notes, *left)))


def check_agreement(one: Result, other: Result) -> None:
    """Raises `InternalError` if one result has an answer and the other has a proof that no answer exists."""
    if {one.verdict, other.verdict} == {Verdict.FOUND, Verdict.NONE}:
        raise InternalError(
            f"{one.backend} says {one.verdict} and {other.backend} says {other.verdict} to `{one.query}`",
            remedy="one of the two is wrong: please report this with the file and the model",
        )


def with_tighter_bound(new: Result, old: Result | None) -> Result:
    """A result with the tighter of two bounds on its objective, and that bound's evidence.

    Raises `ContradictoryBound` if the value is better than the other bound by more than rounding.
    """
    old_bound = None if old is None or old.objective is None else old.objective.bound
    if old is None or old_bound is None or new.objective is None:
        return new
    goal = new.objective
    tighter = goal.bound is not None and (
        goal.bound <= old_bound if goal.sense == Sense.MAXIMIZE else goal.bound >= old_bound
    )
    if tighter:
        return new
    # The other runner's solver may round.
    old_bound = consistent(
        old_bound, goal.value, maximize=goal.sense == Sense.MAXIMIZE, exact=False, who=old.backend or "a runner"
    )
    return replace(new, objective=replace(goal, bound=old_bound), proof_dependencies=old.proof_dependencies)


def combine_cases(query: Query, results: list[Result]) -> Result:
    """Combines the results of all cases of a disjunction: the best answer of all cases; `none` if no case has an answer, with
    the weakest of the cases' proofs if all proofs are about the same arithmetic.
    """
    found = [result for result in results if result.verdict is Verdict.FOUND]
    unknown = [result for result in results if result.verdict is Verdict.UNKNOWN]
    if found:
        kept = _best(query, found, results)
    elif unknown:
        kept = unknown[0]
    elif (proof := proof_of_parts(result.proof for result in results)) is None:
        kept = leave_open(query.name, TWO_ARITHMETICS, backend=results[0].backend, pipeline=results[0].pipeline)
    else:
        premises = dict.fromkeys(premise for result in results for premise in result.proof_dependencies)
        kept = replace(results[0], proof=proof, proof_dependencies=tuple(premises))
    attempts = tuple(attempt for result in results for attempt in result.attempts)
    seconds = _added(result.seconds for result in results)
    return replace(kept, attempts=attempts, notes=notes_of(kept, results), seconds=seconds, refuted=())


def _added(parts: Iterable[dict[str, float]]) -> dict[str, float]:
    """Seconds per phase, summed over all parts."""
    total: dict[str, float] = {}
    for part in parts:
        for phase, seconds in part.items():
            total[phase] = total.get(phase, 0.0) + seconds
    return total


def _best(query: Query, found: list[Result], results: list[Result]) -> Result:
    """The case with the best value, with the weakest bound of all cases; the bound is None if any case lacks a bound."""
    goal = query.objective
    if goal is None:
        return found[0]
    pick = max if goal.maximize else min
    valued = [result for result in found if result.objective is not None]
    if len(valued) < len(found):
        return replace(found[0], objective=None)
    best = pick(valued, key=lambda result: _value(result).value)
    bounds = [None if r.objective is None else r.objective.bound for r in results if r.verdict is not Verdict.NONE]
    bound = None if None in bounds else pick(bound for bound in bounds if bound is not None)
    shown = _value(best)
    return replace(best, objective=ObjectiveValue(shown.value, bound, Sense.of(goal.maximize), shown.kind))


def _value(result: Result) -> ObjectiveValue:
    assert result.objective is not None
    return result.objective


def leans_on(result: Result, backend: str) -> bool:
    """True if a `none` or a bound depends on a proof by `backend`."""
    return any(part.endswith(f" by {backend} (exact)") for part in result.proof_dependencies)


def join_opinions(first: Result, second: Result, backend: str) -> Result:
    """Merges two opinions. Raises `InternalError` for contradictory opinions."""
    attempts = (*first.attempts, *second.attempts)
    if leans_on(first, backend):
        # A backend cannot confirm itself.
        note = f"{backend} cannot confirm results that depend on {backend}"
        return replace(first, attempts=attempts, notes=(*first.notes, note))
    if second.verdict is Verdict.UNKNOWN:
        note = f"{backend} could not confirm: {second.reason}"
        return replace(first, attempts=attempts, notes=(*first.notes, note))
    if first.verdict is Verdict.UNKNOWN:
        return replace(second, attempts=attempts, notes=notes_of(second, (first,)))
    check_agreement(first, replace(second, backend=backend))
    proof = second.proof if second.proof is Proof.EXACT else first.proof
    return replace(first, proof=proof, attempts=attempts, notes=notes_of(first, (second,)), confirmed_by=backend)
