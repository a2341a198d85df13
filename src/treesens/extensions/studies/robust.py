"""Declares `robust`: the distances of rows to another class. The search is in `robust_search.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from treesens.compiler.base.option_kinds import Choice, Flag, Numbers, OutputPath, RowNumbers
from treesens.extensions.studies import shared_options as shared
from treesens.extensions.studies.columns import column, how, number, uncertified
from treesens.extensions.studies.study import Asking, Door, Found, Option, Study, given
from treesens.records.plain import ABSENT, SCHEMA_VERSION, Absent, ModelFile, Value, VerdictWord

if TYPE_CHECKING:
    from treesens.extensions.studies.robust_search import Robustness

NORMS = ("linf", "l2", "l1", "l0")
ROWS = Option(RowNumbers(), "Row numbers and ranges, as 0,5,10-19. Default: all.")
NORM = Option(Choice(NORMS), "The norm of distances.")
RADIUS = Option(
    Numbers(), "Radii of the curve, as 0.01,0.05. Default: ten radii up to the greatest distance.", door=Door.COMMAND
)
TARGETED = Option(
    Flag(),
    "The nearest input of every other class, each with its bound.",
    more="The fields of the row itself describe the nearest of these inputs.",
)
OUT = Option(OutputPath(), "A CSV file for the nearest inputs of another class.", door=Door.COMMAND)


@dataclass(frozen=True, kw_only=True)
class RobustOptions(shared.Certifying):
    """The rows and the distances; `time_limit` limits each row, in seconds. `range` is the domain of every numeric feature; the
    default is the range of its column in the table. Distances are measured in widths of the domains.
    """

    rows: Sequence[int] | None = given(ROWS, None)
    norm: str = given(NORM, "linf")
    targeted: bool = given(TARGETED, False)
    range: tuple[Fraction, Fraction] | None = given(shared.RANGE, None)
    replay: str = given(shared.REPLAY, "emulated")
    time_limit: float = given(
        shared.TIME_LIMIT, 10.0, "Seconds per row.", "With `--targeted`, the limit is in seconds per class of a row."
    )
    seed: int = given(shared.SEED, 0)
    radius: Sequence[float] = given(RADIUS, ())
    out: Path | None = given(OUT, None)
    plot: Path | None = given(shared.PLOT, None, "The curve as a picture (.svg, .png, .pdf), drawn by matplotlib.")


NONE = ("no other class in the domain", "no input of the domain")
"""The reasons why no input of another class exists for a row (first) and for one of its targets (second)."""


@dataclass(frozen=True, kw_only=True)
class TargetRecord:
    """The nearest input of one target class."""

    target: str | None
    verdict: VerdictWord
    distance: float | None = uncertified(None)
    bound: float | None
    closed: bool
    point: dict[str, Value] | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class RobustRecord:
    """One row: its class, the nearest input of another class, and the proved bound."""

    row: int = column("row", lambda record: str(record["row"]), right=True)
    class_: str = column("class", lambda record: str(record["class"]))
    correct: bool | None = column()
    verdict: VerdictWord | None = column()
    distance: float | None = column("distance", number("distance", 9), right=True, uncertified=None)
    bound: float | None = column("proved bound", number("bound", 9), right=True)
    closed: bool = column()
    point: dict[str, Value] | None
    reason: str = column("", lambda record: NONE[record["row"] == ""] if record["verdict"] == "none" else how(record))
    targets: list[TargetRecord] | Absent = ABSENT
    seconds: float


@dataclass(frozen=True, kw_only=True)
class CertifiedPart:
    """The share of the rows that is proved robust at a radius."""

    radius: float
    part: float


@dataclass(frozen=True, kw_only=True)
class RobustDocument:
    """All rows, and the curve of the certified share."""

    schema_version: int = SCHEMA_VERSION
    model: ModelFile
    norm: str
    interrupted: bool
    rows: list[RobustRecord]
    certified: list[CertifiedPart]


def total(asked: Asking[RobustOptions]) -> int:
    """The expected number of rows."""
    assert asked.table is not None
    return asked.table.rows if asked.options.rows is None else len(asked.options.rows)


def document(asked: Asking[RobustOptions], found: Found[RobustRecord]) -> RobustDocument:
    """The document of the rows, with the curve at the requested radii, or at ten radii up to the greatest distance."""
    result: Robustness = found.result
    most = max((one.distance or one.bound or 0.0 for one in found.records), default=0.0)
    usual = [most * i / 10 for i in range(11)] if most > 0 else [0.0]
    return RobustDocument(
        model=asked.file(),
        norm=asked.options.norm,
        interrupted=found.interrupted,
        rows=list(found.records),
        certified=[CertifiedPart(radius=r, part=result.certified(r)) for r in asked.options.radius or usual],
    )


STUDY = Study(
    name="robust",
    title="least distances of rows: treesens robust --json",
    text="""For every row, the verified nearest input of another class with a proof that no input is nearer, and the certified
    share of the rows at each radius.

    Distances are measured in widths of the features' domains. Exit codes: 0 every row is closed, 5 some are open, 1 usage, 2
    unreadable input, 130 interrupted. """,
    call="""\
    The distance of rows (default: all) of `data` to another class, as in `treesens robust`: reached by a verified input, and
    bounded by a proof. `range` is the domain of numeric features (default: the ranges of the columns); with `targeted`, every
    other class has a separate distance. `time_limit` limits each question, in seconds. Ctrl-C returns the results so far. """,
    options=RobustOptions,
    ask="treesens.extensions.studies.robust_search:ask",
    record=RobustRecord,
    picture="treesens.extensions.studies.report.plots:certified_plot",
    document=document,
    table="CSV or Parquet with the rows.",
    needs_table=True,
    label="The label column; wrongly predicted rows do not count as certified.",
    by_position=("rows",),
    work="searching",
    total=total,
    journal=True,
)
