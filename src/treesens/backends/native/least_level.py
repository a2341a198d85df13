"""The least level of a solution of a question about scores, by the tree path (`engine/levels/level_search.hpp`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from treesens._engine import LevelSearch
from treesens.backends.native.boxed_question import LevelOutcome, run_search
from treesens.backends.native.question_cells import QuestionCells
from treesens.backends.native.tree_question import BoundQuestion, bound_question
from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.cases import every_case
from treesens.compiler.query.query import Query
from treesens.compiler.query.values import Place


def least_level_on_trees(
    query: Query,
    levels: Mapping[Place, Int32Array],
    budget: Budget,
    *,
    hints: Int32Array | None = None,
    seed: int = 0,
    memory: int | None = None,
) -> LevelOutcome | None:
    """The level of a solution is that of its cell of highest level: int32[n_cells] per place, -1 forbids a cell.

    None if the question needs the compiled path, after an internal error of the engine, and where a domain is
    empty: the compiler says that better. Alternatives between bounds are asked one after the other, each for less than the
    best so far.
    """
    cases = every_case(query)
    questions = [bound_question(alternative) for alternative in cases]
    best: Int32Array | None = None
    high, nodes, decisions, lows, reasons = -1, 0, 0, list[int](), list[str]()
    for number, question in enumerate(questions):
        if question is None:
            return None
        search_of_case = _search(cases[number], question, levels, high, hints, seed, memory)
        if search_of_case is None:
            if best is None:
                return None
            lows.append(high)  # no cell has less
            continue
        cells, search = search_of_case
        facts = run_search(search, budget.share(1 / (len(questions) - number)))
        if facts["fault"]:
            return None  # the engine contradicts itself: nothing that it has proved is believed
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


def _search(
    query: Query,
    question: BoundQuestion,
    levels: Mapping[Place, Int32Array],
    end: int,
    hints: Int32Array | None,
    seed: int,
    memory: int | None,
) -> tuple[QuestionCells, LevelSearch] | None:
    """The engine's search for a level below `end` (-1: for any); None if a domain is empty."""
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
