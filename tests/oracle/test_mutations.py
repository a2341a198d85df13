"""The planted errors still have their places in the sources; `make mutations` says whether each is found."""

from __future__ import annotations

import re

import pytest

from tests.oracle.mutations import MUTATIONS, SOURCES


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[m.name for m in MUTATIONS])
def test_every_error_can_be_planted(mutation) -> None:
    text = (SOURCES / mutation.file).read_text()
    changed, times = re.subn(mutation.pattern, mutation.replacement, text, count=1)
    assert times == 1
    compile(changed, mutation.file, "exec")
