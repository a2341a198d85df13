"""scikit-learn's isolation forest over the cells of the models, as trees whose leaves are whole numbers.

The forest (F. T. Liu, K. M. Ting, Z.-H. Zhou, *Isolation Forest*, ICDM 2008) isolates an input with random cuts: the fewer it
takes on average, the less typical the input is. A feature's value is the number of its cell, so that the forest cuts nothing
that the models do not cut. What a leaf adds is its depth, and the mean depth of a random tree of the rows in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int32Array
from treesens.compiler.base.packages import imported
from treesens.compiler.base.units import Unit
from treesens.compiler.model.grid import Grid
from treesens.compiler.model.kinds import Feature
from treesens.compiler.query.forest import Forest
from treesens.data.cell_forest import ForestBuilder
from treesens.data.pair_tables import SHIFT

TREES, SEED = 100, 0
_ROUNDED = 1e-9
"""Relative, of the library's sums and of its power of two."""


def isolation_forest(cells: Int32Array, grid: Grid, features: tuple[Feature, ...]) -> Forest:
    """The forest of rows of cells int32[rows, features]: scikit-learn's with its own settings and the seed 0."""
    library = _fit(cells)
    builder = ForestBuilder(grid)
    for member in library.estimators_:
        _add_tree(builder, member.tree_)
    most = int(library.max_samples_)

    def judge(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        scores = library.score_samples(grid.cells(rows).astype(np.float64))
        lengths = -np.log2(-scores) * mean_depth(np.array([most]))[0] * len(library.estimators_)
        # Every leaf of ours is rounded to half a unit.
        slack = len(library.estimators_) * float(Unit(SHIFT + 1).size) + _ROUNDED * (1 + lengths)
        return lengths - slack, lengths + slack

    return Forest("isolation forest", builder.finish("typical by isolation", features), judge)


def _fit(cells: Int32Array) -> Any:
    ensemble = imported("sklearn.ensemble", "isolation forests are scikit-learn's")
    return ensemble.IsolationForest(n_estimators=TREES, random_state=SEED).fit(cells.astype(np.float64))


def mean_depth(rows: Any) -> FloatArray:
    """The mean depth at which a random binary tree isolates one of some rows (Liu, Ting, Zhou, equation 1)."""
    n = np.asarray(rows, np.float64)
    several = np.maximum(n, 3)
    long = 2.0 * (np.log(several - 1.0) + np.euler_gamma) - 2.0 * (several - 1.0) / several
    return np.asarray(np.where(n <= 1, 0.0, np.where(n == 2, 1.0, long)))


def _add_tree(builder: ForestBuilder, tree: Any) -> None:
    """One tree, in the order of the library's nodes: parents first."""
    builder.begin_tree()
    start = builder.roots[-1]
    depth = np.zeros(tree.node_count)
    rest = mean_depth(tree.n_node_samples)
    for node in range(tree.node_count):
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            builder.add_leaf(round((depth[node] + rest[node]) * (1 << SHIFT)))
            continue
        feature = int(tree.feature[node])
        cells = np.arange(builder.grid[feature].n_cells)
        builder.add_split(feature, np.asarray(cells <= tree.threshold[node]))
        builder.join(start + node, start + left, start + right)
        depth[left] = depth[right] = depth[node] + 1
