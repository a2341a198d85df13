"""The records of an audit: one per set of features, decision and gap, and what all of them are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from treesens.extensions.studies.count import EstimateRecord, TraitRecord
from treesens.extensions.studies.largest import Status
from treesens.extensions.studies.shape import DIRECTIONS, SHAPES
from treesens.extensions.studies.shared_records import CertificateRecord, ToleranceRecord
from treesens.records.plain import ABSENT, SCHEMA_VERSION, Absent, OneOf, Points, Value, VerdictWord

UNITS = ("raw score", "lead of one class", "value", "probability")
"""Units of largest swings."""


@dataclass(frozen=True, kw_only=True)
class NearestRowRecord:
    """The row that is nearest to the pair; distances in the euclidean norm, with the proved bound."""

    data: str
    index: int
    distance_l2: float
    point_distance_l2: float
    bound_l2: float | Absent | None = ABSENT
    values: dict[str, Value] | Absent = ABSENT


@dataclass(frozen=True, kw_only=True)
class NearMissRecord:
    """How near a search came to a pair."""

    best_slack: float | Absent = ABSENT
    slack_bound: float | Absent = ABSENT


@dataclass(frozen=True, kw_only=True)
class ScoredPoints:
    """A pair with its scores."""

    points: Points
    scores: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class TypicalPart:
    """What is left among typical inputs."""

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
    """How much of a measure is concerned."""

    measure: str
    lower: float
    upper: float
    estimate: EstimateRecord | None
    closed: bool
    reason: str | Absent = ABSENT
    who: list[TraitRecord] | Absent = ABSENT


@dataclass(frozen=True, kw_only=True)
class ShapePart:
    """Whether the score is increasing or decreasing in a feature, and the largest reversals (see `ShapeRecord`)."""

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
    """One set of features, decision and gap; points in the user's own labels."""

    varied: list[str]
    protected: bool | Absent = ABSENT
    gap: float | Absent = ABSENT
    margin: float | Absent = ABSENT
    threshold: float | Absent = ABSENT
    classes: list[str | int] | Absent = ABSENT
    decision: str | Absent = ABSENT
    outcomes: list[str] | Absent = ABSENT
    question: str
    rows: int
    rows_flipped: int
    rows_complete: bool
    flipped_rows: list[int]
    rows_flipped_down: int | Absent = ABSENT
    rows_flipped_up: int | Absent = ABSENT
    max_swing: float | None
    max_swing_bound: float | None
    max_swing_status: Annotated[str, OneOf(("optimal", "within tolerance", "open"))] | None
    max_swing_unit: Annotated[str, OneOf(UNITS)] | None
    tolerance: ToleranceRecord
    seconds: dict[str, float]
    verdict: VerdictWord
    reason: str
    proof: str | None
    points: Points | None
    replay: str | None
    backend: str
    pipeline: str
    raw_points: dict[str, list[float | None]] | Absent = ABSENT
    scores: dict[str, Any] | Absent = ABSENT
    in_numerical_band: bool | Absent = ABSENT
    nearest_row: NearestRowRecord | Absent = ABSENT
    region: dict[str, dict[str, list[Any]]] | Absent = ABSENT
    rests_on: list[str] | Absent = ABSENT
    started_from: str | Absent = ABSENT
    near_miss: NearMissRecord | Absent = ABSENT
    notes: list[str] | Absent = ABSENT
    certificates: list[CertificateRecord] | Absent = ABSENT
    models: list[ModelRecord]
    share: SharePart | Absent = ABSENT
    typical: TypicalPart | Absent = ABSENT
    shape: ShapePart | Absent = ABSENT


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
    """The possible values of one feature, and where they come from."""

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
    """A feature that carries a protected one: the part of its entropy, from the table; the known facts about the feature's
    largest swing, from the model.
    """

    of: str
    feature: str
    told: float
    max_swing: float | None
    max_swing_bound: float | None
    max_swing_status: Annotated[str, OneOf(tuple(map(str, Status)))]


@dataclass(frozen=True, kw_only=True)
class MeaningRecord:
    """The stated meaning of the model: protected features, names of classes by label, the class that people wish for; with
    the file that states it, and a text that states all of it. `notes` say why proxies are missing.
    """

    notes: list[str] | Absent = ABSENT
    protected: list[str]
    proxies: list[ProxyRecord]
    classes: dict[str, str]
    favourable: str | None
    file: str | None
    sha256: str | None
    toml: str


@dataclass(frozen=True, kw_only=True)
class MendedSet:
    """What it would cost to repair the model for one set of features, on rows that the repair has not seen."""

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
    """The prices of repairs to one gap."""

    gap: float
    sets: list[MendedSet]


@dataclass(frozen=True, kw_only=True)
class AuditDocument:
    """All records, with everything that a reader needs to judge and to repeat them."""

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
