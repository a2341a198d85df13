"""Declares `why`: the values that decide the class of a row. The search is in `why_search.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treesens.compiler.base.option_kinds import Directions, Flag, Names, OutputPath, Permitted, RowNumbers, Whole
from treesens.extensions.studies import shared_options as shared
from treesens.extensions.studies.columns import column, uncertified
from treesens.extensions.studies.study import Asking, Door, Found, Option, Study, given
from treesens.records.plain import ABSENT, SCHEMA_VERSION, Absent, ModelFile, Value, VerdictWord

if TYPE_CHECKING:
    from treesens.extensions.studies.limits import Permission
    from treesens.grammar.tree import ast

ALSO = ("box", "radius", "recourse", "shap")
"""Additions to a reason: the box in which the class does not change, the distance to another class in linf, the cheapest change
in l1, and TreeSHAP.
"""
ROWS = Option(RowNumbers(), "The row, several rows as 0,5,10-19, or all. Default: all.", name="row")
SMALLEST = Option(Flag(), "A smallest set of features, instead of a minimal set.")
MOST = Option(Whole(1), "The K smallest reasons.", name="all", metavar="K")
WITHOUT = Option(Names(), "Features, as a,b, that reasons and changes must not use, such as protected features.")
FIXED = Option(Names(repeated=True), "Features, as a,b, that cannot change.")
DIRECTION = Option(
    Directions(),
    "Directions of changes, as age=up,debt=down.",
    metavar="NAME=up|down",
    more="A category has no direction.",
)
PERMITTED = Option(
    Permitted(),
    "Permitted new values: a range of numbers as income=0..100, values as housing=own|rent or grade=2|5.",
    metavar="NAME=VALUES",
    more="An unchanged value is always permitted.",
)
BESIDE = Option(
    Names(words=ALSO),
    "More for each reason: the box in which the class does not change, the distance to another class by linf, the "
    "cheapest change by l1, TreeSHAP.",
    metavar="box,radius,recourse,shap",
)
OUT = Option(OutputPath(), "A CSV file with a line per reason.", door=Door.COMMAND)
PLOT_WORDS = "The share of the rows whose reason needs each feature, as a plot (.svg, .png, .pdf)."


@dataclass(frozen=True, kw_only=True)
class WhyOptions(shared.Certifying):
    """The rows, and the reasons to find: a `smallest` reason or the `most` smallest reasons, which use no features of
    `without`. `fixed`, `direction` and `permitted` restrict the changes; `also` names additional results. `time_limit` is the
    limit in seconds for each row, and again for each distance.
    """

    rows: Sequence[int] | None = given(ROWS, None)
    smallest: bool = given(SMALLEST, False)
    most: int = given(MOST, 1)
    without: Sequence[str] = given(WITHOUT, ())
    fixed: Sequence[str] = given(FIXED, ())
    decision: ast.Decision | None = given(shared.DECISION, None)
    protected: Sequence[str] = given(shared.PROTECTED, ())
    direction: Mapping[str, str] | None = given(DIRECTION, None)
    permitted: Mapping[str, Permission] | None = given(PERMITTED, None)
    also: Sequence[str] = given(BESIDE, ())
    range: tuple[Fraction, Fraction] | None = given(shared.RANGE, None)
    time_limit: float = given(shared.TIME_LIMIT, 10.0, "Seconds per row.")
    seed: int = given(shared.SEED, 0)
    out: Path | None = given(OUT, None)
    plot: Path | None = given(shared.PLOT, None, PLOT_WORDS)


@dataclass(frozen=True, kw_only=True)
class DistanceRecord:
    """The nearest input of another class, measured by a norm, with its changes."""

    norm: str
    verdict: VerdictWord
    distance: float | None
    bound: float | None
    closed: bool
    changes: list[str]
    point: dict[str, Value] | None


@dataclass(frozen=True, kw_only=True)
class ShapRecord:
    """The TreeSHAP values of every feature, the greatest first."""

    values: dict[str, float]
    agreement: float | None


@dataclass(frozen=True, kw_only=True)
class WhyRecord:
    """The reason for the class of one row, or for the outcome of a `decision`. If some changes are not permitted, `changeable`
    states whether a permitted change gives another class.
    """

    row: int = column()
    class_: str = column()
    class_name: str | Absent = ABSENT
    decision: str | Absent = ABSENT
    sufficient: dict[str, Value] | None = column()
    minimal: bool
    smallest: bool = column(place=2)
    reasons: list[dict[str, Value]] | Absent = ABSENT
    complete: bool | Absent = ABSENT
    contrast: list[str] | None = column(place=1)
    changeable: bool | Absent = ABSENT
    point: dict[str, Value] | None
    box: dict[str, list[Any]] | Absent | None = ABSENT
    radius: DistanceRecord | Absent = ABSENT
    recourse: DistanceRecord | Absent = ABSENT
    shap: ShapRecord | Absent = uncertified(ABSENT, ABSENT)
    decisions: int
    reason: str = column(place=2)
    seconds: float


@dataclass(frozen=True, kw_only=True)
class WhyDocument:
    """All rows, with the model."""

    schema_version: int = SCHEMA_VERSION
    model: ModelFile
    rows: list[WhyRecord]


def total(asked: Asking[WhyOptions]) -> int:
    """The expected number of rows."""
    assert asked.table is not None
    return asked.table.rows if asked.options.rows is None else len(asked.options.rows)


def document(asked: Asking[WhyOptions], found: Found[WhyRecord]) -> WhyDocument:
    """The document of the rows."""
    return WhyDocument(model=asked.file(), rows=list(found.records))


STUDY = Study(
    name="why",
    title="reasons of rows: treesens why --json",
    text="""A sufficient reason for the class of a row: features whose values alone decide the class, all of which are needed;
    and features whose change gives another class. With --decision, outcomes replace classes.

    Exit codes: 0 every row has its reason, 5 some are open, 1 usage, 2 unreadable input, 130 interrupted.
    """,
    call="""\
    Reasons for the classes of rows (default: all) of `data`, as `treesens why` finds them: features whose values alone
    decide the class, all of which are needed (`smallest`: no reason has fewer), and features whose change gives another class.
    `most` is the number of smallest reasons. Features of `without` are not used in reasons and changes. All changes keep
    features of `fixed`, follow `direction` ({"age": "up"}), and end in `permitted` values ({"income": (0, 100), "housing":
    ["own", "rent"]}). `also` adds the box in which the class is kept, the distance to another class (linf), the cheapest change
    (l1), and TreeSHAP. `decision`, a `.sens` file, replaces classes by the outcomes of a decision. `time_limit` limits each
    row, and again each distance, in seconds. Ctrl-C returns the results so far. """,
    options=WhyOptions,
    ask="treesens.extensions.studies.why_search:ask",
    record=WhyRecord,
    picture="treesens.extensions.studies.report.plots:reasons_plot",
    document=document,
    table="CSV or Parquet with the row.",
    needs_table=True,
    by_position=("rows",),
    work="searching",
    total=total,
)
