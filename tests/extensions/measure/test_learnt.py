"""Trees of pairwise marginals against scikit-learn's mutual information and sums over every combination of bins."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import FeatureGrid, Grid
from treesens.extensions.measure.measure import BINS, Measure, chow_liu, marginals


def grid_of(*cells: int, missing: bool = False) -> Grid:
    features = (FeatureGrid(f"f{i}", NumberType.FLOAT64, np.arange(1.0, n)) for i, n in enumerate(cells))
    return Grid(tuple(f.with_missing(missing) for f in features))


def chained(rows: int, cells: int, seed: int) -> np.ndarray:
    """Every column is a noisy copy of one before it, so that dependences differ clearly."""
    random = np.random.default_rng(seed)
    columns = [random.integers(0, cells, rows)]
    for i, noise in enumerate((0.1, 0.3, 0.5)):
        copy = columns[random.integers(0, i + 1)]
        columns.append(np.where(random.random(rows) < noise, random.integers(0, cells, rows), copy))
    return np.stack(columns, axis=1).astype(np.int32)


def probability(measure: Measure, cells: tuple[int, ...]) -> float:
    """Of one combination of cells, factor by factor."""
    result = 1.0
    for f, cell in enumerate(cells):
        bins, weights = measure.bins[f], measure.weights[f]
        parent = int(measure.parent[f])
        row = 0 if parent < 0 else measure.bins[parent][cells[parent]]
        inside = weights[cell] / weights[bins == bins[cell]].sum()
        result *= measure.tables[f][row, bins[cell]] * inside
    return result


@pytest.mark.parametrize("seed", range(5))
def test_edges_are_those_of_the_greatest_mutual_information(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    graphs = pytest.importorskip("scipy.sparse.csgraph")
    cells = chained(400, 4, seed)
    found = chow_liu(cells, grid_of(4, 4, 4, 4))
    information = np.zeros((4, 4))
    for i in range(4):
        for j in range(i + 1, 4):
            information[i, j] = metrics.mutual_info_score(cells[:, i], cells[:, j])
    spanning = graphs.minimum_spanning_tree(-information).toarray()
    expected = {frozenset(edge) for edge in np.argwhere(spanning).tolist()}
    edges = {frozenset((f, int(p))) for f, p in enumerate(found.parent) if p >= 0}
    assert edges == expected


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_add_up_and_marginals_stay_those_of_the_rows(seed: int) -> None:
    cells = chained(300, 4, seed)
    for measure in (chow_liu(cells, grid_of(4, 4, 4, 4)), marginals(cells, grid_of(4, 4, 4, 4))):
        table = np.zeros((4, 4, 4, 4))
        for place in product(range(4), repeat=4):
            if measure.name == "chow-liu":
                table[place] = probability(measure, place)
            else:
                table[place] = np.prod([(cells[:, f] == c).mean() for f, c in enumerate(place)])
        assert table.sum() == pytest.approx(1)
        for f in range(4):
            own = table.sum(axis=tuple(i for i in range(4) if i != f))
            rows = np.bincount(cells[:, f], minlength=4) / len(cells)
            assert own == pytest.approx(rows)
            assert measure.shares(f) == pytest.approx(rows)


def test_pairs_that_no_row_has_are_possible_and_rare() -> None:
    cells = np.repeat(np.array([[0, 0], [1, 1]], np.int32), 50, axis=0)
    measure = chow_liu(cells, grid_of(2, 2))
    assert probability(measure, (0, 1)) == pytest.approx(0.25 / 101)
    assert probability(measure, (0, 0)) == pytest.approx(50.25 / 101)


def test_bins_are_runs_of_cells_that_all_have_rows() -> None:
    random = np.random.default_rng(1)
    cells = np.stack([random.geometric(0.05, 2_000) % 100, random.integers(0, 3, 2_000)], axis=1).astype(np.int32)
    cells[:50, 1] = 3
    measure = chow_liu(cells, grid_of(100, 3, missing=True))
    steps = np.diff(measure.bins[0])
    assert set(steps.tolist()) <= {0, 1}
    assert 8 <= measure.bins[0].max() + 1 <= BINS + 1
    counts = np.bincount(measure.bins[0], measure.weights[0])
    assert (counts > 0).all()
    assert measure.bins[1].tolist() == [0, 1, 2, 3]  # missing is a bin of its own
