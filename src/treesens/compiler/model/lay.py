"""Laying an ensemble on a grid: thresholds become cell numbers, category sets become bytes per cell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.model.ensemble import Ensemble
from treesens.compiler.model.grid import Grid
from treesens.errors import ModelError


def lay_on(ensemble: Ensemble, grid: Grid) -> CellEnsemble:
    """The ensemble over `grid`, whose cuts must include all of the ensemble's (it may be finer)."""
    if len(grid) != ensemble.n_features:
        raise ModelError(f"the grid has {len(grid)} features, `{ensemble.name}` has {ensemble.n_features}")
    for feature, cells in zip(ensemble.features, grid, strict=True):
        if cells.number_type is not ensemble.number_type or cells.categories != feature.categories:
            raise ModelError(f"the grid of `{cells.name}` is of another kind than the model's `{feature.name}`")
    category_set, set_offset, set_member = _sets(ensemble, grid)
    return CellEnsemble(
        ensemble=ensemble,
        grid=grid,
        root=ensemble.tree_offset[:-1].astype(np.int32),
        feature=ensemble.node_feature,
        cut=_cuts(ensemble, grid),
        left=ensemble.left,
        right=ensemble.right,
        leaf=ensemble.node_leaf,
        default_left=ensemble.default_left.astype(np.uint8),
        category_set=category_set,
        set_offset=set_offset,
        set_member=set_member,
    )


def _cuts(ensemble: Ensemble, grid: Grid) -> NDArray[np.int32]:
    """Cells up to `cut` lie below the node's strict cut; -1 and the last cell where the node always goes one way."""
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
            raise ModelError(
                f"the grid of `{grid[f].name}` lacks a cut of the model", remedy="refine the model's own grid"
            )
        cut[nodes] = place
    return cut


def _sets(ensemble: Ensemble, grid: Grid) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]:
    """One row of bytes per distinct (set, direction of missing): the byte of the missing cell is part of the row."""
    nodes = np.flatnonzero(ensemble.category_set >= 0)
    category_set = np.full(ensemble.n_nodes, -1, dtype=np.int32)
    keys: dict[tuple[int, bool, int], int] = {}
    rows: list[NDArray[np.uint8]] = []
    for node in nodes:
        feature = grid[int(ensemble.node_feature[node])]
        s, default = int(ensemble.category_set[node]), bool(ensemble.default_left[node])
        key = (s, default, feature.n_cells)
        if key not in keys:
            row = np.zeros(feature.n_cells, dtype=np.uint8)
            row[ensemble.set_codes[ensemble.set_offset[s] : ensemble.set_offset[s + 1]]] = 1
            if feature.missing:
                row[feature.missing_cell] = default
            keys[key] = len(rows)
            rows.append(row)
        category_set[node] = keys[key]
    offset = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return category_set, offset, np.concatenate([np.zeros(0, np.uint8), *rows])
