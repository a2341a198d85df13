"""The command `reduce`: its files, its messages, its exit codes, time limits and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.command import ForkedCommand, run_command
from tests.corpus import boosted
from treesens.compiler.result import ObjectiveValue, Result, Sense, Verdict
from treesens.extensions.reduce.predicates import excluded

QUESTIONS = """model m from "sub/m.json"
data rows from "sub/rows.csv"
feature x: real in [0, 1]
feature y: real in [0, 1]

query one:
  find a, b in m such that
    a = b except {x}
    prob(a) >= 0.6
    a.y <= 0.75

query two:
  find a in m such that prob(a) >= 0.6
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    table = np.random.default_rng(0).random((200, 2))
    boosted(table, table[:, 0] > 0.5, 6, names="xy", path=tmp_path / "sub" / "m.json")
    (tmp_path / "sub" / "rows.csv").write_text("x,y\n0.5,0.25\n0.125,0.75\n")
    (tmp_path / "q.sens").write_text(QUESTIONS)
    return tmp_path


def program(folder: Path, text: str) -> str:
    """A command that runs a Python program with the candidate as its argument."""
    (folder / "program.py").write_text(f"import json, os, sys, time\ntext = open(sys.argv[1]).read()\n{text}\n")
    return f"{sys.executable} -S {folder / 'program.py'} {{}}"


def test_all_files_of_the_result_are_in_its_folder(folder: Path) -> None:
    text = 'sys.exit(not ("rows of" in text or "rows.csv" in text and os.path.exists("rows.csv") and os.path.exists("m.json")))'
    ran = run_command(folder, "reduce", "q.sens", "--while", program(folder, text))
    assert ran.returncode == 0, ran.stderr
    small = folder / "q.reduced"
    assert (small / "q.sens").read_text() == 'data rows from "rows.csv"\n' or "m.json" in (small / "q.sens").read_text()
    assert (small / "rows.csv").read_bytes() == (folder / "sub" / "rows.csv").read_bytes()
    last = ran.stdout.splitlines()[-1]
    assert "q.reduced/q.sens" in last
    assert f"cd {small} && " in last
    again = run_command(folder, "reduce", "q.sens", "--while", program(folder, text))
    assert again.returncode == 1
    assert "error[U003]" in again.stderr


def test_named_queries_alone_are_kept(folder: Path) -> None:
    ran = run_command(
        folder, "reduce", "q.sens", "two", "--while", program(folder, 'sys.exit("prob" not in text)'), "--json"
    )
    assert ran.returncode == 0, ran.stderr
    record = json.loads(ran.stdout)
    before, after = record["before"], record["after"]
    assert (before["declarations"], before["constraints"], before["trees"], before["features"]) == (5, 1, 6, 2)
    assert (after["declarations"], after["constraints"], after["trees"], after["features"]) == (2, 1, 0, 1)
    text = (folder / "q.reduced" / "q.sens").read_text()
    assert text == 'model m from "m.json"\n\nquery two:\n  find a such that\n    prob(a) >= 0.6\n'
    assert record["reproduced"]


def test_models_of_other_formats_stay_as_they_are(folder: Path) -> None:
    table = np.random.default_rng(0).random((200, 2))
    boosted(table, table[:, 0] > 0.5, 6, names="xy", path=folder / "sub" / "m.ubj")
    (folder / "q.sens").write_text(QUESTIONS.replace("m.json", "m.ubj"))
    ran = run_command(folder, "reduce", "q.sens", "--while", program(folder, 'sys.exit("except" not in text)'))
    assert ran.returncode == 0, ran.stderr
    assert "m.ubj: the trees of this model stay as they are" in ran.stderr
    assert (folder / "q.reduced" / "m.ubj").read_bytes() == (folder / "sub" / "m.ubj").read_bytes()
    assert "a = b except x" in (folder / "q.reduced" / "q.sens").read_text()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["q.sens"], 1, "one predicate is needed"),
        (["q.sens", "--while", "true", "--keep", "crash"], 1, "one predicate is needed"),
        (["q.sens", "--keep", "boredom"], 1, "`boredom` is not known"),
        (["q.sens", "--keep", "error="], 1, "`error=` is not known"),
        (["q.sens", "--keep", "crash=1"], 1, "`crash=1` is not known"),
        (["q.sens", "--keep", "slower-than=nan"], 1, "is not known"),
        (["q.sens", "--keep", "slower-than=11"], 1, "with SECONDS below --timeout"),
        (["q.sens", "--keep", "crash", "-b", "native,cpsat"], 1, "`crash` with 2 backends or pipelines"),
        (["q.sens", "--keep", "disagreement", "-b", "native"], 1, "`disagreement` with 1 backends or pipelines"),
        (["q.sens", "--keep", "crash", "-b", "natve"], 2, "natve"),
        (["q.sens", "--keep", "crash", "--pipelines", "nothing"], 2, "nothing"),
        (["q.sens", "three", "--keep", "crash"], 1, "no query `three`"),
        (["q.sens", "--while", "./no-such-program"], 1, "no program `./no-such-program`"),
        (["q.sens", "--while", "'"], 1, "--while: No closing quotation"),
        (["q.sens", "--while", ""], 1, "no program"),
        (["q.sens", "--while", "false"], 1, "q.sens: the file does not satisfy the predicate"),
        (["q.sens", "--keep", "crash"], 1, "the file does not satisfy the predicate"),
        (["q.sens", "--keep", "disagreement", "-b", "native,cpsat"], 1, "the file does not satisfy the predicate"),
        (["none.sens", "--keep", "crash"], 2, "none.sens"),
        (["m.sir", "--keep", "crash"], 1, "a module has no questions"),
        (["m.sir", "--while", "true"], 2, "m.sir"),
    ],
)  # fmt: skip
def test_messages(folder: Path, words: list[str], code: int, message: str) -> None:
    ran = run_command(folder, "reduce", *words)
    assert ran.returncode == code, ran.stderr
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (folder / "q.reduced").exists()


def test_errors_of_binding_are_kept(folder: Path) -> None:
    (folder / "q.sens").write_text(QUESTIONS.replace("a.y <=", "a.z <="))
    checked = run_command(folder, "check", "q.sens")
    code = checked.stderr.partition("error[")[2].partition("]")[0]
    ran = run_command(folder, "reduce", "q.sens", "--keep", f"error={code}", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["after"]["constraints"] == 1
    assert f"error[{code}]" in run_command(folder / "q.reduced", "check", "q.sens").stderr


def test_candidates_are_well_typed_if_the_file_is(folder: Path) -> None:
    log = folder / "log"
    text = f'open({str(log)!r}, "a").write(text + "----\\n"); sys.exit("prob" not in text)'
    assert run_command(folder, "reduce", "q.sens", "--while", program(folder, text)).returncode == 0
    seen = log.read_text().split("----\n")
    assert len(seen) > 5
    assert all('model m from "m.json"' in one for one in seen if one)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")
def test_a_program_that_takes_too_long_is_killed_with_its_children(folder: Path) -> None:
    pids = folder / "pids"
    text = (
        f'os.fork(); open({str(pids)!r}, "a").write(f"{{os.getpid()}} "); "two" in text or time.sleep(60); sys.exit(0)'
    )
    ran = run_command(
        folder, "reduce", "q.sens", "--while", program(folder, text), "--timeout", "1", "--time-limit", "4"
    )
    assert ran.returncode == 0, ran.stderr
    assert "two" in (folder / "q.reduced" / "q.sens").read_text()
    time.sleep(0.2)
    running = [
        pid for pid in pids.read_text().split() if Path("/proc", pid, "cmdline").exists() and "Z" not in state(pid)
    ]
    assert len(pids.read_text().split()) >= 4
    assert not running


def state(pid: str) -> str:
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_after_ctrl_c_the_smallest_file_so_far_is_written(folder: Path) -> None:
    begun = folder / "begun"
    trees = 'json.load(open("m.json"))["learner"]["gradient_booster"]["model"]["trees"]'
    text = f'if len({trees}) < 6: open({str(begun)!r}, "w"); time.sleep(60)\nsys.exit("prob" not in text)'
    words = ("reduce", "q.sens", "--while", program(folder, text), "--timeout", "100", "--json")
    running = ForkedCommand.start(folder, words, dict(os.environ))
    end = time.monotonic() + 60
    while time.monotonic() < end and not begun.exists():
        time.sleep(0.05)
    os.kill(running.process.pid, signal.SIGINT)
    ran = running.end(30)
    assert ran.returncode == 130, ran.stderr
    record = json.loads(ran.stdout)
    assert (record["finished"], record["after"]["declarations"] < 6) == (False, True)
    assert "query two" in (folder / "q.reduced" / "q.sens").read_text()


def test_a_predicate_that_changes_its_mind_gives_exit_code_5(folder: Path) -> None:
    count = folder / "count"
    count.write_text("")
    text = f'open({str(count)!r}, "a").write("x"); sys.exit("reduced" in sys.argv[1])'
    ran = run_command(folder, "reduce", "q.sens", "--while", program(folder, text), "--json")
    assert ran.returncode == 5
    assert json.loads(ran.stdout)["reproduced"] is False
    assert "does not satisfy the predicate a second time" in ran.stderr


@pytest.mark.parametrize(
    ("one", "other", "sense", "expected"),
    [
        ((1.0, 1.0), (2.0, 2.0), Sense.MAXIMIZE, True),
        ((2.0, 3.0), (1.0, 2.5), Sense.MAXIMIZE, False),
        ((2.0, None), (1.0, 1.5), Sense.MAXIMIZE, True),
        ((2.0, None), (1.0, None), Sense.MAXIMIZE, False),
        ((1.0, 0.5), (2.0, 1.5), Sense.MINIMIZE, True),
        ((1.0, 0.5), (2.0, 0.75), Sense.MINIMIZE, False),
        ((1.0, 1.0), (1.0 + 1e-9, 1.0 + 1e-9), Sense.MAXIMIZE, False),
    ],
)
def test_values_beyond_bounds(
    one: tuple[float, float | None], other: tuple[float, float | None], sense: Sense, expected: bool
) -> None:
    results = [
        Result("q", Verdict.FOUND, "", objective=ObjectiveValue(value, bound, sense, "margin"))
        for value, bound in (one, other)
    ]
    assert excluded(results) is expected
    assert excluded(results[::-1]) is expected


def test_compare_names_the_command(folder: Path) -> None:
    ran = run_command(folder, "compare", "q.sens", "two", "-b", "native,cpsat")
    assert ran.returncode == 0
    assert "treesens reduce" not in ran.stderr
