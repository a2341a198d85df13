"""Ragged and packed arrays against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from treesens.compiler.base.arrays import distinct, first_equal_rows, groups_of, indptr_of


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_equal_where_their_entries_and_heads_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [sorted(rng.integers(-2, 3, rng.integers(0, 4)).tolist()) for _ in range(200)]
    heads = rng.integers(0, 2, 200)
    flags = rng.integers(0, 2, 200).astype(bool)
    entries = np.array([v for row in rows for v in row], np.int64)
    first = first_equal_rows(indptr_of([len(row) for row in rows]), entries, heads, flags)
    keys = [(tuple(row), int(head), bool(flag)) for row, head, flag in zip(rows, heads, flags, strict=True)]
    assert first.tolist() == [keys.index(key) for key in keys]


def test_no_rows_have_no_equals() -> None:
    assert len(first_equal_rows(np.zeros(1, np.int64), np.zeros(0, np.int64))) == 0


@pytest.mark.parametrize("ascending", [False, True])
def test_groups_sum_up_what_belongs_together(ascending: bool) -> None:
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 9, 100)
    keys = np.sort(keys) if ascending else keys
    values = rng.integers(0, 100, 100)
    found, order, starts = groups_of(keys)
    assert found.tolist() == sorted(set(keys.tolist()))
    assert np.add.reduceat(values[order], starts).tolist() == [int(values[keys == k].sum()) for k in found]


@pytest.mark.parametrize("values", [[], [3], [3, 1, 3, 2 << 40, 1]])
def test_distinct_values_ascend(values: list[int]) -> None:
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))
    nearly = [*range(100), *values]
    assert distinct(np.array(nearly, np.int64)).tolist() == sorted(set(nearly))
