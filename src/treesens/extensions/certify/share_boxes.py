"""Proves the share of a measure by boxes of cells of the fixed features; in each box, all or no inputs are answers.

A box without answers needs one proof of `none`. A box of answers, with the varied features fixed as in a found answer, needs
one proof per row: no input in the box violates the row. Other boxes are split, starting with the boxes of the largest measure.
The checker adds up the boxes itself (verify/, `shares.py`).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isnan, nextafter
from pathlib import Path
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import Int32Array, frozen
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.evaluate import Inputs, form_value, scores_of_cells
from treesens.compiler.query.query import AtLeast, CellSet, Query
from treesens.compiler.result import Result, Verdict
from treesens.extensions.certify.answers import certified_none
from treesens.extensions.certify.cases import flat
from treesens.extensions.certify.draws import Draws
from treesens.extensions.certify.statement import NoCertificate, learnt_of, set_of_cells
from treesens.extensions.certify.together import Claim, Part, known
from treesens.extensions.certify.whole import whole_of
from treesens.extensions.measure.groups import Groups
from treesens.extensions.measure.measure import Measure
from treesens.values.verify import Witness

MOST_PARTS = 2_000
"""Maximum number of certificates per share."""

Ask = Callable[[Query], Result]
Enough = Callable[[float, float], bool]


@dataclass(eq=False)
class _Box:
    """A run of cells, `low` to `high`, per fixed feature, and the result: `parts` lists proofs that the box has no answers or,
    with values `pinned`, that all its inputs are answers; or a `cut` splits the box at a cell of a feature.
    """

    low: Int32Array
    high: Int32Array
    path: tuple[CellSet, ...] = ()
    parts: list[int] = field(default_factory=list)
    pinned: tuple[list[Any], list[Any]] | None = None
    cut: tuple[CellSet, CellSet, _Box, _Box] | None = None


@dataclass(frozen=True, eq=False)
class ShareProved:
    """The share that the proofs for boxes imply, and the claim about this share."""

    lower: float
    upper: float
    claim: Claim


class _Boxes:
    """The boxes of a question, and their certificates."""

    def __init__(
        self, query: Query, varied: frozenset[int], groups: Groups, measure: Measure, folder: Path, budget: Budget
    ) -> None:
        self.query, self.varied, self.folder, self.budget = query, sorted(varied), folder, budget
        self.draws = Draws(query, groups, measure, varied)
        self.fixed = self.draws.features
        constraints = list(flat(query.constraints))
        self.rows = [c for c in constraints if isinstance(c, AtLeast)]
        self.rest = [c for c in constraints if not isinstance(c, AtLeast)]
        self.may_be_full = not learnt_of(query)
        # The values of a varied member depend on the others of its group.
        torn = [g for g in groups.groups if not varied.isdisjoint(g.members)]
        self.members = [
            (f, max(g.zeros[i], g.ones[i])) for g in torn for i, f in enumerate(g.members) if f not in varied
        ]
        self.parts: list[Part] = []
        self.allowed = [np.ones(n, bool) for n in query.space.grid.n_cells]
        for one in self.rest:
            if isinstance(one, CellSet):
                self.allowed[one.feature] &= one.mask

    def whole(self) -> _Box:
        sizes = self.query.space.grid.n_cells
        return _Box(np.zeros(len(sizes), np.int32), np.asarray(sizes, np.int32) - 1)

    def mass(self, box: _Box) -> Fraction:
        """The measure of a box."""
        return self.draws.mass(box.low, box.high)

    def _lacks(self, asked: Query) -> int | None:
        """The number of the part that proves that a question has no answer; None without a certificate."""
        made = certified_none(asked, self.folder, budget=self.budget)
        if not made[0].path or len(self.parts) == MOST_PARTS:
            return None
        self.parts.append(known(asked, *made))
        return len(self.parts) - 1

    def look_at(self, box: _Box, ask: Ask) -> tuple[Fraction, Fraction]:
        """The proved measures of answers and of other inputs in a box. If both measures are 0, the box may have been split."""
        if self._cut_at_members(box) or self._cut_at_sets(box):
            return Fraction(0), Fraction(0)
        asked = replace(self.query, constraints=(*self.query.constraints, *box.path))
        result = ask(asked)
        if result.verdict is Verdict.NONE:
            number = self._lacks(asked)
            if number is None:
                return Fraction(0), Fraction(0)
            box.parts = [number]
            return Fraction(0), self.mass(box)
        if result.witness is None or not self.may_be_full:
            return Fraction(0), Fraction(0)
        missing = self._fill(box, result.witness, ask)
        if missing is None:
            return self.mass(box) if box.parts else Fraction(0), Fraction(0)
        self._cut(box, result.witness, *missing)
        return Fraction(0), Fraction(0)

    def _fill(self, box: _Box, shown: Witness, ask: Ask) -> tuple[AtLeast, Witness] | None:
        """Proves that all inputs of a box are answers with the shown varied values; or returns a violated row and an input."""
        grid, points = self.query.space.grid, range(len(self.query.points))
        pins = [
            [CellSet(p, f, frozen(np.arange(grid[f].n_cells) == shown.cells[p, f], bool)) for f in self.varied]
            for p in points
        ]
        asked = [self._missing(row, [*box.path, *itertools.chain(*pins)]) for row in self.rows]
        for row, one in zip(self.rows, asked, strict=True):
            result = ask(one)
            if result.witness is not None:
                return row, result.witness
            if result.verdict is not Verdict.NONE:
                return None
        numbers = [self._lacks(one) for one in asked]
        if None in numbers:
            return None
        box.parts = [number for number in numbers if number is not None]
        values = [[None if isnan(x := float(shown.values[p, f])) else x for f in self.varied] for p in points]
        box.pinned = values, [[set_of_cells(grid[pin.feature], pin.mask) for pin in mine] for mine in pins]
        return None

    def _missing(self, row: AtLeast, sets: Sequence[CellSet]) -> Query:
        """The question whose answers are in the given sets and violate a row."""
        missed = replace(row, form=row.form.negative(), bound=-row.bound, strict=not row.strict)
        return replace(self.query, constraints=(*self.rest, *sets, missed))

    def _cut(self, box: _Box, shown: Witness, row: AtLeast, missing: Witness) -> None:
        """Splits a box between an input that satisfies a row and an input that violates it, at the most influential cell."""
        mixed = np.array(missing.cells, np.int32)
        for p in range(len(mixed)):
            mixed[p, self.varied] = shown.cells[p, self.varied]
        start = self._value(row, mixed)
        best: tuple[Fraction, int, int] | None = None
        for f in self.fixed:
            one, other = int(shown.cells[0, f]), int(missing.cells[0, f])
            if one == other:
                continue
            step = 1 if one > other else -1
            before = start
            for cell in range(other + step, one + step, step):
                moved = mixed.copy()
                moved[:, f] = cell
                value = self._value(row, moved)
                if best is None or value - before > best[0]:
                    best = value - before, f, max(cell, cell - step)
                before = value
        if best is None:
            return
        self._cut_at(box, best[1], best[2])

    def _cut_at_members(self, box: _Box) -> bool:
        """Splits a box between the values of a group member if the group has varied members; returns True on success."""
        for f, cell in self.members:
            if box.low[f] < cell <= box.high[f]:
                self._cut_at(box, f, cell)
                return True
        return False

    def _cut_at_sets(self, box: _Box) -> bool:
        """Splits a box that the question allows only in part; returns True on success."""
        for f in self.fixed:
            inside = [c for c in range(box.low[f], box.high[f] + 1) if self.draws.has_share(f, c)]
            for one, other in itertools.pairwise(inside):
                if self.allowed[f][one] != self.allowed[f][other]:
                    self._cut_at(box, f, other)
                    return True
        return False

    def _cut_at(self, box: _Box, f: int, cell: int) -> None:
        """Splits a box below a cell."""
        cells = np.arange(self.query.space.grid[f].n_cells)
        sides = [CellSet(0, f, frozen(side, bool)) for side in (cells < cell, cells >= cell)]
        low, high = box.high.copy(), box.low.copy()
        low[f], high[f] = cell - 1, cell
        children = _Box(box.low, low, (*box.path, sides[0])), _Box(high, box.high, (*box.path, sides[1]))
        box.cut = (sides[0], sides[1], *children)

    def _value(self, row: AtLeast, cells: Int32Array) -> Fraction:
        return form_value(row.form, Inputs(np.zeros(cells.shape), cells, scores_of_cells(self.query, cells)))

    def text(self, box: _Box, numbers: Sequence[Sequence[int]]) -> Any:
        """The tree of boxes in the form of claims."""
        if box.cut is not None:
            low, high, below, above = box.cut
            grid = self.query.space.grid[low.feature]
            sides = [set_of_cells(grid, side.mask) for side in (low, high)]
            return [low.feature, *sides, self.text(below, numbers), self.text(above, numbers)]
        mine = [number for part in box.parts for number in numbers[part]]
        if box.pinned is not None:
            return {"all": mine, "values": box.pinned[0], "sets": box.pinned[1]}
        return {"none": mine} if mine else None


def share_in_boxes(
    title: str,
    query: Query,
    varied: frozenset[int],
    groups: Groups,
    measure: Measure,
    *,
    ask: Ask,
    enough: Enough,
    budget: Budget,
    folder: Path,
) -> ShareProved:
    """Proves bounds on the measure of a question's inputs, refined until `enough` accepts the bounds or the budget is spent.

    `query` has one point, or two points that agree except in the `varied` features. Raises NoCertificate if nothing is proved.
    """
    boxes = _Boxes(query, varied, groups, measure, folder, budget)
    root = boxes.whole()
    order = itertools.count()
    waiting = [(-Fraction(1), next(order), root)]
    low, none = Fraction(0), Fraction(0)
    while waiting and not budget.over and len(boxes.parts) < MOST_PARTS and not enough(float(low), float(1 - none)):
        _, _, box = heapq.heappop(waiting)
        full, empty = boxes.look_at(box, ask)
        low, none = low + full, none + empty
        if box.cut is not None:
            for child in box.cut[2:]:
                if mass := boxes.mass(child):
                    heapq.heappush(waiting, (-mass, next(order), child))
    if not low and not none:
        raise NoCertificate("no box was proved in time")

    def say(numbers: list[list[int]]) -> dict[str, Any]:
        return {"whole": whole_of(query), "measure": boxes.draws.text(), "tree": boxes.text(root, numbers)}

    claim = Claim(
        f"{title} lies between {float(low):.6g} and {float(1 - none):.6g}",
        "share",
        boxes.parts,
        lambda numbers: say([[number] for number in numbers]),
        in_cases=("share", say),
    )
    return ShareProved(max(0.0, nextafter(float(low), -1.0)), min(1.0, nextafter(float(1 - none), 2.0)), claim)
