"""Every example runs and ends as its first line says; the demo answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import run_command

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXIT_CODES = {"expect_fails.sens": 10, "monotonicity.sens": 0}
FILES = sorted(path.name for path in EXAMPLES.glob("*.sens") if path.name != "demo.sens")


@pytest.fixture(scope="module", autouse=True)
def models() -> None:
    """The models of the examples, trained once (two workers may do so at the same time: same seed, same files)."""
    subprocess.run([sys.executable, str(EXAMPLES / "train.py")], check=True, capture_output=True)


def test_there_is_an_example_of_every_kind() -> None:
    assert len(FILES) >= 8


@pytest.mark.parametrize("name", FILES)
def test_an_example_runs(name: str) -> None:
    done = run_command(EXAMPLES, "check", name, "--time-limit", "40")
    assert done.returncode == EXIT_CODES.get(name, 0), done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_demo_audits_a_model_that_its_question_is_about() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLES / "demo.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "the report: " in done.stdout
    command = [sys.executable, "-m", "treesens", "check", str(EXAMPLES / "demo.sens"), "--replay", "library"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
    assert "verified (library replay)" in asked.stdout
