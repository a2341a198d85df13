"""Flips of real rows: every row of a table is tried with every legal value of the sensitive features, in exact arithmetic.

A row flips at a margin m if, with all other features unchanged, some legal values of the sensitive features give a margin of at
least m, and others a margin of at most -m. Such a row is a pair at distance 0 from the data. One compiled sweep computes the
highest and the lowest score of every row; for every margin m, a comparison then gives the answer.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array, frozen
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.base.floats import NumberType, ceil_to
from treesens.compiler.base.kept import Kept
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.model.scores import UNTRIED, base_units, leaf_values
from treesens.compiler.query.bounds import LogRational, least_units
from treesens.compiler.query.query import AtLeast, LinearForm, Query, SameExcept

MOST_COMBINATIONS = 1024
"""Maximum combinations of cells of all sensitive features except the one with the most; with more, cells are thinned evenly."""

_CHUNK = 4096

Strict = tuple[bool, bool]
_NOT_STRICT = (False, False)


@dataclass(frozen=True, eq=False)
class Flips:
    """The extremes of the score of every row over the sensitive features.

    `highest` and `lowest`, int64[rows], are raw scores (before averaging): the exact score is in [v, v + slack] units of
    2**-shift, and is v itself if `slack` is 0 (a row that passes a threshold by less than `slack` is not counted).
    `highest_cells` and `lowest_cells`, int32[rows, features], are the cells of the sensitive `features` that reach them, and
    `own`, int64[rows], are the scores of the unchanged rows. `index` numbers the rows in their table. `complete` is False if
    not all combinations of cells were tried, so that some flipping rows may be missed. If the two sides use different scores
    (leads of two classes), `own_low` is the score of the unchanged rows on the lower side.
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


def flips(
    model: CellEnsemble,
    cells: Int32Array,
    features: Sequence[int],
    legal: Sequence[BoolArray],
    *,
    index: Int64Array | None = None,
    output: int = 0,
    limit: int = MOST_COMBINATIONS,
    with_own: bool = True,
) -> Flips:
    """Sweeps the rows of `cells`, int32[rows, features of the grid] (all inside the grid), over the legal cells of `features`.

    `legal[f]`, bool[n_cells], marks the cells of feature f with a legal value. For several features all combinations are tried,
    up to `limit` combinations of all but the one with the most cells. Without `with_own` the scores `own` remain 0.
    """
    values, shift, slack = leaf_values(model, output)
    chosen = tuple(features)
    widest = _widest(chosen, legal)
    others = [f for f in chosen if f != widest]
    options, complete = thinned([np.flatnonzero(legal[f]) for f in others], limit)
    rows = len(cells)
    highest, lowest = np.full(rows, -UNTRIED), np.full(rows, UNTRIED)
    high_cells = np.zeros((rows, len(chosen)), np.int32)
    low_cells = np.zeros((rows, len(chosen)), np.int32)
    work = np.ascontiguousarray(cells, np.int32).copy()
    high, low = np.empty(rows, np.int64), np.empty(rows, np.int64)
    high_cell, low_cell = np.empty(rows, np.int32), np.empty(rows, np.int32)
    allowed = legal[widest].astype(np.uint8)
    for combination in product(*options):
        work[:, others] = combination
        model.engine.flip_profiles(work, values, widest, allowed, high, low, high_cell, low_cell)
        for better, target, found, cell in (
            (high > highest, (highest, high_cells), high, high_cell),
            (low < lowest, (lowest, low_cells), low, low_cell),
        ):
            target[0][better] = found[better]
            for column, f in enumerate(chosen):
                target[1][better, column] = cell[better] if f == widest else combination[others.index(f)]
    base = base_units(model, output, shift)
    own = _scores(model, cells, values, output) + base if with_own else np.zeros(rows, np.int64)
    numbers = np.arange(rows) if index is None else index
    return Flips(chosen, numbers, highest + base, lowest + base, high_cells, low_cells, own, shift, slack, complete)


def combinations_of(features: Sequence[int], legal: Sequence[BoolArray]) -> int:
    """The number of combinations of legal cells of all `features` except the one with the most legal cells."""
    widest = _widest(features, legal)
    return math.prod(int(legal[f].sum()) for f in features if f != widest)


def _widest(features: Sequence[int], legal: Sequence[BoolArray]) -> int:
    return max(features, key=lambda f: int(legal[f].sum()))


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
    """All options, or evenly spread ones whose number of combinations is within the limit, but at least `least` of each."""
    complete = True
    while math.prod(map(len, options)) > limit:
        complete = False
        longest = max(range(len(options)), key=lambda i: len(options[i]))
        size = len(options[longest])
        if size <= least:
            break
        options[longest] = options[longest][np.linspace(0, size - 1, max(least, size // 2), dtype=int)]
    return options, complete


def swing_bound(model: CellEnsemble, features: Sequence[int], output: int = 0) -> float:
    """An upper bound on the change of the margin by `features` alone: trees without splits on them cancel (UnAff in the paper).

    The bound is the sum, over all other trees, of the range of the tree's leaf values.
    """
    values, shift, slack = leaf_values(model, output)
    tree = model.ensemble.leaf_tree
    first = np.searchsorted(tree, np.arange(model.n_trees))
    ranges = np.maximum.reduceat(values, first) - np.minimum.reduceat(values, first)
    asks = np.zeros(model.n_trees, bool)
    asks[model.ensemble.node_tree[np.isin(model.ensemble.node_feature, list(features))]] = True
    units = int(ranges[asks].sum()) + slack
    return ceil_to(Unit(shift).value(units) / model.ensemble.average, NumberType.FLOAT64)


@dataclass(frozen=True)
class FlipQuestion:
    """A question of the form "two points agree except on some features, and one has a high score, the other a low score".

    `high` and `low` are bounds on the raw scores of the points `upper` and `lower`; with `swing` instead, the score of `upper`
    exceeds the score of `lower` by this amount. `only` is False if the question has other constraints, too. `strict` says, for
    `high` and for `low`, whether the bound itself is excluded.
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
        """Marks rows that meet the bounds, bool[rows]; rounding never adds a row."""
        return np.asarray(self.clearance(found) >= 0)

    def clearance(self, found: Flips) -> Int64Array:
        """The smaller of the amounts by which rows meet both bounds, negative if they fail one, in units of the sweep."""
        return np.minimum(*self._margins(found))

    def deficit(self, found: Flips) -> Int64Array:
        """The amount by which rows fall short of being pairs, in units of the sweep; 0 for pairs. Unlike `clearance`, it falls
        if a row gets closer to one bound and not to the other.
        """
        above, below = (np.maximum(-margin, 0) for margin in self._margins(found))
        return np.asarray(above if self.swing is not None else above + below)

    def _margins(self, found: Flips) -> tuple[Int64Array, Int64Array]:
        """The amounts by which the highest and the lowest scores pass their bounds; equal for a swing."""
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

    def falling(self, found: Flips) -> BoolArray:
        """Marks rows whose unchanged score is on the upper side, bool[rows]: a flip lowers it."""
        return np.zeros(len(found), bool) if self.high is None else np.asarray(found.own >= self._ends(found)[0])

    def rising(self, found: Flips) -> BoolArray:
        """Marks rows whose unchanged score is on the lower side, bool[rows]: a flip raises it."""
        if self.low is None:
            return np.zeros(len(found), bool)
        own = found.own if found.own_low is None else found.own_low
        return np.asarray(own + found.slack <= self._ends(found)[1])


def flip_question(query: Query) -> FlipQuestion | None:
    """The question as a `FlipQuestion`; None if it has another form."""
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
