"""What single features can do for many denials, at once: which changes raise a score most, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.units import Unit
from treesens.compiler.query.bounds import least_units
from treesens.compiler.query.query import AtLeast, LinearForm, Query
from treesens.data.flips import flips


@dataclass(frozen=True, eq=False)
class Sweep:
    """What single features can do for rows: `rises` int64[rows, features] in units, and `cells` int32[rows, features], changed
    until the decision is favourable (`reached` bool[rows]) or there is nothing left to change. `swept` bool[features] are the
    features whose rises are known.
    """

    rises: Int64Array
    cells: Int32Array
    reached: BoolArray
    swept: BoolArray
    unit: float


def sweep_denials(
    query: Query,
    start: Int32Array,
    outside: BoolArray,
    usable: Sequence[int],
    most: int,
    favourable: int,
    budget: Budget,
) -> Sweep:
    """Changes up to `most` of the usable features of rows of cells int32[rows, features], in every step the one that raises the
    score most, until the decision that the query asks for is reached. Rows that are `outside` of the domain stay.

    This only guides: what it finds is verified, and what it does not find is searched for. Features that the budget has no time
    for come last, and their rises are not known; of a mean of models, or of votes, none is, because there is no one score.
    """
    model, legal, (count, features) = query.models[0], query.space.legal, start.shape
    rises, reached, cells = np.zeros((count, features), np.int64), np.zeros(count, dtype=np.bool_), start.copy()
    swept = np.zeros(features, dtype=np.bool_)
    if not count or model.ensemble.link.of_several:
        return Sweep(rises, cells, reached, swept, 1.0)
    output, sign, least = _goal(query, favourable)
    first = flips(model, cells, [0], legal, output=output)
    own = sign * first.own
    score, open_rows = own.copy(), np.flatnonzero(~outside)
    for step in range(min(most, len(usable))):
        best, where = score[open_rows].copy(), np.zeros(len(open_rows), np.int32)
        chosen = np.full(len(open_rows), -1)
        for f in usable:
            if budget.left() <= 0:
                break
            found = flips(model, cells[open_rows], [f], legal, output=output, with_own=False)
            high = found.highest if sign > 0 else -found.lowest
            cell = (found.highest_cells if sign > 0 else found.lowest_cells)[:, 0]
            if step == 0:
                rises[open_rows, f] = np.maximum(0, high - own[open_rows])
                swept[f] = True
            better = high > best
            best[better], where[better], chosen[better] = high[better], cell[better], f
        moved = chosen >= 0
        cells[open_rows[moved], chosen[moved]] = where[moved]
        score[open_rows] = best
        reached[open_rows] = best >= least(first.shift)
        open_rows = open_rows[moved & ~reached[open_rows]]
        if not len(open_rows):
            break
    return Sweep(rises, cells, reached, swept, Unit(first.shift).nearest(1) / model.ensemble.average)


def _goal(query: Query, favourable: int) -> tuple[int, int, Callable[[int], int]]:
    """The output whose score is to rise (or to fall, -1), and the least that it has to reach, in units of a shift."""
    for constraint in query.constraints:
        if isinstance(constraint, AtLeast) and isinstance(constraint.form, LinearForm):
            terms = constraint.form.scores
            if len(terms) == 1 and not (constraint.form.costs or constraint.form.changes):
                bound = constraint.bound * (1 / abs(terms[0].coefficient))
                sign = 1 if terms[0].coefficient > 0 else -1
                return terms[0].output, sign, partial(least_units, bound, strict=constraint.strict)
    half = Fraction(query.models[0].ensemble.average, 2)
    return favourable, 1, lambda shift: Unit(shift).floor(half) + 1
