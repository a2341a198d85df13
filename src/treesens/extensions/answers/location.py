"""The region of a witness, its nearest row of a table, and values near that row.

The distance is over the features that the question does not vary, in widths of their domains (paper, section 6: l2 over
insensitive features). A missing value is one width from every other value, and different unordered values from each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array
from treesens.compiler.base.floats import next_down_array
from treesens.compiler.model.grid import FeatureGrid
from treesens.compiler.query.domain import Domain, ValueDomain, cell_range
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.query import Query, Space
from treesens.compiler.result import NearestRow, Region, Result
from treesens.extensions.answers.regions import RegionFinder
from treesens.solve.options import Options
from treesens.values.verify import Witness, verify_cells


def intervals(domain: Domain, grid: FeatureGrid, mask: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The legal values of the present cells in `mask`, as closed intervals in ascending order."""
    cells = np.flatnonzero(mask[: grid.present_cells])
    if isinstance(domain, ValueDomain):
        values = domain.values[np.isin(grid.cell_of(domain.values), cells)]
        return values, values
    if domain.whole or grid.categories:
        ranges = [cell_range(domain, grid, int(c)) for c in cells]
        ends = np.array(ranges, np.float64).reshape(-1, 2)
    else:
        limit = grid.number_type.max
        lows = np.append(-limit, grid.cuts)[cells]
        highs = np.append(next_down_array(grid.cuts, grid.number_type), limit)[cells]
        ends = np.column_stack((np.maximum(lows, domain.low), np.minimum(highs, domain.high)))
    ends = ends[ends[:, 0] <= ends[:, 1]]
    return ends[:, 0], ends[:, 1]


def unordered(space: Space, feature: int) -> bool:
    """True if the values of a feature can only be compared for equality."""
    domain = space.domains[feature]
    if space.grid[feature].categories:
        return True
    return (
        isinstance(domain, ValueDomain) and not isinstance(domain.labels, range) and isinstance(domain.labels[0], str)
    )


def width(space: Space, feature: int, column: FloatArray) -> float:
    """The unit of a feature: the width of the feature's domain or, if the domain is unbounded, of its column in the table."""
    if unordered(space, feature):
        return 1.0
    domain, limit = space.domains[feature], space.grid[feature].number_type.max
    if isinstance(domain, ValueDomain):
        low, high = float(domain.values[0]), float(domain.values[-1])
    else:
        low, high = domain.low, domain.high
    if low <= -limit or high >= limit:
        present = column[np.isfinite(column)]
        low, high = (float(present.min()), float(present.max())) if len(present) else (0.0, 1.0)
    return (high - low) or 1.0


def distances_to_set(
    domain: Domain, grid: FeatureGrid, mask: BoolArray, column: FloatArray, unit: float, *, ordered: bool
) -> FloatArray:
    """The distances of the values `column`, float64[rows], to the nearest legal value in a set of cells, in units of `unit`."""
    values, place = np.unique(column, return_inverse=True, equal_nan=True)
    absent = np.isnan(values)
    lows, highs = intervals(domain, grid, mask)
    result = np.ones(len(values))
    if len(lows):
        at = np.where(absent, lows[0], values)
        after = np.searchsorted(lows, at, side="right")
        below = np.where(after > 0, np.maximum(at - highs[np.maximum(after - 1, 0)], 0.0), np.inf)
        above = np.where(after < len(lows), lows[np.minimum(after, len(lows) - 1)] - at, np.inf)
        gap = np.minimum(below, np.maximum(above, 0.0))
        result = gap / unit if ordered else (gap > 0).astype(np.float64)
    takes_missing = bool(grid.missing and mask[grid.missing_cell])
    result[absent] = 0.0 if takes_missing else 1.0
    return np.asarray(result[place], np.float64)


def distances(query: Query, masks: Iterable[BoolArray], rows: FloatArray) -> FloatArray:
    """The l2 distances of `rows`, float64[rows, features], to a box, over the features that the question does not vary."""
    space = query.space
    total = np.zeros(len(rows))
    for f, mask in enumerate(masks):
        column = rows[:, f]
        if space.names[f] in query.varied or (mask.all() and not np.isnan(column).any()):
            continue
        ordered = not unordered(space, f)
        total += (
            distances_to_set(space.domains[f], space.grid[f], mask, column, width(space, f, column), ordered=ordered)
            ** 2
        )
    return np.sqrt(total)


def nearest_row(query: Query, data: str, rows: FloatArray, cells: Int32Array, region: Region | None) -> NearestRow:
    """The row nearest to the region around a witness or, without a region, to the cells of the witness.

    `cells` is int32[points, features]. The distance is from the first point; the second point shares its counted features.
    """
    box = box_of_cells(query, cells[0])
    found = distances(query, box if region is None else region.boxes[0], rows)
    index = int(np.argmin(found))
    return NearestRow(data, index, float(found[index]), float(distances(query, box, rows[index : index + 1])[0]))


def box_of_cells(query: Query, cells: Int32Array) -> tuple[BoolArray, ...]:
    """The box with one cell per feature, from `cells`, int32[features]."""
    box = []
    for legal, cell in zip(query.space.legal, cells, strict=True):
        mask = np.zeros(len(legal), bool)
        mask[cell] = True
        box.append(mask)
    return tuple(box)


def cells_near(query: Query, region: Region, cells: Int32Array, row: FloatArray) -> Int32Array:
    """The cells of the region, int32[points, features], that are nearest to a row; varied features are unchanged."""
    result = cells.copy()
    space = query.space
    for f in sorted(region.shared):
        mask = region.boxes[0][f]
        grid = space.grid[f]
        value = row[f]
        if np.isnan(value):
            if grid.missing and mask[grid.missing_cell]:
                result[:, f] = grid.missing_cell
            continue
        inside = np.flatnonzero(mask[: grid.present_cells])
        if len(inside) == 0:
            continue
        own = int(grid.cell_of(np.array([value]))[0])
        if unordered(space, f):
            result[:, f] = own if mask[own] else cells[:, f]
        else:
            result[:, f] = inside[np.argmin(np.abs(inside - own))]
    return result


def locate(query: ResolvedQuestion, table: tuple[str, FloatArray] | None, result: Result, options: Options) -> Result:
    """The answer with its region and the nearest row of `table` (name and rows), and with the witness at values near that row.

    Without an objective, the witness is also moved to the region's cells nearest to the row. No move worsens an objective.
    """
    witness, typed = result.witness, query.query
    if witness is None or (table is None and not options.regions):
        return result
    region = RegionFinder(typed).region(witness.cells)
    if table is None:
        return replace(result, region=region)
    name, rows = table
    nearest = nearest_row(typed, name, rows, witness.cells, region)
    if result.backend != "rows" and _movable(typed):
        row = rows[nearest.index]
        cells = witness.cells
        if region is not None and typed.objective is None:
            cells = cells_near(typed, region, cells, row)
        moved = verify_cells(typed, cells, near=row, library_predict=options.library_predict)
        if isinstance(moved, Witness) and not worse(typed, moved, witness):
            witness = moved
            nearest = replace(
                nearest, point_distance=nearest_row(typed, name, rows[nearest.index :][:1], moved.cells, None).distance
            )
    return replace(result, witness=witness, region=region, nearest=nearest)


def _movable(query: Query) -> bool:
    """True if some values of a point may be chosen freely; False for objectives over all values, or for the nearest row."""
    goal = query.objective
    if goal is None:
        return True
    settled = {place for term in goal.values for place in term.places}
    return goal.nearest is None and len(settled) < len(query.points) * len(query.space.names)


def worse(query: Query, moved: Witness, witness: Witness) -> bool:
    """True if moving the witness worsens the objective."""
    goal = query.objective
    if goal is None or goal.nearest is not None:
        return False
    before, after = (objective_form_value(goal, inputs_of(query, w.values)) for w in (witness, moved))
    return after < before if goal.maximize else after > before
