"""Cavities by z3, one clause at a time: the paper's builder, behind the interface of `maximal_empty_boxes`.

The template (paper, eq. clause-template) is a conjunction over i <= w of X_{f_i} in [lb_i, ub_i], with f_1 < f_2 < …. Every row
must be outside in some literal:

    or_i or_f (f_i = f and (x_f < lb_i or x_f > ub_i)).

Rows come in one by one: a box that z3 proposes and that still holds a row adds that row and is asked for again (refinement).
An empty box is then pruned greedily: every side moves outwards as far as the box stays empty, and a literal that bounds nothing
any more is dropped. Boxes inside one that is known are excluded. Clauses of one feature come first.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import Int32Array, indptr_of
from treesens.data.cavities import Boxes

_Literal = tuple[int, int, int]
"""A feature, and its first and last cell."""


def z3_empty_boxes(
    cells: Int32Array, n_cells: Int32Array, width: int, limit: int, *, seconds: float = float("inf"), seed: int = 0
) -> Boxes:
    """At most `limit` maximal empty boxes of at most `width` features, as z3 finds them; fewer at the end of the time.

    `cells` int32[rows, features]; -1 is in no box. Features without a choice of cells take no part.
    """
    deadline = time.monotonic() + seconds
    rows = np.unique(cells, axis=0)
    features = [f for f in range(cells.shape[1]) if n_cells[f] > 1]
    found: list[tuple[_Literal, ...]] = []
    for count in range(1, min(width, len(features)) + 1):
        level = _Level(rows, n_cells, features, count, seed)
        for box in found:
            level.exclude(box)
        while len(found) < limit and time.monotonic() < deadline:
            candidate = level.next(deadline)
            if candidate is None:
                break
            box = pruned(rows, n_cells, candidate)
            found.append(box)
            level.exclude(box)
    flat = [literal for box in found for literal in box]
    return Boxes(
        indptr_of([len(box) for box in found]),
        np.array([f for f, _, _ in flat], np.int32),
        np.array([low for _, low, _ in flat], np.int32),
        np.array([high for _, _, high in flat], np.int32),
    )


class _Level:
    """The solver for boxes of a number of features."""

    def __init__(self, rows: Int32Array, n_cells: Int32Array, features: list[int], count: int, seed: int) -> None:
        import z3

        self.z3: Any = z3
        self.rows, self.features = rows, features
        self.solver = z3.Solver()
        self.solver.set("random_seed", seed)
        self.which = [z3.Int(f"f{i}") for i in range(count)]
        self.low = [z3.Int(f"l{i}") for i in range(count)]
        self.high = [z3.Int(f"h{i}") for i in range(count)]
        for i in range(count):
            one = [
                z3.And(
                    self.which[i] == f,
                    self.high[i] <= int(n_cells[f]) - 1,
                    self.high[i] - self.low[i] <= int(n_cells[f]) - 2,
                )
                for f in features
            ]
            self.solver.add(z3.Or(one), self.low[i] >= 0, self.low[i] <= self.high[i])
            if i:
                self.solver.add(self.which[i - 1] < self.which[i])

    def next(self, deadline: float) -> tuple[_Literal, ...] | None:
        """An empty box outside the excluded ones; None if there is none, or no time."""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            if left < 1e6:
                self.solver.set("timeout", max(1, int(left * 1000)))
            if self.solver.check() != self.z3.sat:
                return None
            model = self.solver.model()
            box = tuple(
                (model.eval(f).as_long(), model.eval(low).as_long(), model.eval(high).as_long())
                for f, low, high in zip(self.which, self.low, self.high, strict=True)
            )
            inside = np.flatnonzero(_inside(self.rows, box))
            if len(inside) == 0:
                return box
            self._add_row(self.rows[inside[len(inside) // 2]])

    def _add_row(self, row: Int32Array) -> None:
        z3 = self.z3
        places = range(len(self.which))
        self.solver.add(
            z3.Or(
                [
                    z3.And(self.which[i] == f, z3.Or(int(row[f]) < self.low[i], int(row[f]) > self.high[i]))
                    for i in places
                    for f in self.features
                    if row[f] >= 0
                ]
                + [self.which[i] == f for i in places for f in self.features if row[f] < 0]
            )
        )

    def exclude(self, box: tuple[_Literal, ...]) -> None:
        """No box inside this one: some literal of it is not implied."""
        z3 = self.z3
        if len(box) > len(self.which):
            return
        implied = [
            z3.Or(
                [z3.And(self.which[i] == f, self.low[i] >= low, self.high[i] <= high) for i in range(len(self.which))]
            )
            for f, low, high in box
        ]
        self.solver.add(z3.Not(z3.And(implied)))


def _inside(rows: Int32Array, box: tuple[_Literal, ...]) -> Any:
    inside = np.ones(len(rows), bool)
    for f, low, high in box:
        inside &= (rows[:, f] >= low) & (rows[:, f] <= high)
    return inside


def pruned(rows: Int32Array, n_cells: Int32Array, box: tuple[_Literal, ...]) -> tuple[_Literal, ...]:
    """An empty box with every side moved outwards as far as it stays empty; literals that bound nothing are dropped."""
    literals = list(box)
    for place, (f, low, high) in enumerate(literals):
        others = tuple(literal for i, literal in enumerate(literals) if i != place)
        column = rows[_inside(rows, others), f]
        column = column[column >= 0]
        before, after = column[column < low], column[column > high]
        literals[place] = (
            f,
            int(before.max()) + 1 if len(before) else 0,
            int(after.min()) - 1 if len(after) else int(n_cells[f]) - 1,
        )
    return tuple((f, low, high) for f, low, high in literals if (low, high) != (0, int(n_cells[f]) - 1))
