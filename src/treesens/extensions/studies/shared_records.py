"""Parts of records that several studies share."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treesens.records.plain import ABSENT, Absent, Value

if TYPE_CHECKING:
    from treesens.extensions.certify.together import Manifest


@dataclass(frozen=True, kw_only=True)
class ToleranceRecord:
    """The maximum distance between a bound and its value."""

    relative: float
    absolute: float


@dataclass(frozen=True, kw_only=True)
class TypicalRecord:
    """The percentage of fresh inputs that are typical, and the method (`way`) that defines them."""

    percent: float
    way: str


@dataclass(frozen=True, kw_only=True)
class CertificateSeconds:
    """The time that a certificate took, in seconds."""

    produced: float
    checked: float


@dataclass(frozen=True, kw_only=True)
class CertificateRecord:
    """A claim with the file of its certificate, or the reason for its absence."""

    claim: str
    file: str | None
    reason: str | Absent = ABSENT
    sha256: str | Absent = ABSENT
    bytes: int | Absent = ABSENT
    seconds: CertificateSeconds | Absent = ABSENT
    left_out: list[str] | Absent = ABSENT


@dataclass(frozen=True, kw_only=True)
class LossRecord:
    """The price of one model compared with another on some rows: the mean loss, the AUC and the decisions."""

    rows: int
    loss: str
    loss_before: float
    loss_after: float
    auc_before: float | Absent | None = ABSENT
    auc_after: float | Absent | None = ABSENT
    decisions_changed: int | Absent = ABSENT


@dataclass(frozen=True, kw_only=True)
class GroupPriceRecord(LossRecord):
    """The price for one group; `positive_before` and `positive_after` are shares of group rows with the second class."""

    by: list[str]
    values: list[Value]
    positive_before: float | Absent = ABSENT
    positive_after: float | Absent = ABSENT


@dataclass(frozen=True, kw_only=True)
class PriceRecord(LossRecord):
    """The price on all rows of a table, and on groups of rows. Flipping rows are counted if features are varied."""

    rows_changed: int
    largest_change_of_a_score: float
    rows_tried_for_flips: int | Absent = ABSENT
    rows_flip_before: int | Absent = ABSENT
    rows_flip_after: int | Absent = ABSENT
    groups: list[GroupPriceRecord] | Absent = ABSENT


def certificates_of(made: list[dict[str, Any]]) -> list[CertificateRecord] | Absent:
    """Certificates in the form for a record; ABSENT unless requested."""
    if not made:
        return ABSENT
    return [
        CertificateRecord(**{**one, "seconds": CertificateSeconds(**one["seconds"])} if "seconds" in one else one)
        for one in made
    ]


@dataclass(frozen=True, kw_only=True)
class ClaimedRecord:
    """A claim that follows from its parts according to the checker; docs/certificates.md lists the kinds."""

    claim: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class OpenRecord:
    """A claim without a certificate."""

    claim: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ManifestRecord:
    """The manifest of a study. `file` is null if no claim is accepted; `failed` is the reason for a missing manifest."""

    file: str | None
    sha256: str | None
    parts: int
    claims: list[ClaimedRecord]
    without: list[OpenRecord]
    failed: str | Absent = ABSENT


def manifest_record(made: Manifest) -> ManifestRecord:
    """The record of a written manifest."""
    return ManifestRecord(
        file=None if made.path is None else str(made.path),
        sha256=None if made.path is None else hashlib.sha256(made.path.read_bytes()).hexdigest(),
        parts=len(made.parts),
        claims=[ClaimedRecord(claim=title, kind=kind) for title, kind in made.claims],
        without=[OpenRecord(claim=title, reason=reason) for title, reason in made.open],
    )
