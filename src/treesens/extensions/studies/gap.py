"""Declares `gap`: the largest certified gap of every feature. The search is in `gap_search.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from treesens.compiler.base.option_kinds import Number
from treesens.extensions.studies import shared_options as shared
from treesens.extensions.studies.columns import classes as class_words
from treesens.extensions.studies.columns import column, how, names, number, seconds
from treesens.extensions.studies.shared_records import CertificateRecord, ToleranceRecord, TypicalRecord
from treesens.extensions.studies.study import Asking, Option, Study, given
from treesens.records.plain import ABSENT, Absent, OneOf, Points, VerdictWord

if TYPE_CHECKING:
    from treesens.grammar.tree import ast

CLOSE = 0.02
"""The relative distance between bound and value at which the search stops."""


@dataclass(frozen=True, kw_only=True)
class GapOptions(shared.Certifying):
    """The settings of the search for gaps; `time_limit` limits the search for each set of features, in seconds."""

    vary: Sequence[Sequence[str]] | None = given(shared.VARY, None)
    threshold: Fraction | None = given(shared.THRESHOLD, None)
    classes: Sequence[str] = given(shared.CLASSES, ())
    domain: Sequence[ast.Declaration] = given(shared.DOMAIN, ())
    replay: str = given(shared.REPLAY, "emulated")
    typical: str | None = given(shared.TYPICAL, None)
    typical_by: str | None = given(shared.TYPICAL_BY, None)
    real: Sequence[str] = given(shared.REAL, ())
    protected: Sequence[str] = given(shared.PROTECTED, ())
    close: float = given(Option(Number(0.0, 1.0), "Stop at this relative distance of bound and value."), CLOSE)
    time_limit: float = given(shared.TIME_LIMIT, 30.0, "Seconds per set.")
    threads: int = given(shared.THREADS, 2)
    jobs: int = given(shared.JOBS, 1)
    seed: int = given(shared.SEED, 0)


UNITS = ("raw score", "probability", "value")
"""Units of a largest gap: the raw score (log-odds), the probability that a forest averages, or the value of a regressor."""


@dataclass(frozen=True, kw_only=True)
class GapRecord:
    """The largest gap of one set of features and one decision; points are in the user's own labels."""

    varied: list[str] = column("varied", names("varied"))
    threshold: float | Absent = ABSENT
    classes: list[str | int] | Absent = column("classes", class_words, default=ABSENT, hide_if_empty=True)
    verdict: VerdictWord = column()
    largest_gap: float | None = column("largest gap ({unit})", number("largest_gap"), right=True)
    largest_gap_bound: float | None = column("proved bound", number("largest_gap_bound"), right=True)
    unit: Annotated[str, OneOf(UNITS)] = column()
    closed: bool = column()
    tolerance: ToleranceRecord
    reason: str = column("", how, place=2, spare=True)
    points: Points | None
    replay: str | None
    nodes: int
    typical: TypicalRecord | Absent = ABSENT
    certificates: list[CertificateRecord] | Absent = ABSENT
    seconds: float = column("seconds", seconds, right=True, frame=False, place=1, spare=True)


def total(asked: Asking[GapOptions]) -> int:
    """The expected number of gaps."""
    from treesens.extensions.studies.decisions import check_votes, decisions_of, natural_question

    model, options = asked.model.ensemble, asked.options
    check_votes(model, "the largest gap")
    sets = len(options.vary) if options.vary is not None else model.n_features
    return sets * len(decisions_of(model, natural_question(model, options.threshold, options.classes)))


STUDY = Study(
    name="gap",
    title="largest gaps: treesens gap --json",
    text="""For every feature, the greatest margin g such that changing only this feature takes some input from g above the
    cut-off to g below it: reached by a verified pair, and bounded by a proof. Between two of several classes, g is the lead of
    each class; for regressors, g is the largest difference of two values. With --typical, both inputs are typical of the data.

    Exit codes: 0 every gap closed, 5 some open, 10 a condition of --fail-on, 1 usage, 2 unreadable input, 130 interrupted.
    """,
    call="""\
    The largest certified gap of every feature (or set in `vary`), as `treesens gap` computes it: reached by a verified pair
    and bounded by a proof. With `data`, the domains are the ranges of its columns. A search ends when the bound is within
    `close` of the value, or after `time_limit` seconds per set. `typical`, a percentage, restricts the question to inputs that
    are typical of the rows. """,
    options=GapOptions,
    ask="treesens.extensions.studies.gap_search:ask",
    record=GapRecord,
    table="CSV or Parquet: domains are the ranges of its columns.",
    fails={"found": lambda records: any(one.verdict == "found" for one in records), "rows": lambda _: False},
    fail_words="Exit with 10 if a pair is found, or if a row of the data flips.",
    work="searching",
    total=total,
)
