"""One search over cells, by one backend or by a portfolio.

`auto` is the portfolio: the native engine first, then the exact solvers, which race the engine in worker processes.

The first proof or verified witness wins; the other runners are killed immediately. With an objective, the race continues until
a runner proves optimality or time runs out, and the best witness of all runners is kept.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf

from treesens.backends.base import Artifact, Backend, Limits, RawOutcome, Termination, get_backend
from treesens.backends.native.backend import NativeBackend
from treesens.backends.worker import Worker, run_all, start_loading
from treesens.compiler.base.budget import Budget, OutOfTime, StopEvent, working_within
from treesens.compiler.passes.base import size_of
from treesens.compiler.pipeline import Compilation, compile_query, pipeline_for
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result, Verdict
from treesens.errors import BackendError
from treesens.runtime.interruption import Hurry
from treesens.solve.conclude import decided_by_compiler
from treesens.solve.driver import (
    FIRST_MOMENT,
    NOT_WRITTEN,
    Ledger,
    emit,
    ended_early,
    limits_of,
    not_compiled,
    solve_clear_of_band,
    solve_with,
)
from treesens.solve.method import OpenQuestion
from treesens.solve.options import Options
from treesens.solve.validation import before_validation, settled
from treesens.values.verify import Witness

RACERS = ("cpsat", "highs", "z3")
"""Solvers of the default installation, in the order in which cores are assigned to them."""
HEAD_START = 2.0
"""Seconds that the native engine runs alone: it answers most questions in milliseconds, while a worker needs half a second to
start."""
WORTH_A_WORKER = 0.5
"""Minimum remaining seconds for a solver, whose worker takes this long to start."""
NONZEROS_PER_SECOND = 100_000
"""Nonzeros per second through passes, writer and reader: solvers are not started if the module alone would use up the time."""
_ANSWERS = frozenset((Termination.SATISFIED, Termination.OPTIMAL, Termination.INFEASIBLE))
_COMES_BACK = 1.0
"""Seconds within which the engine stops after a stop request, on a busy machine."""


@dataclass
class EngineRun:
    """The native engine in a thread (it releases the interpreter lock); `over` is set when it has returned."""

    backend: NativeBackend
    artifact: Artifact
    limits: Limits
    stop: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    outcome: RawOutcome | None = None
    error: BaseException | None = None
    started: float = field(default_factory=time.monotonic)

    def start(self) -> EngineRun:
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def _run(self) -> None:
        try:
            self.outcome = self.backend.solve(self.artifact, self.limits, stop=self.stop)
        except BaseException as error:  # noqa: BLE001 (raised again by the caller's thread in `result`)
            self.error = error
        finally:
            self.over.set()

    def is_set(self) -> bool:
        """True if the engine has an answer, so the other runners lose; False if it ended without an answer (out of memory)."""
        if not self.over.is_set():
            return False
        return self.outcome is None or self.outcome.termination in _ANSWERS

    def result(self) -> RawOutcome:
        """Stops the engine if it is running, and returns the outcome."""
        self.end()
        if self.error is not None:
            raise self.error
        assert self.outcome is not None
        return self.outcome

    def end(self) -> None:
        """Requests the engine to stop, and waits until the engine has stopped.

        An interruption is raised after the engine has returned or `_COMES_BACK` seconds have passed: Python regards a thread as
        ended if its `join` was interrupted, and a process that exits while the engine runs would abort.
        """
        self.stop.set()
        interruption: KeyboardInterrupt | None = None
        until = inf
        while not self.over.is_set() and time.monotonic() < until:
            try:
                self.over.wait(None if until == inf else max(0.0, until - time.monotonic()))
            except KeyboardInterrupt as again:
                interruption, until = again, min(until, time.monotonic() + _COMES_BACK)
        if interruption is not None:
            raise interruption


class _Either:
    """A flag that is set if one of several flags is set; `run_all` polls it."""

    def __init__(self, *flags: StopEvent | None) -> None:
        self.flags = [flag for flag in flags if flag is not None]

    def is_set(self) -> bool:
        return any(flag.is_set() for flag in self.flags)


def search_compiled(question: OpenQuestion, budget: Budget) -> Result:
    """A method that solves the question through the IR. `refuted` lists candidates that failed for lack of values."""
    query, options = question.query, question.options
    if options.backend == "auto":
        return race(query, options, budget, on_better=question.on_better)
    start = time.perf_counter()
    text = pipeline_for(options.backend, options.pipeline)
    compilation = _compiled(query, text, options, budget)
    if compilation is None:
        return not_compiled(query, options, budget)
    build = time.perf_counter() - start
    part = before_validation(options.pipeline, budget)
    result = decided_by_compiler(compilation) or solve_with(compilation, get_backend(options.backend), options, part)
    result = settled(result, compilation.compiled, options.check_each or "auto", budget)
    seconds = {"build": build, "solve": time.perf_counter() - start - build}
    return replace(result, seconds=seconds, size=size_of(compilation.module), pipeline=options.pipeline)


def race(
    query: Query,
    options: Options,
    budget: Budget,
    *,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """The portfolio on one question. The engine uses the short pipeline `native`; that of solvers runs only if needed."""
    start = time.perf_counter()
    compilation = _compiled(query, pipeline_for("auto", options.pipeline), options, budget)
    if compilation is None:
        return not_compiled(query, options, budget)
    build = time.perf_counter() - start
    part = before_validation(options.pipeline, budget)
    runners = _Race(compilation, options, part, on_better)
    result = decided_by_compiler(compilation) or runners.run()
    # A proof may be the engine's or a solver's, and passes rewrote the modules of both.
    for one in filter(None, (compilation, runners.solvers)):
        result = settled(result, one.compiled, options.check_each or "auto", budget)
    seconds = {"build": build, "solve": time.perf_counter() - start - build}
    return replace(result, seconds=seconds, size=size_of(compilation.module), pipeline=options.pipeline)


def _compiled(query: Query, pipeline: str, options: Options, budget: Budget) -> Compilation | None:
    """Compiles the question with a pipeline; None if the budget runs out first."""
    try:
        with working_within(budget.at_least(FIRST_MOMENT)):
            return compile_query(query, pipeline, verify_each=options.verify_each)
    except OutOfTime:
        return None


class _Race:
    def __init__(
        self,
        compilation: Compilation,
        options: Options,
        budget: Budget,
        on_better: Callable[[Witness], None] | None,
    ) -> None:
        self.compilation = compilation
        self.options = options
        self.budget = budget
        self.on_better = on_better
        self.ledger = Ledger(options)
        self.winner: Result | None = None
        self.won_by = ""
        self.solvers: Compilation | None = None
        self._cleared = False

    def run(self) -> Result:
        engine = self._start_engine()
        try:
            return self._run_with(engine)
        finally:
            if engine is not None:
                engine.end()

    def _run_with(self, engine: EngineRun | None) -> Result:
        if engine is not None:
            self._wait(engine.over, min(HEAD_START, self.budget.left()))
            if engine.over.is_set():
                self._judge(engine.backend, engine.artifact, engine.result(), time.monotonic() - engine.started)
                engine = None
                self._clear_of_band()
        if not self._decided() and not self._stopped():
            self._go_on(engine)
        elif engine is not None:
            self._judge(engine.backend, engine.artifact, engine.result(), time.monotonic() - engine.started)
        return self._result()

    def _go_on(self, engine: EngineRun | None) -> None:
        """Races the engine against the solvers. Compiling for the solvers and writing their models takes a long time; a Ctrl-C
        during this time keeps the engine's answer.
        """
        try:
            self._race_solvers(engine)
        except Hurry:
            if engine is not None:
                self._judge(engine.backend, engine.artifact, engine.result(), time.monotonic() - engine.started)
            return
        self._clear_of_band()

    def _clear_of_band(self) -> None:
        """Searches for an answer valid in the library, if the engine's answer is valid only in exact arithmetic."""
        if self._decided() or self._stopped() or self._cleared or not self.ledger.best.wants_clearance:
            return
        self._cleared = True
        result = solve_clear_of_band(self.compilation.query, NativeBackend(), self.budget, self.ledger)
        if result is not None:
            self.winner, self.won_by = result, "native"

    def _start_engine(self) -> EngineRun | None:
        backend = NativeBackend()
        try:
            artifact = emit(self.compilation.module, backend, self.options)
        except BackendError as error:
            self.ledger.note("native", "unsupported", words=error.message)
            return None
        limits = limits_of(self.compilation.query.objective, self.options, self.budget.left())
        return EngineRun(backend, artifact, limits).start()

    def _wait(self, event: threading.Event, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not event.wait(0.05) and time.monotonic() < until and not self._stopped():
            pass

    def _stopped(self) -> bool:
        return self.budget.stopped

    def _decided(self) -> bool:
        """True if there is an answer, or a candidate to learn from first (`solve/methods/refine.py`)."""
        return self.winner is not None or bool(self.ledger.best.refuted)

    def _race_solvers(self, engine: EngineRun | None) -> None:
        threads = self.options.threads
        seats = max(1, (os.cpu_count() or 1) // threads - (engine is not None))
        left = self.budget.left()
        too_large = size_of(self.compilation.module).nonzeros > NONZEROS_PER_SECOND * left
        if left < WORTH_A_WORKER or too_large:
            if too_large:
                words = "the module is too large for a solver to read in the remaining time"
                self.ledger.note("solvers", "skipped", words=words)
            if engine is not None:
                self._wait(engine.over, max(0.0, left))
                self._judge(engine.backend, engine.artifact, engine.result(), time.monotonic() - engine.started)
            return
        backends = self._racers(seats)
        start_loading((backend.name for backend in backends), threads)
        by_name: dict[str, Backend] = {b.name: b for b in backends}
        artifacts = self._written_for(backends, engine)
        limits = limits_of(self.compilation.query.objective, self.options, self.budget.left())
        workers = [Worker.start(name, artifact, limits) for name, artifact in artifacts.items()]
        either = _Either(self.budget.stop, engine)
        for worker, outcome in run_all(workers, stop=either):
            if outcome.termination is Termination.INTERRUPTED and outcome.assignment is None:
                continue
            self._judge(by_name[worker.backend], artifacts[worker.backend], outcome, worker.child.seconds)
            if self._decided():
                break
        if engine is not None:
            if not self._decided():
                self._wait(engine.over, self.budget.left())
            self._judge(engine.backend, engine.artifact, engine.result(), time.monotonic() - engine.started)
        judged = {a.backend for a in self.ledger.attempts}
        for worker in workers:
            if worker.backend not in judged:
                words = "the time was up" if self.winner is None else "another runner was faster"
                self.ledger.note(worker.backend, "stopped", words=words, seconds={"solve": worker.child.seconds})

    def _racers(self, seats: int) -> list[Backend]:
        """The installed solvers, at most `seats` of them."""
        return [b for b in map(get_backend, RACERS) if b.available() is None][:seats]

    def _written_for(self, backends: list[Backend], engine: EngineRun | None) -> dict[str, Artifact]:
        """The solvers' models by solver name: empty if the compiler decides the question, or if the models are not written
        before the engine answers or time runs out.
        """
        try:
            with working_within(self.budget, least=WORTH_A_WORKER, unless=engine):
                solvers = self._for_solvers()
                if (result := decided_by_compiler(solvers)) is not None:
                    self.winner, self.won_by = result, "compiler"
                    return {}
                return {b.name: emit(solvers.module, b, self.options) for b in backends}
        except OutOfTime:
            if self.budget.left() <= WORTH_A_WORKER:
                self.ledger.note("solvers", ended_early(self.budget), words=NOT_WRITTEN)
            return {}

    def _for_solvers(self) -> Compilation:
        """The solvers' compilation of the question, made on first use."""
        if pipeline_for("auto", self.options.pipeline) == self.options.pipeline:
            return self.compilation
        if self.solvers is None:
            self.solvers = compile_query(self.compilation.query, self.options.pipeline)
        return self.solvers

    def _judge(self, backend: Backend, artifact: Artifact, outcome: RawOutcome, seconds: float) -> None:
        """Adds the facts of one runner to the race."""
        compilation = self.compilation if isinstance(backend, NativeBackend) else self._for_solvers()
        before = self.ledger.best.witness
        result = self.ledger.record_facts(
            compilation, backend, artifact, outcome, {"solve": seconds}, earlier=self.winner
        )
        better = self.ledger.best.witness is not before
        if self.on_better is not None and self.ledger.best.witness is not None and better:
            self.on_better(self.ledger.best.witness)
        if result is None:
            return
        # Of two equal values the one with the stronger proof wins: a stopped runner has only its start and no bound.
        contradiction = result.verdict is Verdict.UNKNOWN
        if self.winner is None or contradiction or better or _bound(result) != _bound(self.winner):
            self.winner, self.won_by = result, backend.name

    def _result(self) -> Result:
        winner = self.winner or self.ledger.unknown(self.compilation.query.name)
        near_miss = self.ledger.best.near_miss if winner.verdict is Verdict.UNKNOWN else None
        attempts = tuple(self.ledger.attempts)
        return replace(winner, backend=self.won_by or "auto", attempts=attempts, near_miss=near_miss)


def _bound(result: Result) -> float | None:
    return None if result.objective is None else result.objective.bound
