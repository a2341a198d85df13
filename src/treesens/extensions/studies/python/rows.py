"""The results of `robust`, `why` and `sets` in Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from treesens.extensions.studies.python.study_results import Called, Pictured, PicturedResult

if TYPE_CHECKING:
    from treesens.extensions.studies.robust_search import Robustness as Found


@dataclass(frozen=True, eq=False)
class Robustness(Pictured):
    """Distances of rows to another class; `records` has one record per row, as `treesens robust --json` prints them."""

    records: list[dict[str, Any]]
    notes: tuple[str, ...]
    interrupted: bool
    found: Found = field(repr=False)
    source: Any = field(repr=False)

    @classmethod
    def of(cls, called: Called) -> Self:
        """The result of a call of the study."""
        found = called.found
        return cls(called.records, called.notes, found.interrupted, found.result, called.source)

    def certified(self, radius: float) -> float:
        """The share of rows that are proved to keep their class within a radius and, with labels, are predicted correctly."""
        return self.found.certified(radius)

    def curve(self) -> list[tuple[float, float]]:
        """Every radius at which the certified share of the rows drops, ascending from 0, with the share from this radius on."""
        return self.found.curve()

    def __repr__(self) -> str:
        closed = sum(bool(record["closed"]) for record in self.records)
        return f"<robustness of {len(self.records)} rows: {closed} closed>"


@dataclass(frozen=True, eq=False)
class Reasons(Pictured):
    """Reasons for the classes of rows; `records` has one record per row, as `treesens why --json` prints them."""

    records: list[dict[str, Any]]
    notes: tuple[str, ...]
    source: Any = field(repr=False)

    @classmethod
    def of(cls, called: Called) -> Self:
        """The result of a call of the study."""
        return cls(called.records, called.notes, called.source)

    def __repr__(self) -> str:
        known = sum(record["sufficient"] is not None for record in self.records)
        return f"<reasons of {len(self.records)} rows: {known} known>"


@dataclass(frozen=True, eq=False)
class Sets(PicturedResult):
    """Sets of features that flip a decision; `records` has one record per decision, as `treesens sets --json` prints them."""

    @property
    def complete(self) -> bool:
        """True if every set is decided."""
        return not self.interrupted and all(record["complete"] for record in self.records)

    @property
    def flip(self) -> list[tuple[str, ...]]:
        """The minimal sets that flip the first decision, the smallest first."""
        return [tuple(one["features"]) for one in self.records[0]["flip"]]

    @property
    def hold(self) -> list[tuple[str, ...]]:
        """The maximal sets that are proved not to flip the first decision."""
        return [tuple(one["features"]) for one in self.records[0]["hold"]]

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The columns of a frame with one line per set, including the set's verdict."""
        kinds = (("flip", "found"), ("hold", "none"), ("open", "unknown"))
        lines = [(r, one, verdict) for r in self.records for kind, verdict in kinds for one in r[kind]]
        columns: dict[str, list[Any]] = {"features": [", ".join(one["features"]) for _, one, _ in lines]}
        if any("classes" in record for record in self.records):
            columns["classes"] = [" / ".join(map(str, r.get("classes", ()))) for r, _, _ in lines]
        return {**columns, "verdict": [verdict for _, _, verdict in lines]}

    def __repr__(self) -> str:
        flip, hold = (sum(len(record[kind]) for record in self.records) for kind in ("flip", "hold"))
        state = "complete" if self.complete else "not complete"
        return f"<sets of features: {flip} smallest that flip, {hold} largest that do not, {state}>"
