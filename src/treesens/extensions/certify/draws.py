"""Writes a measure in the form in which the checker adds up boxes (verify/): as successive draws of features, in exact numbers.

First the bin of a feature is drawn, with probabilities that depend on its parent's bin, and then the cell. A `onehot` group is
one draw, which sets the values of all members. For varied features only bins are drawn: other features depend on these bins.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import mul
from typing import Any

from treesens.compiler.base.arrays import FloatArray, Int32Array
from treesens.compiler.query.domain import RealDomain
from treesens.compiler.query.query import Query
from treesens.extensions.measure.groups import Group, Groups
from treesens.extensions.measure.measure import Measure

_UNITS = 1 << 60
"""Units in a probability of 1; in integer units (elsewhere: floats), the probabilities of a row add up to exactly 1."""


@dataclass(frozen=True)
class _Cells:
    """The cells of a bin that have a positive share, with their sets of values and their cumulative weights."""

    cells: list[int]
    sets: list[dict[str, Any]]
    sums: list[int]

    @classmethod
    def of(cls, parts: Sequence[tuple[int, dict[str, Any], int]]) -> _Cells:
        return cls([c for c, _, _ in parts], [s for _, s, _ in parts], [0, *accumulate(w for _, _, w in parts)])

    def inside(self, low: int, high: int) -> Fraction:
        """The share of the bin in the run of cells from `low` to `high`."""
        first, last = bisect_left(self.cells, low), bisect_left(self.cells, high + 1)
        return Fraction(self.sums[last] - self.sums[first], self.sums[-1])

    def text(self, number: int | None) -> Iterator[list[Any]]:
        for i, allowed in enumerate(self.sets):
            share = str(Fraction(self.sums[i + 1] - self.sums[i], self.sums[-1]))
            yield [allowed, share] if number is None else [allowed, share, number]


@dataclass(frozen=True)
class _Draw:
    """The draw of a feature, or of its bins alone; `chances` holds bin probabilities for each bin of the draw `after`."""

    feature: int | None
    bins: list[_Cells]
    after: int | None
    chances: list[list[Fraction]]

    def text(self) -> list[Any]:
        """The draw as JSON, in the form of claims."""
        plain = self.after is None and len(self.chances[0]) == 1
        sets = [one for b, cells in enumerate(self.bins) for one in cells.text(None if plain else b)]
        chances = [[str(x) for x in row] for row in self.chances]
        return [self.feature, sets] if plain else [self.feature, sets, self.after, chances]


class Draws:
    """The draws of a measure over a question, ignoring the `varied` features."""

    def __init__(self, query: Query, groups: Groups, measure: Measure, varied: frozenset[int]) -> None:
        self._query, self._measure, self._varied = query, measure, varied
        self._draws: list[_Draw] = []
        self._number: dict[int, int] = {}
        folded = {group.place: group for group in groups.groups}
        rest = groups.members - folded.keys()
        self._needed = {int(p) for p in measure.parent.tolist() if p >= 0}
        for f in measure.order.tolist():
            if f in folded:
                self._add_group(f, folded[f])
            elif f not in rest and (f not in varied or f in self._needed):
                self._add(f, None if f in varied else f, [] if f in varied else self._bins(f))
        self._features = {draw.feature: i for i, draw in enumerate(self._draws) if draw.feature is not None}

    @property
    def features(self) -> list[int]:
        """The features whose values are drawn."""
        return sorted(self._features)

    def _add(self, f: int, feature: int | None, bins: list[_Cells]) -> None:
        parent = int(self._measure.parent[f])
        self._number[f] = len(self._draws)
        after = self._number.get(parent)  # the other members of a group are drawn with the first
        self._draws.append(_Draw(feature, bins, after, [_exact(row) for row in self._measure.tables[f]]))

    def _add_group(self, place: int, group: Group) -> None:
        """Adds the draw of a one-hot group: the drawn member is 1, and determines the values of all members."""
        if self._measure.bins[place].any():
            self._add(place, None, [])
        weights, bins = self._measure.weights[place].tolist(), self._measure.bins[place].tolist()
        total = [0] * (max(bins) + 1)
        for number, weight in zip(bins, weights, strict=True):
            total[number] += weight
        chances = [
            [Fraction(w, total[b]) if number == b else Fraction(0) for number, w in zip(bins, weights, strict=True)]
            for b in range(len(total))
        ]
        one = len(self._draws)
        self._draws.append(_Draw(None, [], self._number.get(place), chances))
        for at, f in enumerate(group.members):
            if f in self._varied:
                continue
            parts = [(group.zeros[at], {"values": [0.0]}, 1)], [(group.ones[at], {"values": [1.0]}, 1)]
            chances = [[Fraction(int(at != m)), Fraction(int(at == m))] for m in range(len(group.members))]
            self._draws.append(_Draw(f, [_Cells.of(part) for part in parts], one, chances))

    def _bins(self, f: int) -> list[_Cells]:
        """For each bin of a feature, the cells with a positive share, and their values."""
        grid, domain = self._query.space.grid[f], self._query.space.domains[f]
        found: list[list[tuple[int, dict[str, Any], int]]] = [[] for _ in self._measure.tables[f][0]]
        for cell, weight in enumerate(self._measure.weights[f].tolist()):
            if not weight:
                continue
            allowed: dict[str, Any]
            if grid.missing and cell == grid.missing_cell:
                allowed = {"runs": [], "missing": True}
            elif isinstance(domain, RealDomain):
                low, high = grid.interval(cell)
                allowed = {"runs": [[max(low, domain.low), min(high, domain.high)]]}
                allowed |= {"whole": True} if domain.whole else {}
            else:
                inside = domain.values[grid.cell_of(domain.values) == cell]
                allowed = {"values": [float(x) for x in inside]}
            found[int(self._measure.bins[f][cell])].append((cell, allowed, weight))
        return [_Cells.of(parts) for parts in found]

    def mass(self, low: Int32Array, high: Int32Array) -> Fraction:
        """The measure of a box: for each feature the run of cells from `low` to `high`."""
        found, waiting = Fraction(1), dict[int, list[Fraction]]()
        for i in range(len(self._draws) - 1, -1, -1):
            draw = self._draws[i]
            here = waiting.pop(i, None)
            if draw.feature is not None:
                first, last = int(low[draw.feature]), int(high[draw.feature])
                if first > 0 or last + 1 < self._query.space.grid[draw.feature].n_cells:
                    kept = [cells.inside(first, last) for cells in draw.bins]
                    here = kept if here is None else list(map(mul, here, kept))
            if here is None:
                continue
            said = [sum(map(mul, row, here), Fraction(0)) for row in draw.chances]
            if draw.after is None:
                found *= said[0]
            else:
                waiting[draw.after] = list(map(mul, waiting[draw.after], said)) if draw.after in waiting else said
        return found

    def has_share(self, f: int, cell: int) -> bool:
        """True if a cell of a feature has a positive share."""
        return any(cell in cells.cells for cells in self._draws[self._features[f]].bins)

    def text(self) -> list[Any]:
        """The measure in the form of claims."""
        return [draw.text() for draw in self._draws]


def _exact(row: FloatArray) -> list[Fraction]:
    """Probabilities that add up to exactly 1; each is within 2^-60 of its float, except for the greatest probability."""
    whole = [round(Fraction(x) * _UNITS) for x in row.tolist()]
    greatest = whole.index(max(whole))
    whole[greatest] += _UNITS - sum(whole)
    return [Fraction(x, _UNITS) for x in whole]
