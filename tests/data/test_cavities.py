"""Cavities: both builders give empty, maximal boxes, and the direct one knows all that z3 finds."""

from __future__ import annotations

import numpy as np
import pytest

from tests.counted import calls_of
from tests.data.cavities_z3 import z3_empty_boxes
from tests.data.settings import model, needs_bench, table
from treesens.compiler.base.arrays import Int32Array
from treesens.data.cavities import Boxes, maximal_empty_boxes
from treesens.data.rows import cells_of_rows

Box = tuple[tuple[int, int, int], ...]


def listed(boxes: Boxes) -> list[Box]:
    return [
        tuple((int(boxes.feature[k]), int(boxes.low[k]), int(boxes.high[k])) for k in range(start, end))
        for start, end in zip(boxes.indptr[:-1], boxes.indptr[1:], strict=True)
    ]


def rows_inside(cells: Int32Array, box: Box) -> int:
    inside = np.ones(len(cells), bool)
    for f, low, high in box:
        inside &= (cells[:, f] >= low) & (cells[:, f] <= high)
    return int(inside.sum())


def is_maximal(cells: Int32Array, n_cells: Int32Array, box: Box) -> bool:
    """No side can move outwards by a cell without meeting a row."""
    for place, (f, low, high) in enumerate(box):
        for side in ((f, low - 1, high), (f, low, high + 1)):
            fits = side[1] >= 0 and side[2] < n_cells[f]
            if fits and rows_inside(cells, (*box[:place], side, *box[place + 1 :])) == 0:
                return False
        if low == 0 and high == n_cells[f] - 1:
            return False
    return True


def published(name: str, data: str) -> tuple[Int32Array, Int32Array]:
    ensemble = model(name).ensemble
    grid = ensemble.grid()
    rows = ensemble.number_type.cast(table(data).matrix(ensemble.feature_names))
    return cells_of_rows(grid, rows), grid.n_cells


@pytest.mark.parametrize("builder", [maximal_empty_boxes, z3_empty_boxes])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sampled
def test_boxes_are_empty_and_maximal(builder, seed: int) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    n_cells = rng.integers(2, 7, 4).astype(np.int32)
    cells = np.stack([rng.integers(0, n, 25) for n in n_cells], axis=1).astype(np.int32)
    boxes = listed(builder(cells, n_cells, 3, 60))
    assert boxes
    for box in boxes:
        assert rows_inside(cells, box) == 0
        assert is_maximal(cells, n_cells, box)
    assert len(set(boxes)) == len(boxes)


@pytest.mark.parametrize("seed", range(4))
def test_z3_and_the_histogram_find_the_same_boxes_of_two_features(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    n_cells = rng.integers(3, 6, 3).astype(np.int32)
    cells = np.stack([rng.integers(0, n, 12) for n in n_cells], axis=1).astype(np.int32)
    direct = {frozenset(b) for b in listed(maximal_empty_boxes(cells, n_cells, 2, 10_000))}
    assert {frozenset(b) for b in listed(z3_empty_boxes(cells, n_cells, 2, 10_000))} == direct


@needs_bench
def test_clauses_of_z3_on_pimadiabetes_are_boxes_of_the_direct_builder() -> None:
    cells, n_cells = published("pimadiabetes_t200_d5", "pimadiabetes")
    direct = set(listed(maximal_empty_boxes(cells, n_cells, 2, 1_000_000)))
    boxes = listed(z3_empty_boxes(cells, n_cells, 3, 40, seconds=20.0))
    assert boxes
    for box in boxes:
        assert rows_inside(cells, box) == 0
        assert is_maximal(cells, n_cells, box)
        assert len(box) > 2 or box in direct


@needs_bench
def test_the_direct_builder_needs_few_calls_on_adult() -> None:
    cells, n_cells = published("adult_t300_d5", "adult")
    made = []
    assert calls_of(lambda: made.append(maximal_empty_boxes(cells, n_cells, 3, 1500))) < 1_000_000
    (boxes,) = made
    assert len(boxes) == 1500
    sizes = np.diff(boxes.indptr)
    assert (np.diff(sizes) >= 0).all()
    for box in listed(boxes)[::50]:
        assert rows_inside(cells, box) == 0
        assert is_maximal(cells, n_cells, box)
