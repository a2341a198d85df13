"""`treesens compare` measures: several runs, bounds over time, logs, charts, and files that solvers read themselves."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.command import run_command
from tests.commands.test_command_line import run
from tests.corpus import boosted
from treesens.backends.base import BACKENDS, get_backend
from treesens.commands.compare import Cell, disagreement
from treesens.compiler.base.tolerance import Tolerance
from treesens.compiler.result import Attempt, Result, Verdict
from treesens.solve.exported import ExportedFile

QUESTIONS = """model m from "m.json"
query most: find a maximize margin(a)
query least: find a minimize margin(a)
query over: find a such that margin(a) >= {over}
query under: find a such that margin(a) >= {under}
"""
SOLVERS = ("cbc", "cpsat", "gurobi", "highs", "scip", "z3")
INSTALLED = [name for name in ("native", *SOLVERS) if get_backend(name).available() is None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of three features, questions about it, and its exact extremes by the library's own predictions."""
    xgboost = pytest.importorskip("xgboost")
    folder = tmp_path_factory.mktemp("compared")
    x = np.random.default_rng(3).random((200, 3))
    booster = boosted(x, (x[:, 0] * x[:, 1] + x[:, 2] > 0.7).astype(int), 5, 2, path=folder / "m.json")
    cuts = booster.trees_to_dataframe().groupby("Feature")["Split"].unique()
    sides = [[-9.0, *(float(cut) for cut in cuts.get(f"f{i}", [])), 9.0] for i in range(3)]
    # A point at each cut (`x < cut` is false there), and one below all cuts: one in every cell.
    every = xgboost.DMatrix(np.array(list(itertools.product(*sides))))
    margins = booster.predict(every, output_margin=True)
    (folder / "extremes.json").write_text(json.dumps([float(margins.min()), float(margins.max())]))
    over, under = float(margins.max()) + 0.01, float(margins.max()) - 0.01
    (folder / "q.sens").write_text(QUESTIONS.format(over=f"{over:.4f}", under=f"{under:.4f}"))
    for name, format in itertools.product(("most", "least", "over"), ("lp", "mps", "smt2")):
        assert run(folder, "emit", "q.sens", name, "--to", format, "-o", f"{name}.{format}").returncode == 0
    return folder


def extremes(folder: Path) -> dict[str, float]:
    return dict(zip(("least", "most"), json.loads((folder / "extremes.json").read_text()), strict=True))


def compared(folder: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    done = run(folder, "compare", *arguments, "--json")
    assert done.returncode == code, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_every_run_has_a_record_with_its_seed(folder: Path) -> None:
    answer = compared(folder, "q.sens", "over", "under", "-b", "native,z3", "--seeds", "0,7", "--repeat", "2")
    records = answer["results"]
    assert [(r["query"], r["repetition"], r["seed"], r["backend"]) for r in records] == [
        (query, number, seed, backend)
        for query in ("over", "under")
        for number in (1, 2)
        for seed in (0, 7)
        for backend in ("native", "z3")
    ]
    assert {(r["query"], r["verdict"]) for r in records} == {("over", "none"), ("under", "found")}
    shown = run_command(folder, "compare", "q.sens", "under", "-b", "native,z3", "--repeat", "3", COLUMNS="160").stdout
    assert len([line for line in shown.splitlines() if "found" in line]) == 2
    assert shown.count("–") >= 2  # the range of the time


@pytest.mark.parametrize("backend", INSTALLED)
def test_bounds_over_time_enclose_the_optimum(folder: Path, backend: str) -> None:
    for record in compared(folder, "q.sens", "most", "least", "-b", backend)["results"]:
        best, up = extremes(folder)[record["query"]], 1 if record["query"] == "most" else -1
        moments = record["trajectory"]
        times = [seconds for seconds, _, _ in moments]
        assert times == sorted(times)
        assert times[0] >= 0.0
        for _, bound, incumbent in moments:
            assert bound is None or up * bound >= up * best - 1e-4
            assert incumbent is None or up * incumbent <= up * best + 1e-4
        assert moments[-1][1:] == pytest.approx([best, best], abs=1e-4)
        assert (record["search"] is None) <= (backend in {"cbc", "z3"})
        assert all(count >= 0 for count in (record["search"] or {}).values())


def test_searches_without_an_objective_have_no_bound(folder: Path) -> None:
    assert {r["trajectory"] for r in compared(folder, "q.sens", "over", "-b", "native,highs")["results"]} == {None}


def test_logs_are_the_solvers_own(folder: Path, tmp_path: Path) -> None:
    marks = {"cbc": "CBC", "cpsat": "CpSolverResponse", "gurobi": "Gurobi", "highs": "HiGHS", "scip": "Dual Bound"}
    wanted = ("-b", ",".join(INSTALLED), "--logs", str(tmp_path / "logs"), "--repeat", "2")
    for _ in range(2):  # the second call replaces the files
        compared(folder, "q.sens", "most", *wanted)
    logs = {path.name: path.read_text() for path in (tmp_path / "logs").iterdir()}
    assert len(logs) == 2 * len(marks.keys() & set(INSTALLED))  # the native engine and z3 have no log
    for name, text in logs.items():
        question, backend, pipeline, seed, number, _ = name.split("-")
        assert (question, pipeline, seed) == ("most", "independent", "seed0")
        assert number in {"run1", "run2"}
        assert marks[backend] in text


def test_the_chart_draws_times_and_bounds(folder: Path, tmp_path: Path) -> None:
    compared(
        folder, "q.sens", "most", "over", "-b", "native,highs", "--plot", str(tmp_path / "c.svg"), "--seeds", "0,1"
    )
    root = ElementTree.fromstring((tmp_path / "c.svg").read_text())
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"most: bound and incumbent", "native (4)", "highs (4)", "native, seed 1: bound"} <= set(texts)
    assert "over: bound and incumbent" not in texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 2 + 2 * 2 * 2


@pytest.mark.parametrize("format", ["lp", "mps", "smt2"])
def test_solvers_read_exported_files_themselves(folder: Path, format: str) -> None:
    readers = {name for name in INSTALLED if format in get_backend(name).reads}
    assert readers
    for query, best in extremes(folder).items():
        records = compared(folder, f"{query}.{format}")["results"]
        assert {r["backend"] for r in records} == readers
        for record in records:
            assert (record["verdict"], record["pipeline"]) == ("found", None)
            assert record["value"] == pytest.approx(best, abs=1e-4)
            assert record["means"] == "the question's value (margin)"
            assert "nothing can be replayed" in record["no_replay"]
    for record in compared(folder, f"over.{format}")["results"]:
        assert (record["verdict"], record["value"]) == ("none", None)
        assert record["proof"] == ("exact" if format == "smt2" else "tolerance")


def test_a_damaged_file_has_no_answer(folder: Path, tmp_path: Path) -> None:
    text = (folder / "most.lp").read_text()
    (tmp_path / "cut.lp").write_text(text[: len(text) // 2])
    done = run(tmp_path, "compare", "cut.lp")
    assert done.returncode == 2
    assert "the last line is not `END`" in done.stderr
    for name, content in (("a.lp", "nonsense\nEnd\n"), ("a.mps", "nonsense\nENDATA\n"), ("a.smt2", "; nothing\n")):
        (tmp_path / name).write_text(content)
        records = compared(tmp_path, name, code=5)["results"]
        assert {record["verdict"] for record in records} == {"unknown"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("most.lp", "-b", "native"), "native does not read most.lp"),
        (("most.lp", "other"), "has no query `other`"),
        (("most.lp", "--replay", "library"), "`--replay` needs a model"),
        (("most.lp", "--pipelines", "default"), "`--pipelines` needs a model"),
        (("q.sens", "--seeds", "1,-2"), "`-2` is not a seed"),
        (("q.sens", "--seeds", "9999999999"), "is not a seed"),
        (("q.sens", "--seeds", "1", "--seed", "2"), "--seed and --seeds in one command"),
        (("q.sens", "--repeat", "0"), "--repeat"),
    ],
)
def test_bad_input_is_refused(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    done = run(folder, "compare", *arguments)
    assert done.returncode == 1
    assert words in done.stderr


def test_two_optima_of_a_file_are_a_disagreement() -> None:
    def optimal(backend: str, value: float, ended: str = "optimal") -> Cell:
        attempt = Attempt(backend, "", ended, Verdict.FOUND, trajectory=((0.1, value, value),))
        return Cell(backend, "", Result("f", Verdict.FOUND, "", attempts=(attempt,)))

    def said(tolerance: float, *cells: Cell) -> list[str]:
        return disagreement(ExportedFile("f.lp", "lp", "", Tolerance(tolerance)), list(cells))

    (words,) = said(1e-6, optimal("x", 1.0), optimal("y", 1.1))
    assert words == "disagreement on f.lp: the optimum is 1.0 by x, and 1.1 by y"
    assert not said(1e-6, optimal("x", 1.0), optimal("y", 1.000001))
    assert not said(0.1, optimal("x", 1.0), optimal("y", 1.1))
    assert not said(1e-6, optimal("x", 1.0), optimal("y", 1.1, "time"))


def test_backends_name_the_formats_that_emit_writes() -> None:
    assert {format for name in BACKENDS.names() for format in get_backend(name).reads} == {"lp", "mps", "smt2"}
