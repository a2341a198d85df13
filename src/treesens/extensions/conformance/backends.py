"""Runs a backend on small modules and compares every fact that it reports with brute force.

A backend must first be correct, and only then powerful. A wrong fact is a failure: `infeasible` although a solution exists, a
wrong `optimal`, a bound below the optimum, or a point that violates an exact module. If a backend cannot decide a case (because
of tolerances, a licence, or an op that it declines), the check is `open` with the reason; no case is skipped silently.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from treesens.backends.base import (
    BACKENDS,
    Artifact,
    Backend,
    InProcessBackend,
    Limits,
    Proof,
    RawOutcome,
    Termination,
    get_backend,
)
from treesens.backends.worker import Worker, run_all
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.ir import Module
from treesens.compiler.ir.evaluate import BruteForceResult, brute_force, complete, objective_value
from treesens.compiler.ir.verifier import verify
from treesens.errors import BackendError
from treesens.extensions.conformance.cases import Case, hard_module
from treesens.extensions.conformance.passes import Check, Outcome, Report
from treesens.extensions.conformance.shapes import cases

NO_VERDICT = {
    Termination.LICENCE,
    Termination.UNSUPPORTED,
    Termination.NUMERICAL,
    Termination.MEMORY,
}
"""Terminations without an answer that are acceptable for a small case; any other termination is a failure."""

STARTED = frozenset(
    {"clauses", "facts-infeasible", "linear-tight", "table", "guide", "guide-infeasible", "maximum-of-scores"}
)
"""Cases that are run with warm starts: a contradiction, a decision, a guide, and objectives."""

_SLOW_START_SECONDS = 8.0
"""Seconds that a worker may take to import its library on a busy machine, in addition to the limit and the grace period."""


@dataclass(frozen=True)
class Solved:
    """The facts of one solve, and the incumbents that it found."""

    artifact: Artifact
    outcome: RawOutcome
    incumbents: tuple[BoolArray, ...]


def run(
    backend: Backend | str, *, isolated: bool | None = None, seconds: float = 20.0, only: Iterable[str] | None = None
) -> Report:
    """Checks one backend, which is passed as an instance or by its registered name.

    With `isolated`, worker processes solve the cases and look up the backend by name; this is the default if the backend is
    registered and not an `InProcessBackend`. `only` selects cases by name.
    """
    tested = get_backend(backend) if isinstance(backend, str) else backend
    reason = tested.available()
    if reason is not None:
        return Report(tested.name, (Check("available", Outcome.OPEN, reason),), BackendError)
    here = isinstance(tested, InProcessBackend) or tested.name.partition("{")[0] not in BACKENDS.names()
    apart = not here if isolated is None else isolated
    wanted = None if only is None else set(only)
    checks = [
        _guarded(f"{case.name} ({case.about})", partial(_check_case, tested, case, apart, seconds))
        for case in cases()
        if wanted is None or case.name in wanted
    ]
    if tested.capabilities.warm_start and (wanted is None or "start" in wanted):
        checks += [
            _guarded(f"start: {case.name}", partial(_check_start, tested, case, apart, seconds))
            for case in cases()
            if case.name in STARTED
        ]
    if wanted is None or "time-limit" in wanted:
        checks.append(_guarded("time-limit", partial(_check_time, tested, apart)))
    if apart and (wanted is None or "memory-limit" in wanted):
        checks.append(_guarded("memory-limit", partial(_check_memory, tested)))
    return Report(tested.name, tuple(checks), BackendError)


def _guarded(name: str, check: Callable[[], tuple[Outcome, str]]) -> Check:
    try:
        outcome, reason = check()
    except BackendError as error:
        return Check(name, Outcome.OPEN, f"declined: {error.message}")
    except Exception as error:  # noqa: BLE001 (whatever a backend throws is a finding)
        return Check(name, Outcome.FAILED, f"{type(error).__name__}: {error}")
    return Check(name, outcome, reason)


def solve(backend: Backend, artifact: Artifact, limits: Limits, isolated: bool) -> Solved:
    """Solves an artifact once, in a worker or in this process; returns the outcome with its incumbents."""
    seen: list[BoolArray] = []
    if not isolated:
        return Solved(artifact, backend.solve(artifact, limits, seen.append), tuple(seen))
    worker = Worker.start(backend.name, artifact, limits)
    for _, outcome in run_all([worker], on_incumbent=lambda _, x: seen.append(x)):
        return Solved(artifact, outcome, tuple(seen))
    return Solved(artifact, RawOutcome(Termination.CRASH, detail="the worker did not start"), ())


def _check_case(backend: Backend, case: Case, isolated: bool, seconds: float) -> tuple[Outcome, str]:
    """Runs one case at increasing precisions, as the driver does, until an answer is valid."""
    module = case.module
    verify(module)
    truth = brute_force(module)
    limits = Limits(seconds=seconds)
    last = "no precision"
    for precision in range(backend.exact_precision() + 1):
        artifact = backend.emit(module, precision=precision)
        wrong = _emission(backend, module, artifact, precision)
        solved = solve(backend, artifact, limits, isolated)
        wrong = wrong or _wrong(backend, module, truth, solved)
        if wrong is not None:
            return Outcome.FAILED, f"precision {precision}: {wrong}"
        outcome = solved.outcome
        if outcome.termination is Termination.INFEASIBLE and not artifact.restricted:
            return Outcome.PASSED, "infeasible, in agreement with brute force"
        if outcome.assignment is not None and complete(module, outcome.assignment) is not None:
            return Outcome.PASSED, f"{outcome.termination.value}, in agreement with brute force"
        last = f"{outcome.termination.value} {outcome.detail}".strip()
        if outcome.termination in NO_VERDICT:
            break
        if not artifact.relaxed and not artifact.restricted:
            return Outcome.FAILED, f"no answer to a small exact module: {last}"
    return Outcome.OPEN, f"undecided: {last}"


def _check_start(backend: Backend, case: Case, isolated: bool, seconds: float) -> tuple[Outcome, str]:
    """Runs a case with a solution and with invalid points as starts; a start may save time, but must not change a fact."""
    module = case.module
    truth = brute_force(module)
    nothing = np.zeros(module.variables, bool)
    starts = [nothing, ~nothing] if truth.assignment is None else [truth.assignment, nothing, ~truth.assignment]
    for start in starts:
        artifact = replace(backend.emit(module), warm_start=start)
        solved = solve(backend, artifact, Limits(seconds=seconds), isolated)
        if solved.outcome.termination in NO_VERDICT:
            return Outcome.OPEN, f"undecided: {solved.outcome.termination.value}"
        wrong = _wrong(backend, module, truth, solved)
        if wrong is not None:
            return Outcome.FAILED, wrong
        decides = not artifact.optimises
        if decides and start is truth.assignment and solved.outcome.assignment is None:
            return Outcome.FAILED, f"{solved.outcome.termination.value}, from a solution"
    return Outcome.PASSED, "all facts agree with brute force"


def _emission(backend: Backend, module: Module, artifact: Artifact, precision: int) -> str | None:
    """The error in the emitted artifact, or None."""
    if artifact.variables != module.variables:
        return f"the artifact has {artifact.variables} variables, but the module has {module.variables}"
    if backend.emit(module, precision=precision).text != artifact.text:
        return "emitting twice gives different texts"
    if artifact.surrogate and not artifact.has_objective:
        return "the artifact claims a guide but has no objective"
    return None


def _wrong(backend: Backend, module: Module, truth: BruteForceResult, solved: Solved) -> str | None:
    """The first fact of an outcome that contradicts brute force, or None if no fact does."""
    artifact, outcome = solved.artifact, solved.outcome
    exact = not artifact.relaxed
    if outcome.termination is Termination.CRASH:
        return f"crashed: {outcome.detail}"
    if outcome.termination is Termination.INFEASIBLE:
        if truth.solutions and not artifact.restricted:
            return f"infeasible, but there are {truth.solutions} solutions"
        return "infeasible, but with an assignment" if outcome.assignment is not None else None
    if outcome.termination in {Termination.SATISFIED, Termination.OPTIMAL} and outcome.assignment is None:
        return f"{outcome.termination.value} without an assignment"
    for number, point in enumerate(solved.incumbents):
        if exact and complete(module, point) is None:
            return f"incumbent {number} breaks the module"
    completed = None if outcome.assignment is None else complete(module, outcome.assignment)
    if outcome.assignment is not None and completed is None and exact:
        return "the assignment breaks the module"
    return _wrong_objective(backend, module, truth, solved, completed)


def _wrong_objective(
    backend: Backend, module: Module, truth: BruteForceResult, solved: Solved, completed: BoolArray | None
) -> str | None:
    artifact, outcome, goal = solved.artifact, solved.outcome, module.objective
    if goal is None or goal.surrogate:
        if outcome.bound is not None:
            return "a bound, but no objective that could have a bound"
        return "optimal without an objective" if outcome.termination is Termination.OPTIMAL else None
    if truth.objective is None:
        return None
    best = Unit(goal.shift).nearest(truth.objective)
    slack = 0.0 if backend.capabilities.proof is Proof.EXACT else 1e-5 * max(1.0, abs(best))
    if outcome.bound is not None and not artifact.restricted and outcome.bound < best:
        return f"the bound {outcome.bound!r} is below the optimum {best!r}"
    if outcome.termination is not Termination.OPTIMAL or completed is None or artifact.restricted:
        return None
    value = Unit(goal.shift).nearest(objective_value(goal, completed))
    if value > best:
        return f"the value {value!r} is above the optimum {best!r}"
    # With a rounded objective, the search may end at a point that is best up to rounding if the bound exceeds its value.
    rounded = artifact.relaxed and outcome.bound is not None and outcome.bound > value
    if best - value > slack and not rounded:
        return f"optimal with {value!r}, but {best!r} can be reached"
    return None


def _check_time(backend: Backend, isolated: bool, seconds: float = 1.0) -> tuple[Outcome, str]:
    """Runs a module that takes longer than a second; the solver must return in time and must not report a false fact."""
    module = hard_module()
    artifact = backend.emit(module)
    started = time.monotonic()
    outcome = solve(backend, artifact, Limits(seconds=seconds), isolated).outcome
    took = time.monotonic() - started
    verdict = _honest(module, artifact, outcome)
    if verdict is not None:
        return verdict
    if took > seconds + 2.0 + _SLOW_START_SECONDS:
        return Outcome.FAILED, f"a limit of {seconds} s took {took:.1f} s"
    return Outcome.PASSED, f"{outcome.termination.value} after {took:.1f} s"


def _check_memory(backend: Backend, limit: int = 96 << 20) -> tuple[Outcome, str]:
    """Runs a module with far too little memory; any outcome is acceptable except a wrong fact."""
    module = hard_module()
    artifact = backend.emit(module)
    outcome = solve(backend, artifact, Limits(seconds=3.0, memory=limit), isolated=True).outcome
    return _honest(module, artifact, outcome) or (Outcome.PASSED, f"{outcome.termination.value}")


def _honest(module: Module, artifact: Artifact, outcome: RawOutcome) -> tuple[Outcome, str] | None:
    """The error in an outcome for the hard module, which has a planted solution, or None."""
    if outcome.termination is Termination.INFEASIBLE and not artifact.restricted:
        return Outcome.FAILED, "infeasible, but a solution was planted"
    if outcome.assignment is None:
        claims = outcome.termination in {Termination.SATISFIED, Termination.OPTIMAL}
        return (Outcome.FAILED, f"{outcome.termination.value} without an assignment") if claims else None
    if not artifact.relaxed and complete(module, outcome.assignment) is None:
        return Outcome.FAILED, "the assignment breaks the module"
    return None
