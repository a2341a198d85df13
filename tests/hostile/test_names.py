"""Names from files steer neither a solver, nor a terminal, nor a page, nor a spreadsheet."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import pty
import re
import select
import subprocess
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from benchmarks.markdown import markdown_table
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import treesens
from tests.backends.test_texts import CVC5, HIGHS, SCIP, Z3, solved
from tests.command import CLI, run_command
from tests.corpus import boosted
from treesens.backends.text.cpsat import write_cpsat
from treesens.backends.text.lp import write_lp
from treesens.backends.text.mps import write_mps
from treesens.backends.text.opb import write_opb
from treesens.backends.text.smt2 import write_smt2
from treesens.compiler.ir.evaluate import brute_force
from treesens.compiler.ir.text import parse_module, print_module
from treesens.extensions.conformance.shapes import cases
from treesens.extensions.studies.report.study_tables import write_csv
from treesens.extensions.sweeps.report import write_answers
from treesens.report.tables import Table
from treesens.visible import label, spreadsheet, visible, visible_json

HOSTILE = (
    "p|)(assert false)(set-info :x |",
    "cost|benefit",
    "a\nsubject to\n r: x0 >= 2\n",
    "a\r\nRHS\n RHS r0 7\n",
    "* \n+1 x1 >= 2 ;",
    "\\ \x1b]0;owned\x07\x1b[31m\x1b[2J",
    "left\u202eright\u2066x",
    '=HYPERLINK("http://x")',
    "<script>alert(1)</script>",
    "[bold red]x[/]",
    "\ud800 lone",
    '"); drop table answers; --',
    "x" * 5000,
    "\x00\x85\u2028\x9b31m",
)
WRITERS = {"smt2": write_smt2, "lp": write_lp, "mps": write_mps, "opb": write_opb, "cpsat": write_cpsat}
names = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60), st.text("|()\n\r\\;\"'*<>= xR\x1b", max_size=60))


def steers(text: str) -> list[str]:
    return [
        c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t\u200c\u200d"
    ]


@settings(max_examples=150, deadline=None)
@given(names, names)
def test_a_solver_text_does_not_depend_on_names_but_for_one_comment(name: str, step: str) -> None:
    """Fault 3: a name was written as it is into `(set-info :source |..|)`, and what followed its `|` was a constraint."""
    module = next(case.module for case in cases() if case.module.objective is not None)
    for ending, write in WRITERS.items():
        plain = write(replace(module, name="q", provenance=("lower",))).text
        hostile = write(replace(module, name=name, provenance=(step,))).text
        differing = [(a, b) for a, b in zip(plain.split("\n"), hostile.split("\n"), strict=True) if a != b]
        assert len(differing) <= 1, ending
        for _, line in differing:
            assert re.fullmatch(r"(;|\\|\*) [A-Za-z0-9_.+-]+: [A-Za-z0-9_.+ >-]*", line), line
    assert parse_module(print_module(replace(module, name=name, provenance=(step,)), full=True)).name == name


@pytest.mark.parametrize(
    ("library", "script", "ending"),
    [
        ("z3", Z3, "smt2"),
        ("cvc5", CVC5, "smt2"),
        ("highspy", HIGHS, "lp"),
        ("highspy", HIGHS, "mps"),
        ("pyscipopt", SCIP, "mps"),
    ],
)
def test_solvers_answer_alike_whatever_a_question_is_called(
    tmp_path: Path, library: str, script: str, ending: str
) -> None:
    """Fault 3, read by the solvers themselves: `sat` stays `sat`, and no name is a syntax error."""
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    case = next(c for c in cases() if c.module.objective is None and brute_force(c.module).solutions > 0)
    for i, name in enumerate(HOSTILE):
        (tmp_path / f"{i}.{ending}").write_text(
            WRITERS[ending](replace(case.module, name=name, provenance=(name,))).text
        )
    wanted = "sat" if ending == "smt2" else 0.0
    assert set(solved(script, sorted(tmp_path.iterdir())).values()) == {wanted}


@pytest.fixture(scope="module")
def hostile_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of XGBoost whose features have names of an attacker's choice."""
    rng = np.random.default_rng(1)
    rows = rng.random((200, 3)).astype(np.float32)
    booster = boosted(rows, (rows.sum(1) > 1.5).astype(int), 2, 2, names=["a", "b", "c"], base_score=0.5, eta=1.0)
    path = tmp_path_factory.mktemp("hostile") / "m.json"
    booster.save_model(path)
    text = json.loads(path.read_text())
    text["learner"]["feature_names"] = [HOSTILE[0], HOSTILE[5], "left\u202eright\nsafe: none"]
    path.write_text(json.dumps(text))
    (path.parent / "q.sens").write_text(
        'model m from "m.json"\nquery each: for each f in features: find a, b such that a = b except f; '
        "margin(a) - margin(b) >= 0.1\n"
    )
    return path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = run_command(folder, *arguments)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_a_model_file_cannot_make_z3_say_none(hostile_model: Path) -> None:
    """Fault 3: `none`, an "exact proof by z3", where every other backend finds a pair."""
    verdicts = {}
    for backend in ("native", "z3", "highs", "cpsat"):
        done = run(hostile_model.parent, "check", "q.sens", "-b", backend, "-p", "independent", "--json")
        verdicts[backend] = [r["verdict"] for r in json.loads(done.stdout)["results"]]
    assert set(map(tuple, verdicts.values())) == {("found", "found", "found")}, verdicts


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "q.sens"),
        ("check", "q.sens", "--json"),
        ("info", "m.json"),
        ("explain", "q.sens"),
        ("compare", "q.sens", "-b", "native", "-t", "5"),
        ("gap", "m.json", "-t", "1"),
        ("opt", "q.sens"),
        ("check", "absent\x1b[31m.sens"),
        ("sweep", "q.sens", "--jobs", "1"),
        ("emit", "q.sens", "--to", "lp", "-o", "out"),
    ],
)
def test_names_do_not_steer_a_terminal(hostile_model: Path, arguments: tuple[str, ...]) -> None:
    """Fault 17: escapes in feature names reached the terminal as they are."""
    done = run(hostile_model.parent, *arguments)
    assert steers(done.stdout + done.stderr) == []
    assert "owned" not in done.stdout or "\\x1b]0;owned\\x07" in done.stdout or "\\u001b]0;owned" in done.stdout
    assert "\nsafe: none" not in done.stdout


def test_on_a_real_terminal_only_our_own_codes_are_written(hostile_model: Path) -> None:
    """Fault 17, with colours: what is styled is escaped first."""
    for command in (["check", "q.sens"], ["info", "m.json"]):
        text = _on_a_terminal(command, hostile_model.parent)
        codes = set(re.findall("\x1b[^m]*.", text)) - set(re.findall(r"\x1b\[[0-9;]*m", text))
        assert {c for c in codes if "owned" in c or "2J" in c} == set()
        assert "\x1b]0;" not in text
        assert "\\x1b]0;owned" in text


def _on_a_terminal(command: list[str], folder: Path) -> str:
    parent, child = pty.openpty()
    environment = dict(os.environ, TERM="xterm-256color", COLUMNS="200")
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen([*CLI, *command], cwd=folder, stdout=child, stderr=child, stdin=child, env=environment)
    os.close(child)
    seen, deadline = b"", time.monotonic() + 180
    while time.monotonic() < deadline:
        ready, _, _ = select.select([parent], [], [], 0.2)
        try:
            part = os.read(parent, 65536) if ready else b""
        except OSError:
            break
        seen += part
        if not part and process.poll() is not None:
            break
    process.wait(timeout=180)
    os.close(parent)
    return seen.decode(errors="replace")


def test_nothing_reaches_the_terminal_past_the_one_way() -> None:
    """Fault 17, the class: `report/terminal.py` alone writes to the terminal; commands that print for programs are listed."""
    allowed = {"report/terminal.py", "extensions/editor/textmate.py", "extensions/editor/command.py", "cli.py"}
    allowed |= {"runtime/interruption.py"}  # a fixed sentence
    past = {"print", "click.echo", "click.secho", "click.style", "Console"}
    root = Path(treesens.__file__).parent
    found = []
    for path in root.rglob("*.py"):
        place = path.relative_to(root).as_posix()
        if place in allowed:
            continue
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        found += [f"{place}:{call.lineno}" for call in calls if ast.unparse(call.func) in past]
    assert found == []


def test_the_page_of_an_audit_holds_no_markup_of_names(hostile_model: Path, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    text = json.loads(hostile_model.read_text())
    text["learner"]["feature_names"] = ["<script>alert(1)</script>", '" onload="x', "left\u202eright"]
    (tmp_path / "m.json").write_text(json.dumps(text))
    with (tmp_path / "d.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [text["learner"]["feature_names"], *np.random.default_rng(0).random((20, 3)).tolist()]
        )
    done = run(tmp_path, "audit", "m.json", "--data", "d.csv", "--margin", "0.1", "--report", "r.html", "-t", "2")
    assert done.returncode in (0, 5), done.stderr
    page = (tmp_path / "r.html").read_text()
    assert "<script>" not in page
    assert '" onload="x' not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;" in page


def test_no_cell_of_a_sweeps_table_is_a_formula(tmp_path: Path) -> None:
    """CSV: cells that start with =, +, - or @ are computed by spreadsheets."""
    record = {"document": "=1+1", "query": "@x[-2]", "varied": ["+a", "\x1b[31m"], "verdict": "found", "cpu": -1.5}
    write_answers(tmp_path / "a.csv", [record])
    with (tmp_path / "a.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    assert (row["document"], row["query"], row["varied"]) == ("'=1+1", "'@x[-2]", "'+a+\\x1b[31m")
    assert row["cpu"] == "-1.5"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-y", "@sum", "\t=1", "\r=1", "\n=1"])
def test_no_cell_and_no_header_of_a_csv_is_a_formula(text: str, tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", [text, "n"], [[text, -1.5]])
    with (tmp_path / "a.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    assert [line[0][:1] not in "=+-@\t\r\n" for line in lines] == [True, True]
    assert [line[1] for line in lines] == ["n", "-1.5"]


def test_one_function_writes_csv() -> None:
    """Rows to train with again (`repair/run.py`) keep the texts of the table: an apostrophe would be another category."""
    writes = re.compile(r"csv\.(Dict)?[wW]riter|\bto_csv\(|\.write_csv\(")
    found = [path for path in sources() if writes.search(path.read_text())]
    assert {f"{path.parent.name}/{path.name}" for path in found} == {"report/study_tables.py", "repair/run.py"}


@pytest.mark.parametrize("name", ["a\nb", "a`b", ""])
def test_rules_name_the_column_that_no_text_can_hold(name: str) -> None:
    pandas = pytest.importorskip("pandas", reason="makes the table; pip install pandas")
    frame = pandas.DataFrame({"x": [0, 1] * 9, name: [0, 1] * 9})
    with pytest.raises(treesens.errors.DataError, match=re.escape(f"the name of the column {name!r}")):
        treesens.learn_rules(frame)


def sources() -> Iterator[Path]:
    """Every file of the package."""
    return Path(treesens.__file__).parent.rglob("*.py")


def test_a_tab_in_a_table_is_seen() -> None:
    printed = io.StringIO()
    table = Table("group")
    table.add_row("\town")
    table.print_fitted(Console(file=printed, width=80))
    assert "\\x09own" in printed.getvalue()


def test_a_table_in_markdown_keeps_its_columns() -> None:
    lines = markdown_table([{"name": "a|b\n<b>[x](y)`"}]).splitlines()
    assert lines[2] == "| a\\|b\\x0a\\<b>\\[x](y)\\` |"


@settings(max_examples=300, deadline=None)
@given(names)
def test_visible_text_steers_nothing_and_json_says_the_same(text: str) -> None:
    assert steers(visible(text)) == []
    assert "\n" not in visible(text)
    assert steers(visible(text, lines=True)) == []
    written = visible_json(json.dumps({"x": text}, ensure_ascii=False))
    assert steers(written) == []
    assert json.loads(written) == {"x": text}
    assert re.fullmatch(r"[A-Za-z0-9_.+-]{1,80}", label(text))
    assert spreadsheet(text)[:1] not in {"=", "+", "-", "@", "\t", "\r", "\n"}


def test_ordinary_text_is_left_alone() -> None:
    for text in ("capital-gain", "Größe ≥ 5", "収入", "क्षत्रिय", "می\u200cخواهم", "10 %"):
        assert visible(text) == text
