"""One record of an audit: an answer about a set of features, with what is known of rows and of the largest swing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result, Verdict
from treesens.records.answers import label_of, record
from treesens.solve.options import Options
from treesens.solve.tasks.data_rows import table_in_play

LISTED = 100
"""Numbers of flipping rows that a record lists, the clearest first."""
NO_ROWS: dict[str, Any] = {"rows": 0, "rows_flipped": 0, "rows_complete": False, "flipped_rows": []}


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
