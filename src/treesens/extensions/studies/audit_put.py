"""One record of an audit: an answer about a set of features, with what is known of rows, of the largest swing, and of typical
inputs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result, Verdict
from treesens.data.flips import FlipQuestion, Flips
from treesens.extensions.studies.typicality import TypicalLevel
from treesens.records.answers import label_of, record
from treesens.solve.conclude import conclude_found, conclude_none, leave_open
from treesens.solve.options import Options
from treesens.solve.question import answer
from treesens.solve.tasks.data_rows import hints_of, table_in_play, witness_among_rows

LISTED = 100
"""Numbers of flipping rows that a record lists, the clearest first."""
NO_ROWS: dict[str, Any] = {"rows": 0, "rows_flipped": 0, "rows_complete": False, "flipped_rows": []}
NO_SWING: dict[str, Any] = {"max_swing": None, "max_swing_bound": None, "worst": None}
"""For audits by pairs, which search the largest swing of all inputs alone."""
_OF_TYPICAL = ("verdict", "reason", "proof", "points", "scores")
_ALL = "no inputs at all"


@dataclass(frozen=True)
class About:
    """The subject of a record: the features, facts that identify the question (`gap`, `classes`, `outcomes`, ..), its words,
    and the unit of its largest swing (None without a swing).
    """

    varied: Sequence[str]
    facts: dict[str, Any]
    words: str
    unit: str | None


def put(
    about: About,
    query: ResolvedQuestion,
    result: Result,
    swing: Result | None,
    options: Options,
    seconds: float,
    of_rows: dict[str, Any],
) -> dict[str, Any]:
    """The record."""
    data = record(query.query, result)
    for name in ("query", "expect", "as_expected", "objective", "attempts", "size", "query_sha256"):
        data.pop(name, None)
    most = None if swing is None else swing.objective
    extra: dict[str, Any] = {
        "varied": list(about.varied),
        **about.facts,
        "question": about.words,
        **of_rows,
        "max_swing": None if most is None else most.value,
        "max_swing_bound": None if most is None else most.bound,
        "max_swing_status": None if most is None else str(most.status),
        "max_swing_unit": about.unit,
        "tolerance": options.closeness.record(),
        "seconds": {"set": round(seconds, 6)},
    }
    table = table_in_play(query)
    if result.nearest is not None and data.get("nearest_row") and table is not None:
        row = table[1][result.nearest.index]
        least = result.objective.bound if result.objective is not None else 0.0
        data["nearest_row"] = {**data["nearest_row"], "bound_l2": least, "values": row_labels(query, row)}
    return {**extra, **{k: v for k, v in data.items() if k not in extra}}


def unknown(query: Query, reason: str) -> Result:
    """An open answer, with a note that stays if the largest swing settles it."""
    return Result(query.name, Verdict.UNKNOWN, reason, notes=(reason,))


def row_labels(query: ResolvedQuestion, row: FloatArray) -> dict[str, Any]:
    """The values of a row as people read them."""
    space = query.query.space
    return {
        name: label_of(domain, float(grid.number_type.cast(value)), grid.number_type.dtype)
        for name, domain, grid, value in zip(space.names, space.domains, space.grid, row, strict=True)
    }


def typical_answer(
    question: ResolvedQuestion, shape: FlipQuestion, found: Flips, rows: FloatArray, options: Options, budget: Budget
) -> Result:
    """A pair of typical inputs at a gap: a row with its partner if there is one, or what a search says."""
    pair = witness_among_rows(question.query, shape, found, rows, options)
    if pair is not None:
        reason = f"verified: row {pair[0]} of the table"
        return conclude_found(leave_open(question.name, witness=pair[1], backend="rows"), reason)
    hints = hints_of(question.query, shape, found, rows)
    return answer(question.query, replace(options, hints=hints), budget)


def typical_record(
    level: TypicalLevel, question: ResolvedQuestion, among_all: Result, ask: Callable[[], Result], swing: dict[str, Any]
) -> dict[str, Any]:
    """The part of a record of the audit, which `swing_part` ends; what no inputs do, no typical ones do."""
    if among_all.verdict is Verdict.NONE:
        assert among_all.proof is not None
        result = conclude_none(leave_open(question.name), _ALL, among_all.proof)
    else:
        result = ask()
    full = record(question.query, result)
    return {**level.record(), **{name: full.get(name) for name in _OF_TYPICAL}, **swing}


def swing_part(question: ResolvedQuestion, result: Result) -> dict[str, Any]:
    """The largest swing of typical inputs, its bound, and the pair whose scores are so far apart."""
    known, full = result.objective, record(question.query, result)
    return {
        "max_swing": None if known is None else known.value,
        "max_swing_bound": None if known is None else known.bound,
        "worst": None if full.get("points") is None else {name: full[name] for name in ("points", "scores")},
    }
