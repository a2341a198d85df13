"""Every field of a saved file, changed: the library, our reader and the checker agree, or the file is refused.

A part of the changes, another one for each format; `python -m tests.frontends.changed_fields` judges all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frontends.changed_fields import FORMATS, judge_all

PARTS = 16


@pytest.mark.parametrize("name", FORMATS)
def test_library_reader_and_checker_agree(name: str, tmp_path: Path) -> None:
    part = list(FORMATS).index(name) % PARTS
    tally = judge_all(FORMATS[name], tmp_path, (part, PARTS))
    assert tally.wrong == []
    assert tally.equal > 0
    assert tally.refused > 0
