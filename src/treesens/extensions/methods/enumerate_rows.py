"""Finds the distance to the nearest row on a small domain, by enumerating the combinations of cells for every row.

Combinations can be ranked by the distance to a single row, which is a sum, but not by the minimum over all rows. The rows that
may be nearest come first; rows that the best known pair excludes are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from treesens.binder.ladders import distance_to_row
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.query import NearestRows, Objective, Query
from treesens.compiler.result import NearestRow, Result
from treesens.extensions.methods.combinations import Combinations, Exact
from treesens.extensions.methods.enumerate_combinations import (
    close_by_enumeration,
    conclude_enumeration,
    enumerate_combinations,
)
from treesens.extensions.methods.enumeration import Enumeration
from treesens.solve.conclude import conclude_found, leave_open, shown_objective
from treesens.solve.method import OpenQuestion
from treesens.solve.options import Options
from treesens.values.verify import Witness

MOST = 2_000_000
"""Maximum product of the number of combinations and the number of rows."""

_Best: TypeAlias = tuple[Fraction, Witness, int]
"""The distance (squared for l2), a pair with this distance, and the row."""


def enumerate_rows(
    query: Query,
    options: Options,
    combinations: Combinations,
    left: Callable[[], float],
    on_better: Callable[[Witness], None] | None,
    known_witness: Witness | None,
) -> Result | None:
    """The closed answer; None if there are too many rows, if the time limit is reached, or if a combination remains undecided.

    `known_witness` comes from an earlier search; better pairs are passed to `on_better`.
    """
    assert query.objective is not None
    assert query.objective.nearest is not None
    nearest = query.objective.nearest
    rows = _distinct(nearest)
    possible = combinations.all_of(query.constraints)
    if len(rows) * max(1, int(possible.sum())) > MOST:
        return None
    ranked = _ranked(query, combinations, rows, possible, left)
    if ranked is None:
        return None
    best = None if known_witness is None else _nearest_to(query, nearest, rows, known_witness)
    open_bound: Fraction | None = None
    for least, row in ranked:
        if best is not None and least >= best[0]:
            break
        walk = _walk_to_row(query, options, combinations, left, row)
        walk.on_better = on_better
        if best is not None:
            walk.value, walk.known = best[0], best[1]
        if not walk.run(possible.copy()) or walk.unsettled:
            return None
        if walk.witness is not None:
            assert walk.value is not None
            best = walk.value, walk.witness, row
        elif best is None and walk.doubtful:
            return None
        elif best is None:
            # No combination contains a pair, so there is none for any row.
            return conclude_enumeration(walk)
        if walk.open_bound is not None:
            open_bound = walk.open_bound if open_bound is None else min(open_bound, walk.open_bound)
    return None if best is None else _found(query, nearest, best, open_bound)


def _walk_to_row(
    query: Query, options: Options, combinations: Combinations, left: Callable[[], float], row: int
) -> Enumeration:
    """The walk for the distance to one row."""
    assert query.objective is not None
    assert query.objective.nearest is not None
    nearest = query.objective.nearest
    to_this_row = replace(query, objective=distance_to_row(query.space, nearest, row))
    near = np.full(len(query.space.names), np.nan)
    near[list(nearest.features)] = nearest.values[row]
    return Enumeration(to_this_row, combinations, left, near=near, library_predict=options.library_predict)


def _nearest_to(query: Query, nearest: NearestRows, rows: list[int], known_witness: Witness) -> _Best:
    """The distance of a pair to its nearest row (squared for l2), with the pair and the row."""
    x = inputs_of(query, known_witness.values)
    distances = [objective_form_value(distance_to_row(query.space, nearest, row), x) for row in rows]
    place = min(range(len(rows)), key=distances.__getitem__)
    return distances[place], known_witness, rows[place]


def _distinct(nearest: NearestRows) -> list[int]:
    """The indices of the distinct rows, in order; all rows with missing values are kept."""
    if not nearest.features:
        return [0]
    _, first = np.unique(nearest.values, axis=0, return_index=True)
    return sorted(first.tolist())


def _ranked(
    query: Query, combinations: Combinations, rows: list[int], possible: BoolArray, left: Callable[[], float]
) -> list[tuple[Fraction, int]] | None:
    """The rows and their least possible distances, in ascending order of distance; None at the time limit."""
    assert query.objective is not None
    assert query.objective.nearest is not None
    ranked = []
    for row in rows:
        if left() <= 0:
            return None
        goal = distance_to_row(query.space, query.objective.nearest, row)
        ranked.append((_least(goal, combinations, possible), row))
    return sorted(ranked)


def _least(goal: Objective, combinations: Combinations, possible: BoolArray) -> Fraction:
    keys: tuple[Exact, int] = combinations.best_of_objective(goal)
    values = keys[0][possible]
    return Fraction(int(values.min()), keys[1]) if len(values) else Fraction(0)


def _found(query: Query, nearest: NearestRows, best: _Best, open_bound: Fraction | None) -> Result:
    value, witness, row = best
    goal = distance_to_row(query.space, nearest, row)
    bound = value if open_bound is None else min(value, open_bound)
    shown = shown_objective(goal, value, bound)
    nearest_row = NearestRow("", int(nearest.index[row]), shown.value, shown.value)
    return conclude_found(
        leave_open(query.name, witness=witness, objective=shown, backend="native", nearest=nearest_row)
    )


def search_combinations(question: OpenQuestion, budget: Budget) -> Result:
    """The method named in `solve/methods/registry.py`: closes the known result, if possible."""
    assert question.known is not None
    goal = question.query.objective
    enumerate_all = enumerate_combinations if goal is None or goal.nearest is None else enumerate_rows
    return close_by_enumeration(
        question.query,
        question.options,
        question.known,
        budget,
        enumerate_all=enumerate_all,
        on_better=question.on_better,
    )
