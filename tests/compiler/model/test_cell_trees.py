"""Trees over cells: side by side they are what each of them is, and the engine has them once."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.compiler.model.build import random_ensemble, random_rows
from treesens.compiler.model.cell_trees import CellTrees, side_by_side
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.model.grid import Grid


def models(seed: int) -> list[CellEnsemble]:
    """Three models of different sizes over the same features, on a grid that has the cuts of all."""
    ensembles = [random_ensemble(seed, trees=trees, depth=depth) for trees, depth in ((3, 4), (1, 0), (5, 2))]
    grid = ensembles[0].grid(missing=True)
    for other in ensembles[1:]:
        pairs = zip(grid, other.grid(missing=True), strict=True)
        grid = Grid(tuple(f if f.categories else f.refined(g.cuts) for f, g in pairs))
    return [ensemble.on(grid) for ensemble in ensembles]


@pytest.mark.parametrize("seed", range(12))
def test_trees_side_by_side_reach_the_leaves_of_each(seed: int) -> None:
    parts = models(seed)
    joined = side_by_side(parts)
    rows = parts[0].grid.cells(random_rows(parts[0].ensemble, 50, seed))
    reached = np.empty((len(rows), joined.n_trees), np.int32)
    joined.engine.reach_leaves(rows, reached)
    before = np.cumsum([0, *(part.n_leaves for part in parts)])
    assert joined.n_leaves == before[-1]
    expected = [part.leaves(rows) + start for part, start in zip(parts, before, strict=False)]
    assert (reached == np.concatenate(expected, axis=1)).all()


def test_one_part_stays_as_it_is_and_the_engine_has_it_once() -> None:
    part = models(1)[0]
    assert side_by_side([part]) is part
    assert part.engine is part.engine


def test_what_the_engine_reads_cannot_be_written() -> None:
    part = models(2)[0]
    writable = CellTrees(part.grid, *(np.array(getattr(part, name)) for name in ARRAYS))
    for name in ARRAYS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(writable, name)[...] = 0


@pytest.mark.parametrize("seed", range(4))
def test_another_process_makes_the_object_of_the_engine_anew(seed: int) -> None:
    part = models(seed)[0]
    rows = part.grid.cells(random_rows(part.ensemble, 20, seed))
    expected = part.leaves(rows)
    sent: CellEnsemble = pickle.loads(pickle.dumps(part))
    assert "engine" in vars(part)
    assert "engine" not in vars(sent)
    assert (sent.leaves(rows) == expected).all()


ARRAYS = (
    "root", "feature", "cut", "left", "right", "leaf", "default_left", "category_set", "set_offset", "set_member",
)  # fmt: skip
