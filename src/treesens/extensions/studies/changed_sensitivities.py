"""Which sensitivities appear with a new version of a model, and which go: the audits of both, side by side.

Both audits ask about the same domain, that of one table. A sensitivity appears if it is proved that no pair flips the old
version and a verified pair flips the new one; an open answer is neither.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treesens.compiler.query.query import Query
from treesens.data.tables import Table
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.feature_audit import audit
from treesens.extensions.studies.questions import Gap, sets_of
from treesens.frontends.base import LoadedModel

_WORDS = {
    ("none", "found"): "appears",
    ("found", "none"): "goes",
    ("found", "found"): "stays",
    ("none", "none"): "never",
}
_ABOUT: tuple[str, ...] = ("varied", "protected", "gap", "margin", "classes", "question")
_KEPT: tuple[str, ...] = (
    *("verdict", "proof", "reason", "points", "rows_flipped", "rows_complete", "max_swing", "max_swing_bound"),
)
"""What is told of the record of an audit."""


@dataclass(frozen=True)
class ChangedSensitivity:
    """One set of features at one gap, the records of both audits about it, and a question of each."""

    old: dict[str, Any]
    new: dict[str, Any]
    queries: tuple[Query, Query] | None = None

    @property
    def change(self) -> str:
        """`appears`, `goes`, `stays`, `never` (proved of both versions), or `unknown` if one answer is open."""
        return _WORDS.get((self.old["verdict"], self.new["verdict"]), "unknown")

    def record(self) -> dict[str, Any]:
        """The facts for JSON; the pairs in the user's own labels."""
        about = {name: fact for name, fact in self.new.items() if name in _ABOUT}
        old, new = ({name: side.get(name) for name in _KEPT} for side in (self.old, self.new))
        return {**about, "change": self.change, "old": old, "new": new}


def changed_sensitivities(
    old: LoadedModel,
    new: LoadedModel,
    table: Table,
    gaps: Sequence[Gap],
    options: AuditOptions,
    *,
    varied: Sequence[Sequence[str]] | None = None,
    stop: threading.Event | None = None,
) -> list[ChangedSensitivity]:
    """The audits of both models over one table, question by question; those that both were asked before a stop.

    `varied` are sets of features; by default every feature that a tree of one of the models asks about. The time limit of the
    options is in seconds for each set and model.
    """
    groups = varied if varied is not None else list(dict.fromkeys(sets_of(old, None) + sets_of(new, None)))
    audits = [audit(m, table, varied=groups, gaps=gaps, options=options, stop=stop) for m in (old, new)]
    both = [{_key(item): item for item in one.records} for one in audits]
    one, other = (made.query for made in audits)
    queries = None if one is None or other is None else (one, other)
    found = [ChangedSensitivity(item, both[1][key], queries) for key, item in both[0].items() if key in both[1]]
    return sorted(found, key=lambda one: not one.new.get("protected"))


def _key(record: dict[str, Any]) -> tuple[object, ...]:
    """What a record is about."""
    return (*record["varied"], record.get("gap"), record.get("margin"), *map(str, record.get("classes", ())))
