"""docs/paper.md names code and tests: each file that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT, ROOT / "src" / "treesens")


def test_every_file_that_is_named_exists() -> None:
    text = (ROOT / "docs" / "paper.md").read_text()
    named = set(re.findall(r"`([\w/]+\.(?:py|md|jsonl|svg))`", text))
    assert len(named) > 10
    missing = sorted(name for name in named if not any((folder / name).exists() for folder in FOLDERS))
    assert missing == []
