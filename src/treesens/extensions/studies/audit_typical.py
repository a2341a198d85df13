"""What an audit says of typical inputs alone: whether a gap stays, the pair, and how far their scores can be apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.budget import Budget
from treesens.compiler.result import Result, Verdict
from treesens.data.flips import FlipQuestion, Flips
from treesens.extensions.studies.typicality import TypicalLevel
from treesens.records.answers import record
from treesens.solve.options import Options
from treesens.solve.question import answer
from treesens.solve.tasks.data_rows import hints_of, witness_among_rows

_TOLD = ("verdict", "reason", "proof", "points", "scores")
_ALL = "no inputs at all"
NO_SWING: dict[str, Any] = {"max_swing": None, "max_swing_bound": None, "worst": None}
"""For audits by pairs, which search the largest swing of all inputs alone."""


def typical_answer(
    question: ResolvedQuestion, shape: FlipQuestion, found: Flips, rows: FloatArray, options: Options, budget: Budget
) -> Result:
    """A pair of typical inputs at a gap: a row with its partner if there is one, or what a search says."""
    pair = witness_among_rows(question.query, shape, found, rows, options)
    if pair is not None:
        reason = f"verified: row {pair[0]} of the table"
        return Result(question.name, Verdict.FOUND, reason, witness=pair[1], backend="rows")
    hints = hints_of(question.query, shape, found, rows)
    return answer(question.query, replace(options, hints=hints), budget)


def typical_record(
    level: TypicalLevel, question: ResolvedQuestion, among_all: Result, ask: Callable[[], Result], swing: dict[str, Any]
) -> dict[str, Any]:
    """The part of a record of the audit, which `swing_part` ends; what no inputs do, no typical ones do."""
    nobody = Result(question.name, Verdict.NONE, _ALL, proof=among_all.proof)
    result = nobody if among_all.verdict is Verdict.NONE else ask()
    full = record(question.query, result)
    return {**level.record(), **{name: full.get(name) for name in _TOLD}, **swing}


def swing_part(question: ResolvedQuestion, result: Result) -> dict[str, Any]:
    """The largest swing of typical inputs, its bound, and the pair whose scores are so far apart."""
    known, full = result.objective, record(question.query, result)
    return {
        "max_swing": None if known is None else known.value,
        "max_swing_bound": None if known is None else known.bound,
        "worst": None if full.get("points") is None else {name: full[name] for name in ("points", "scores")},
    }
