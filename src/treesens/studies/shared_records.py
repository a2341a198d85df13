"""Parts that the records of several studies have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from treesens.records.plain import ABSENT, Absent


@dataclass(frozen=True, kw_only=True)
class ToleranceRecord:
    """How near a bound had to be to its value."""

    relative: float
    absolute: float


@dataclass(frozen=True, kw_only=True)
class TypicalRecord:
    """The share of fresh inputs that counts, and how it is told."""

    percent: float
    way: str


@dataclass(frozen=True, kw_only=True)
class CertificateSeconds:
    """How long a certificate took."""

    produced: float
    checked: float


@dataclass(frozen=True, kw_only=True)
class CertificateRecord:
    """A claim with the file of its certificate, or the reason why there is none."""

    claim: str
    file: str | None
    reason: str | Absent = ABSENT
    sha256: str | Absent = ABSENT
    bytes: int | Absent = ABSENT
    seconds: CertificateSeconds | Absent = ABSENT
    left_out: list[str] | Absent = ABSENT


def certificates_of(made: list[dict[str, Any]]) -> list[CertificateRecord] | Absent:
    """Certificates as parts of a record, which has none of them if none was wanted."""
    if not made:
        return ABSENT
    return [
        CertificateRecord(**{**one, "seconds": CertificateSeconds(**one["seconds"])} if "seconds" in one else one)
        for one in made
    ]
