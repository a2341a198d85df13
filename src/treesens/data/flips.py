"""Flips of real rows: every row of a table is tried with every legal value of the sensitive features, in exact arithmetic.

A row flips at a margin m if, with all other features unchanged, some legal values of the sensitive features give a margin of at
least m, and other legal values give a margin of at most -m. Such a row is a pair at distance 0 from the data. One compiled
sweep computes the highest and the lowest score of every row; for every margin m, a comparison then gives the answer. If no
single score decides whether a row flips, a function judges every combination of cells.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, Int64Array, frozen
from treesens.compiler.base.budget import Budget
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.model.scores import UNTRIED, base_units, leaf_values
from treesens.compiler.query.bounds import LogRational, least_units
from treesens.compiler.query.domain import pick_value
from treesens.compiler.query.query import AtLeast, LinearForm, Query, SameExcept, Space
from treesens.data.rows import cells_of_rows
from treesens.runtime.kept import Kept

MOST_COMBINATIONS = 1024
"""Maximum combinations of cells of all sensitive features but the one with most cells; above it, cells are thinned evenly."""

_CHUNK = 4096
_INPUTS = 1 << 14
"""Number of inputs judged between two checks of the clock."""

Strict = tuple[bool, bool]
_NOT_STRICT = (False, False)


@dataclass(frozen=True, eq=False)
class Flips:
    """The extremes of the score of every row over the sensitive features.

    `highest` and `lowest`, int64[rows], are raw scores (before averaging): the exact score is in [v, v + slack] units of
    2**-shift, and is v itself if `slack` is 0 (a row that passes a threshold by less than `slack` is not counted).
    `highest_cells` and `lowest_cells`, int32[rows, features], are the cells of the sensitive `features` at which the extremes
    are reached, and `own`, int64[rows], are the scores of the unchanged rows. `index` holds the rows' numbers in the table.
    `complete` is False if not all combinations of cells were tried, so that some flipping rows may be missed. If the two sides
    use different scores (leads of two classes), `own_low` is the score of the unchanged rows on the lower side.
    """

    features: tuple[int, ...]
    index: Int64Array
    highest: Int64Array
    lowest: Int64Array
    highest_cells: Int32Array
    lowest_cells: Int32Array
    own: Int64Array
    shift: int
    slack: int
    complete: bool
    own_low: Int64Array | None = None

    def __len__(self) -> int:
        return len(self.index)


Judge = Callable[[Int64Array, Int32Array], tuple[Int64Array, Int64Array]]
"""Maps inputs to two arrays, int64[inputs] each: the numbers that must be high at one point, and the numbers that must be low
at the other point. An input is given by the position of its row, int64[inputs], and by its cells, int32[inputs, features].
"""


def flips(
    by: CellEnsemble | Judge,
    cells: Int32Array,
    features: Sequence[int],
    legal: Sequence[BoolArray],
    *,
    index: Int64Array | None = None,
    output: int = 0,
    limit: float = MOST_COMBINATIONS,
    least: int = 1,
    with_own: bool = True,
    budget: Budget | None = None,
) -> Flips:
    """Sweeps the rows of `cells`, int32[rows, features of the grid] (all inside the grid), over the legal cells of `features`.

    `legal[f]`, bool[n_cells], marks the cells of feature f with a legal value. For several features all combinations are tried,
    up to `limit`, with at least `least` cells of each feature. With a model, the engine sums the scores of its `output` for all
    cells of the feature with the most cells (these cells do not count towards the limit); without `with_own` the scores `own`
    remain 0. With a judge, rows are tried until the `budget` is spent; the judge's numbers are the scores, in units of 1.
    """
    chosen, rows = tuple(features), np.arange(len(cells))
    index = rows if index is None else index
    widest = max(chosen, key=lambda f: int(legal[f].sum())) if isinstance(by, CellEnsemble) else -1
    others = [f for f in chosen if f != widest]
    options, complete = thinned([np.flatnonzero(legal[f]) for f in others], limit, least=least)
    # The lower side, which has to be low, and then the upper side with its signs changed.
    best, own = (np.full((2, len(cells)), UNTRIED) for _ in range(2))
    best_cells = np.zeros((2, len(cells), len(chosen)), np.int32)

    def offer(side: int, places: Int64Array, numbers: Int64Array, reached: Int32Array) -> None:
        better = np.flatnonzero(numbers < best[side, places])
        best[side, places[better]], best_cells[side, places[better]] = numbers[better], reached[better]

    if not isinstance(by, CellEnsemble):
        tried = 0
        for places, combinations, inputs in combined_rows(cells, chosen, options, budget):
            high, low = by(np.repeat(places, inputs.shape[1]), inputs.reshape(-1, inputs.shape[2]))
            for side, numbers in enumerate((low.reshape(inputs.shape[:2]), -high.reshape(inputs.shape[:2]))):
                at = numbers[:, 1:].argmin(axis=1)
                offer(side, places, numbers[np.arange(len(places)), 1 + at], combinations[at])
                own[side, places] = numbers[:, 0]
            tried += len(places) * len(combinations)
        complete &= tried == len(cells) * math.prod(map(len, options))
        return Flips(chosen, index, -best[1], best[0], best_cells[1], best_cells[0], -own[1], 0, 0, complete, own[0])
    values, shift, slack = leaf_values(by, output)
    work, allowed = np.ascontiguousarray(cells, np.int32).copy(), legal[widest].astype(np.uint8)
    scores, reached = np.empty((2, len(cells)), np.int64), np.empty((2, len(cells)), np.int32)
    for combination in product(*options):
        work[:, others] = combination
        by.engine.flip_profiles(work, values, widest, allowed, scores[1], scores[0], reached[1], reached[0])
        for side, sign in enumerate((1, -1)):
            work[:, widest] = reached[side]
            offer(side, rows, sign * scores[side], work[:, chosen])
    base = base_units(by, output, shift)
    now = _scores(by, cells, values, output) + base if with_own else np.zeros(len(cells), np.int64)
    highest, lowest = base - best[1], base + best[0]
    return Flips(chosen, index, highest, lowest, best_cells[1], best_cells[0], now, shift, slack, complete)


def combined_rows(
    cells: Int32Array, features: Sequence[int], options: Sequence[NDArray[np.int64]], budget: Budget | None
) -> Iterator[tuple[Int64Array, Int32Array, Int32Array]]:
    """Yields the rows of `cells`, int32[rows, features], with every combination of cells, in batches until the budget is spent.

    A batch contains the positions of rows, the combinations, int32[combinations, chosen], and the rows' cells, first unchanged,
    then with each combination, int32[rows, 1 + combinations, features].
    """
    sizes = tuple(map(len, options))
    count = math.prod(sizes)
    for first in range(0, count, _INPUTS):
        at = np.unravel_index(np.arange(first, min(count, first + _INPUTS)), sizes)
        combinations = np.stack([known[i] for known, i in zip(options, at, strict=True)], axis=1).astype(np.int32)
        step = max(1, _INPUTS // (1 + len(combinations)))
        for start in range(0, len(cells), step):
            if budget is not None and budget.over:
                return
            places = np.arange(start, min(start + step, len(cells)))
            inputs = np.repeat(cells[places, None, :], 1 + len(combinations), axis=1)
            inputs[:, 1:, list(features)] = combinations
            yield places, combinations, inputs


def with_cells(
    space: Space, rows: FloatArray, features: Sequence[int], cells: Int32Array, near: FloatArray | None = None
) -> FloatArray:
    """The rows, float64[rows, features], with values in `cells`, int32[rows, chosen], for the chosen `features`.

    A value outside its cell becomes the legal value nearest to it (or to its value in `near`); a missing value, a round value.
    """
    result, own = rows.copy(), cells_of_rows(space.grid, rows)
    for column, f in enumerate(features):
        for row in np.flatnonzero(cells[:, column] != own[:, f]):
            value = float((rows if near is None else near)[row, f])
            wanted = None if np.isnan(value) else value
            result[row, f] = pick_value(space.domains[f], space.grid[f], int(cells[row, column]), wanted)
    return result


_SCORES: Kept[Int64Array] = Kept(4, lambda scores: scores.nbytes)
"""Scores of unchanged rows, which are shared by the sweeps over different sets of features."""


def _scores(model: CellEnsemble, cells: Int32Array, values: Int64Array, output: int) -> Int64Array:
    def add_up() -> Int64Array:
        result = np.empty(len(cells), np.int64)
        for start in range(0, len(cells), _CHUNK):
            part = slice(start, start + _CHUNK)
            result[part] = values[model.leaves(cells[part])].sum(axis=1)
        return frozen(result)

    return _SCORES.of((model,), (output, hashlib.sha256(cells.tobytes()).digest()), add_up)


def thinned(options: list[NDArray[np.int64]], limit: float, *, least: int = 1) -> tuple[list[NDArray[np.int64]], bool]:
    """All options, or evenly spread options within the limit on combinations, at least `least` options of each feature."""
    complete = True
    while math.prod(map(len, options)) > limit:
        complete = False
        longest = max(range(len(options)), key=lambda i: len(options[i]))
        size = len(options[longest])
        if size <= least:
            break
        options[longest] = options[longest][np.linspace(0, size - 1, max(least, size // 2), dtype=int)]
    return options, complete


@dataclass(frozen=True)
class FlipQuestion:
    """A question of the form "two points agree except on some features, and one point has a high score, the other a low score".

    `high` and `low` are bounds on the raw scores of the points `upper` and `lower`; a `swing` requires instead that the score
    of `upper` exceeds the score of `lower` by this amount. `only` is False if the question has other constraints, too. `strict`
    states, for `high` and for `low`, whether the bound itself is excluded.
    """

    upper: int
    lower: int
    features: tuple[int, ...]
    model: int
    output: int
    high: LogRational | None
    low: LogRational | None
    swing: LogRational | None
    only: bool
    strict: Strict = _NOT_STRICT

    def flipping(self, found: Flips) -> BoolArray:
        """Marks rows that satisfy the bounds, bool[rows]; rounding never adds a row."""
        return np.asarray(self.clearance(found) >= 0)

    def clearance(self, found: Flips) -> Int64Array:
        """The smaller of the amounts by which rows pass two bounds, negative if a bound is violated, in units of the sweep."""
        return np.minimum(*self._margins(found))

    def deficit(self, found: Flips) -> Int64Array:
        """The amount by which rows fall short of being pairs, in units of the sweep; 0 for pairs. Unlike `clearance`, this
        amount also falls if a row gets closer to only one of the bounds.
        """
        above, below = (np.maximum(-margin, 0) for margin in self._margins(found))
        return np.asarray(above if self.swing is not None else above + below)

    def _margins(self, found: Flips) -> tuple[Int64Array, Int64Array]:
        """The amounts by which the highest and the lowest scores pass their bounds; for a swing, both amounts are equal."""
        lowest = found.lowest + found.slack
        if self.swing is not None:
            swing = found.highest - lowest - least_units(self.swing, found.shift)
            return swing, swing
        top, bottom = self._ends(found)
        return found.highest - top, bottom - lowest

    def _ends(self, found: Flips) -> tuple[int, int]:
        """The least score that passes `high`, and the greatest score that passes `low`, in units of the sweep."""
        assert self.high is not None
        assert self.low is not None
        above, below = self.strict
        return least_units(self.high, found.shift, strict=above), -least_units(-self.low, found.shift, strict=below)

    def cells_of_pairs(self, cells: Int32Array, high: Int32Array, low: Int32Array) -> Int32Array:
        """The cells of both points, int32[rows, 2, features]: the rows' cells, with `high` and `low` in varied columns."""
        result = np.repeat(cells[:, None, :], 2, axis=1)
        result[:, self.upper, list(self.features)] = high
        result[:, self.lower, list(self.features)] = low
        return result

    def falling(self, found: Flips) -> BoolArray:
        """Marks rows whose unchanged score is on the upper side, bool[rows]: a flip lowers this score."""
        return np.zeros(len(found), bool) if self.high is None else np.asarray(found.own >= self._ends(found)[0])

    def rising(self, found: Flips) -> BoolArray:
        """Marks rows whose unchanged score is on the lower side, bool[rows]: a flip raises this score."""
        if self.low is None:
            return np.zeros(len(found), bool)
        own = found.own if found.own_low is None else found.own_low
        return np.asarray(own + found.slack <= self._ends(found)[1])


def flip_question(query: Query) -> FlipQuestion | None:
    """The question as a `FlipQuestion`; None if the question has another form."""
    same = [c for c in query.constraints if isinstance(c, SameExcept)]
    if len(query.points) != 2 or len(same) != 1 or not same[0].varied:
        return None
    if query.points[0].model != query.points[1].model:
        return None
    bounds: dict[tuple[int, int], tuple[int, LogRational, bool]] = {}  # (point, direction): output, bound, strict
    swing: tuple[int, int, LogRational] | None = None
    others = 0
    for constraint in query.constraints:
        match constraint:
            case SameExcept():
                pass
            case AtLeast(form=LinearForm(scores=(term,), costs=(), changes=())):
                direction = 1 if term.coefficient > 0 else -1
                others += (term.point, direction) in bounds
                bound = constraint.bound * (1 / term.coefficient)
                bounds[term.point, direction] = term.output, bound, constraint.strict
            case AtLeast(form=LinearForm(scores=(one, two), costs=(), changes=())) if (
                one.point != two.point and one.output == two.output and one.coefficient == -two.coefficient
            ):
                others += swing is not None
                plus = one if one.coefficient > 0 else two
                swing = plus.point, plus.output, constraint.bound * (1 / plus.coefficient)
            case _:
                others += 1
    varied, model = tuple(sorted(same[0].varied)), query.points[0].model
    if swing is not None and not bounds:
        return FlipQuestion(swing[0], 1 - swing[0], varied, model, swing[1], None, None, swing[2], others == 0)
    for upper in (0, 1):
        if (upper, 1) in bounds and (1 - upper, -1) in bounds:
            (output, high, above), (other, low, below) = bounds[upper, 1], bounds[1 - upper, -1]
            if output == other:
                only = others == 0 and len(bounds) == 2 and swing is None
                return FlipQuestion(upper, 1 - upper, varied, model, output, high, low, None, only, (above, below))
    return None
