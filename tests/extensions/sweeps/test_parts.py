"""One question in parts: the answers of one process, whatever happens to workers, and a proof that the parts cover it."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from click.testing import CliRunner

from tests.corpus import margins_of
from tests.extensions.certify.models import train
from treesens.cli import group
from treesens.compiler.base.budget import Budget
from treesens.compiler.result import Result, Verdict
from treesens.errors import DataError
from treesens.extensions.certify.command import run_checker
from treesens.extensions.sweeps.conquer import Coordinator, can_be_parted
from treesens.extensions.sweeps.executor import Executor
from treesens.extensions.sweeps.part_certificates import with_part_certificates
from treesens.extensions.sweeps.parts import Cut, Part, Splitter, checked_line, within
from treesens.extensions.sweeps.worker import Outcome, ship
from treesens.records.journal import Journal
from treesens.records.questions import document_of
from treesens.solve.conclude import leave_open
from treesens.solve.options import Options
from treesens.solve.question import answer_question

HEAD = "feature f1: real in [0, 2] or missing\n"
QUESTIONS = {
    "none": "find a, b in m such that a = b except f0; margin(a) - margin(b) >= 9",
    "found": "find a, b in m such that a = b except {f0, f1}; margin(a) >= 0.1; margin(b) <= -0.1",
    "largest": "find a, b in m such that a = b except {f0, f2} maximize margin(a) - margin(b)",
    "smallest": "find a in m such that a.f0 <= 1 minimize margin(a)",
    "nothing": "find a in m such that margin(a) >= 90 maximize margin(a)",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("parts")
    train(7, made / "m.json", trees=12, depth=4)
    return made


def search(kind: str, folder: Path, executor: Executor | None = None, **options: object) -> Coordinator:
    return search_of(f'model m from "m.json"\n{HEAD}query q: {QUESTIONS[kind]}\n', folder, executor, **options)


def search_of(text: str, folder: Path, executor: Executor | None = None, **options: object) -> Coordinator:
    document, session = document_of("q.sens", text, folder)
    (asked,) = session.asked()
    where = executor or Executor("inline")
    settings = {"slice_seconds": 0.002, "first_seconds": 0.0, **options}
    return Coordinator(
        session.question(asked),
        ship(document, False),
        where,
        Options(time_limit=60, tolerance=0.0, replay="emulated"),
        **settings,
    )  # type: ignore[arg-type]


def as_a_whole(one: Coordinator) -> Result:
    return answer_question(one.question, one.options)


def says(result: Result) -> tuple[Verdict, float | None, float | None]:
    goal = result.objective
    return result.verdict, None if goal is None else goal.value, None if goal is None else goal.bound


@pytest.mark.parametrize("kind", QUESTIONS)
def test_parts_say_what_the_whole_says(kind: str, folder: Path) -> None:
    one = search(kind, folder)
    result = one.run(Budget.of(60))
    assert one.parted
    assert says(result) == says(as_a_whole(one))
    assert result.verdict is not Verdict.UNKNOWN


@pytest.mark.parametrize(("sign", "verdict"), [(-1, "found"), (1, "none")])
def test_a_domain_that_cannot_be_cut_is_one_part(sign: int, verdict: str, folder: Path, tmp_path: Path) -> None:
    """Of one input; XGBoost says what its margin is. Nothing was asked, and the answer was `unknown` for want of time."""
    booster = xgboost.Booster(model_file=folder / "m.json")
    row = np.array([[1, 2, 1]], np.float32)
    margin = float(margins_of(booster, row)[0])
    declared = "".join(f"feature f{i}: category {{{value:g}}}\n" for i, value in enumerate(row[0].tolist()))
    text = f'model m from "m.json"\n{declared}query q: find a in m such that margin(a) >= {margin + sign * 1e-4:.7f}\n'
    for _ in range(2):  # the second time from the journal
        with Journal(tmp_path / "kept.sqlite") as journal:
            one = search_of(text, folder, journal=journal)
            assert str(one.run(Budget.of(60)).verdict) == verdict
            assert one.parted


def test_parts_say_what_xgboost_says_of_all_inputs(folder: Path) -> None:
    """The library predicts an input of every combination of cells: the least number of each, and a missing `f1`."""
    booster = xgboost.Booster(model_file=folder / "m.json")
    splits = booster.trees_to_dataframe()
    axes = []
    for name in ("f0", "f1", "f2"):
        cuts = sorted({float(np.float32(x)) for x in splits[splits.Feature == name].Split})
        axes.append([0.0, *(c for c in cuts if 0 < c <= 2), np.nan] if name == "f1" else [-1e30, *cuts])
    grid = np.array(list(itertools.product(*axes)), np.float32)
    score = margins_of(booster, grid)
    score = score.reshape([len(axis) for axis in axes]).astype(float)
    flips = (score.max(axis=(0, 1)) >= 0.1) & (score.min(axis=(0, 1)) <= -0.1)
    apart = (score.max(axis=(0, 2)) - score.min(axis=(0, 2))).max()
    least = score[np.array(axes[0]) <= 1].min()
    assert flips.any()
    assert score.max() < 9
    for kind, best in (("largest", apart), ("smallest", least)):
        result = search(kind, folder).run(Budget.of(60))
        assert result.objective is not None
        assert result.objective.value == pytest.approx(best, abs=1e-5)
        assert result.objective.bound == pytest.approx(best, abs=1e-5)
    assert search("found", folder).run(Budget.of(60)).verdict is Verdict.FOUND
    for kind in ("none", "nothing"):
        assert search(kind, folder).run(Budget.of(60)).verdict is Verdict.NONE


def test_leaves_hold_every_cell_once(folder: Path) -> None:
    one = search("found", folder)
    splitter = Splitter(one.query)
    tree, parts = splitter.split(Part())
    more = [leaf for part in parts for leaf in splitter.split(part)[1]]
    assert isinstance(tree, list)
    assert len(more) > len(parts) > 1
    sizes = [grid.n_cells for grid in one.query.space.grid]
    for cells in itertools.product(*(range(n) for n in sizes), range(sizes[0]), range(sizes[1])):
        at = {
            (0, 0): cells[0],
            (0, 1): cells[1],
            (0, 2): cells[2],
            (1, 0): cells[3],
            (1, 1): cells[4],
            (1, 2): cells[2],
        }
        inside = [p for p in more if all((at[c.point, c.feature] >= c.cell) == c.upper for c in p.cuts)]
        assert len(inside) == 1


def test_a_part_has_more_time_while_others_wait_and_no_more_after_a_loss(folder: Path) -> None:
    one = search("largest", folder, Executor("local", 2), slice_seconds=5.0)
    first, *others = (Part((Cut(0, 0, cell, True),)) for cell in range(1, 42))
    assert one._seconds_of(first) == 5.0
    one.known.open.extend(others[:2])
    assert one._seconds_of(first) == 10.0
    one.known.open.extend(others[2:])
    assert one._seconds_of(first) == 8 * 5.0
    one.slice = 20.0
    assert one._seconds_of(first) == 60.0
    one.slice = 90.0
    assert one._seconds_of(first) == 90.0
    one.known.losses[first] = 1
    one.slice = 5.0
    assert one._seconds_of(first) == 5.0


def test_parts_that_cannot_be_cut_get_more_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every part were whole cells: only more time helps."""
    monkeypatch.setattr(Splitter, "_place", lambda _self, part: (0, 0, 1) if not part.cuts else None)
    one = search("smallest", folder, slice_seconds=0.0002)
    assert says(one.run(Budget.of(60))) == says(as_a_whole(one))
    assert max(one.longer.values()) > 1


def test_a_part_is_a_part_of_the_question(folder: Path) -> None:
    one = search("smallest", folder)
    _, parts = one.splitter.split(Part())
    for part in parts:
        assert len(within(one.query, part).constraints) == len(one.query.constraints) + len(part.cuts)
        assert Part.of_plain(json.loads(json.dumps(part.plain()))) == part


@pytest.mark.parametrize("kind", ["none", "largest"])
def test_the_proof_is_put_together(kind: str, folder: Path, tmp_path: Path) -> None:
    one = search(kind, folder)
    result = with_part_certificates(one, one.run(Budget.of(60)), tmp_path, Budget.of(60))
    assert all(claim.path for claim in result.certificates), result.certificates
    (manifest,) = tmp_path.glob("*.manifest.json")
    (claim,) = json.loads(manifest.read_text())["claims"]
    assert claim["kind"] == "cover"
    assert run_checker([manifest], [folder / "m.json"], {}) == 0


@dataclass(frozen=True)
class Stopping(Executor):
    """Stops after the first certificate of a part."""

    certified: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, *args: Any, **named: Any) -> Iterator[Outcome]:
        for outcome in super().run(*args, **named):
            yield outcome
            if outcome.packed is not None and outcome.packed.content:
                self.certified.append(outcome.key)
                self.stop.set()


def test_parts_of_a_proof_that_is_not_complete_leave_no_file(folder: Path, tmp_path: Path) -> None:
    """They could be taken for the answer."""
    where = Stopping("inline")
    one = search("none", folder, where)
    result = with_part_certificates(one, one.run(Budget.of(60)), tmp_path / "out", Budget.of(60, where.stop))
    assert 1 <= len(where.certified) < len(one.known.leaves())
    assert [(claim.claim, claim.path, claim.reason) for claim in result.certificates] == [("none", "", "interrupted")]
    assert [*(tmp_path / "out").iterdir()] == []


def test_processes_of_this_machine(folder: Path) -> None:
    one = search("largest", folder, Executor("local", 2), slice_seconds=0.2)
    assert says(one.run(Budget.of(60))) == says(as_a_whole(one))


def about_a_large_model(folder: Path) -> Coordinator:
    """Two processes, and parts of 0.2 s at most."""
    train(3, folder / "large.json", trees=60, depth=5)
    text = f'model m from "large.json"\n{HEAD}query q: {QUESTIONS["largest"]}\n'
    document, session = document_of("q.sens", text, folder)
    (asked,) = session.asked()
    return Coordinator(
        session.question(asked),
        ship(document, False),
        Executor("local", 2),
        Options(time_limit=120, replay="emulated"),
        slice_seconds=0.2,
        first_seconds=0.0,
    )


def process_of(outcome: Outcome) -> int:
    return int(outcome.worker.rpartition(":")[2])


def test_killed_workers_lose_nothing(folder: Path, tmp_path: Path) -> None:
    """Every worker that has answered is killed at once, by its process id, until five are gone."""
    one = about_a_large_model(folder)
    killed: set[int] = set()
    twice: list[str] = []
    take_in = one._take_in

    def also_kill(outcome: Outcome) -> None:
        take_in(outcome)
        if outcome.attempts > 1:
            twice.append(outcome.key)
        number = process_of(outcome) if outcome.worker else 0
        if number and number != os.getpid() and number not in killed and len(killed) < 5:
            killed.add(number)
            os.kill(number, signal.SIGKILL)

    one._take_in = also_kill  # type: ignore[method-assign]
    result = one.run(Budget.of(120))
    whole = as_a_whole(one)
    assert killed
    assert len(twice) <= len(killed), "what others did was asked again"
    assert result.verdict is whole.verdict is Verdict.FOUND
    assert result.objective is not None
    assert whole.objective is not None
    assert result.objective.value == pytest.approx(whole.objective.value, rel=1e-5)
    assert result.objective.bound == pytest.approx(whole.objective.value, rel=1e-5)


@dataclass(frozen=True)
class Losing(Executor):
    """Processes of this machine. In every run the first one that has answered is killed by its process id; a second one could
    take a task with it that the first had lost, which is then given up. Notes the number killed in every run, and for every
    task whether it ran again.
    """

    killed: list[int] = field(default_factory=list)
    again: list[bool] = field(default_factory=list)

    def run(self, *args: Any, **named: Any) -> Iterator[Outcome]:
        gone = set[int]()
        for outcome in super().run(*args, **named):
            self.again.append(outcome.attempts > 1)
            number = process_of(outcome) if outcome.worker else 0
            if number not in (0, os.getpid()) and not gone:
                gone.add(number)
                os.kill(number, signal.SIGKILL)
            yield outcome
        self.killed.append(len(gone))


def test_the_proof_of_workers_that_were_killed_is_accepted(folder: Path, tmp_path: Path) -> None:
    """Workers die in the search, and others while they make the certificates of its parts."""
    where = Losing("local", 2)
    one = search("none", folder, where)
    result = with_part_certificates(one, one.run(Budget.of(120)), tmp_path, Budget.of(120))
    assert result.verdict is Verdict.NONE
    # The search runs once more for each round that lost a worker; the last run makes the certificates.
    assert len(where.killed) >= 2
    assert all(where.killed)
    assert any(where.again)
    assert all(claim.path for claim in result.certificates), result.certificates
    (manifest,) = tmp_path.glob("*.manifest.json")
    assert len(json.loads(manifest.read_text())["parts"]) == len(one.known.leaves()) > 3
    assert run_checker([manifest], [folder / "m.json"], {}) == 0


def test_it_goes_on_from_its_journal(folder: Path, tmp_path: Path) -> None:
    """A run that is stopped after some answers has left what it knew."""
    stop = threading.Event()
    with Journal(tmp_path / "kept.sqlite") as journal:
        first = search("largest", folder, journal=journal)
        take_in = first._take_in

        def few(outcome: object) -> None:
            take_in(outcome)  # type: ignore[arg-type]
            if len(first.known.closed) >= 3:
                stop.set()

        first._take_in = few  # type: ignore[method-assign]
        assert first.run(Budget.of(60, stop)).objective is None or stop.is_set()
    with Journal(tmp_path / "kept.sqlite") as journal:
        again = search("largest", folder, journal=journal)
        result = again.run(Budget.of(60))
        assert says(result) == says(as_a_whole(again))
        closed = [line for line in journal.parts(again._key(), checked_line) if line["did"] == "none"]
        assert len({json.dumps(line["part"]) for line in closed}) == len(closed) == len(again.known.closed)
        third = search("largest", folder, journal=journal)
        assert says(third.run(Budget.of(60))) == says(result)
        assert third.known.asked == 0


def test_parts_that_were_closed_at_another_tolerance_are_asked_again(folder: Path, tmp_path: Path) -> None:
    """A part is closed against the best answer and what may be missing of it."""
    with Journal(tmp_path / "kept.sqlite") as journal:
        rough = search("largest", folder, journal=journal)
        rough.options = replace(rough.options, tolerance=0.5)
        rough.run(Budget.of(60))
        fine = search("largest", folder, journal=journal)
        result = fine.run(Budget.of(60))
        assert fine.known.asked
        assert says(result) == says(as_a_whole(fine))


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        '{"did": "none", "part": [[0]]}',
        "{}",
        '{"did": "none", "part": [], "proof": "hope"}',
        '{"did": "found", "part": []}',
        '{"did": "found", "part": [], "values": 5}',
        '{"did": "found", "part": [], "values": [[1, 2, 3], [1, 2]]}',
        '{"did": "found", "part": [], "values": [["x", 2, 3], [1, 2, 3]]}',
        "[" * 100_000,
    ],
    ids=range(9),
)
def test_a_damaged_line_is_refused(text: str, folder: Path, tmp_path: Path) -> None:
    with Journal(tmp_path / "kept.sqlite") as journal:
        one = search("largest", folder, journal=journal)
        with sqlite3.connect(journal.path) as other:
            key = one._key()
            other.execute("INSERT INTO parts (key, line) VALUES (?, ?)", (key, text))
        with pytest.raises(DataError, match="name another file"):
            one.run(Budget.of(5))


def test_an_answer_in_a_journal_is_verified(folder: Path, tmp_path: Path) -> None:
    with Journal(tmp_path / "kept.sqlite") as journal:
        one = search("found", folder, journal=journal)
        one.run(Budget.of(60))
        lines = journal.parts(one._key(), checked_line)
        assert any(line["did"] == "found" for line in lines)
        with sqlite3.connect(journal.path) as other:
            other.execute("DELETE FROM parts")
        for line in lines:
            if line["did"] == "found":
                line["values"][1] = line["values"][0]
            journal.keep_part(one._key(), line)
        with pytest.raises(DataError, match="an answer in it is not valid"):
            search("found", folder, journal=journal).run(Budget.of(5))


def test_one_journal_holds_whole_answers_and_parts(folder: Path, tmp_path: Path) -> None:
    """What is asked as a whole and what is asked in parts is kept in one file, and both are answered from it."""
    file, journal = folder / "both.sens", tmp_path / "kept.sqlite"
    file.write_text(f'model m from "m.json"\n{HEAD}query q: {QUESTIONS["largest"]}\n')
    words = ["check", str(file), "--json", "--journal", str(journal)]
    answers = []
    for more in ([], ["--workers", "1"], []):
        done = CliRunner().invoke(group, [*words, *more], standalone_mode=False)
        answers += json.loads(done.stdout)["results"]
    assert len({a["objective"]["value"] for a in answers}) == 1
    assert answers[2]["seconds"].keys() == {"journal"}
    refused = CliRunner().invoke(group, [*words, "--certificate", str(tmp_path / "out")])
    assert refused.exit_code == 1
    assert "leave out --journal" in str(getattr(refused.exception, "remedy", ""))


def test_the_command(folder: Path, tmp_path: Path) -> None:
    file = folder / "q.sens"
    file.write_text(
        f'model m from "m.json"\n{HEAD}query q: {QUESTIONS["largest"]}\nquery n: find a in m such that a.f0 <= 1 top 2\n'
    )
    done = CliRunner().invoke(group, ["check", str(file), "--workers", "2", "--json"], standalone_mode=False)
    best, two = json.loads(done.stdout)["results"]
    assert best["verdict"] == two["verdict"] == "found"
    assert "run in one process" in " ".join(two["notes"])
    for more in (["--jobs", "2"], ["--confirm", "z3"]):
        refused = CliRunner().invoke(group, ["check", str(file), "--workers", "2", *more])
        assert refused.exit_code == 1
    assert CliRunner().invoke(group, ["check", str(file), "--on", "nowhere"]).exit_code == 1


def test_certificates_that_fail_cost_no_answer(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "certified.sens"
    file.write_text(f'model m from "m.json"\n{HEAD}query q: {QUESTIONS["largest"]}\n')

    def fails(*_args: object, **_named: object) -> None:
        raise IndexError("planted")

    def as_it_is(self: Coordinator, _first: object) -> bool:
        return False  # or the question would be decided as a whole

    monkeypatch.setattr(Coordinator, "_is_final", as_it_is)
    monkeypatch.setattr("treesens.extensions.sweeps.part_certificates.with_part_certificates", fails)
    words = ["check", str(file), "--workers", "2", "--json", "--certificate", str(tmp_path / "out")]
    done = CliRunner().invoke(group, words, standalone_mode=False)
    assert done.return_value == 6
    (answer,) = json.loads(done.stdout)["results"]
    assert answer["verdict"] == "found"
    assert answer["objective"]["bound"] is not None
    assert "IndexError: planted" in " ".join(answer["notes"])


def test_what_is_asked_in_one_process(folder: Path) -> None:
    one = search("largest", folder)
    assert can_be_parted(one.question) == ""


def test_what_is_left_open_is_no_answer(folder: Path) -> None:
    """Stopped when some parts are closed and others are open: no `none`, and no bound."""
    for kind in ("none", "largest"):
        stop = threading.Event()
        one = search(kind, folder)
        take_in = one._take_in

        def few(
            outcome: object, one: Coordinator = one, take_in: object = take_in, stop: threading.Event = stop
        ) -> None:
            take_in(outcome)  # type: ignore[operator]
            if one.known.closed:
                stop.set()

        one._take_in = few  # type: ignore[method-assign]
        result = one.run(Budget.of(60, stop))
        assert one.known.closed
        assert result.verdict is not Verdict.NONE
        assert result.objective is None or result.objective.bound is None


@dataclass(frozen=True)
class Useless(Executor):
    """Loses every part that it is given, as workers do that are out of memory."""

    def run(self, take: Any, *_: Any, **__: Any) -> Iterator[Outcome]:
        while (task := take()) is not None:
            yield Outcome(task.key, failure="the worker died")


@pytest.mark.parametrize("kind", QUESTIONS)
def test_parts_cost_no_answer_that_the_whole_has(kind: str, folder: Path, tmp_path: Path) -> None:
    """The whole question goes on while no part is ever decided; its certificates are those of the whole."""
    one = search(kind, folder, Useless(), first_seconds=1e-6)
    one._as_a_whole = lambda _: leave_open("q")  # type: ignore[method-assign]  # a moment suffices for some of them
    result = one.run(Budget.of(60))
    assert one.parted
    assert not one.proved_in_parts
    assert says(result) == says(as_a_whole(one))
    assert result.verdict is not Verdict.UNKNOWN


def test_a_whole_that_is_stopped_costs_no_part(folder: Path) -> None:
    """A request to stop reaches the whole question and its parts."""
    stop = threading.Event()
    stop.set()
    one = search("largest", folder, first_seconds=1e-6)
    one._as_a_whole = lambda _: leave_open("q")  # type: ignore[method-assign]
    result = one.run(Budget.of(60, stop))
    assert result.verdict is Verdict.UNKNOWN
    assert result.reason == "interrupted"


def test_no_time_is_no_answer(folder: Path) -> None:
    result = search("none", folder).run(Budget.of(0.0))
    assert result.verdict is Verdict.UNKNOWN
    assert result.reason == "time"
