"""Sizes and spreads that may only fall: a change that lowers one lowers its limit here, and none raises it without an ADR."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.extensions

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "treesens"


def python_files(*, core: bool = False) -> Iterator[Path]:
    for path in SOURCES.rglob("*.py"):
        if not (core and path.is_relative_to(SOURCES / "extensions")):
            yield path


def lines(paths: Iterator[Path]) -> int:
    return sum(path.read_text("utf-8").count("\n") for path in paths)


def files_that_name(word: str) -> int:
    return sum(bool(re.search(word, path.read_text("utf-8"))) for path in python_files())


def spine() -> list[Path]:
    """The files that docs/architecture.md names as the spine."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("## The spine")[2]
    return [
        SOURCES / name for name in re.findall(r"`([a-z_0-9/]+\.(?:py|hpp|cpp))`", page) if not name.startswith("tests")
    ]


def words_of_pages() -> int:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    pages = [ROOT / name for name in listed.split("\n") if name] or [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sum(len(page.read_text("utf-8").split()) for page in pages if page.is_file())


LIMITS: dict[str, tuple[Callable[[], int], int]] = {
    "lines of the core": (lambda: lines(python_files(core=True)), 49_510),
    "lines of Python": (lambda: lines(python_files()), 103_268),
    "files of Python": (lambda: sum(1 for _ in python_files()), 630),
    "files that name require_certificate": (lambda: files_that_name(r"\brequire_certificate\b"), 12),
    "files that name absolute_tolerance": (lambda: files_that_name(r"\babsolute_tolerance\b"), 3),
    "lines of C++": (lambda: lines(p for p in (SOURCES / "engine").rglob("*.?pp")), 18_143),
    "lines of the spine": (lambda: lines(iter(spine())), 11_000),
    "words of pages": (words_of_pages, 59_200),
}


@pytest.mark.parametrize("what", LIMITS)
def test_nothing_grows(what: str) -> None:
    count, limit = LIMITS[what]
    assert count() <= limit


def test_the_spine_is_one_of_files() -> None:
    assert 40 <= len(spine()) <= 60
    assert all(path.is_file() for path in spine())
