"""Scores as integers: leaf values and the base of a score; and ensembles widened to float64."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from treesens._engine import SCORE_BITS
from treesens.compiler.base.arrays import Int64Array, frozen
from treesens.compiler.base.dyadic import Unit, to_scaled
from treesens.compiler.base.floats import Float64, NumberType, largest_true
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.model.ensemble import Ensemble
from treesens.runtime.kept import Kept

BEYOND = 1 << SCORE_BITS
"""A number beyond every score; bounds that no score reaches are clipped to this number."""
UNTRIED = 2 * BEYOND
"""A number beyond every bound: the score if there are no legal inputs."""


def clipped(units: int) -> int:
    """Clips a bound in integer units, since all bounds beyond every score are equivalent."""
    return min(max(units, -BEYOND), BEYOND)


def leaf_values(model: CellEnsemble, output: int) -> tuple[Int64Array, int, int]:
    """Leaf values as int64, their shift, and the maximum deficit of a score in units.

    If the exact integers are too long, leaf values are rounded down, by less than a unit for each tree and for the base.
    """
    return _LEAF_VALUES.of((model.ensemble,), output, lambda: _leaf_values(model.ensemble, output))


_LEAF_VALUES: Kept[tuple[Int64Array, int, int]] = Kept(16, lambda made: made[0].nbytes)


def _leaf_values(ensemble: Ensemble, output: int) -> tuple[Int64Array, int, int]:
    scaled = ensemble.scaled_contributions
    column = scaled.values[:, output if scaled.values.shape[1] > 1 else 0]
    mine = (ensemble.tree_output == output) | (ensemble.tree_output == -1)
    column = np.where(mine[ensemble.leaf_tree], column, 0)
    base = to_scaled(ensemble.base[output : output + 1])
    shift = max(scaled.shift, base.shift)
    whole = abs(int(base.values[0])) * ensemble.average << (shift - base.shift)
    ends = (int(column.max(initial=0)), int(column.min(initial=0)))
    most = max(map(abs, ends)) << (shift - scaled.shift)
    drop = max(0, (most * (ensemble.n_trees + 1) + whole).bit_length() - SCORE_BITS)
    lift = shift - scaled.shift - drop  # the remaining values fit now
    moved = column << lift if lift >= 0 else column >> -lift
    return frozen(moved, np.int64), shift - drop, 0 if drop == 0 else ensemble.n_trees + 1


def base_units(model: CellEnsemble, output: int, shift: int) -> int:
    """The base of a score before averaging, rounded down to units of 2**-shift."""
    base = Fraction(float(model.ensemble.base[output])) * model.ensemble.average
    return Unit(shift).floor(base)


def widened(ensemble: Ensemble) -> Ensemble:
    """The ensemble over float64; unchanged if it is float64. Never raises ModelError, since a valid ensemble remains valid."""
    if ensemble.number_type is NumberType.FLOAT64:
        return ensemble
    cuts = ensemble.node_cut
    ordered = np.flatnonzero(~np.isnan(cuts))
    threshold = np.zeros(ensemble.n_nodes)

    def left(x: Float64) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return np.asarray(ensemble.number_type.cast(x) < cuts[ordered])

    threshold[ordered] = largest_true(left, len(ordered))
    return replace(
        ensemble, number_type=NumberType.FLOAT64, comparison="<=", threshold=threshold, zero_band=0.0
    ).validate()
