"""`auto`: the native engine first, then the exact solvers race in worker processes.

The first proof or verified witness wins; the losers are killed at once. A question with an objective is not over with the
first witness: the race goes on until somebody proves optimality or the time is up, and the best witness and the best bound
of all runners are combined.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from treesens.backends.base import Limits, Termination, get_backend
from treesens.backends.worker import Worker, run_all
from treesens.compiler.passes.base import size_of
from treesens.compiler.result import Attempt, Result, Verdict, Witness
from treesens.engine import Candidate, Compilation, Options, conclude, unknown

RACERS = ("cpsat", "highs", "z3")
"""Solvers of the default installation, in the order in which cores are given to them."""


def race(
    compilation: Compilation,
    options: Options,
    *,
    stop: threading.Event | None = None,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """The portfolio on one compiled question."""
    deadline = time.monotonic() + options.time_limit
    best = Candidate()
    attempts: list[Attempt] = []
    racers = [get_backend(name) for name in RACERS]
    racers = [backend for backend in racers if backend.available() is None][: max(1, options.threads)]
    by_name = {backend.name: backend for backend in racers}
    artifacts = {backend.name: backend.emit(compilation.module) for backend in racers}
    left = max(0.1, deadline - time.monotonic())
    limits = Limits(left, options.memory_limit, 1, options.seed)
    workers = [Worker.start(backend.name, artifacts[backend.name], limits) for backend in racers]
    winner: Result | None = None
    won_by = ""
    for worker, outcome in run_all(workers, stop=stop):
        backend = by_name[worker.backend]
        known = best.witness
        result = conclude(compilation, backend, artifacts[worker.backend], outcome, options, best)
        attempts.append(
            Attempt(
                backend.name,
                options.pipeline,
                outcome.termination.value,
                Verdict.UNKNOWN if result is None else result.verdict,
                outcome.detail,
                {"solve": worker.seconds},
                size_of(compilation.module),
                outcome.statistics,
            )
        )
        if best.witness is not known and on_better is not None and best.witness is not None:
            on_better(best.witness)
        if result is not None:
            winner, won_by = result, backend.name
            if compilation.query.objective is None or outcome.termination is Termination.OPTIMAL:
                break
    lost = [
        Attempt(
            w.backend, options.pipeline, "stopped", Verdict.UNKNOWN, "another runner was faster", {"solve": w.seconds}
        )
        for w in workers
        if w.backend not in {a.backend for a in attempts}
    ]
    if winner is None:
        words = (
            best.rejected.reason
            if best.rejected is not None
            else ", ".join(f"{a.backend}: {a.termination}" for a in attempts)
        )
        winner = unknown(compilation, words)
    return replace(winner, backend=won_by or "auto", attempts=(*attempts, *lost))
