"""A largest value, such as a swing or a number of rows, with a status.

A status distinguishes four facts, none of which means 0: a value was not audited, a search reached a value, an upper bound is
proved, or the largest value is proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from treesens.compiler.base.tolerance import USUAL, Closeness


class Status(StrEnum):
    """The possible facts about a largest value."""

    PROVED = "proved"
    BETWEEN = "between"
    AT_LEAST = "at least"
    AT_MOST = "at most"
    UNKNOWN = "unknown"
    NOT_AUDITED = "not audited"
    NOT_USED = "not used"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Largest:
    """A largest value that is at least 0. `value` is reached by a verified input; it is None if no value above 0 is known, and
    0 if 0 is proved to be the largest value; `bound` is a proved upper bound (None if nothing is proved).
    """

    value: float | None
    bound: float | None
    status: Status

    @classmethod
    def of(cls, value: float | None, bound: float | None) -> Largest:
        """The fact that a value and a bound imply: the largest value is proved if they agree within the tolerance."""
        if bound is not None and USUAL.closeness(value or 0.0, bound) is not Closeness.OPEN:
            return cls(value or 0, bound, Status.PROVED)
        reached = value or None
        if reached is None:
            return cls(None, bound, Status.UNKNOWN if bound is None else Status.AT_MOST)
        return cls(reached, bound, Status.AT_LEAST if bound is None else Status.BETWEEN)

    @classmethod
    def over(cls, facts: Iterable[Largest]) -> Largest:
        """The largest of several values: reached by one of them, and bounded if all are bounded. NOT_AUDITED without facts."""
        known = list(facts)
        if not known or any(one.status is Status.NOT_AUDITED for one in known):
            return NOT_AUDITED
        values = [one.value for one in known if one.value is not None]
        bounds = [one.bound for one in known if one.bound is not None]
        return cls.of(max(values, default=None), max(bounds) if len(bounds) == len(known) else None)

    def record(self) -> dict[str, Any]:
        """The largest swing as a dict for JSON."""
        return {"max_swing": self.value, "max_swing_bound": self.bound, "max_swing_status": str(self.status)}


NOT_AUDITED = Largest(None, None, Status.NOT_AUDITED)
NOT_USED = Largest(0, 0, Status.NOT_USED)
"""The largest value for a feature that no tree of the model splits on."""


def swing_of_record(record: Mapping[str, Any]) -> Largest:
    """The largest swing of a record, or of a proxy with its stated status."""
    known = Largest.of(record["max_swing"], record["max_swing_bound"])
    status = record.get("max_swing_status")
    return {str(Status.NOT_AUDITED): NOT_AUDITED, str(Status.NOT_USED): NOT_USED}.get(str(status), known)


def rows_of_record(record: Mapping[str, Any]) -> Largest:
    """The number of flipping rows, exact if all values were tried for every row."""
    flipped: int = record["rows_flipped"]
    return Largest.of(flipped, flipped if record["rows_complete"] else None)
