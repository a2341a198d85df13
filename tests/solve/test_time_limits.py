"""Time limits hold while models are compiled and written, too; nothing here measures how long something takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import regressed
from tests.questions import random_query
from treesens.backends.base import Artifact, Limits, OnIncumbent, RawOutcome, Termination, get_backend, solver_names
from treesens.backends.native.backend import NativeBackend
from treesens.backends.text.lp import write_lp
from treesens.backends.worker import Worker
from treesens.binder.file import bind
from treesens.compiler.base.budget import ITEMS_PER_CHECK, Budget, OutOfTime, check_in, steadily, working_while
from treesens.compiler.lower import lower
from treesens.compiler.pipeline import Compilation, compile_query, decide_at_compile_time
from treesens.compiler.query.query import Query
from treesens.compiler.result import Verdict
from treesens.grammar.parsing.parser import parse
from treesens.solve.methods import portfolio
from treesens.solve.options import Options
from treesens.solve.question import search_cells


class Looks:
    """A condition that holds for so many looks (None: for ever)."""

    def __init__(self, holds: int | None = None) -> None:
        self.holds = holds
        self.count = 0

    def __call__(self) -> bool:
        self.count += 1
        return self.holds is None or self.count <= self.holds


def question() -> Query:
    """A random question about two points that the compiler alone does not decide."""
    for seed in range(10_000):
        query = random_query(np.random.default_rng(seed))
        if len(query.points) == 2 and all(
            decide_at_compile_time(compile_query(query, text)) is None for text in ("native", "default")
        ):
            return query
    raise AssertionError


def test_outside_of_a_block_nothing_is_asked() -> None:
    check_in()
    assert list(steadily(range(3))) == [0, 1, 2]


def test_a_block_ends_by_its_own_condition_and_by_those_around_it() -> None:
    with pytest.raises(OutOfTime), working_while(Looks(0)):
        pytest.fail("a block without time begins")
    outer, inner = Looks(3), Looks()
    with working_while(outer), working_while(inner):
        check_in()
        with pytest.raises(OutOfTime):
            check_in()
    check_in()


def test_items_are_counted_between_looks() -> None:
    seen: list[int] = []
    with working_while(Looks(2)), pytest.raises(OutOfTime):
        seen.extend(steadily(range(10 * ITEMS_PER_CHECK)))
    assert seen == list(range(ITEMS_PER_CHECK))


def every_cut_ends(work: Callable[[], object]) -> int:
    """Leaves a piece of work at each of its looks in turn; their number."""
    looks = Looks()
    with working_while(looks):
        work()
    for holds in range(1, looks.count):
        with pytest.raises(OutOfTime), working_while(Looks(holds)):
            work()
    return looks.count


@pytest.mark.parametrize("name", [*solver_names(), "lp"])
def test_every_writer_looks_at_the_time(name: str) -> None:
    module = compile_query(question(), "default").module
    write = write_lp if name == "lp" else get_backend(name).emit
    assert every_cut_ends(lambda: write(module)) > 1 + len(module.ops)


def test_lowering_and_every_pass_look_at_the_time() -> None:
    query = question()
    passes = len(compile_query(query, "default").compiled.records)
    assert every_cut_ends(lambda: compile_query(query, "default")) > passes + len(query.constraints)


def test_lowering_looks_at_the_time_between_pairs_of_cells(tmp_path: Path) -> None:
    """A squared distance of two inputs has a row for every pair of cells: 41 s had passed where 10 were allowed."""
    rng = np.random.default_rng(2)
    x, y = rng.uniform(0, 1, (1000, 1)), rng.normal(size=1000)
    regressed(x, y, 6, 7, names=["f0"], path=tmp_path / "m.json", min_child_weight=0, base_score=0.0)
    asked = "find a, b in m such that margin(a) >= 0; margin(b) <= 0 minimize distance(a, b, l2)"
    text = f'model m from "m.json"\nfeature f0: real in [0, 1]\nquery q: {asked}'
    query = bind(parse(text), tmp_path)["q"].query
    pairs = query.space.grid[0].n_cells ** 2
    assert pairs > 6 * ITEMS_PER_CHECK
    assert every_cut_ends(lambda: lower(query)) > pairs // ITEMS_PER_CHECK


@pytest.mark.parametrize("backend", ["cpsat", "highs", "z3"])
def test_without_time_nothing_is_written(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Artifact:
        raise AssertionError("a model is written without time")

    monkeypatch.setattr(type(get_backend(backend)), "emit", refuse)
    result = search_cells(question(), Options(backend=backend), Budget.of(0.0))
    assert result.verdict is Verdict.UNKNOWN
    assert result.reason.startswith("time")


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native engine has no memory to work in, and the solvers are asked."""
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


def slow_for_solvers(monkeypatch: pytest.MonkeyPatch, wait: Callable[[], None]) -> None:
    """Compiling for the solvers waits first."""
    compiling = portfolio.compile_query

    def slow(query: Query, pipeline: str, *, verify_each: bool = False) -> Compilation:
        if pipeline == "default":
            wait()
        return compiling(query, pipeline, verify_each=verify_each)

    monkeypatch.setattr(portfolio, "compile_query", slow)


@pytest.mark.usefixtures("no_engine")
def test_a_race_ends_though_compiling_for_the_solvers_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def for_ever() -> None:
        while True:
            check_in()
            time.sleep(0.01)

    slow_for_solvers(monkeypatch, for_ever)
    result = portfolio.race(question(), Options(), Budget.of(2.0))
    assert result.verdict is Verdict.UNKNOWN
    assert {a.backend: a.termination for a in result.attempts} == {"native": "memory", "solvers": "time"}


@pytest.mark.usefixtures("no_engine")
def test_solvers_get_what_is_left_after_their_models_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    budget, most = Budget.of(60.0), 40.0
    given: list[float] = []
    start = Worker.start

    def started(backend: str, artifact: Artifact, limits: Limits) -> Worker:
        given.append(limits.seconds)
        return start(backend, artifact, limits)

    monkeypatch.setattr(Worker, "start", staticmethod(started))
    # The clock of budgets jumps while the model is compiled.
    slow_for_solvers(monkeypatch, lambda: monkeypatch.setattr(Budget, "left", lambda _self: most))
    result = portfolio.race(question(), Options(), budget)
    assert result.verdict is not Verdict.UNKNOWN
    assert given
    assert max(given) <= most
    assert Termination.TIME.value not in {a.termination for a in result.attempts}
