"""What users see of treesens is what it was: a change that is wanted is written by `python -m tests.golden.surface --write`."""

from __future__ import annotations

import pytest

from tests.golden.surface import FOLDER, PARTS


@pytest.mark.parametrize("part", PARTS)
def test_what_users_see_is_what_it_was(part: str) -> None:
    today = dict(PARTS[part]())
    assert today
    for place, text in today.items():
        assert text == (FOLDER / place).read_text("utf-8"), place
    kept = {path.relative_to(FOLDER).as_posix() for path in (FOLDER / part).glob("*")}
    assert kept == {place for place in today if "/" in place}, "a file of what is gone"
