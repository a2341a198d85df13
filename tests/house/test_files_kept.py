"""What is committed: nothing that a command writes, and at the root only what is named here."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AT_THE_ROOT = {
    ".clang-format",
    ".clang-tidy",
    ".gitignore",
    ".pre-commit-hooks.yaml",
    "CHANGELOG.md",
    "CITATION.cff",
    "CMakeLists.txt",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "action.yml",
    "mkdocs.yml",
    "pyproject.toml",
    # links into the package (CONTRIBUTING)
    "backends",
    "compiler",
    "engine",
    "frontends",
    "grammar",
}
WRITTEN = (".sqlite", ".sqlite-wal", ".sqlite-shm", ".lock", ".log", ".tmp", ".pyc", ".so", ".orig", ".rej", ".pid")
"""How the names of journals, logs and what tools leave behind end."""


def committed() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this tree is no checkout")
    return [name for name in listed.stdout.decode().split("\0") if name]


def test_the_root_holds_what_is_named() -> None:
    assert {name for name in committed() if "/" not in name} == AT_THE_ROOT


def test_no_journal_or_log_is_committed() -> None:
    assert [name for name in committed() if name.endswith(WRITTEN)] == []


def test_what_a_command_writes_by_default_is_ignored() -> None:
    """A benchmark that is asked in the checkout leaves its results there, and a commit of everything must not take them."""
    names = ["bench.jsonl", "bench.jsonl.sqlite", "bench.jsonl.sqlite.lock"]
    ignored = subprocess.run(["git", "check-ignore", *names], cwd=ROOT, capture_output=True, text=True, check=False)
    if ignored.returncode == 128:
        pytest.skip("this tree is no checkout")
    assert ignored.stdout.split() == names


def test_no_file_reaches_out_of_the_checkout() -> None:
    """A test of files next to the checkout is skipped wherever they are missing, and says nothing."""
    outside = []
    for name in (name for name in committed() if name.endswith(".py")):
        text = (ROOT / name).read_text("utf-8")
        levels = re.findall(r"__file__\)(?:\.resolve\(\))?\.parents\[(\d+)\]", text)
        outside += [name for level in levels if int(level) > name.count("/")]
    assert outside == []


def test_files_that_texts_name_exist() -> None:
    """A docstring or a page that names a file in backticks, with or without its folder, names one that is there."""
    files = [name for name in committed() if name.endswith((".py", ".md", ".cpp", ".hpp"))]
    there = {"/" + name for name in committed()}
    named = [
        (name, file)
        for name in files
        for file in re.findall(r"`((?:\w+/)*[a-z_0-9]+\.(?:py|cpp|hpp))`", (ROOT / name).read_text("utf-8"))
    ]
    assert len(named) > 200
    assert [pair for pair in named if not any(place.endswith("/" + pair[1]) for place in there)] == []
