"""Declares `groups`: favourable decisions by group. The search is in `groups_search.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from treesens.compiler.base.option_kinds import ClassLabel, Groups, Number
from treesens.extensions.measure.precision import DELTA, EPSILON, Precision
from treesens.extensions.measure.share_words import estimated, interval
from treesens.extensions.studies import shared_options as shared
from treesens.extensions.studies.columns import column, names, number, values
from treesens.extensions.studies.count import DELTA_OPTION, EPSILON_OPTION, EstimateRecord
from treesens.extensions.studies.study import REQUIRED, Asking, Found, Option, Study, given
from treesens.records.plain import ABSENT, SCHEMA_VERSION, Absent, ModelFile, OneOf, Value

if TYPE_CHECKING:
    from treesens.extensions.measure.measures import MeasureName
    from treesens.grammar.tree import ast

FOUR_FIFTHS = 0.8
"""The rule of thumb of the Uniform Guidelines on Employee Selection Procedures (1978), 29 CFR 1607.4 D."""
SMALLEST = 0.02
"""Groups with less than this fraction of all rows are not compared: 29 CFR 1607.15 A (2)."""

BY = Option(
    Groups(),
    "A column whose values define the groups, or a condition as age<25; several as a,b for their intersections; repeatable.",
    short="-b",
    more="A column need not be a feature of the model, unless the measure is `uniform` or `cells`.",
)
FAVOURABLE = Option(ClassLabel(), "The favourable class. Default: the class in treesens.toml.", metavar="CLASS")
RATIO = Option(
    Number(0.0, 1.0),
    "The required ratio to the best group.",
    more="0.8 is the four-fifths rule (29 CFR 1607.4 D).",
)
SMALLEST_OPTION = Option(
    Number(0.0, 1.0),
    "Groups with a smaller share of the rows are shown but not compared.",
    more="The default is the value of 29 CFR 1607.15 A (2).",
)


@dataclass(frozen=True, kw_only=True)
class GroupOptions(shared.Certifying):
    """The groups, and the decisions to count; `time_limit` limits each group, in seconds."""

    by: Sequence[Sequence[str]] = given(BY, REQUIRED)
    favourable: str | None = given(FAVOURABLE, None)
    threshold: Fraction | None = given(shared.THRESHOLD, None)
    measure: MeasureName = given(
        shared.MEASURE,
        "rows",
        "The measure of shares: the rows of a group, or a measure learnt from them (docs/measures.md).",
        "`uniform` and `cells` cover the whole domain, restricted to the group's values.",
    )
    ratio: float = given(RATIO, FOUR_FIFTHS)
    smallest: float = given(SMALLEST_OPTION, SMALLEST)
    domain: Sequence[ast.Declaration] = given(shared.DOMAIN, ())
    real: Sequence[str] = given(shared.REAL, ())
    epsilon: float = given(EPSILON_OPTION, EPSILON)
    delta: float = given(DELTA_OPTION, DELTA)
    time_limit: float = given(shared.TIME_LIMIT, 10.0, "Seconds per group.")
    seed: int = given(shared.SEED, 0)

    @property
    def precision(self) -> Precision:
        """The precision at which an estimate may stop."""
        return Precision(self.epsilon, self.delta, 0.0)


def _share(record: dict[str, Any]) -> str:
    """The proved share, with its estimate if it is not known precisely."""
    estimate = estimated(record)
    return interval(record) + (f", about {estimate}" if estimate else "")


def _ratio(record: dict[str, Any]) -> str:
    """The ratio, or its proved interval; a dash without one."""
    low, high = record["ratio_lower"], record["ratio_upper"]
    if low is None or high is None:
        return "–"
    return f"{high:.4g}" if high - low <= 1e-6 * high else f"{low:.4g} to {high:.4g}"


@dataclass(frozen=True, kw_only=True)
class GroupRecord:
    """One group, with its values in the order of the columns.

    The share of favourable decisions is proved to be between `lower` and `upper`, and its ratio to the share of the best group
    between `ratio_lower` and `ratio_upper` (null if the group is not compared, or no group has a favourable decision).
    """

    by: list[str] = column("by", names("by"))
    group: list[Value] = column("group", values("group"))
    rows: int = column("rows", number("rows", 15), right=True)
    favourable_rows: int | Absent = column(
        "favourable",
        lambda record: str(record.get("favourable_rows", "")),
        default=ABSENT,
        right=True,
        hide_if_empty=True,
    )
    lower: float = column("share", _share, right=True)
    upper: float = column()
    estimate: EstimateRecord | None = column(uncertified=None)
    closed: bool = column()
    ratio_lower: float | None = column("ratio", _ratio, right=True)
    ratio_upper: float | None = column()
    reaches: Annotated[str, OneOf(("yes", "no", "open", "not compared"))] = column(
        "reaches", lambda record: str(record["reaches"])
    )
    reason: str = column("", lambda record: str(record["reason"]), hide_if_empty=True)
    seconds: float


@dataclass(frozen=True, kw_only=True)
class GroupsDocument:
    """All groups, with the favourable class and the settings."""

    schema_version: int = SCHEMA_VERSION
    model: ModelFile
    favourable: str
    favourable_name: str | Absent = ABSENT
    measure: str
    ratio: float
    interrupted: bool
    results: list[GroupRecord]


def document(asked: Asking[GroupOptions], found: Found[GroupRecord]) -> GroupsDocument:
    """The document of the groups, with the options of the study."""
    return GroupsDocument(
        model=asked.file(),
        favourable=found.result,
        favourable_name=asked.model.meaning.classes.get(found.result, ABSENT),
        measure=asked.options.measure,
        ratio=asked.options.ratio,
        interrupted=found.interrupted,
        results=list(found.records),
    )


STUDY = Study(
    name="groups",
    title="favourable decisions by group: treesens groups --json",
    text="""For every group of the rows, by the columns of --by: the share of favourable decisions, and its ratio to the share
    of the best group (four-fifths rule), each as a proved interval. Over rows, the library makes the decisions, and shares are
    exact; over a measure learnt from the rows of a group, shares refer to all similar inputs.

    Exit codes: 0 every share is known precisely enough, 5 some are not, 10 a condition of --fail-on, 1 usage, 2 unreadable
    input, 130 interrupted.
    """,
    call="""\
    The share of favourable decisions in every group of the rows, as `treesens groups` computes it: a proved interval, and an
    interval of its ratio to the best group. `by` lists columns, or sets of columns for intersections; columns need not be
    features. `favourable` is a class (default: from `treesens.toml` or the model) that is predicted or has a probability of at
    least `threshold`. `measure` is the measure of shares: `rows`, or a measure learnt from the rows of each group. `time_limit`
    limits each group, in seconds. """,
    options=GroupOptions,
    ask="treesens.extensions.studies.groups_search:ask",
    record=GroupRecord,
    document=document,
    table="CSV or Parquet: the rows, with the columns of the groups.",
    needs_table=True,
    fails={
        "ratio": lambda records: any(one.reaches == "no" for one in records),
        "unproved": lambda records: any(one.reaches in ("no", "open") for one in records),
    },
    fail_words="Exit with 10 if a group is proved to miss --ratio, or is not proved to reach the ratio.",
    work="groups",
)
