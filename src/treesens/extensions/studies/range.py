"""Declares `range`: the smallest and the largest score. The search is in `range_search.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from treesens.compiler.base.tolerance import RELATIVE, Tolerance
from treesens.extensions.studies import shared_options as shared
from treesens.extensions.studies.columns import Record, closed_words, column, number, seconds
from treesens.extensions.studies.shared_records import CertificateRecord, ToleranceRecord
from treesens.extensions.studies.study import Study, given
from treesens.records.plain import ABSENT, Absent, OneOf, Points, VerdictWord

if TYPE_CHECKING:
    from treesens.grammar.tree import ast


@dataclass(frozen=True, kw_only=True)
class RangeOptions(shared.Certifying):
    """The settings of the search for the ends of the range; `time_limit` is the limit for each end, in seconds."""

    domain: Sequence[ast.Declaration] = given(shared.DOMAIN, ())
    classes: Sequence[str] = given(shared.CLASSES, (), "Classes, as A,B. Default: all classes.")
    real: Sequence[str] = given(shared.REAL, ())
    replay: str = given(shared.REPLAY, "emulated")
    tolerance: float = given(shared.TOLERANCE, RELATIVE)
    absolute_tolerance: float = given(shared.ABSOLUTE_TOLERANCE, 0.0)
    optimal: bool = given(shared.OPTIMAL, False)
    time_limit: float = given(shared.TIME_LIMIT, 30.0, "Seconds for each end.")
    threads: int = given(shared.THREADS, 2)
    seed: int = given(shared.SEED, 0)

    @property
    def near_enough(self) -> Tolerance:
        """The allowed distance between a bound and its value."""
        return Tolerance(0.0, 0.0) if self.optimal else Tolerance(self.tolerance, self.absolute_tolerance)


def probability(record: Record) -> str:
    """The probability of the class that has this raw score, as text; empty if the probability is not known."""
    found = (record["scores"] or {}).get("prob")
    if isinstance(found, dict):
        found = found.get(str(record["class"]))
    return "" if found is None or record["score"] == "probability" else f"{found:.6g}"


@dataclass(frozen=True, kw_only=True)
class RangeRecord:
    """One end of the range of a score; the input is in the user's own labels."""

    class_: str | int | None = column(
        "class", lambda record: "" if record["class"] is None else str(record["class"]), hide_if_empty=True
    )
    score: str = column("score", lambda record: f"{record['end']} {record['score']}")
    end: Annotated[str, OneOf(("smallest", "largest"))]
    verdict: VerdictWord
    value: float | None = column("reached", number("value"), right=True)
    bound: float | None = column("proved bound", number("bound"), right=True)
    closed: bool
    status: Annotated[str, OneOf(("optimal", "within tolerance", "open"))]
    tolerance: ToleranceRecord | None
    reason: str = column(
        "", lambda record: closed_words(record) if record["closed"] else record["reason"], place=2, spare=True
    )
    points: Points | None
    scores: dict[str, Any] | None = column("probability", probability, right=True, hide_if_empty=True)
    replay: str | None
    certificates: list[CertificateRecord] | Absent = ABSENT
    seconds: float = column("seconds", seconds, right=True, place=1, spare=True)


STUDY = Study(
    name="range",
    title="smallest and largest scores: treesens range --json",
    text="""The smallest and the largest score of MODEL (of every class, if there are several), each reached by a verified
    input, and with a proof that no input is beyond this score.

    Exit codes: 0 every end is closed, 5 some are open, 1 usage, 2 unreadable input, 130 interrupted.
    """,
    call=None,
    options=RangeOptions,
    ask="treesens.extensions.studies.range_search:ask",
    record=RangeRecord,
    table="CSV or Parquet: domains are the ranges of its columns.",
    work="searching",
    total="treesens.extensions.studies.range_search:total",
)
