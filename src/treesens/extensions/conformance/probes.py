"""Makes inputs for comparing an ensemble with its library: on thresholds, next to thresholds, and with unusual values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import next_down_array
from treesens.compiler.model import CellEnsemble, Ensemble, FeatureGrid, FeatureKind

Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Probe:
    """Rows, float64[n, features], and their purpose."""

    name: str
    rows: Float64


def probes(ensemble: Ensemble, rows: int, seed: int) -> list[Probe]:
    """All groups of rows. `rows` is the size of the random group; the directed group contains at most 8 times as many rows."""
    rng = np.random.default_rng(seed)
    cells = ensemble.on(ensemble.grid(missing=True))
    plain = _random_rows(ensemble, cells, rng, rows)
    groups = [
        Probe("random rows", plain),
        Probe("random rows with missing values", np.where(rng.random(plain.shape) < 0.3, np.nan, plain)),
        Probe("both sides of every node", _node_rows(cells, rng, 8 * rows)),
        Probe("every threshold and its neighbours", _threshold_rows(ensemble, plain, rng)),
        *_odd_rows(ensemble, plain, rng),
    ]
    groups += _whole(ensemble, groups, rng)
    return [probe for probe in groups if len(probe.rows)]


def _whole(ensemble: Ensemble, groups: list[Probe], rng: np.random.Generator) -> list[Probe]:
    """The same groups with integers, if some features are integers: a library may refuse other values."""
    integers = [f for f, feature in enumerate(ensemble.features) if feature.kind is FeatureKind.INTEGER]
    made = []
    for probe in groups if integers else []:
        rows = probe.rows.copy()
        with np.errstate(invalid="ignore"):
            column = rows[:, integers]
            rows[:, integers] = np.where(rng.random(column.shape) < 0.5, np.floor(column), np.ceil(column)) + 0.0
        made.append(Probe(f"{probe.name}, whole numbers", rows))
    return made


def _random_rows(ensemble: Ensemble, cells: CellEnsemble, rng: np.random.Generator, rows: int) -> Float64:
    x = np.empty((rows, ensemble.n_features))
    for f, grid in enumerate(cells.grid):
        if grid.categories:
            x[:, f] = rng.integers(0, grid.categories + 1, rows)
            continue
        cuts = grid.cuts if len(grid.cuts) else np.zeros(1)
        reach = max(float(np.ptp(cuts)), 1.0) / 10
        x[:, f] = rng.uniform(cuts[0] - reach, cuts[-1] + reach, rows)
        # Uniform values miss narrow cells; values near cuts do not.
        near = rng.random(rows) < 0.5
        x[near, f] = (rng.choice(cuts, rows) * (1 + rng.normal(0, 1e-3, rows)))[near]
    return x


def _node_rows(cells: CellEnsemble, rng: np.random.Generator, limit: int) -> Float64:
    """For every inner node, a row that reaches the node with a value just below the cut, and a row exactly on the cut."""
    boxes = cells.leaf_boxes()
    inner = np.flatnonzero((cells.feature >= 0) & (cells.category_set < 0))
    if len(inner) > limit // 2:
        inner = np.sort(rng.choice(inner, limit // 2, replace=False))
    leaf_of = _some_leaf_below(cells)
    made = []
    for node in inner.tolist():
        f, cut = int(cells.feature[node]), int(cells.cut[node])
        for child, cell in ((int(cells.left[node]), cut), (int(cells.right[node]), cut + 1)):
            if not 0 <= cell < cells.grid[f].present_cells:
                continue
            leaf = int(leaf_of[child])
            row = np.array([_in_cell(grid, int(rng.integers(grid.present_cells)), rng) for grid in cells.grid])
            for k in range(int(boxes.offset[leaf]), int(boxes.offset[leaf + 1])):
                g = int(boxes.feature[k])
                allowed = np.flatnonzero(boxes.allowed(k))
                if allowed.size:
                    row[g] = _in_cell(cells.grid[g], int(rng.choice(allowed)), rng)
            lo, hi = cells.grid[f].interval(cell)
            row[f] = hi if cell == cut else lo
            made.append(row)
    return np.array(made).reshape(len(made), len(cells.grid))


def _some_leaf_below(cells: CellEnsemble) -> NDArray[np.int32]:
    """A leaf below each node; children come after their parents, so one backward pass suffices."""
    leaf = cells.leaf.copy()
    for node in range(len(leaf) - 1, -1, -1):
        if leaf[node] < 0:
            leaf[node] = leaf[cells.left[node]]
    return leaf


def _in_cell(grid: FeatureGrid, cell: int, rng: np.random.Generator) -> float:
    if cell == grid.missing_cell:
        return float("nan")
    lo, hi = grid.interval(cell)
    if cell == 0:
        lo = hi - max(1.0, abs(hi)) if not grid.categories else lo
    if cell == grid.present_cells - 1:
        hi = lo + max(1.0, abs(lo))
    return float(lo if rng.random() < 0.5 else np.clip(grid.number_type.cast(rng.uniform(lo, hi)), lo, hi))


def _threshold_rows(ensemble: Ensemble, plain: Float64, rng: np.random.Generator) -> Float64:
    """Each distinct threshold, its neighbours in the input type and in float64, and the ties of the cast near the threshold."""
    made = []
    for f, grid in enumerate(ensemble.grid()):
        stored = np.unique(ensemble.threshold[(ensemble.node_feature == f) & (ensemble.category_set < 0)])
        stored = stored[np.isfinite(stored)]
        points = np.unique(np.concatenate([grid.cuts, stored]))
        below = next_down_array(points, grid.number_type)
        middle = points / 2 + below / 2  # exactly between two float32 numbers: the cast rounds to even
        values = [points, below, next_down_array(below, grid.number_type), -next_down_array(-points, grid.number_type)]
        for centre in (points, middle):
            values += [centre, np.nextafter(centre, -np.inf), np.nextafter(centre, np.inf)]
        column = np.unique(np.concatenate(values))
        rows = plain[rng.integers(len(plain), size=len(column))].copy()
        rows[:, f] = column
        made.append(rows)
    return np.concatenate(made) if made else plain[:0]


def _odd_rows(ensemble: Ensemble, plain: Float64, rng: np.random.Generator) -> list[Probe]:
    kind = ensemble.number_type
    groups = {
        "zeros, signed zeros and denormals": [
            0.0,
            -0.0,
            kind.tiny,
            -kind.tiny,
            kind.tiny / 2,
            1e-35,
            -1e-35,
            2e-35,
            1e-40,
        ],
        "missing values": [np.nan],
        "the largest values of the type": [kind.max, -kind.max],
        "infinities": [np.inf, -np.inf],
    }
    result = []
    for name, values in groups.items():
        result.append(Probe(name, _placed(plain, dict.fromkeys(range(ensemble.n_features), values), rng)))
    codes = {
        f: [0.0, n - 1.0, float(n), n + 7.0, 0.5, n - 0.5, -0.5, -1.0, -7.0, 2.0**24 - 1, 2.0**24, 1e30]
        for f, n in enumerate(feature.categories for feature in ensemble.features)
        if n
    }
    if codes:
        result.append(Probe("unseen and odd categories", _placed(plain, codes, rng)))
    return result


def _placed(plain: Float64, values: dict[int, list[float]], rng: np.random.Generator) -> Float64:
    """Rows with a single value placed in its column of a random row, and rows with values placed in all columns."""
    made = []
    for f, column in values.items():
        for value in column:
            rows = plain[rng.integers(len(plain), size=4)].copy()
            rows[:, f] = value
            made.append(rows)
    for i in range(max(len(column) for column in values.values())):
        row = plain[:1].copy()
        for f, column in values.items():
            row[0, f] = column[i % len(column)]
        made.append(row)
    return np.concatenate(made)
