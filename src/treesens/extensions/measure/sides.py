"""A question about two points as integer tables: one choice of varied values must have a high score, another a low score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import lcm, prod

import numpy as np

from treesens._engine import SCORE_BITS
from treesens.compiler.base.arrays import Int32Array, Int64Array
from treesens.compiler.base.dyadic import to_scaled
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.model.scores import BEYOND
from treesens.compiler.query.query import AtLeast, Query, SameExcept
from treesens.errors import UsageError
from treesens.extensions.measure.groups import Groups

MOST_CHOICES = 1 << 14
"""Maximum number of combinations of legal cells of the varied features."""

_FAR = 4 * BEYOND

Weights = tuple[int, ...]
"""The weights with which a table sums the outputs."""


@dataclass(frozen=True)
class Row:
    """sign * (score of a table) >= an integer: false below `possible`, true from `certain` on."""

    table: int
    sign: int
    possible: int
    certain: int


@dataclass
class Sides:
    """`values` int64[leaves, tables] and `base` int64[tables] are in units of 2**-shift; `choices` int32[choices, varied] holds
    cells of the features `varied`. An input is affected if one choice satisfies the rows in `first`, another choice satisfies
    those in `second` and, if `apart_counts`, the values of `compared` at both choices differ by `apart` (possible, certain).

    With a single point, `choices` holds one empty choice, and `second` holds no rows.
    """

    varied: Int32Array
    choices: Int32Array
    values: Int64Array
    base: Int64Array
    first: list[Row] = field(default_factory=list)
    second: list[Row] = field(default_factory=list)
    compared: tuple[int, int] = (0, 0)
    apart_counts: bool = False
    apart: tuple[int, int] = (-_FAR, -_FAR)
    allowed: Int32Array | None = None
    swapped: bool = False
    """True if `first` constrains the second point of the question."""

    def swap(self) -> None:
        """Swaps the two points."""
        self.first, self.second, self.swapped = self.second, self.first, not self.swapped


def check_choices(query: Query, varied: Sequence[int], groups: Groups) -> list[list[int]]:
    """The legal cells of the varied features. Raises UsageError if there are too many combinations."""
    counts = groups.counts
    legal = [list(range(counts[f])) if f in counts else np.flatnonzero(query.space.legal[f]).tolist() for f in varied]
    if prod(map(len, legal)) > MOST_CHOICES:
        raise UsageError(
            f"the features have more than {MOST_CHOICES} combinations of values", remedy="vary fewer features at once"
        )
    return legal


def sides_of(query: Query, groups: Groups, said: Sequence[AtLeast], more_trees: int = 0) -> Sides:
    """The tables of a question's score constraints, over choices of (folded) varied features; `more_trees` are added later."""
    model, varied = query.models[query.points[0].model], groups.varied(varied_by(query))
    combinations = list(product(*check_choices(query, varied, groups)))
    choices = np.array(combinations, np.int32).reshape(len(combinations), len(varied))
    tables: dict[Weights, int] = {}
    placed = [_placed(row, model, tables) for row in said]
    scores = _Scores.of(model, list(tables) or [(0,) * model.ensemble.n_outputs], model.n_trees + more_trees)
    sides = Sides(np.array(varied, np.int32), choices, scores.values, scores.base)
    backwards = [_add(sides, scores, row, first, second) for row, (first, second) in zip(said, placed, strict=True)]
    if any(backwards):
        sides.swap()
    _compare(sides)
    return sides


def varied_by(query: Query) -> frozenset[int]:
    """The features that may differ between points; none for one point. Raises UsageError for different models."""
    same = [c for c in query.constraints if isinstance(c, SameExcept)]
    if len(query.points) == 1:
        return frozenset()
    if len(same) != 1 or query.points[0].model != query.points[1].model:
        raise UsageError(
            "shares require one point, or two points of the same model that agree except on some features",
            remedy="write `a = b except {..}`",
        )
    return same[0].varied


Placed = tuple[int, int] | None
"""The index of a table, and a sign; None if the row has no score of the point."""


def _placed(row: AtLeast, model: CellEnsemble, tables: dict[Weights, int]) -> tuple[Placed, Placed]:
    """The tables of a row for the first and for the second point."""
    whole = lcm(*(term.coefficient.denominator for term in row.form.scores))
    found: list[Placed] = []
    for point in (0, 1):
        weights = [0] * model.ensemble.n_outputs
        for term in row.form.scores:
            if term.point == point:
                weights[term.output] += int(term.coefficient * whole)
        sign = next((1 if w > 0 else -1 for w in weights if w), 0)
        key = tuple(sign * w for w in weights)
        found.append((tables.setdefault(key, len(tables)), sign) if sign else None)
    return found[0], found[1]


@dataclass(frozen=True, eq=False)
class _Scores:
    """Tables in units of 2**(drop - shift), with rounded entries. A rounded score v covers exact scores in [v, v + slack]."""

    values: Int64Array
    base: Int64Array
    shift: int
    drop: int
    slack: int

    @classmethod
    def of(cls, model: CellEnsemble, tables: list[Weights], trees: int) -> _Scores:
        ensemble = model.ensemble
        scaled, bases = ensemble.scaled_contributions, to_scaled(ensemble.base)
        shift = max(scaled.shift, bases.shift)
        owner = ensemble.tree_output[ensemble.leaf_tree]
        width = scaled.values.shape[1]
        exact = np.zeros((ensemble.n_leaves, len(tables)), object)
        for number, weights in enumerate(tables):
            for output, weight in enumerate(weights):
                if weight == 0:
                    continue
                leaves_of_output = np.flatnonzero((owner == output) | (owner == -1))
                column = scaled.values[leaves_of_output, output if width > 1 else 0].astype(object)
                exact[leaves_of_output, number] += column * (weight << (shift - scaled.shift))
        raw = [int(v) * ensemble.average << (shift - bases.shift) for v in bases.values.tolist()]
        base = [sum(w * b for w, b in zip(weights, raw, strict=True)) for weights in tables]
        most = max(map(abs, exact.ravel().tolist()), default=0) * (trees + 1) + max(map(abs, base))
        drop = max(0, most.bit_length() - SCORE_BITS)
        values = np.array([v >> drop for v in exact.ravel().tolist()], np.int64).reshape(exact.shape)
        slack = 0 if drop == 0 else ensemble.n_trees + 1
        return cls(values, np.array([v >> drop for v in base], np.int64), shift, drop, slack)

    def least(self, row: AtLeast) -> tuple[int, int]:
        """The least score that satisfies a row, in units of the tables, rounded down and rounded up."""
        whole = lcm(*(term.coefficient.denominator for term in row.form.scores))
        exact = (row.bound * Fraction(whole)).ceil(self.shift, strict=row.strict)
        return exact >> self.drop, -((-exact) >> self.drop)


def _add(sides: Sides, scores: _Scores, row: AtLeast, first: Placed, second: Placed) -> bool:
    """Adds a row; returns True if the row requires a higher score at the second point."""
    down, up = scores.least(row)
    if first is not None and second is not None:
        if first[0] != second[0] or first[1] == second[1]:
            raise UsageError("shares need differences of a single score")
        if sides.apart_counts:
            raise UsageError("shares need a single difference of scores")
        sides.apart_counts, sides.compared = True, (first[0], first[0])
        sides.apart = _clipped(down - scores.slack), _clipped(up + scores.slack)
        return first[1] < 0
    for placed, rows in ((first, sides.first), (second, sides.second)):
        if placed is not None:
            table, sign = placed
            # Scores are rounded down: a positive exact score may be greater, a negative one is not.
            possible, certain = (down - scores.slack, up) if sign > 0 else (down, up + scores.slack)
            rows.append(Row(table, sign, _clipped(possible), _clipped(certain)))
    return False


def _clipped(threshold: int) -> int:
    return min(max(threshold, -_FAR), _FAR)


def _compare(sides: Sides) -> None:
    """Sets `apart`: scores that are high at one point and low at the other differ by at least the sum of both bounds."""
    if sides.apart_counts:
        return
    for one in sides.first:
        for two in sides.second:
            if one.table == two.table and one.sign == -two.sign:
                if one.sign < 0:
                    sides.swap()
                sides.compared = one.table, one.table
                sides.apart = _clipped(one.possible + two.possible), _FAR
                return
