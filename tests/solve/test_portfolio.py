"""`auto`: who wins, who goes on when the engine cannot, and that nothing is left behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

import treesens as ts
from tests.questions import oracle, random_query
from treesens.backends.base import Artifact, Limits, OnIncumbent, RawOutcome, Termination, get_backend
from treesens.backends.native.backend import NativeBackend
from treesens.backends.worker import Worker
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.child import servers as fork_servers
from treesens.compiler.pipeline import compile_query, decide_at_compile_time
from treesens.compiler.query.query import Query
from treesens.compiler.result import ObjectiveValue, Result, Verdict
from treesens.errors import InternalError
from treesens.solve.bounds import ContradictoryBound
from treesens.solve.combine import with_tighter_bound
from treesens.solve.conclude import conclude_infeasible
from treesens.solve.driver import Ledger, emit
from treesens.solve.methods import portfolio
from treesens.solve.methods.portfolio import EngineRun, race
from treesens.solve.options import Options

posix = pytest.mark.skipif(os.name != "posix", reason="a signal for the main thread")


def questions(number: int) -> list[Query]:
    """Random questions that the compiler alone does not decide."""
    found: list[Query] = []
    for seed in range(10_000):
        query = random_query(np.random.default_rng(seed))
        pipelines = ("native", "default")
        if len(query.points) == 2 and all(
            decide_at_compile_time(compile_query(query, text)) is None for text in pipelines
        ):
            found.append(query)
        if len(found) == number:
            break
    return found


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native engine has no memory to work in."""
    solve = NativeBackend.solve

    def starved(
        self: NativeBackend,
        artifact: Artifact,
        limits: Limits,
        on_incumbent: OnIncumbent | None = None,
        stop: threading.Event | None = None,
    ) -> RawOutcome:
        return solve(self, artifact, replace(limits, memory=1), on_incumbent, stop)

    monkeypatch.setattr(NativeBackend, "solve", starved)


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_the_engine_alone_answers_what_it_can() -> None:
    (query,) = questions(1)
    result = race(query, Options(), Budget.of(20))
    assert result.backend == "native"
    assert [a.backend for a in result.attempts] == ["native"]


@pytest.mark.usefixtures("tight")
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for child processes in /proc")
def test_solvers_go_on_where_the_engine_has_no_memory_and_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    before = children()
    for query in questions(3):
        some, best = oracle(query)
        result = race(query, Options(), Budget.of(60))
        assert str(result.verdict) == ("found" if some else "none"), result.reason
        assert best is None or result.objective is None or result.objective.value == pytest.approx(float(best))
        attempts = {a.backend: a for a in result.attempts}
        assert attempts["native"].termination == "memory"
        assert result.backend in {"cpsat", "highs", "z3"}
        assert set(attempts) == {"native", "cpsat", "highs", "z3"}
        for name in set(attempts) - {"native", result.backend}:
            assert attempts[name].termination in {"stopped", "satisfied", "optimal", "infeasible"}
        # The processes that solved are gone; those that they were made from wait for the next one.
        solvers = (one for (loads, _), one in fork_servers.servers.items() if loads[0] == Worker.__module__)
        servers = {str(server.process.pid) for server in solvers}
        assert children() - servers <= before
        assert not any(Path(f"/proc/{pid}/task/{pid}/children").read_text().split() for pid in servers)


@pytest.mark.parametrize(("memory", "over"), [(1, False), (None, True)])
def test_only_an_answer_of_the_engine_ends_the_race(memory: int | None, over: bool) -> None:
    (query,) = questions(1)
    backend = NativeBackend()
    artifact = emit(compile_query(query, "native"), backend, Options())
    run = EngineRun(backend, artifact, Limits(20, memory)).start()
    assert run.over.wait(180)
    assert run.is_set() == over
    assert (run.result().termination is Termination.MEMORY) == (memory == 1)


@posix
def test_an_interruption_is_told_when_the_engine_has_come_back() -> None:
    """A `join` that was interrupted had let the thread pass for ended: no outcome, and an abort at the end of the process."""
    (query,) = questions(1)
    artifact = emit(compile_query(query, "native"), NativeBackend(), Options())

    class Slow(NativeBackend):
        def solve(self, *args: Any, **options: Any) -> RawOutcome:
            options["stop"].wait()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.3)
            return super().solve(*args, **options)

    run = EngineRun(Slow(), artifact, Limits(20)).start()
    with pytest.raises(KeyboardInterrupt):
        run.result()
    assert run.over.is_set()
    assert run.result().termination in Termination


@posix
def test_an_engine_that_does_not_come_back_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "_COMES_BACK", 0.1)
    (query,) = questions(1)
    artifact = emit(compile_query(query, "native"), NativeBackend(), Options())
    released = threading.Event()

    class Stuck(NativeBackend):
        def solve(self, *args: Any, **options: Any) -> RawOutcome:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            released.wait()
            return super().solve(*args, **options)

    run = EngineRun(Stuck(), artifact, Limits(20))
    with pytest.raises(KeyboardInterrupt):
        run.start().result()
    assert not run.over.is_set()
    released.set()
    assert run.over.wait(180)


def test_an_answer_within_the_numerical_band_is_followed_by_one_that_is_clear_of_it() -> None:
    """Averages of a forest often meet a threshold exactly, and the library's sum falls short of it by a rounding."""
    again = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 4, (60, 3)).astype(float)
        y = (x.sum(axis=1) + rng.normal(0, 1.5, 60) > 4.5).astype(int)
        model = ts.load(RandomForestClassifier(10, random_state=seed).fit(x, y))
        for gap in (0.1, 0.3):
            asked = {"vary": [model.ensemble.feature_names[0]], "gap": gap, "time_limit": 20}
            single = ts.sensitivity(model, backend="native", **asked)
            auto = ts.sensitivity(model, backend="auto", pipeline="native", **asked)
            assert auto.verdict == single.verdict, (seed, gap, auto.reason, single.reason)
            again += [a.termination for a in auto.result.attempts] == ["satisfied", "satisfied"]
    assert again


@pytest.mark.parametrize("sense", ["maximize", "minimize"])
def test_the_tighter_bound_stays_whoever_found_the_pair(sense: str) -> None:
    def result(value: float, bound: float | None, *parts: str) -> Result:
        return Result(
            "q", Verdict.FOUND, "", objective=ObjectiveValue(value, bound, sense, "margin"), proof_dependencies=parts
        )

    sign = 1 if sense == "maximize" else -1
    stopped, proved = result(sign * 2.0, None), result(sign * 2.0, sign * 2.5, "a part")
    loose = result(sign * 2.25, sign * 3.0)
    assert with_tighter_bound(proved, None) == with_tighter_bound(proved, stopped) == proved
    for new in (stopped, loose):
        kept = with_tighter_bound(new, proved)
        assert kept.objective is not None
        assert new.objective is not None
        assert kept.objective.value == new.objective.value
        assert kept.objective.bound == sign * 2.5
        assert kept.proof_dependencies == ("a part",)
    assert with_tighter_bound(proved, loose) == proved
    beyond = with_tighter_bound(result(sign * 2.50001, None), proved)
    assert beyond.objective is not None
    assert beyond.objective.bound == sign * 2.50001
    # More than rounding: a bound that is worse than a reached value proves that something is wrong.
    with pytest.raises(ContradictoryBound):
        with_tighter_bound(result(sign * 2.6, None), proved)


def test_a_proof_of_none_beside_a_verified_witness_is_an_error_of_ours() -> None:
    """A planted error: the engine's own outcome, and then one that proves the contrary."""
    query = next(query for query in questions(20) if oracle(query)[0])
    compilation, backend, ledger = compile_query(query, "native"), NativeBackend(), Ledger(Options())
    artifact = emit(compilation, backend, Options())
    found = ledger.record_facts(compilation, backend, artifact, backend.solve(artifact, Limits(20.0)), {})
    assert found is not None
    assert found.verdict is Verdict.FOUND
    planted = RawOutcome(Termination.INFEASIBLE)
    with pytest.raises(InternalError, match="has no answer"):
        ledger.record_facts(compilation, backend, artifact, planted, {}, earlier=found)
    none = conclude_infeasible(query.name)
    with pytest.raises(InternalError, match="says none"):
        ledger.record_facts(compilation, backend, artifact, backend.solve(artifact, Limits(20.0)), {}, earlier=none)


def test_what_a_solver_misses_within_its_tolerances_stands() -> None:
    query = next(query for query in questions(20) if oracle(query)[0])
    compilation, backend, ledger = compile_query(query, "native"), NativeBackend(), Ledger(Options())
    artifact = emit(compilation, backend, Options())
    found = ledger.record_facts(compilation, backend, artifact, backend.solve(artifact, Limits(20.0)), {})
    rounding = get_backend("highs")
    written = emit(compile_query(query, "default"), rounding, Options())
    planted = RawOutcome(Termination.INFEASIBLE)
    assert ledger.record_facts(compilation, rounding, written, planted, {}, earlier=found) is None
    assert "a verified witness exists" in ledger.attempts[-1].detail
