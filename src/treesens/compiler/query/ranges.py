"""What an objective can be at all, feature by feature: no reported bound lies outside of it, whoever proved it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from treesens.compiler.query.query import CellCost, Objective, Query, Space
from treesens.compiler.query.values import DistanceTerm, ValueRange, extremes, join_ranges, reach_of_cell

Range = tuple[Fraction | None, Fraction | None]
"""Least and greatest value; None if nothing is said."""


def objective_range(query: Query) -> Range:
    """The range of an objective before unit and offset: distances, changes and costs of cells; scores have none here."""
    goal = query.objective
    if goal is None or goal.nearest is not None:
        return (None, None) if goal is None else (Fraction(0), None)
    if goal.values:
        return _of_values(query.space, goal)
    form = goal.form
    if not form.costs or form.scores or form.changes or form.pairs or form.levels:
        return None, None
    parts = [_of_cost(query.space, cost) for cost in form.costs]
    return sum((low for low, _ in parts), Fraction(0)), sum((high for _, high in parts), Fraction(0))


def _of_values(space: Space, goal: Objective) -> Range:
    parts = [_of_term(space, term) for term in goal.values]
    if goal.largest:
        return max((low for low, _ in parts), default=Fraction(0)), max(
            (high for _, high in parts), default=Fraction(0)
        )
    return sum((low for low, _ in parts), Fraction(0)), sum((high for _, high in parts), Fraction(0))


def _of_term(space: Space, term: DistanceTerm) -> tuple[Fraction, Fraction]:
    """A term over everything legal: the present values as one range, and missing."""
    present = _present(space, term.feature)
    options = [present] if present is not None else []
    choices: list[ValueRange | None] = [*options]
    missing = space.grid[term.feature].missing_cell
    if missing >= 0 and space.legal[term.feature][missing]:
        choices.append(None)
    ways = [[c] for c in choices] if term.other is None else [[a, b] for a in choices for b in choices]
    found = [ends for way in ways if (ends := extremes(term, way)) is not None]
    return min(low for low, _ in found), max(high for _, high in found)


def _present(space: Space, feature: int) -> ValueRange | None:
    grid = space.grid[feature]
    cells = np.flatnonzero(space.legal[feature][: grid.present_cells])
    if len(cells) == 0:
        return None
    first, last = (reach_of_cell(space.domains[feature], grid, int(c)) for c in (cells[0], cells[-1]))
    return None if first is None or last is None else join_ranges(first, last)


def _of_cost(space: Space, cost: CellCost) -> tuple[Fraction, Fraction]:
    costs = cost.costs[space.legal[cost.feature]]
    unit = 1 << cost.shift
    return Fraction(int(costs.min()), unit), Fraction(int(costs.max()), unit)
