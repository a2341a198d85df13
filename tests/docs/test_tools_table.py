"""Every command in the table of tools of docs/extending.md runs on an example, and prints what its row says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import run_command

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "extending.md").read_text("utf-8").partition("### Tools\n")[2].partition("\n## ")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.splitlines() if line.startswith("|")]
COMMANDS = {row[0]: row[1].strip("`") for row in ROWS[2:]}
PRINTS = {
    "run passes": 'by "leaf-rows{intervals=true}"',
    "list passes": "pipeline default: merge-guards,",
    "print the IR": "; before drop-dead",
    "print changes": "+++ after merge-guards",
    "measure passes": '"legalisation": {',
    "verify modules": "relation equisatisfiable",
    "test passes": "relation equisatisfiable",
    "explain passes": "remark: drop-dead: passed: tree 0: leaves fixed (1)",
    "read and write the IR": "op leaf-sum indptr=0,",
    "write a solver's format": "ROWS",
    "compare solvers": "cpsat",
    "list solvers": "LeafImplies",
    "set a solver's options": "highs",
    "answer the IR": "no model",
    "replace a parameter": '"radius": "0.02"',
    "run with seeds": "–",
    "reduce a fault": "1 rows",
}


@pytest.fixture(scope="module", autouse=True)
def models() -> None:
    subprocess.run([sys.executable, str(ROOT / "examples" / "train.py")], check=True, capture_output=True)


def test_every_row_has_one_command_and_a_counterpart() -> None:
    assert {len(row) for row in ROWS} == {6}
    assert COMMANDS.keys() == PRINTS.keys()
    assert all(re.fullmatch(r"treesens [a-z]+ [^`]*|treesens [a-z]+", command) for command in COMMANDS.values())
    assert all(any(row[2:]) for row in ROWS[2:])


@pytest.mark.parametrize("task", COMMANDS)
def test_a_command_runs(task: str) -> None:
    done = run_command(ROOT, *shlex.split(COMMANDS[task])[1:])
    assert done.returncode == 0, done.stderr
    assert PRINTS[task] in done.stdout + done.stderr
