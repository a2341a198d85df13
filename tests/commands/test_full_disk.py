"""A full disk loses no answer: journals that cannot be written become a warning, and proved answers are printed.

Files past a limit of the process (RLIMIT_FSIZE) cannot grow, as on a full disk; `/dev/full` takes nothing. Where the tests may
mount, a small file system is filled as well.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import run_command
from tests.extensions.certify.models import train

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="limits of files, /dev/full and tmpfs are those of Linux"
)

ROWS = [(f0 / 2, f1 / 2, f2 / 2, (f0 + f1 + f2) % 2) for f0 in range(4) for f1 in range(4) for f2 in range(4)]
QUESTIONS = """model m from "m.json"
data d from "d.csv" label "y"
domain from d
for each f in features:
  query gap: sensitive m to f gap 0.01
for each f in features:
  query margin: sensitive m to f margin 0.1
query likely: find a in m such that margin(a) >= 0 maximize likelihood(a, d) top 3
"""
COMMANDS = {
    "robust": ["robust", "m.json", "--data", "d.csv", "--label", "y", "--rows", "0-15", "-t", "20"],
    "check": ["check", "q.sens", "-t", "20"],
    "sweep": ["sweep", "s.toml", "-j", "1"],
}
TIMES = re.compile(r"\d+(\.\d+)? (s|MB)\b|peak.*")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("full")
    train(4, place / "m.json")
    lines = ["f0,f1,f2,y", *(",".join(map(str, row)) for row in ROWS)]
    (place / "d.csv").write_text("\n".join(lines) + "\n")
    (place / "q.sens").write_text(QUESTIONS)
    sizes = ", ".join(str(k / 100) for k in range(1, 40, 4))
    (place / "s.toml").write_text(
        f'models = ["m.json"]\ndata = "d.csv"\nlabel = "y"\nfeatures = "all"\nmargins = [{sizes}]\ntime_limit = 20\n'
    )
    return place


def run(folder: Path, *words: str, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command with a limit on the size of its files, in bytes."""
    return run_command(folder, *words, limits={"RLIMIT_FSIZE": limit} if limit else None, COLUMNS="200")


def without_times(text: str) -> str:
    return TIMES.sub("", text)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_journal_that_can_no_longer_be_written_is_a_warning(command: str, folder: Path, tmp_path: Path) -> None:
    words = COMMANDS[command]
    whole = run(folder, *words, "--journal", str(tmp_path / "whole.sqlite"))
    done = run(folder, *words, "--journal", str(tmp_path / "j.sqlite"), limit=50_000)
    assert "journal can no longer be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == whole.returncode
    assert without_times(done.stdout) == without_times(whole.stdout)
    again = run(folder, *words, "--journal", str(tmp_path / "j.sqlite"))
    assert without_times(again.stdout).count("found") == without_times(whole.stdout).count("found")
    assert again.returncode == whole.returncode


def test_results_that_can_no_longer_be_written_are_a_warning(folder: Path, tmp_path: Path) -> None:
    lines = [
        json.dumps({"model": "m.json", "feature": f, "gap": str(k / 100)}) for f in range(3) for k in range(1, 40, 2)
    ]
    (tmp_path / "list.jsonl").write_text("\n".join(lines) + "\n")
    words = ["bench", str(tmp_path / "list.jsonl"), "--models", ".", "-b", "native", "-o"]
    whole = run(folder, *words, str(tmp_path / "whole.jsonl"))
    (tmp_path / "full.jsonl").symlink_to("/dev/full")
    (tmp_path / "full.jsonl.sqlite").touch()
    done = run(folder, *words, str(tmp_path / "full.jsonl"))
    assert "full.jsonl can no longer be written" in done.stderr
    assert done.returncode == whole.returncode == 0
    assert counts_of(done.stdout) == counts_of(whole.stdout)


def counts_of(table: str) -> list[str]:
    """The line of a summary, without its times."""
    return [line.split()[:5] for line in table.splitlines() if line.strip().startswith("native")]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_journal_that_cannot_be_begun_says_so(command: str, folder: Path, tmp_path: Path) -> None:
    done = run(folder, *COMMANDS[command], "--journal", str(tmp_path / "j.sqlite"), limit=1000)
    assert done.returncode == 1
    assert "the journal cannot be opened" in done.stderr
    assert "another run" not in done.stderr


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A file system without room."""
    place = tmp_path / "full"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], check=False, capture_output=True
    ).returncode:
        pytest.skip("only root mounts a file system")
    try:
        (place / "fill").write_bytes(bytes(65536))
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_named(folder: Path, full: Path) -> None:
    done = run(folder, *COMMANDS["robust"], "--journal", str(full / "j.sqlite"))
    assert "the journal cannot be opened: the disk is full" in done.stderr


def test_a_repair_says_what_it_proved(folder: Path, tmp_path: Path) -> None:
    """The price and the proof are those of a run that can write."""
    (tmp_path / "full.json").symlink_to("/dev/full")
    words = [
        "repair",
        "m.json",
        "--data",
        "d.csv",
        "--label",
        "y",
        "--vary",
        "f0",
        "--gap",
        "0.2",
        "--method",
        "average",
    ]
    whole = run(folder, *words, "-o", str(tmp_path / "out.json"))
    lost = run(folder, *words, "-o", str(tmp_path / "full.json"))
    assert whole.returncode == 0, whole.stderr
    assert (tmp_path / "out.json").exists()
    assert lost.returncode == 1
    assert "proved, but" in lost.stderr
    assert "No space left on device" in lost.stderr
    price = next(line for line in whole.stdout.splitlines() if "0.2 " in line).rsplit(maxsplit=1)[0]
    assert price in lost.stdout
    assert "not written" in lost.stdout
