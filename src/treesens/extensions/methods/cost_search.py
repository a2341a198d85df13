"""Finds the cheapest solution of a question about scores with additive cell costs (`engine/levels/cost_search.hpp`), and the
least level of a solution, where the level of a solution is that of its highest cell (`engine/levels/level_search.hpp`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from treesens._engine import CostSearch, LevelSearch
from treesens.backends.native.boxed_question import LevelOutcome, run_search
from treesens.backends.native.question_cells import QuestionCells
from treesens.backends.native.tree_question import BoundQuestion, bound_question
from treesens.compiler.base.arrays import Int32Array, Int64Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.cases import every_case
from treesens.compiler.query.query import Query
from treesens.compiler.query.values import Place


@dataclass(frozen=True)
class CostOutcome:
    """The cheapest point, `cells` int32[points, features], or None if unknown, and the lower bound `low` on all costs.

    `closed` is True if the result is proved to the precision of the engine's units: if `cells` is None, no point exists.
    """

    cells: Int32Array | None
    low: int
    closed: bool
    reason: str
    statistics: dict[str, float]


def least_cost_on_trees(
    query: Query,
    costs: Mapping[Place, Int64Array],
    budget: Budget,
    *,
    hints: Int32Array | None = None,
    seed: int = 0,
    memory: int | None = None,
) -> CostOutcome | None:
    """The solution with the least total cost of cells; the objective of the question is ignored.

    Costs are int64[n_cells] per place; -1 forbids a cell. Returns None if the question needs the compiled path, if the engine
    has an internal error, or if a domain is empty (the compiler then has a better message). Alternatives between bounds are
    solved one after the other, each with the requirement to improve on the best solution.
    """
    cases = every_case(query)
    questions = [bound_question(alternative) for alternative in cases]
    best: Int32Array | None = None
    most, nodes, lows, reasons = -1, 0, list[int](), list[str]()
    for number, question in enumerate(questions):
        if question is None:
            return None
        search = _search(cases[number], question, costs, most, hints, seed, memory)
        if search is None:
            continue
        # The time that each alternative needs is unknown, so each gets an equal part of the remaining time.
        cells, found = search
        facts = run_search(found, budget.share(1 / (len(questions) - number)))
        if facts["fault"]:
            return None  # contradictory results of the engine: discard all its proofs
        nodes += facts["nodes"]
        lows.append(facts["low"])
        if facts["status"] == "open":
            reasons.append(facts["reason"] or "time")
        if facts["point"]:
            best, most = cells.of_point(facts["point"]), facts["high"]
    if not lows:
        return None
    return CostOutcome(best, min(lows), not reasons, ", ".join(reasons), {"nodes": float(nodes)})


def is_rounded(query: Query) -> bool:
    """True if scores are rounded for the engine, because exact scores of forests are too long for the engine's integers."""
    questions = [bound_question(alternative) for alternative in every_case(query)]
    return any(row.rounded for question in questions if question is not None for row in question.rows)


def _search(
    query: Query,
    question: BoundQuestion,
    costs: Mapping[Place, Int64Array],
    most: int,
    hints: Int32Array | None,
    seed: int,
    memory: int | None,
) -> tuple[QuestionCells, CostSearch] | None:
    """The engine's search for costs below `most` (-1 for no limit); None if a domain is empty."""
    cells = question.cells(query)
    allowed = cells.allowed()
    if allowed is None:
        return None
    start = cells.start
    cost = np.zeros(len(allowed), np.int64)
    for (point, feature), of_cell in costs.items():
        v = cells.variable[point, feature]
        cost[start[v] : start[v + 1]] += np.maximum(of_cell, 0)
        allowed[start[v] : start[v + 1]] &= of_cell >= 0
    if not np.logical_or.reduceat(allowed, start[:-1]).all():
        return None
    cost[~allowed] = -1
    coarse, limit = cells.coarse_costs(cost), -1 if memory is None else memory
    problem, starts = question.trees.shared, cells.of_hints(hints)
    return cells, CostSearch(problem, coarse, question.bound, starts, most, seed, limit)


def least_level_on_trees(
    query: Query,
    levels: Mapping[Place, Int32Array],
    budget: Budget,
    *,
    hints: Int32Array | None = None,
    seed: int = 0,
    memory: int | None = None,
) -> LevelOutcome | None:
    """The least level of a solution (its highest cell level); levels are int32[n_cells] per place, and -1 forbids a cell.

    Returns None if the question needs the compiled path, if the engine has an internal error, or if a domain is empty (the
    compiler then has a better message). Alternatives between bounds are solved in turn, each below the best level so far.
    """
    cases = every_case(query)
    questions = [bound_question(alternative) for alternative in cases]
    best: Int32Array | None = None
    high, nodes, decisions, lows, reasons = -1, 0, 0, list[int](), list[str]()
    for number, question in enumerate(questions):
        if question is None:
            return None
        search_of_case = _search_levels(cases[number], question, levels, high, hints, seed, memory)
        if search_of_case is None:
            if best is None:
                return None
            lows.append(high)  # no cell is lower
            continue
        cells, search = search_of_case
        facts = run_search(search, budget.share(1 / (len(questions) - number)))
        if facts["fault"]:
            return None  # contradictory results of the engine: discard all its proofs
        nodes, decisions = nodes + facts["nodes"], decisions + facts["decisions"]
        if facts["status"] == "open":
            reasons.append(facts["reason"] or "time")
        if facts["status"] != "infeasible":
            lows.append(facts["low"])
        elif best is not None:
            lows.append(high)
        if facts["point"]:
            best, high = cells.of_point(facts["point"]), facts["high"]
    low = min(lows, default=0)
    return LevelOutcome(best, low, high, not lows, ", ".join(reasons), nodes, decisions)


def _search_levels(
    query: Query,
    question: BoundQuestion,
    levels: Mapping[Place, Int32Array],
    end: int,
    hints: Int32Array | None,
    seed: int,
    memory: int | None,
) -> tuple[QuestionCells, LevelSearch] | None:
    """The engine's search for a level below `end` (-1 for any level); None if a domain is empty."""
    cells = question.cells(query)
    allowed = cells.allowed()
    if allowed is None:
        return None
    level = np.where(allowed, 0, -1)
    for (point, feature), of_cell in levels.items():
        v = cells.variable[point, feature]
        here = level[cells.start[v] : cells.start[v + 1]]
        here[:] = np.where((here < 0) | (of_cell < 0), -1, np.maximum(here, of_cell))
    if end >= 0:
        level[level >= end] = -1
    if not np.logical_or.reduceat(level >= 0, cells.start[:-1]).all():
        return None
    coarse, limit = cells.coarse_costs(level).astype(np.int32), -1 if memory is None else memory
    problem, starts = question.trees.shared, cells.of_hints(hints)
    return cells, LevelSearch(problem, coarse, question.bound, starts, seed, limit)
