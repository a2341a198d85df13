"""Changes from one version of a model to the next: outcomes of a decision, and sensitivities.

For every outcome that becomes another one there is an input, or a proof that there is none. Sensitivities are compared by the
audits of both versions, about the same domain, that of one table. One appears if it is proved that no pair flips the old
version and a verified pair flips the new one; an open answer is neither.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from treesens.binder.constructs.decided import outcomes
from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import DecidedPoint, Query
from treesens.compiler.result import Result, answered
from treesens.data.tables import Table
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.audit_search import audit
from treesens.extensions.studies.diff import OutcomeChange
from treesens.extensions.studies.events import Gap, is_decided, outcome_events
from treesens.extensions.studies.questions import sets_of
from treesens.extensions.studies.rows import decided_rows
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.records.answers import points_of
from treesens.solve.conclude import conclude_none, leave_open
from treesens.solve.options import Options
from treesens.solve.question import answer_question

_LISTED = 100
"""Numbers of changed rows that a record lists."""
_A, _B = ast.Name("a"), ast.Name("b")
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
"""Fields of the record of an audit that a change repeats."""


@dataclass(frozen=True, eq=False)
class ChangedOutcome:
    """One outcome that becomes another one: the record, the question, and its answer."""

    record: OutcomeChange
    query: Query
    result: Result


def queries_of(decision: ast.Decision, old: ast.Name, new: ast.Name) -> list[ast.Query]:
    """One question for every outcome that becomes another one: one input, which both models get as a point of their own."""
    outcome_events(decision)  # one outcome alone is no question
    return [
        ast.Query(
            ast.Name(f"o{number}"),
            ast.Find(
                (ast.Point(_A, old), ast.Point(_B, new)),
                (
                    ast.PointsEqual(_A, _B, None),
                    is_decided("a", decision, before),
                    is_decided("b", decision, after),
                ),
            ),
        )
        for number, (before, after) in enumerate(changes_of(decision))
    ]


def changes_of(decision: ast.Decision) -> list[tuple[str, str]]:
    """Every outcome with every other one."""
    return list(permutations(outcomes(decision), 2))


def changed_outcomes(
    decision: ast.Decision,
    questions: Sequence[ResolvedQuestion],
    options: Options,
    stop: threading.Event,
    *,
    same: bool,
) -> list[ChangedOutcome]:
    """What becomes of every outcome; those that were not reached after a stop are left out. `same`: the models are one."""
    found = []
    for (before, after), question in zip(changes_of(decision), questions, strict=True):
        if stop.is_set():
            break
        start = time.perf_counter()
        result = (
            _nothing(question)
            if same
            else answered(
                f"{before} to {after}",
                partial(answer_question, question, options, Budget.of(options.time_limit, stop)),
                partial(leave_open, question.query.name),
            )
        )
        rows = changed_rows(question, before, after)
        record = OutcomeChange(
            decision=decision.name.text,
            old=before,
            new=after,
            verdict=str(result.verdict),
            proof=None if result.proof is None else str(result.proof),
            reason=result.reason,
            input=None if result.witness is None else points_of(question.query, result.witness)["a"],
            rows=None if rows is None else rows[0],
            rows_changed=None if rows is None else len(rows[1]),
            changed_rows=None if rows is None else rows[1][:_LISTED],
            seconds=round(time.perf_counter() - start, 6),
        )
        found.append(ChangedOutcome(record, question.query, result))
    return found


def _nothing(question: ResolvedQuestion) -> Result:
    """No outcome changes between a model and itself."""
    return conclude_none(leave_open(question.query.name), "the models are equal, tree by tree")


def changed_rows(question: ResolvedQuestion, before: str, after: str) -> tuple[int, list[int]] | None:
    """How many rows of the table are legal inputs, and the numbers of those whose outcome changes so; None without a table."""
    if "d" not in question.rows:
        return None
    rows = question.rows["d"]
    old, new = (_of_point(question.query.decided, point) for point in (0, 1))
    index, judged = decided_rows(question.query, rows, [(old, before), (new, after)])
    return len(index), index[np.logical_and(*judged)].tolist()


def _of_point(decided: Sequence[DecidedPoint], point: int) -> DecidedPoint:
    return next(one for one in decided if one.point == point)


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
