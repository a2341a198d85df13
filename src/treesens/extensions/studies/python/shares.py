"""What `count` returns in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from treesens.extensions.studies.python.study_results import StudyResult


@dataclass(frozen=True, eq=False)
class Count(StudyResult):
    """Shares of inputs: `records` as `treesens count --json` prints them, one per (set of features, decision, gap)."""

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The numbers, a list per column; `estimate` is None where the proved interval is narrow enough."""
        kind = "gap" if any("gap" in r for r in self.records) else "margin"
        columns: dict[str, list[Any]] = {"varied": [", ".join(r["varied"]) for r in self.records]}
        if any("classes" in r for r in self.records):
            columns["classes"] = [" / ".join(map(str, r.get("classes", ()))) for r in self.records]
        for name in (kind, "lower", "upper"):
            columns[name] = [r[name] for r in self.records]
        columns["estimate"] = [None if r["estimate"] is None else r["estimate"]["value"] for r in self.records]
        return {**columns, "closed": [r["closed"] for r in self.records]}

    def _repr_html_(self) -> str:
        from treesens.report.notebook import table
        from treesens.report.share_words import estimated, interval

        kind = "gap" if any("gap" in r for r in self.records) else "margin"
        head = ["features", kind, "share of inputs, proved", "estimate, with its interval", "known well enough"]
        lines = [
            [", ".join(r["varied"]), r[kind], interval(r), estimated(r), "yes" if r["closed"] else r["reason"] or "no"]
            for r in self.records
        ]
        return table(head, lines)

    def __repr__(self) -> str:
        closed = sum(bool(record["closed"]) for record in self.records)
        return f"<shares of {len(self.records)} questions: {closed} known precisely enough>"
