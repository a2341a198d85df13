"""Declares `audit`: tries every feature and gap on real rows. The search is in `audit_search.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from treesens.compiler.base.option_kinds import Flag, InputFile, OutputPath, Sizes, TableFile, Text
from treesens.compiler.base.plugins import Plugin
from treesens.compiler.base.tolerance import RELATIVE, Tolerance
from treesens.extensions.studies import shared_options as shared
from treesens.extensions.studies.columns import column, uncertified
from treesens.extensions.studies.count import EstimateRecord, TraitRecord
from treesens.extensions.studies.largest import Status
from treesens.extensions.studies.shape import DIRECTIONS, SHAPES
from treesens.extensions.studies.shared_records import CertificateRecord, ToleranceRecord
from treesens.extensions.studies.study import Asking, Door, Found, Option, Study, given
from treesens.records.plain import ABSENT, SCHEMA_VERSION, Absent, OneOf, Points, Value, VerdictWord

if TYPE_CHECKING:
    from treesens.extensions.measure.measures import MeasureName
    from treesens.grammar.tree import ast


DEFAULT_SECONDS = 5.0
PROTECTED_SHARE = 3
"""The time of a protected set as a multiple of the time of another set, if no time limit is stated."""
UNITS = ("raw score", "lead of one class", "value", "probability")
"""Units of largest swings."""


@dataclass(frozen=True, kw_only=True)
class NearestRowRecord:
    """The row nearest to the pair; distances are Euclidean, and `bound_l2` is the proved lower bound on the distance."""

    data: str
    index: int
    distance_l2: float
    point_distance_l2: float
    bound_l2: float | Absent | None = ABSENT
    values: dict[str, Value] | Absent = ABSENT


@dataclass(frozen=True, kw_only=True)
class NearMissRecord:
    """The best attempt of a search that found no pair: its slack, and the bound on the slack."""

    best_slack: float | Absent = ABSENT
    slack_bound: float | Absent = ABSENT


@dataclass(frozen=True, kw_only=True)
class ScoredPoints:
    """A pair with its scores."""

    points: Points
    scores: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class TypicalPart:
    """The answer to the record's question for typical inputs."""

    percent: float
    way: str
    verdict: VerdictWord
    reason: str
    proof: str | None
    points: Points | None
    scores: dict[str, Any] | None
    max_swing: float | None
    max_swing_bound: float | None
    worst: ScoredPoints | None


@dataclass(frozen=True, kw_only=True)
class SharePart:
    """The share of affected inputs under a measure."""

    measure: str
    lower: float
    upper: float
    estimate: EstimateRecord | None = uncertified(None)
    closed: bool
    reason: str | Absent = ABSENT
    who: list[TraitRecord] | Absent = uncertified(ABSENT, ABSENT)


@dataclass(frozen=True, kw_only=True)
class ShapePart:
    """The shape of the score in a feature, and its largest fall and rise (see `ShapeRecord`)."""

    shape: Annotated[str, OneOf(SHAPES)]
    declared: Annotated[str, OneOf(DIRECTIONS)] | None
    holds: bool | None
    largest_fall: float | None
    largest_fall_bound: float | None
    largest_rise: float | None
    largest_rise_bound: float | None


@dataclass(frozen=True, kw_only=True)
class ModelRecord:
    """A model of a question."""

    name: str
    format: str
    sha256: str | None


@dataclass(frozen=True, kw_only=True)
class AuditRecord:
    """The answer for one set of features, decision and gap; the values of points are in the user's own labels.
    `max_swing_prob` holds the probabilities, ascending, of a pair that reaches the largest swing of a raw score.
    """

    varied: list[str] = column()
    protected: bool | Absent = ABSENT
    suggested: bool | Absent = ABSENT
    gap: float | Absent = column(default=ABSENT)
    margin: float | Absent = column(default=ABSENT)
    threshold: float | Absent = ABSENT
    classes: list[str | int] | Absent = column(default=ABSENT)
    decision: str | Absent = ABSENT
    outcomes: list[str] | Absent = column(default=ABSENT)
    question: str
    rows: int = column()
    rows_flipped: int = column(uncertified=0)
    rows_complete: bool = uncertified(False)
    flipped_rows: list[int] = uncertified([])
    rows_flipped_down: int | Absent = uncertified(ABSENT, ABSENT)
    rows_flipped_up: int | Absent = uncertified(ABSENT, ABSENT)
    max_swing: float | None = column(place=2, uncertified=None)
    max_swing_bound: float | None = column(place=2)
    max_swing_status: Annotated[str, OneOf(("optimal", "within tolerance", "open"))] | None = uncertified(None)
    max_swing_unit: Annotated[str, OneOf(UNITS)] | None
    max_swing_prob: list[float] | Absent = uncertified(ABSENT, ABSENT)
    tolerance: ToleranceRecord
    seconds: dict[str, float]
    verdict: VerdictWord = column(place=1)
    reason: str
    proof: str | None
    points: Points | None
    replay: str | None
    backend: str
    pipeline: str
    plugins: list[Plugin]
    raw_points: dict[str, list[float | None]] | Absent = ABSENT
    scores: dict[str, Any] | Absent = ABSENT
    in_numerical_band: bool | Absent = ABSENT
    nearest_row: NearestRowRecord | Absent = uncertified(ABSENT, ABSENT)
    region: dict[str, dict[str, list[Any]]] | Absent = uncertified(ABSENT, ABSENT)
    rests_on: list[str] | Absent = ABSENT
    started_from: str | Absent = ABSENT
    near_miss: NearMissRecord | Absent = uncertified(ABSENT, ABSENT)
    notes: list[str] | Absent = ABSENT
    certificates: list[CertificateRecord] | Absent = ABSENT
    models: list[ModelRecord]
    share: SharePart | Absent = ABSENT
    typical: TypicalPart | Absent = ABSENT
    shape: ShapePart | Absent = uncertified(ABSENT, ABSENT)


@dataclass(frozen=True, kw_only=True)
class AuditedModel:
    """The model of an audit."""

    file: str | None
    format: str
    library_version: str | None
    sha256: str | None
    trees: int
    leaves: int
    features: int
    task: str
    classes: list[str | int]
    cutoff: float | None
    options: dict[str, Any]
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class AuditedRows:
    """The table of an audit."""

    file: str | None
    sha256: str | None
    rows: int
    considered: int
    excluded: int
    label: str | None


@dataclass(frozen=True, kw_only=True)
class DomainRecord:
    """The possible values of one feature, and their source."""

    feature: str
    missing: bool
    source: Annotated[str, OneOf(("declared", "data"))]
    kind: Annotated[str, OneOf(("integer", "real", "category", "values"))]
    count: int | Absent = ABSENT
    low: Value | Absent = ABSENT
    high: Value | Absent = ABSENT
    listed: list[Value] | Absent = ABSENT


@dataclass(frozen=True, kw_only=True)
class ProxyRecord:
    """A feature that acts as a proxy for a protected one: `told` is the fraction of the entropy of `of` that the feature
    explains in the table, 1 only if the feature determines `of` in every row; the other fields state the feature's largest
    swing in the model.
    """

    of: str
    feature: str
    told: float
    max_swing: float | None
    max_swing_bound: float | None
    max_swing_status: Annotated[str, OneOf(tuple(map(str, Status)))]


@dataclass(frozen=True, kw_only=True)
class MeaningRecord:
    """The stated meaning of the model: protected features, names of classes by label, and the favourable class; also the file
    that states the meaning, and its text as TOML. With `suggested`, the names of the features alone suggest the protected ones.
    `notes` explain missing proxies.
    """

    notes: list[str] | Absent = ABSENT
    protected: list[str]
    suggested: bool = False
    proxies: list[ProxyRecord]
    classes: dict[str, str]
    favourable: str | None
    file: str | None
    sha256: str | None
    toml: str


@dataclass(frozen=True, kw_only=True)
class MendedSet:
    """The price of a repair for one set of features, on rows held out from the repair."""

    varied: list[str]
    method: str | None
    proved: bool
    reason: str
    rows: int | Absent = ABSENT
    loss: str | Absent = ABSENT
    loss_before: float | Absent = ABSENT
    loss_after: float | Absent = ABSENT
    auc_before: float | Absent | None = ABSENT
    auc_after: float | Absent | None = ABSENT
    decisions_changed: int | Absent = ABSENT


@dataclass(frozen=True, kw_only=True)
class MendingRecord:
    """The prices of repairs that reduce the gap to one given value; `test` is the table of the prices, or null for every second
    row of the data.
    """

    gap: float
    test: str | None
    sets: list[MendedSet]


@dataclass(frozen=True, kw_only=True)
class AuditDocument:
    """All records, with the facts that a reader needs to assess and to reproduce the records."""

    schema_version: int = SCHEMA_VERSION
    treesens: str
    model: AuditedModel
    data: AuditedRows
    domain: list[DomainRecord]
    rules: list[list[str]]
    command: str
    warnings: list[str]
    interrupted: bool
    seconds: float
    settings: dict[str, Any]
    meaning: MeaningRecord | Absent = ABSENT
    mending: MendingRecord | Absent = ABSENT
    results: list[AuditRecord]


SHAPE = Option(
    Flag(),
    "Also report whether the score is increasing or decreasing in each feature (`treesens shape`).",
    more="The result is the field `shape` in the records of single features; computing it takes up to one second per feature.",
)
REPAIR_GAP = Option(
    Sizes(single=True),
    "Compute the price of a repair to this gap, for protected features (if none, for all features with a pair); needs --label.",
    more="The price, on rows held out from the repair, is the field `mending` in the record; each set takes up to"
    " three times the time limit ([repair](repair.md)).",
)
TEST = Option(
    TableFile(),
    "Labelled rows held out from training: prices of repairs are computed on them.",
    more="Needs --repair-gap.",
)
REPORT = Option(
    OutputPath(needs="jinja2"),
    "Write a self-contained HTML page, and all records next to it: NAME.audit.json.",
    door=Door.COMMAND,
    more="The page states the SHA-256 of the records.",
)
FORCE = Option(Flag(), "Replace the NAME.audit.json of another audit.", door=Door.COMMAND)
PDF = Option(OutputPath(), "Print the page to PDF with Chromium or Chrome.", door=Door.COMMAND)
CARD = Option(
    OutputPath(),
    "Write a section of a model card in Markdown; if FILE contains marks, the section is written between them.",
    more="Marks are the lines `<!-- treesens: begin -->` and `<!-- treesens: end -->`; a file without them is never replaced.",
    door=Door.COMMAND,
)
PURPOSE = Option(InputFile(), "A TOML file with title, owner, purpose, … of the report.", door=Door.COMMAND)
DATE = Option(Text(), "The date of the report, YYYY-MM-DD (default: SOURCE_DATE_EPOCH, or today).", door=Door.COMMAND)


@dataclass(frozen=True, kw_only=True)
class AuditOptions(shared.Certifying):
    """The settings of an audit; `time_limit` is the time for each set of features, in seconds.

    With a `measure`, records also hold the affected share (up to another `time_limit` for every gap); with `typical`, they also
    hold the answer for typical inputs (up to another `time_limit` for every set).
    """

    gap: Sequence[str] = given(shared.GAP, ())
    margin: Sequence[str] = given(shared.MARGIN, ())
    measure: MeasureName | None = given(
        shared.MEASURE,
        None,
        "Add the share of inputs that flip, under this measure (docs/measures.md).",
        "The result is `share` in every record ([measures.md](measures.md)); each gap takes up to one more time limit.",
    )
    shape: bool = given(SHAPE, False)
    repair_gap: Sequence[str] = given(REPAIR_GAP, ())
    test: object | None = given(TEST, None)
    report: Path | None = given(REPORT, None)
    force: bool = given(FORCE, False)
    pdf: Path | None = given(PDF, None)
    card: Path | None = given(CARD, None)
    purpose: Path | None = given(PURPOSE, None)
    date: str | None = given(DATE, None)
    typical: str | None = given(
        shared.TYPICAL,
        None,
        "Repeat the audit for inputs typical of the data, e.g. 95%: those in a region with this percentage of fresh inputs.",
        "The field `typical` of every record holds the result, with the pair of the largest swing in `worst`; every set takes "
        "up to one more time limit. See [typical inputs](language.md#typical-inputs).",
    )
    typical_by: str | None = given(shared.TYPICAL_BY, None)
    decision: ast.Decision | None = given(shared.DECISION, None)
    threshold: Fraction | None = given(shared.THRESHOLD, None)
    classes: Sequence[str] = given(shared.CLASSES, ())
    domain: Sequence[ast.Declaration] = given(shared.DOMAIN, ())
    tolerance: float = given(shared.TOLERANCE, RELATIVE)
    absolute_tolerance: float = given(shared.ABSOLUTE_TOLERANCE, 0.0)
    optimal: bool = given(shared.OPTIMAL, False)
    vary: Sequence[Sequence[str]] | None = given(shared.VARY, None)
    jobs: int = given(shared.JOBS, 2)
    real: Sequence[str] = given(shared.REAL, ())
    protected: Sequence[str] = given(shared.PROTECTED, ())
    budget: Mapping[str, int] | None = given(shared.BUDGET, None)
    time_limit: float = given(
        shared.TIME_LIMIT, DEFAULT_SECONDS, "Seconds per set. By default at most 5, and fewer for many sets: 50 in all."
    )
    seed: int = given(shared.SEED, 0)
    replay: str = given(shared.REPLAY, "emulated")

    @property
    def near_enough(self) -> Tolerance:
        """The allowed difference between the value of a largest swing and its bound."""
        return Tolerance(0.0, 0.0) if self.optimal else Tolerance(self.tolerance, self.absolute_tolerance)

    @property
    def settings(self) -> dict[str, Any]:
        """The search settings that a reader needs to know."""
        from treesens.grammar.printing.printer import identity

        return {
            **({} if self.decision is None else {"decision": identity(self.decision)}),
            "seconds per set": self.time_limit,
            "sets at a time": self.jobs,
            "seed": self.seed,
            "replay": self.replay,
        }


def document(asked: Asking[AuditOptions], found: Found[AuditRecord]) -> AuditDocument:
    """All records, with the facts that a reader needs to assess and to reproduce the records."""
    from treesens.extensions.studies.report.audit_facts import audit_facts
    from treesens.records.plain import recorded

    facts = audit_facts(
        found.result,
        asked.options.settings,
        asked.files[0],
        asked.files[1],
        asked.command,
        warnings=list(found.warnings),
    )
    made: AuditDocument = recorded(AuditDocument, {**facts, "results": []})
    made.results.extend(found.records)
    return made


STUDY = Study(
    name="audit",
    title="an audit: treesens audit --json, and the JSON next to its page",
    text="""For every feature and gap: how many rows of FILE flip when only that feature changes, a verified pair with its
    nearest row, and the largest swing with its proved bound. Classifiers with more than two classes have one question per pair
    of classes, regressors have a question about their value, and --decision asks one question per pair of outcomes.

    Exit codes: 0 every question decided, 5 some inconclusive, 10 a condition of --fail-on, 1 usage, 2 unreadable input, 130
    interrupted.
    """,
    call="""\
    An audit of a model over rows (files, live objects, frames), like `treesens audit`.

    `vary` names features or sets of them (default: every feature with a split); the default gaps depend on the model. The
    decision is the model's own, or probability >= `threshold`. `classes` selects one class, or several classes; with several,
    only changes between them count; `decision`, a `.sens` file, replaces classes by the outcomes of a decision. `domain` is a
    `.sens` file with declarations of features. Features named in `real` may have fractional values although their columns
    contain whole numbers. `measure` (see `count`) adds the share of inputs that flip; `typical`, a percentage, adds the results
    for inputs typical of the rows; `shape` adds the direction of the score; `repair_gap`, with labelled rows, adds the price of
    a `repair` to that gap. `time_limit` is the number of seconds for each set. A largest swing may differ from its bound by the
    relative `tolerance`. Ctrl-C returns the results so far. """,
    options=AuditOptions,
    ask="treesens.extensions.studies.audit_search:ask",
    record=AuditRecord,
    document=document,
    complete="treesens.extensions.studies.recognised:complete",
    table="CSV or Parquet: the rows to try.",
    sizes_of_model=True,
    needs_table=True,
    fails={
        "found": lambda records: any(one.verdict == "found" for one in records),
        "rows": lambda records: any(one.rows_flipped for one in records),
        "protected": lambda records: any(
            one.verdict == "found" and one.protected is True and one.suggested is not True for one in records
        ),
    },
    fail_words="Exit with 10 if a pair is found, if a row of the data flips, or if a pair changes a protected feature.",
    flips=lambda records: [(one.varied, one.rows_flipped) for one in records],
    work="auditing",
    total="treesens.extensions.studies.audit_search:total",
)
