"""Declares `count`: the share of inputs that a change flips. The search is in `count_search.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from treesens.compiler.base.option_kinds import Number
from treesens.extensions.measure.precision import DELTA, EPSILON, NEGLIGIBLE, Precision
from treesens.extensions.measure.share_words import estimated, interval
from treesens.extensions.studies import shared_options as shared
from treesens.extensions.studies.columns import classes as class_words
from treesens.extensions.studies.columns import column, names, seconds, size, uncertified
from treesens.extensions.studies.study import Asking, Found, Option, Study, given
from treesens.records.plain import ABSENT, SCHEMA_VERSION, Absent, ModelFile

if TYPE_CHECKING:
    from treesens.extensions.measure.measures import MeasureName
    from treesens.grammar.tree import ast

EPSILON_OPTION = Option(Number(1e-6, 0.5), "The relative error of an estimate.")
DELTA_OPTION = Option(Number(1e-12, 0.5), "The probability that an estimate has a larger error.")
NEGLIGIBLE_OPTION = Option(Number(0.0, 1.0), "Make no estimate if a proof shows that the share is at most this.")


@dataclass(frozen=True, kw_only=True)
class CountOptions(shared.Certifying):
    """The settings of a count: the questions, the measure, and the precision; `time_limit` limits each question, in seconds."""

    measure: MeasureName = given(shared.MEASURE, "uniform")
    vary: Sequence[Sequence[str]] | None = given(shared.VARY, None)
    gap: Sequence[str] = given(shared.GAP, ())
    margin: Sequence[str] = given(shared.MARGIN, ())
    threshold: Fraction | None = given(shared.THRESHOLD, None)
    classes: Sequence[str] = given(shared.CLASSES, ())
    domain: Sequence[ast.Declaration] = given(
        shared.DOMAIN, (), "A .sens file whose `feature` lines declare the domain."
    )
    real: Sequence[str] = given(shared.REAL, ())
    protected: Sequence[str] = given(shared.PROTECTED, ())
    epsilon: float = given(EPSILON_OPTION, EPSILON)
    delta: float = given(DELTA_OPTION, DELTA)
    negligible: float = given(NEGLIGIBLE_OPTION, NEGLIGIBLE)
    time_limit: float = given(shared.TIME_LIMIT, 10.0, "Seconds per question.")
    seed: int = given(shared.SEED, 0)

    @property
    def precision(self) -> Precision:
        """The precision at which the count may stop."""
        return Precision(self.epsilon, self.delta, self.negligible)


@dataclass(frozen=True, kw_only=True)
class EstimateRecord:
    """An estimate with its interval."""

    value: float
    low: float
    high: float
    delta: float
    draws: int


@dataclass(frozen=True, kw_only=True)
class TraitRecord:
    """A statement that holds for a larger share of affected inputs (`concerned`) than of all inputs (`all`)."""

    feature: str
    words: str
    concerned: float
    all: float


@dataclass(frozen=True, kw_only=True)
class BoxRecord:
    """A region in which all inputs are affected."""

    share: float
    where: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class CountRecord:
    """The share of one set of features, decision and gap."""

    varied: list[str] = column("varied", names("varied"), place=-2)
    gap: float | Absent = column("gap", size("gap"), default=ABSENT, right=True, hide_if_empty=True)
    margin: float | Absent = column("margin", size("margin"), default=ABSENT, right=True, hide_if_empty=True)
    threshold: float | Absent = ABSENT
    classes: list[str | int] | Absent = column("classes", class_words, default=ABSENT, hide_if_empty=True, place=-1)
    question: str
    measure: str
    lower: float = column("proved share", interval)
    upper: float = column()
    estimate: EstimateRecord | None = column("estimate", estimated, hide_if_empty=True, uncertified=None)
    closed: bool = column()
    reason: str = column(
        "", lambda one: "" if one["closed"] else f"open: {one['reason']}", hide_if_empty=True, frame=False, place=2
    )
    rows: int | Absent = ABSENT
    rows_outside: int | Absent = ABSENT
    rows_concerned: int | Absent = ABSENT
    who: list[TraitRecord] = uncertified([])
    boxes: list[BoxRecord] = uncertified([])
    nodes: int | Absent = uncertified(ABSENT, ABSENT)
    open_boxes: int | Absent = uncertified(ABSENT, ABSENT)
    full_boxes: int | Absent = uncertified(ABSENT, ABSENT)
    seconds: float = column("seconds", seconds, right=True, frame=False, place=1, spare=True)


@dataclass(frozen=True, kw_only=True)
class CountSettings:
    """The settings on which estimates depend."""

    epsilon: float
    delta: float
    negligible: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class CountDocument:
    """The shares, with the model and the settings."""

    schema_version: int = SCHEMA_VERSION
    model: ModelFile
    settings: CountSettings
    interrupted: bool
    results: list[CountRecord]


def document(asked: Asking[CountOptions], found: Found[CountRecord]) -> CountDocument:
    """The document of the shares, with the settings on which estimates depend."""
    mine = asked.options
    settings = CountSettings(epsilon=mine.epsilon, delta=mine.delta, negligible=mine.negligible, seed=mine.seed)
    return CountDocument(
        model=asked.file(), settings=settings, interrupted=found.interrupted, results=list(found.records)
    )


STUDY = Study(
    name="count",
    title="shares of inputs: treesens count --json",
    text="""For every feature and gap, the share of inputs for which changing only that feature flips the decision: a proved
    interval, and an estimate whose error is bounded with a probability of 1 - DELTA. Sets, gaps, cut-offs and classes are as in
    `treesens audit`.

    Exit codes: 0 every share is known precisely enough, 5 some are not, 1 usage, 2 unreadable input, 130 interrupted.
    """,
    call="""\
    The share of inputs for which changing only some features flips the decision, as `treesens count` computes it: a proved
    interval, and an estimate whose relative error exceeds `epsilon` with a probability of at most `delta`.

    `measure` is the measure of shares: `uniform` on the domain, `cells`, or from `data`: `marginals`, `chow-liu`, `rows`. Sets,
    gaps, cut-offs, classes and domains are as in `audit`. `time_limit` limits each question, in seconds. Ctrl-C returns the
    results so far. """,
    options=CountOptions,
    ask="treesens.extensions.studies.count_search:ask",
    record=CountRecord,
    document=document,
    table="CSV or Parquet: the domains, and the rows that measures are learnt from.",
    sizes_of_model=True,
    work="counting",
    total="treesens.extensions.studies.count_search:total",
)
