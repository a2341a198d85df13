"""All cavities: points are judged as the definition says, and what is learnt is a maximal box without rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.query.cavities import Box, Cavities
from treesens.data.cavities import learn_at


def in_a_cavity(rows: Int32Array, point: Int32Array, width: int) -> bool:
    """Whether some features, at most `width`, have no row that agrees with the point on them."""
    bits = 1 << np.arange(rows.shape[1])
    agree = set(((rows == point) @ bits).tolist())
    chosen = (sum(some) for n in range(1, width + 1) for some in itertools.combinations(bits.tolist(), n))
    return any(all(one & some != some for one in agree) for some in chosen)


def rows_in(rows: Int32Array, box: Box) -> int:
    inside = np.ones(len(rows), bool)
    for f, low, high in box:
        inside &= (rows[:, f] >= low) & (rows[:, f] <= high)
    return int(inside.sum())


def a_table(seed: int) -> tuple[Int32Array, Int32Array]:
    """Few rows over four features, some of them with a value in no cell."""
    rng = np.random.default_rng(seed)
    n_cells = rng.integers(2, 6, 4).astype(np.int32)
    count = int(rng.integers(3, 60))
    rows = np.stack([rng.integers(0, n, count) for n in n_cells], axis=1).astype(np.int32)
    rows[rng.random(rows.shape) < 0.05] = -1
    return rows, n_cells


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("width", [1, 2, 3, 4, 9])
@pytest.mark.sampled
def test_every_point_is_judged_as_the_definition_says(seed: int, width: int) -> None:
    rows, n_cells = a_table(seed)
    cavities = Cavities(rows, n_cells, width)
    for point in itertools.product(*map(range, n_cells)):
        cells = np.array(point, np.int32)
        assert cavities.hold(cells) == in_a_cavity(rows, cells, min(width, 4))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.sampled
def test_boxes_that_are_learnt_hold_the_point_and_no_row_and_cannot_grow(seed: int, width: int) -> None:
    rows, n_cells = a_table(seed)
    cavities = Cavities(rows, n_cells, width)
    for point in itertools.product(*map(range, n_cells)):
        before = len(cavities.known)
        cells = np.array(point, np.int32)
        new = learn_at(cavities, cells)
        assert len(cavities.known) == before + new
        for box in cavities.known[before:]:
            assert len(box) <= width
            assert all(low <= point[f] <= high for f, low, high in box)
            assert rows_in(rows, box) == 0
            for i, (f, low, high) in enumerate(box):
                for wider in ((f, low - 1, high), (f, low, high + 1)):
                    if wider[1] >= 0 and wider[2] < n_cells[f]:
                        assert rows_in(rows, (*box[:i], wider, *box[i + 1 :])) > 0


def test_many_features_cost_little() -> None:
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 2, (200, 784)).astype(np.int32)
    cavities = Cavities(rows, np.full(784, 2, np.int32), 5)
    assert not cavities.hold(rows[17])
    apart = rows[17].copy()
    apart[:9] = 1 - apart[:9]
    found = cavities.separating(apart, 4)
    assert found
    for chosen in found:
        assert not (rows[:, list(chosen)] == apart[list(chosen)]).all(axis=1).any()
