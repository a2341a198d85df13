"""Solves a typed question on backends: compile, emit, solve, repeat if a point fails; `conclude` turns facts into verdicts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from treesens.backends.base import Artifact, Backend, InProcessBackend, Limits, RawOutcome, Termination
from treesens.backends.worker import solve_isolated
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.budget import Budget, OutOfTime, StopEvent, check_in, working_within
from treesens.compiler.ir import Module
from treesens.compiler.ir.evaluate import satisfies
from treesens.compiler.ir.module import ModuleSize
from treesens.compiler.passes.base import size_of
from treesens.compiler.pipeline import Compilation, Compiled, compile_query, pipeline_for
from treesens.compiler.query.query import Objective, Query
from treesens.compiler.query.rounding import harden
from treesens.compiler.result import Attempt, Moment, Proof, Result, Verdict
from treesens.errors import InternalError
from treesens.runtime.kept import reuse
from treesens.solve.bounds import ContradictoryBound, of_form, shown_value
from treesens.solve.combine import check_agreement, with_tighter_bound
from treesens.solve.conclude import Incumbent, conclude, leave_open, leave_rejected, proves_none
from treesens.solve.options import Options

FIRST_MOMENT = 1.0
"""Minimum seconds for compiling, regardless of the limit: the native engine bounds a small model quickly, so that even a tiny
limit yields a bound."""
NOT_COMPILED = "the question was not compiled by then"
NOT_WRITTEN = "the model was not written by then"


@dataclass
class Ledger:
    """The state of one question while backends work on it: the incumbent, and one attempt per outcome.

    A single backend and the portfolio record their outcomes only here.
    """

    options: Options
    best: Incumbent = field(default_factory=Incumbent)
    attempts: list[Attempt] = field(default_factory=list)

    def record_facts(
        self,
        compilation: Compilation,
        backend: Backend,
        artifact: Artifact,
        outcome: RawOutcome,
        seconds: dict[str, float],
        *,
        restricted: bool = False,
        earlier: Result | None = None,
    ) -> Result | None:
        """The result that an outcome supports, with the tighter of its own bound and the bound of an `earlier` result.

        Raises `InternalError` if a verified witness contradicts an exact proof of `none`.
        """
        self.best.near_miss = outcome.near_miss or self.best.near_miss
        self.best.rounded = self.best.rounded or (artifact.relaxed and isinstance(backend, InProcessBackend))
        result, words = None, outcome.detail
        if self.best.witness is not None and not restricted and proves_none(compilation, artifact, outcome):
            if backend.capabilities.proof is Proof.EXACT:
                raise _disagreement(backend.name, compilation.query.name)
            words = "infeasible within its tolerances, but a verified witness exists"
        try:
            if earlier is None or outcome.assignment is not None:
                result = conclude(
                    compilation, backend, artifact, outcome, self.options, self.best, restricted=restricted
                )
            if result is not None:
                # A solver with tolerances may miss solutions: a verified witness is kept.
                if earlier is not None and earlier.proof is Proof.EXACT and result.verdict is Verdict.FOUND:
                    check_agreement(earlier, result)
                result = with_tighter_bound(result, earlier)
        except ContradictoryBound as error:
            # It is unknown which side is wrong, so there is no answer.
            result, words = leave_open(compilation.query.name, error.reason), error.reason
        verdict = Verdict.UNKNOWN if result is None else result.verdict
        module = compilation.module
        goal = compilation.query.objective
        told = moments_of(compilation.compiled, artifact, outcome, goal, restricted=restricted)
        self.note(backend.name, outcome.termination.value, verdict, words, seconds, module, outcome.statistics, told)
        return result

    def note(
        self,
        backend: str,
        termination: str,
        verdict: Verdict = Verdict.UNKNOWN,
        words: str = "",
        seconds: dict[str, float] | None = None,
        module: Module | None = None,
        statistics: dict[str, float] | None = None,
        trajectory: tuple[Moment, ...] | None = None,
    ) -> None:
        """Adds an attempt."""
        size = ModuleSize() if module is None else size_of(module)
        pipeline = self.options.pipeline
        self.attempts.append(
            Attempt(backend, pipeline, termination, verdict, words, seconds or {}, size, statistics or {}, trajectory)
        )

    def unknown(self, name: str) -> Result:
        """An `unknown` result with the best reason: the rejection of a candidate, otherwise how the attempts ended."""
        rejected = self.best.rejected
        if rejected is not None:
            return replace(leave_rejected(name, rejected), refuted=tuple(self.best.refuted))
        if len(self.attempts) == 1:
            label, detail = self.attempts[0].termination, self.attempts[0].detail
            words = f"{label}: {detail}" if detail and detail != label else label
        else:
            words = ", ".join(f"{a.backend}: {a.termination}" for a in self.attempts)
        return leave_open(name, words, refuted=tuple(self.best.refuted))


def moments_of(
    compiled: Compiled, artifact: Artifact, outcome: RawOutcome, goal: Objective | None, *, restricted: bool = False
) -> tuple[Moment, ...] | None:
    """Bound and incumbent over time in units of the question, or of the module without a `goal`. A search among a part of the
    points has no bound.
    """
    bounded = compiled.none_survives and not (restricted or artifact.restricted)
    sign = 1 if goal is None or goal.maximize else -1  # solvers maximise

    def shown(value: float | None) -> float | None:
        return value if value is None or goal is None else shown_value(goal, sign * value)

    told = outcome.trajectory
    return told and tuple((at, shown(bound if bounded else None), shown(value)) for at, bound, value in told)


def _disagreement(backend: str, query: str) -> InternalError:
    return InternalError(
        f"{backend} proved that `{query}` has no answer, but a verified witness exists",
        remedy="please report this with the file and the model",
    )


def solve_with(compilation: Compilation, backend: Backend, options: Options, budget: Budget) -> Result:
    """Runs a backend, with more digits if its point fails exact replay, and tightened if only the library rejects the point."""
    ledger = Ledger(options)
    reason = backend.available()
    if reason is not None:
        ledger.note(backend.name, "unavailable", words=reason)
        result = leave_open(compilation.query.name, reason)
    else:
        result = _refine(compilation, backend, budget, ledger) or _clear(compilation, backend, budget, ledger)
    near_miss = ledger.best.near_miss if result.verdict is Verdict.UNKNOWN else None
    return replace(result, backend=backend.name, attempts=tuple(ledger.attempts), near_miss=near_miss)


def _clear(compilation: Compilation, backend: Backend, budget: Budget, ledger: Ledger) -> Result:
    """An answer outside the numerical band, if tightening finds such an answer, otherwise `unknown`."""
    result = solve_clear_of_band(compilation.query, backend, budget, ledger) if ledger.best.wants_clearance else None
    return result or ledger.unknown(compilation.query.name)


def solve_clear_of_band(query: Query, backend: Backend, budget: Budget, ledger: Ledger) -> Result | None:
    """An answer that satisfies every score constraint with a margin above the numerical band; None if no such answer is found.

    Tightening is used if exact arithmetic accepts a point that the library rejects, or rounded rows accept a point that exact
    arithmetic rejects.
    """
    try:
        with working_within(budget):
            clear = compile_query(harden(query), pipeline_for(backend.name, ledger.options.pipeline))
    except OutOfTime:
        return None
    clear.query = query
    result = _refine(clear, backend, budget, ledger, restricted=True)
    return result if result is not None and result.verdict is Verdict.FOUND else None


def _refine(
    compilation: Compilation, backend: Backend, budget: Budget, ledger: Ledger, *, restricted: bool = False
) -> Result | None:
    """The result of solving a compiled question with increasing precision; None without a verified answer."""

    def judge(artifact: Artifact, outcome: RawOutcome, seconds: dict[str, float]) -> Result | None:
        return ledger.record_facts(compilation, backend, artifact, outcome, seconds, restricted=restricted)

    return refine(compilation.module, compilation.query.objective, backend, budget, ledger, judge)


Judge = Callable[[Artifact, RawOutcome, dict[str, float]], Result | None]
"""Turns the facts of one solve, with its seconds, into a result; None without a verified answer."""


def refine(
    module: Module, objective: Objective | None, backend: Backend, budget: Budget, ledger: Ledger, judge: Judge
) -> Result | None:
    """Emits the module with increasing precision until `judge` returns a result; None if that fails. The `objective` of a
    question sets the units of tolerances, which are the module's own without it.
    """
    options = ledger.options
    for precision in range(backend.exact_precision() + 1):
        start = time.perf_counter()
        artifact = _written(module, backend, options, budget, precision)
        if artifact is None:
            ledger.note(backend.name, ended_early(budget), words=NOT_WRITTEN)
            return None
        emitted = time.perf_counter()
        limits = limits_of(objective, options, budget.left())
        outcome = solve_outcome(backend, artifact, limits, budget.stop)
        seconds = {"emit": emitted - start, "solve": time.perf_counter() - emitted}
        result = judge(artifact, outcome, seconds)
        if result is not None:
            return result
        inexact = artifact.relaxed or outcome.termination is Termination.NUMERICAL
        if outcome.assignment is None or ledger.best.refuted or not inexact:
            return None
    return None


def _written(module: Module, backend: Backend, options: Options, budget: Budget, precision: int) -> Artifact | None:
    """The solver input; None if the budget runs out first. The native engine is exempt: it always yields a bound."""
    if isinstance(backend, InProcessBackend):
        return emit(module, backend, options, precision)
    try:
        with working_within(budget):
            artifact = emit(module, backend, options, precision)
            check_in()
            return artifact
    except OutOfTime:
        return None


def ended_early(budget: Budget) -> str:
    """The termination recorded for work that exceeded its budget."""
    ended = Termination.INTERRUPTED if budget.stopped else Termination.TIME
    return str(ended.value)


def emit(module: Module, backend: Backend, options: Options, precision: int = 0) -> Artifact:
    """The solver input for a backend, with the module's start if it is a solution and the backend accepts a start; instead of a
    start, the native engine receives the inputs to try first.
    """
    if isinstance(backend, InProcessBackend):
        return reuse(module, (backend.name,), partial(backend.emit, module, precision=precision, hints=options.hints))
    artifact = backend.emit(module, precision=precision)
    return replace(artifact, warm_start=start_of(module)) if backend.capabilities.warm_start else artifact


def start_of(module: Module) -> BoolArray | None:
    """The module's start if it is a solution, otherwise None: a pass may have renumbered its variables."""
    if module.warm_start is None:
        return None
    point = np.zeros(module.variables, bool)
    point[module.warm_start.variables] = True
    return point if satisfies(module, point[None, :])[0] else None


def limits_of(objective: Objective | None, options: Options, seconds: float) -> Limits:
    """The limits, seed and tolerances for a backend."""
    tolerance, offset = of_form(objective, options.closeness)
    asked = (options.memory_limit, options.threads, options.seed, tolerance, offset, options.watch, options.log)
    return Limits(seconds, *asked)


def solve_outcome(backend: Backend, artifact: Artifact, limits: Limits, stop: StopEvent | None) -> RawOutcome:
    """The facts of one solve, in a worker process unless the backend is native."""
    if isinstance(backend, InProcessBackend):
        return backend.solve(artifact, limits, stop=stop)
    return solve_isolated(backend.name, artifact, limits, stop)


def not_compiled(query: Query, options: Options, budget: Budget) -> Result:
    """An `unknown` result: the budget ran out before the question was compiled."""
    attempt = Attempt("compiler", options.pipeline, ended_early(budget), Verdict.UNKNOWN, NOT_COMPILED)
    words = f"{attempt.termination}: {NOT_COMPILED}"
    return leave_open(query.name, words, backend=options.backend, attempts=(attempt,))
