"""Rows of a table where several scores, or rules between features, decide together whether a row flips.

`flips` follows one score through the cells of a feature in the engine. The lead of a class over all others is no such score:
it is the least of several differences. Here every combination of cells of the sensitive features is tried for every row, and
trees that do not ask about those features are read once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from treesens._engine import SCORE_BITS
from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array
from treesens.compiler.base.dyadic import Unit, to_scaled
from treesens.compiler.base.kept import Kept
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.model.scores import BEYOND, UNTRIED
from treesens.compiler.query.query import OneHot, Query
from treesens.data.flips import Flips

_CHUNK = 4096

Sides = Callable[[Int64Array], tuple[Int64Array, Int64Array]]
"""From all scores int64[rows, outputs] to what has to be high for one point, and what has to be low for the other."""


@dataclass(frozen=True, eq=False)
class Scores:
    """What leaves add to every output, int64[leaves, outputs] in units of 2**-shift, and what outputs have without any leaf.

    Values are rounded down where they are too long: an exact score lies in [v, v + slack].
    """

    leaves: Int64Array
    base: Int64Array
    shift: int
    slack: int


_SCORES: Kept[Scores] = Kept(4, lambda scores: scores.leaves.nbytes)


def scores_of_leaves(model: CellEnsemble) -> Scores:
    """All outputs in one unit, before averaging."""
    return _SCORES.of((model,), None, lambda: _scores_of_leaves(model))


def _scores_of_leaves(model: CellEnsemble) -> Scores:
    ensemble = model.ensemble
    scaled, base = ensemble.scaled_contributions, to_scaled(ensemble.base)
    shift = max(scaled.shift, base.shift)
    width = scaled.values.shape[1]
    owner = ensemble.tree_output[ensemble.leaf_tree]
    exact = np.zeros((ensemble.n_leaves, ensemble.n_outputs), object)
    for output in range(ensemble.n_outputs):
        mine = np.flatnonzero((owner == output) | (owner == -1))
        column = scaled.values[mine, output if width > 1 else 0]
        exact[mine, output] = [int(v) << (shift - scaled.shift) for v in column.tolist()]
    bases = [int(v) * ensemble.average << (shift - base.shift) for v in base.values.tolist()]
    most = max(map(abs, exact.ravel().tolist()), default=0) * (ensemble.n_trees + 1) + max(map(abs, bases), default=0)
    # What decides is the lead of one score over another one.
    drop = max(0, most.bit_length() - (SCORE_BITS - 1))
    leaves = np.array([v >> drop for v in exact.ravel().tolist()], np.int64).reshape(exact.shape)
    slack = 0 if drop == 0 else ensemble.n_trees + 1
    return Scores(leaves, np.array([v >> drop for v in bases], np.int64), shift - drop, slack)


def leads(first: int, second: int, slack: int, *, ties: bool) -> Sides:
    """By how much each of two classes is ahead of every other one; the second with its sign turned, since it has to be low.

    With `ties` a lead of 0 is what a library needs to predict the class: of several best classes it takes the first one.
    """

    def lead(scores: Int64Array, wanted: int) -> Int64Array:
        # An integer greater than another one is so by a unit.
        behind = scores + (np.arange(scores.shape[1]) < wanted) * ties
        behind[:, wanted] = -BEYOND
        return np.asarray(scores[:, wanted] - behind.max(axis=1) - slack)

    return lambda scores: (lead(scores, first), -lead(scores, second))


def joint_flips(
    query: Query,
    model: CellEnsemble,
    cells: Int32Array,
    features: Sequence[int],
    outputs: tuple[int, ...],
    *,
    index: Int64Array,
    walks: int,
    ties: bool = False,
) -> Flips:
    """Sweeps rows of cells int32[rows, features of the grid] over the legal cells of `features`, as `flips` does.

    Of one output its score is followed, of two the lead of the one class and that of the other (see `leads`).

    Rows and combinations that break a `onehot` of the question do not count. About `walks` walks through a tree are made: of
    evenly spread combinations if all are too many.
    """
    scores, rules = scores_of_leaves(model), [c for c in query.constraints if isinstance(c, OneHot) and c.point == 0]
    sides: Sides = lambda found: (found[:, outputs[0]], found[:, outputs[0]])  # noqa: E731
    if len(outputs) == 2:
        sides = leads(*outputs, scores.slack, ties=ties)
    inside = _obeys(rules, cells)
    cells, index = cells[inside], index[inside]
    fixed, asking = _trees_about(model, features)
    known = _add_up(model, scores, cells, fixed) + scores.base
    options, complete = _options(query, features, walks / max(1, len(cells) * max(1, len(asking))))
    high, low = np.full(len(cells), -UNTRIED), np.full(len(cells), UNTRIED)
    high_cells, low_cells = (np.zeros((len(cells), len(features)), np.int32) for _ in range(2))
    work = np.ascontiguousarray(cells, np.int32).copy()
    for combination in product(*options):
        work[:, list(features)] = combination
        upper, lower = sides(known + _add_up(model, scores, work, asking))
        legal = _obeys(rules, work)
        better, worse = legal & (upper > high), legal & (lower < low)
        high[better], low[worse] = upper[better], lower[worse]
        high_cells[better], low_cells[worse] = combination, combination
    own, own_low = sides(known + _add_up(model, scores, cells, asking))
    slack = scores.slack if len(outputs) == 1 else 0  # of a lead it is taken off already
    return Flips(tuple(features), index, high, low, high_cells, low_cells, own, scores.shift, slack, complete, own_low)


def _trees_about(model: CellEnsemble, features: Sequence[int]) -> tuple[Int32Array, Int32Array]:
    """The numbers of trees that do not ask about the features, and of those that do."""
    ensemble = model.ensemble
    asks = np.zeros(model.n_trees, bool)
    asks[ensemble.node_tree[np.isin(ensemble.node_feature, list(features))]] = True
    return np.flatnonzero(~asks).astype(np.int32), np.flatnonzero(asks).astype(np.int32)


def _add_up(model: CellEnsemble, scores: Scores, cells: Int32Array, trees: Int32Array) -> Int64Array:
    """What some trees add to the scores of rows of cells, int64[rows, outputs]."""
    result = np.zeros((len(cells), scores.leaves.shape[1]), np.int64)
    for start in range(0, len(cells) if len(trees) else 0, _CHUNK):
        part = np.ascontiguousarray(cells[start : start + _CHUNK])
        reached = np.empty((len(part), len(trees)), np.int32)
        model.engine.reach_leaves(part, reached, trees)
        for output in range(result.shape[1]):
            result[start : start + _CHUNK, output] = scores.leaves[reached, output].sum(axis=1)
    return result


def _options(query: Query, features: Sequence[int], most: float) -> tuple[list[NDArray[np.int64]], bool]:
    """The legal cells of every feature; evenly spread ones if they have more than about `most` combinations."""
    options = [np.flatnonzero(query.space.legal[f]) for f in features]
    complete = True
    while np.prod([len(o) for o in options], dtype=np.float64) > max(2, most):
        complete = False
        longest = max(range(len(options)), key=lambda i: len(options[i]))
        if len(options[longest]) <= 2:
            break
        picked = np.linspace(0, len(options[longest]) - 1, max(2, len(options[longest]) // 2), dtype=int)
        options[longest] = options[longest][picked]
    return options, complete


def _obeys(rules: Sequence[OneHot], cells: Int32Array) -> BoolArray:
    """Rows of cells that have exactly one of the features of every rule, bool[rows]."""
    good = np.ones(len(cells), bool)
    for rule in rules:
        ones = sum(member.mask[cells[:, member.feature]].astype(np.int64) for member in rule.members)
        good &= np.asarray(ones == 1)
    return good


def two_class_swing(model: CellEnsemble, features: Sequence[int], first: int, second: int) -> Fraction:
    """No change of `features` alone moves the difference of two scores by more: the ranges of the trees that ask, added up."""
    scores = scores_of_leaves(model)
    values = scores.leaves[:, first] - scores.leaves[:, second]
    start = np.searchsorted(model.ensemble.leaf_tree, np.arange(model.n_trees))
    ranges = np.maximum.reduceat(values, start) - np.minimum.reduceat(values, start)
    units = int(ranges[_trees_about(model, features)[1]].sum()) + 2 * scores.slack
    return Unit(scores.shift).value(units) / model.ensemble.average
