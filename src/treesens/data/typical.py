"""Regions of typical inputs: what a fresh input like the rows lies in with at least a given probability.

Split conformal prediction: the first half of the rows, in random order, says how inputs are scored; the other half where the
threshold lies. A fresh input and the m rows of the second half are exchangeable, so that its score is below the k-th smallest
of theirs with a probability of at most k / (m + 1) (V. Vovk, A. Gammerman, G. Shafer, *Algorithmic Learning in a Random World*,
2005; J. Lei et al., *Distribution-free predictive inference for regression*, JASA 113, 2018). As a constraint on
counterfactuals: PINE (ICML 2026).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int32Array, Int64Array
from treesens.compiler.base.units import Unit
from treesens.compiler.model.grid import FeatureGrid, Grid, category_codes
from treesens.compiler.model.kinds import Feature
from treesens.compiler.query.forest import Forest, forest_scores
from treesens.data.cell_forest import forest_of_pairs
from treesens.data.isolation import isolation_forest
from treesens.data.pair_tables import SHIFT, PairTables, learn_pairs

Method = Literal["chow-liu", "isolation"]
METHODS: tuple[Method, ...] = get_args(Method)
SEED = 0


@dataclass(frozen=True, eq=False)
class TypicalScore:
    """How typical inputs are: a forest, and the scores of the rows that were held out, ascending, in units of 2**-SHIFT."""

    forest: Forest
    held_out: Int64Array

    def least(self, outside: Fraction) -> Fraction | None:
        """The least score of the region that a fresh input misses with at most this probability; None if rows are too few."""
        place = (outside * (len(self.held_out) + 1)).__floor__()
        return None if place < 1 else Unit(SHIFT).value(self.held_out[place - 1])


def rows_needed(outside: Fraction) -> int:
    """The least number of rows for which there is such a region."""
    held_out = -((-1 / outside).__floor__()) - 1
    return 2 * max(1, held_out)


def split_rows(count: int) -> tuple[Int64Array, Int64Array]:
    """Rows to learn from, and rows that are held out: halves in random order, the first one row longer if need be."""
    order = np.random.default_rng(SEED).permutation(count)
    half = (count + 1) // 2
    return order[:half], order[half:]


def learn_typical(cells: Int32Array, grid: Grid, features: tuple[Feature, ...], method: Method) -> TypicalScore:
    """Of at least two rows of legal cells int32[rows, features]."""
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
    """Scores by the tables alone, of values float64[rows, features]: no trees and no cells of a question take part."""
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
    """How many cuts a value has reached; a category is its code, and missing comes last."""
    x = feature.number_type.cast(values)
    absent = np.isnan(x)
    if feature.categories:
        cells = category_codes(np.where(absent, 0.0, x), feature.categories, feature.truncates)
    else:
        cells = (np.where(absent, 0.0, x)[:, None] >= feature.cuts[None, :]).sum(axis=1)
    return np.asarray(np.where(absent, feature.missing_cell, cells), np.int64)
