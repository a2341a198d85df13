"""Regions of typical inputs: with at least a given probability, a new input from the rows' distribution is in the region.

Split conformal prediction: the first half of the shuffled rows defines the score, the second defines the threshold. A new input
and the m rows of the second half are exchangeable, so the probability that its score is below the k-th smallest score of these
rows is at most k / (m + 1) (V. Vovk, A. Gammerman, G. Shafer, *Algorithmic Learning in a Random World*, 2005; J. Lei et al.,
*Distribution-free predictive inference for regression*, JASA 113, 2018). As a constraint on counterfactuals: PINE (ICML 2026).

The isolation score comes from scikit-learn's forest over the cells of the models, converted to trees with integer leaves. The
forest (F. T. Liu, K. M. Ting, Z.-H. Zhou, *Isolation Forest*, ICDM 2008) isolates an input by random cuts; the fewer cuts are
needed on average, the less typical the input is. The values of the features are cell numbers, so all cuts are cuts of the
models. A leaf adds its depth plus the mean depth of a random tree with the leaf's number of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treesens.binder.typicality import Method, TypicalScore
from treesens.compiler.base.arrays import FloatArray, Int32Array, Int64Array
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.base.packages import imported
from treesens.compiler.model.grid import FeatureGrid, Grid, category_codes
from treesens.compiler.model.kinds import Feature
from treesens.compiler.query.forest import SHIFT, Forest, forest_scores
from treesens.extensions.measure.cell_forest import ForestBuilder, forest_of_pairs
from treesens.extensions.measure.pair_tables import PairTables, learn_pairs

SEED = 0


def split_rows(count: int) -> tuple[Int64Array, Int64Array]:
    """Splits the rows at random into two halves, one for learning, the other held out; the first half may have one row more."""
    order = np.random.default_rng(SEED).permutation(count)
    half = (count + 1) // 2
    return order[:half], order[half:]


def learn_typical(cells: Int32Array, grid: Grid, features: tuple[Feature, ...], method: Method) -> TypicalScore:
    """The score and threshold learnt from `cells`, int32[rows, features], which must have at least two rows of legal cells."""
    learn, held_out = split_rows(len(cells))
    known = np.ascontiguousarray(cells[learn])
    forest = _by_pairs(known, grid, features) if method == "chow-liu" else isolation_forest(known, grid, features)
    trees = forest.on(grid)
    units = SHIFT - forest.shift
    scores = forest_scores(trees, np.ascontiguousarray(cells[held_out])) << units
    return TypicalScore(forest, np.sort(scores))


def _by_pairs(cells: Int32Array, grid: Grid, features: tuple[Feature, ...]) -> Forest:
    pairs = learn_pairs(cells, grid)

    def judge(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        scores = Unit(SHIFT).doubles(scores_of_values(pairs, grid, rows))
        return scores, scores

    return Forest("Chow-Liu tree", forest_of_pairs(pairs, grid, features), judge)


def scores_of_values(pairs: PairTables, grid: Grid, rows: FloatArray) -> Int64Array:
    """The scores of `rows`, float64[rows, features], from the tables alone, without trees and without cells of questions."""
    own = [
        group[_cells_by_hand(feature, rows[:, f])]
        for f, (group, feature) in enumerate(zip(pairs.groups, grid, strict=True))
    ]
    total = np.zeros(len(rows), np.int64)
    for f, table in enumerate(pairs.tables):
        above = int(pairs.parent[f])
        total += table[own[above] if above >= 0 else 0, own[f]]
    return total


def _cells_by_hand(feature: FeatureGrid, values: FloatArray) -> Int64Array:
    """The cell of each value: the number of cuts at or below the value, the code of a category, or the last cell if missing."""
    x = feature.number_type.cast(values)
    absent = np.isnan(x)
    if feature.categories:
        cells = category_codes(np.where(absent, 0.0, x), feature.categories, feature.truncates)
    else:
        cells = (np.where(absent, 0.0, x)[:, None] >= feature.cuts[None, :]).sum(axis=1)
    return np.asarray(np.where(absent, feature.missing_cell, cells), np.int64)


TREES = 100
_ROUNDED = 1e-9
"""Relative error of the library's sums and of its power of two."""


def isolation_forest(cells: Int32Array, grid: Grid, features: tuple[Feature, ...]) -> Forest:
    """The isolation forest that scikit-learn fits to `cells`, int32[rows, features], with default settings and seed 0."""
    library = _fit(cells)
    builder = ForestBuilder(grid)
    for member in library.estimators_:
        _add_tree(builder, member.tree_)
    most = int(library.max_samples_)

    def judge(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        scores = library.score_samples(grid.cells(rows).astype(np.float64))
        lengths = -np.log2(-scores) * mean_depth(np.array([most]))[0] * len(library.estimators_)
        # Rounding changes every leaf by at most half a unit.
        slack = len(library.estimators_) * float(Unit(SHIFT + 1).size) + _ROUNDED * (1 + lengths)
        return lengths - slack, lengths + slack

    return Forest("isolation forest", builder.finish("typical by isolation", features), judge)


def _fit(cells: Int32Array) -> Any:
    ensemble = imported("sklearn.ensemble", "isolation forests are scikit-learn's")
    return ensemble.IsolationForest(n_estimators=TREES, random_state=SEED).fit(cells.astype(np.float64))


def mean_depth(rows: Any) -> FloatArray:
    """The mean depth at which a random binary tree isolates one of `rows` rows (Liu, Ting, Zhou, equation 1)."""
    n = np.asarray(rows, np.float64)
    several = np.maximum(n, 3)
    long = 2.0 * (np.log(several - 1.0) + np.euler_gamma) - 2.0 * (several - 1.0) / several
    return np.asarray(np.where(n <= 1, 0.0, np.where(n == 2, 1.0, long)))


def _add_tree(builder: ForestBuilder, tree: Any) -> None:
    """Adds one tree, in the library's node order, parents first."""
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
