"""The first command of README.md and docs/index.md prints what they show, and the picture shows the same numbers."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import run_command

ROOT = Path(__file__).parents[2]
SHOWN = re.compile(r"^```console\n\$ treesens (audit .*)\n((?:.*\n)*?)```$", re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples with the models that their script trains."""
    there = tmp_path_factory.mktemp("first")
    (there / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "train.py", there / "examples")
    subprocess.run([sys.executable, "examples/train.py"], cwd=there, check=True, capture_output=True)
    return there


def test_the_first_command_prints_what_the_pages_show(folder: Path) -> None:
    (words, shown), other = (
        SHOWN.findall((ROOT / page).read_text("utf-8"))[0] for page in ("README.md", "docs/index.md")
    )
    assert (words, shown) == other
    done = run_command(folder, *words.split(), COLUMNS="80")
    assert done.returncode == 0, done.stderr
    lines = shown.splitlines()
    assert len(lines) > 5
    assert set(lines) - {"…"} <= {line.rstrip() for line in done.stdout.splitlines()}, done.stdout
    picture = (ROOT / "docs" / "images" / "flips.svg").read_text("utf-8")
    drawn = re.findall(r"<!-- ([\d,]+) of 1,500 -->", picture)
    assert sorted(drawn) == sorted(re.findall(r"gap 0\.1 +([\d,]+)  found", done.stdout))
