"""Maps an ensemble to a grid: thresholds become cell numbers, category sets become bytes per cell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.model.grid import Grid
from treesens.errors import ModelError

if TYPE_CHECKING:
    from treesens.compiler.model.ensemble import Ensemble


def lay_on(ensemble: Ensemble, grid: Grid) -> CellEnsemble:
    """The ensemble over `grid`, which must include all cuts and categories of the ensemble; the grid may be finer."""
    if len(grid) != ensemble.n_features:
        raise ModelError(f"the grid has {len(grid)} features, `{ensemble.name}` has {ensemble.n_features}")
    for feature, cells in zip(ensemble.features, grid, strict=True):
        kind = (ensemble.number_type, feature.categories > 0, feature.truncates)
        if (cells.number_type, cells.categories > 0, cells.truncates) != kind or cells.categories < feature.categories:
            raise ModelError(f"the grid of `{cells.name}` differs in kind from the model's `{feature.name}`")
    cut = _cuts(ensemble, grid)
    category_set, set_offset, set_member = _sets(ensemble, grid, cut)
    return CellEnsemble(
        ensemble=ensemble,
        grid=grid,
        root=ensemble.tree_offset[:-1].astype(np.int32),
        feature=ensemble.node_feature,
        cut=cut,
        left=ensemble.left,
        right=ensemble.right,
        leaf=ensemble.node_leaf,
        default_left=ensemble.default_left.astype(np.uint8),
        category_set=category_set,
        set_offset=set_offset,
        set_member=set_member,
    )


def refine(model: CellEnsemble, grid: Grid) -> CellEnsemble:
    """Like `lay_on`, for a grid that refines the model's own grid: only the numbers of the cuts change."""
    if all(new is old for new, old in zip(grid, model.grid, strict=True)):
        return model
    if (model.category_set >= 0).any():
        return lay_on(model.ensemble, grid)
    # Per feature: -1 (no value goes left), every cut, and the last cell (all values go left).
    tables = []
    for new, old in zip(grid, model.grid, strict=True):
        if new is old:
            tables.append(np.arange(-1, len(old.cuts) + 1, dtype=np.int32))
            continue
        found = new.cuts.searchsorted(old.cuts).astype(np.int32)
        if len(found) and not (found[-1] < len(new.cuts) and (new.cuts[found] == old.cuts).all()):
            raise ModelError(f"the grid of `{new.name}` lacks a cut of the model")
        tables.append(np.concatenate(([-1], found, [len(new.cuts)])))
    offset = np.cumsum([0, *(len(table) for table in tables)])
    inner = model.feature >= 0
    cut = model.cut.copy()
    cut[inner] = np.concatenate(tables)[offset[model.feature[inner]] + model.cut[inner] + 1]
    return replace(model, grid=grid, cut=cut)


def _cuts(ensemble: Ensemble, grid: Grid) -> NDArray[np.int32]:
    """The last cell below the strict cut of every node; -1 or the feature's last cell if all cells go to one side."""
    cut = np.zeros(ensemble.n_nodes, dtype=np.int32)
    ordered = np.flatnonzero(~np.isnan(ensemble.node_cut))
    order = ordered[np.argsort(ensemble.node_feature[ordered], kind="stable")]
    bounds = np.searchsorted(ensemble.node_feature[order], np.arange(ensemble.n_features + 1))
    limit = ensemble.number_type.max
    for f in range(ensemble.n_features):
        nodes = order[bounds[f] : bounds[f + 1]]
        if not nodes.size:
            continue
        cuts, wanted = grid[f].cuts, ensemble.node_cut[nodes]
        place = np.searchsorted(cuts, wanted).astype(np.int32)
        place[wanted <= -limit] = -1
        inside = (wanted > -limit) & (wanted <= limit)
        found = np.append(cuts, np.nan)[np.maximum(place, 0)]
        if not (found[inside] == wanted[inside]).all():
            raise _lacks_a_cut(grid, f)
        cut[nodes] = place
    return cut


def _sets(
    ensemble: Ensemble, grid: Grid, cut: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]:
    """One row of bytes for each distinct set of left cells: for categories, and for intervals with or without the zero band."""
    category_set = np.full(ensemble.n_nodes, -1, dtype=np.int32)
    numbers: dict[bytes, int] = {}
    rows: list[NDArray[np.uint8]] = []
    for node in np.flatnonzero((ensemble.category_set >= 0) | ensemble.zero_apart):
        f, default = int(ensemble.node_feature[node]), bool(ensemble.default_left[node])
        row = np.zeros(grid[f].n_cells, dtype=np.uint8)
        if ensemble.zero_apart[node]:
            row[: cut[node] + 1] = 1
            row[_zero_cells(ensemble, grid, f)] = default
        else:
            s = int(ensemble.category_set[node])
            codes, known = ensemble.set_codes[ensemble.set_offset[s] : ensemble.set_offset[s + 1]], ensemble.features[f]
            row[codes] = 1
            # Codes unknown to the model form one category of the model, but may be several cells of the grid.
            row[known.categories : grid[f].present_cells] = known.categories in codes
        if grid[f].missing:
            row[grid[f].missing_cell] = default
        key = row.tobytes()
        if key not in numbers:
            numbers[key] = len(rows)
            rows.append(row)
        category_set[node] = numbers[key]
    offset = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return category_set, offset, np.concatenate([np.zeros(0, np.uint8), *rows])


def _zero_cells(ensemble: Ensemble, grid: Grid, feature: int) -> slice:
    """The cells inside the zero band."""
    low, high = ensemble.zero_edges
    cuts = grid[feature].cuts
    first, end = np.searchsorted(cuts, [low, high])
    if not (end < len(cuts) and cuts[first] == low and cuts[end] == high):
        raise _lacks_a_cut(grid, feature)
    return slice(int(first) + 1, int(end) + 1)


def _lacks_a_cut(grid: Grid, feature: int) -> ModelError:
    return ModelError(
        f"the grid of `{grid[feature].name}` lacks a cut of the model", remedy="refine the model's own grid"
    )
