"""Declares `sets`: the sets of features that flip a decision. The search is in `sets_search.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from treesens.compiler.base.option_kinds import Names, Sizes, Whole
from treesens.errors import UsageError
from treesens.extensions.studies import shared_options as shared
from treesens.extensions.studies.study import Asking, Found, Option, Study, given
from treesens.records.plain import ABSENT, SCHEMA_VERSION, Absent, ModelFile, Points

if TYPE_CHECKING:
    from treesens.extensions.studies.events import Gap
    from treesens.grammar.tree import ast

GAP = Option(
    Sizes(single=True),
    "The gap in probability (for a regressor, in its value); 0 means any change of the decision.",
    short="-g",
)
MARGIN = Option(Sizes(single=True), "The gap in raw score; between classes, the lead of each class.", short="-m")
VARY = Option(
    Names(),
    "The features, as a,b,c, whose sets are tried. Default: all features that the model uses.",
    short="-v",
    more="All other features are equal in both inputs.",
    also=("--features",),
)
MOST = Option(Whole(1), "Stop after this number of sets that flip.")


@dataclass(frozen=True, kw_only=True)
class SetOptions(shared.Certifying):
    """The gap and the features; `time_limit` is the limit for each set, in seconds."""

    gap: Sequence[str] = given(GAP, ())
    margin: Sequence[str] = given(MARGIN, ())
    vary: Sequence[str] | None = given(VARY, None)
    most: int | None = given(MOST, None)
    threshold: Fraction | None = given(shared.THRESHOLD, None)
    classes: Sequence[str] = given(shared.CLASSES, ())
    domain: Sequence[ast.Declaration] = given(shared.DOMAIN, ())
    replay: str = given(shared.REPLAY, "emulated")
    real: Sequence[str] = given(shared.REAL, ())
    time_limit: float = given(shared.TIME_LIMIT, 10.0, "Seconds per set.")
    seed: int = given(shared.SEED, 0)
    plot: Path | None = given(
        shared.PLOT,
        None,
        "The sets as a picture (.svg, .png, .pdf), drawn by matplotlib.",
        "A row per set, a dot per feature.",
    )

    @property
    def size(self) -> Gap:
        """The requested gap. Raises UsageError unless exactly one gap is given."""
        from treesens.extensions.studies.events import gaps_of

        if bool(self.gap) == bool(self.margin):
            raise UsageError("one size is needed", remedy="pass --gap 0.1 (probability) or --margin 1 (raw score)")
        return gaps_of(self.gap, self.margin)[0]


@dataclass(frozen=True, kw_only=True)
class FlippingSet:
    """A set of features that flips, with a verified pair."""

    features: list[str]
    minimal: bool
    points: Points


@dataclass(frozen=True, kw_only=True)
class HoldingSet:
    """A set of features that is proved not to flip."""

    features: list[str]
    maximal: bool


@dataclass(frozen=True, kw_only=True)
class OpenSet:
    """A set of features that is still undecided, and the reason."""

    features: list[str]
    reason: str


@dataclass(frozen=True, kw_only=True)
class SetsRecord:
    """The sets of one decision, ordered by size."""

    threshold: float | Absent = ABSENT
    classes: list[str | int] | Absent = ABSENT
    complete: bool
    flip: list[FlippingSet]
    hold: list[HoldingSet]
    open: list[OpenSet]
    decisions: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class SetsDocument:
    """The sets of all decisions, with the gap."""

    schema_version: int = SCHEMA_VERSION
    model: ModelFile
    gap: float | Absent = ABSENT
    margin: float | Absent = ABSENT
    interrupted: bool
    results: list[SetsRecord]


def document(asked: Asking[SetOptions], found: Found[SetsRecord]) -> SetsDocument:
    """The document of the sets, with the requested gap."""
    size = asked.options.size
    return SetsDocument(
        model=asked.file(),
        gap=size.value if size.kind == "gap" else ABSENT,
        margin=size.value if size.kind == "margin" else ABSENT,
        interrupted=found.interrupted,
        results=list(found.records),
    )


STUDY = Study(
    name="sets",
    title="minimal sensitive sets: treesens sets --json",
    text="""The sets of features that can take some input from a gap above the decision to a gap below it: all minimal sets that
    can, each with a verified pair, and all maximal sets that cannot, each with a proof. Every other set contains a minimal set
    or is part of a maximal set.

    Exit codes: 0 all sets are decided, 5 some are not, 1 usage, 2 unreadable input, 130 interrupted.
    """,
    call="""\
    The sets of features that can flip the decision by a gap, as `treesens sets` finds them: all minimal sets that can, each
    with a verified pair, and all maximal sets that cannot, each with a proof. `vary` names the features whose sets are tried
    (default: all that the model uses); the search stops after `most` sets that flip. `time_limit` limits each set, in seconds.
    Ctrl-C returns the results so far. UsageError without a size: `gap` in probability, or `margin` in raw score. """,
    options=SetOptions,
    ask="treesens.extensions.studies.sets_search:ask",
    record=SetsRecord,
    picture="treesens.extensions.studies.report.plots:sets_plot",
    document=document,
    table="CSV or Parquet: domains are the ranges of its columns.",
    work="sets of features",
    journal=True,
    faults=lambda records: [one for record in records for one in record["open"]],
)
