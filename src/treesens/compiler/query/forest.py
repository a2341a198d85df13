"""Forests that a question adds: a score of inputs that is learnt from data, as exact as the models' scores.

A learnt score of an input (such as its typicality) is a sum of the leaves of trees over the models' cells, in integer units.
Such a sum is a term of a linear form like a model's score, and is handled by the same code.
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
"""For inputs float64[rows, features]: the least and the greatest score allowed by an independent judge, float64[rows] each."""

FOREST_ROW = "typical"
"""The name of forest rows, which a search for the largest slack of scores excludes."""

SHIFT = 16
"""Scores learnt from rows are integers in units of 2**-SHIFT."""

_LEAVES = 1 << 22
"""Number of leaves looked up at once."""


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees over the features of a question. `ensemble` has one output, no base, and leaves that are multiples of 2**-shift.

    `judge` computes the allowed range of a score without these trees: from the learnt table, or by the library.
    """

    name: str
    ensemble: Ensemble
    judge: Enclosures

    def on(self, grid: Grid) -> CellEnsemble:
        """The trees over a grid that contains all their cuts."""
        return self.ensemble.on(grid)

    @property
    def shift(self) -> int:
        """Scores are integer units of 2**-shift."""
        return self.ensemble.scaled_contributions.shift


@dataclass(frozen=True)
class ForestTerm:
    """coefficient * score of a forest at a point; `trees` are its trees over the question's grid."""

    point: int
    forest: Forest
    trees: CellEnsemble = field(compare=False, repr=False)
    coefficient: int = 1

    @property
    def shift(self) -> int:
        return leaf_values(self.trees, 0)[1]

    def scores(self, cells: Int32Array) -> Int64Array:
        """Scores of cells int32[rows, features] without the coefficient, in units of 2**-shift, int64[rows]."""
        return forest_scores(self.trees, cells)

    def value(self, cells: Int32Array) -> Fraction:
        """coefficient * score of cells int32[features]."""
        score = int(self.scores(np.ascontiguousarray(cells[None, :]))[0])
        return Unit(self.shift).value(self.coefficient * score)


def forest_scores(trees: CellEnsemble, cells: Int32Array) -> Int64Array:
    """Sums of leaves at cells int32[rows, features], in the units of `leaf_values`, int64[rows]."""
    values, _, slack = leaf_values(trees, 0)
    assert slack == 0
    step = max(1, _LEAVES // max(1, trees.n_trees))
    parts = [values[trees.leaves(cells[i : i + step])].sum(axis=1) for i in range(0, max(1, len(cells)), step)]
    return np.concatenate(parts).astype(np.int64)
