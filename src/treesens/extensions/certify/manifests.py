"""The manifest of a study as its record: the file, what it claims, and what has no certificate."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from treesens.records.plain import ABSENT, Absent

if TYPE_CHECKING:
    from treesens.extensions.certify.together import Manifest


@dataclass(frozen=True, kw_only=True)
class ClaimedRecord:
    """A claim that the checker has found to follow from its parts, of a kind of docs/certificates.md."""

    claim: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class OpenRecord:
    """A claim that has no certificate."""

    claim: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ManifestRecord:
    """The file is null if no claim is accepted. `failed` says why none could be made."""

    file: str | None
    sha256: str | None
    parts: int
    claims: list[ClaimedRecord]
    without: list[OpenRecord]
    failed: str | Absent = ABSENT


def manifest_record(made: Manifest) -> ManifestRecord:
    """The facts of a manifest that was written."""
    return ManifestRecord(
        file=None if made.path is None else str(made.path),
        sha256=None if made.path is None else hashlib.sha256(made.path.read_bytes()).hexdigest(),
        parts=len(made.parts),
        claims=[ClaimedRecord(claim=title, kind=kind) for title, kind in made.claims],
        without=[OpenRecord(claim=title, reason=reason) for title, reason in made.open],
    )
