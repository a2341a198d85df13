"""Tasks of a study come back in their order, if one look finds several of them ended."""

from __future__ import annotations

from functools import partial

import pytest

from treesens.extensions.studies.running import as_finished


@pytest.mark.parametrize("threads", [1, 4])
def test_tasks_that_end_at_once_keep_their_order(threads: int) -> None:
    found = list(as_finished([partial(int, i) for i in range(300)], threads))
    assert sorted(found) == [(i, i) for i in range(300)]
    if threads == 1:
        assert found == [(i, i) for i in range(300)]
