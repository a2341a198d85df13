"""Forests that a question adds: scores of inputs that are learnt from data, and are as exact as the models' scores.

A learnt score of an input (such as its typicality) is a sum of leaves of trees over the models' cells, in integer units.
Like a model's score, such a sum is a term in a linear form, and is handled by the same code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int32Array, Int64Array
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.model.ensemble import Ensemble
from treesens.compiler.model.grid import Grid
from treesens.compiler.model.scores import leaf_values

Enclosures = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Maps inputs float64[rows, features] to the least and greatest score, float64[rows] each, that an independent judge allows."""

FOREST_ROW = "typical"
"""The name of rows over forests; the search for the largest slack of scores excludes these rows."""

SHIFT = 16
"""Scores learnt from rows are integers in units of 2**-SHIFT."""

_LEAVES = 1 << 22
"""Number of leaves that are looked up in one step."""


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees over the features of a question. `ensemble` has one output, no base, and leaves that are multiples of 2**-shift.

    `judge` computes the allowed range of a score without these trees, from the learnt table or with the library.
    """

    name: str
    ensemble: Ensemble
    judge: Enclosures

    def on(self, grid: Grid) -> CellEnsemble:
        """The trees over a grid, which must contain all cuts of the trees."""
        return self.ensemble.on(grid)

    @property
    def shift(self) -> int:
        """Scores are integer units of 2**-shift."""
        return self.ensemble.scaled_contributions.shift


@dataclass(frozen=True)
class ForestTerm:
    """coefficient * score of a forest at a point; `trees` holds the forest's trees over the question's grid."""

    point: int
    forest: Forest
    trees: CellEnsemble = field(compare=False, repr=False)
    coefficient: int = 1

    @property
    def shift(self) -> int:
        return leaf_values(self.trees, 0)[1]

    def scores(self, cells: Int32Array) -> Int64Array:
        """Scores int64[rows] at `cells`, int32[rows, features], without the coefficient, in units of 2**-shift."""
        return forest_scores(self.trees, cells)

    def value(self, cells: Int32Array) -> Fraction:
        """coefficient * score at `cells`, int32[features]."""
        score = int(self.scores(np.ascontiguousarray(cells[None, :]))[0])
        return Unit(self.shift).value(self.coefficient * score)


def forest_scores(trees: CellEnsemble, cells: Int32Array) -> Int64Array:
    """For each row of `cells`, int32[rows, features], the sum of its leaf values: int64[rows], in units of 2**-shift."""
    values, _, slack = leaf_values(trees, 0)
    assert slack == 0
    step = max(1, _LEAVES // max(1, trees.n_trees))
    parts = [values[trees.leaves(cells[i : i + step])].sum(axis=1) for i in range(0, max(1, len(cells)), step)]
    return np.concatenate(parts).astype(np.int64)
