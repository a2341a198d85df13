"""Two versions of a model: are they equal, how far apart are their scores at most, and which rows do they decide differently?

One search per score and direction maximises the difference of the two models at one input. Its pair reaches the value, its
proof bounds it; a bound of 0 in both directions is a proof that the models are equal on the domain. With gaps the audits of
both are compared as well: which sensitivities appear, and which go.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import BoolArray, FloatArray, Int64Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.base.tolerance import RELATIVE, Closeness
from treesens.compiler.model import Ensemble
from treesens.compiler.result import ObjectiveValue, Result, Sense, Verdict, answered
from treesens.data.tables import Table, align_table
from treesens.errors import DataError, UsageError
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.diff import DiffOptions, DiffRecord
from treesens.extensions.studies.difference_questions import (
    averages_probabilities,
    check_comparable,
    questions_of_difference,
)
from treesens.extensions.studies.events import Gap, gaps_of
from treesens.extensions.studies.halving import largest_difference
from treesens.extensions.studies.losses import Labelled, labelled
from treesens.extensions.studies.prices import Moved, price_of
from treesens.extensions.studies.study import Asking, Found
from treesens.extensions.studies.version_changes import (
    ChangedOutcome,
    ChangedSensitivity,
    changed_outcomes,
    changed_sensitivities,
)
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.records.answers import points_of
from treesens.records.plain import plain, recorded
from treesens.solve.conclude import conclude_found, leave_open
from treesens.solve.options import Options
from treesens.solve.question import answer

LISTED = 100
"""Numbers of changed rows that a record lists, those with the largest difference first."""


@dataclass(frozen=True)
class Largest:
    """The largest difference of one score, the first model's minus the second's or the other way round (`sign` -1)."""

    score: str
    sign: int
    question: ResolvedQuestion
    result: Result
    of_probability: bool = False

    @property
    def value(self) -> float | None:
        return None if self.result.objective is None else self.result.objective.value

    @property
    def bound(self) -> float | None:
        return None if self.result.objective is None else self.result.objective.bound

    @property
    def status(self) -> Closeness:
        """Whether this is the largest difference, or within the tolerance of it."""
        return Closeness.OPEN if self.result.objective is None else self.result.objective.status

    @property
    def is_shown(self) -> bool:
        """True if the input has other scores in the arithmetic of the library, too: sums that are rounded may be the same."""
        witness = self.result.witness
        if witness is None or self.value is None or self.value <= 0:
            return False
        if self.of_probability:
            # One score has the probability of the second class alone.
            one, other = (p if len(p) > 2 else p[-1:] for p in witness.probabilities)
            return bool(one != other)
        return bool(witness.margins[0] != witness.margins[1])

    def record(self) -> dict[str, Any]:
        """The facts for JSON; the input in the user's own labels."""
        witness = self.result.witness
        points = None if witness is None else points_of(self.question.query, witness)
        return {
            "score": self.score,
            "direction": "old - new" if self.sign > 0 else "new - old",
            "largest": self.value,
            "bound": self.bound,
            "status": str(self.status),
            "tolerance": None if self.result.objective is None else self.result.objective.tolerance.record(),
            "input": None if points is None else points["a"],
            "reason": self.result.reason,
        }


@dataclass
class Difference:
    """What is known about two models; rows are those of a table, by their numbers."""

    largest: list[Largest] = field(default_factory=list)
    rows: int | None = None
    changed: list[int] | None = None
    largest_on_rows: float | None = None
    rounded: int = 0
    """Rows whose exact sums are equal, and whose sums in the arithmetic of the libraries are not."""
    largest_rounding: float = 0.0
    prices: dict[str, Any] | None = None
    """What the new model costs on labelled rows."""
    sensitivities: list[ChangedSensitivity] | None = None
    outcomes: list[ChangedOutcome] | None = None
    """What becomes of the outcomes of a decision."""
    interrupted: bool = False
    warnings: tuple[str, ...] = ()
    same_trees: bool = False
    """Whether the models are the same, tree by tree."""

    @property
    def bound(self) -> float | None:
        """No score of the one model differs from that of the other by more, on the whole domain; None if not all is proved."""
        bounds = [one.bound for one in self.largest]
        return None if not bounds or None in bounds else max(0.0, *(b for b in bounds if b is not None))

    @property
    def verdict(self) -> str:
        """`equal` (proved), `different` (some input shows it), `close` (no input shows it, and `bound` is all that is proved)
        or `unknown`.
        """
        if any(one.is_shown for one in self.largest):
            return "different"
        if self.bound is None or self.interrupted:
            return "unknown"
        return "equal" if self.bound == 0.0 else "close"

    def record(self) -> dict[str, Any]:
        """All of it, for JSON."""
        rows = None
        if self.changed is not None:
            rows = {
                "rows": self.rows,
                "changed": len(self.changed),
                "changed_rows": self.changed[:LISTED],
                "largest_difference": self.largest_on_rows,
                "rounded": self.rounded,
                "largest_rounding": self.largest_rounding,
            }
        return {
            "verdict": self.verdict,
            "bound": self.bound,
            "scores": [one.record() for one in self.largest],
            "data": rows,
            "prices": self.prices,
            "sensitivities": None if self.sensitivities is None else [one.record() for one in self.sensitivities],
            "outcomes": None if self.outcomes is None else [plain(one.record) for one in self.outcomes],
            "interrupted": self.interrupted,
        }


def ask(asked: Asking[DiffOptions]) -> Found[DiffRecord]:
    """What the study finds."""
    options, (old, new) = asked.options, asked.models
    gaps = gaps_of(options.gap, options.margin) if options.gap or options.margin else []
    if options.vary and not gaps:
        raise UsageError("--vary names features whose sensitivities are compared", remedy="add --gap, e.g. --gap 0.1")
    audit = AuditOptions(
        time_limit=options.set_limit,
        seed=options.seed,
        tolerance=options.near_enough,
        certificates=options.certificates,
    )
    found = difference(
        old,
        new,
        asked.table,
        time_limit=options.time_limit,
        seed=options.seed,
        stop=asked.stop,
        gaps=gaps,
        varied=options.vary,
        audit=audit,
        tolerance=options.near_enough,
        price_by=options.price_by or (),
        decision=options.decision,
    )
    record: DiffRecord = recorded(DiffRecord, found.record())
    changes = [one.change for one in record.sensitivities or ()]
    closed = all(score.status != Closeness.OPEN for score in record.scores)
    changes += [one.verdict for one in record.outcomes or ()]
    return Found([record], found.warnings, found.interrupted, closed and "unknown" not in changes, found)


def difference(
    old: LoadedModel,
    new: LoadedModel,
    table: Table | None,
    *,
    time_limit: float = 60.0,
    seed: int = 0,
    stop: threading.Event | None = None,
    gaps: Sequence[Gap] = (),
    varied: Sequence[Sequence[str]] | None = None,
    audit: AuditOptions | None = None,
    tolerance: float = RELATIVE,
    price_by: Sequence[Sequence[str]] = (),
    decision: ast.Decision | None = None,
) -> Difference:
    """Compares two models; `time_limit` in seconds for every search. UsageError for models with other outputs.

    A largest difference may be `tolerance` of itself away from its bound; that models are equal is always proved exactly.

    If the table has a column of labels, the new model has a price on its rows, over all and by the groups of `price_by`. With
    `gaps` both models are audited over the table, too, with the options `audit`, and their sensitivities are compared. With a
    `decision` it is asked which of its outcomes become which.
    """
    check_comparable(old.ensemble, new.ensemble)
    if gaps and table is None:
        raise UsageError(
            "sensitivities are compared over the ranges of a table", remedy="add --data FILE, or leave out the gaps"
        )
    if table is not None:
        table = align_table(new, align_table(old, table))
    diagnostics = Diagnostics()
    labels, unpriced = labels_of_rows(old, table, price_by)
    asked, of_outcomes = questions_of_difference(old, new, table, diagnostics, decision)
    averaged = averages_probabilities(old.ensemble, new.ensemble)
    found = Difference(warnings=(*(item.render() for item in diagnostics), *unpriced))
    halt = stop or threading.Event()
    options = Options(backend="native", time_limit=time_limit, seed=seed, tolerance=tolerance)
    equal = found.same_trees = _are_equal(old.ensemble, new.ensemble)
    for score, sign, question in asked:
        if halt.is_set():
            break
        if equal:
            found.largest.append(Largest(score, sign, question, _nothing_between(question), averaged))
            continue
        search = largest_difference if averaged else answer
        result = answered(
            f"the difference of {score}",
            partial(search, question.query, options, Budget.of(time_limit, halt)),
            partial(Result, question.query.name, Verdict.UNKNOWN),
        )
        found.largest.append(Largest(score, sign, question, result, averaged))
    if decision is not None:
        asking = replace(options, backend="auto")
        found.outcomes = changed_outcomes(decision, of_outcomes, asking, halt, same=equal)
    found.interrupted = halt.is_set()
    if table is not None:
        question = asked[0][2]
        compare_rows(found, question)
        if labels is not None:
            found.prices = price_on_rows(question, labels, varied)
        if gaps and not halt.is_set():
            chosen = audit or AuditOptions(seed=seed)
            found.sensitivities = changed_sensitivities(old, new, table, gaps, chosen, varied=varied, stop=halt)
            found.interrupted = halt.is_set()
    return found


def _are_equal(old: Ensemble, new: Ensemble) -> bool:
    """True if two models are the same, tree by tree, whatever their files are called."""
    mine = [f.name for f in fields(Ensemble) if f.name not in {"name", "source"}]
    return all(_is_same(getattr(old, name), getattr(new, name)) for name in mine)


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
    return bool(one == other)


def _nothing_between(question: ResolvedQuestion) -> Result:
    """The largest difference of a model from itself."""
    goal = question.query.objective
    zero = ObjectiveValue(0.0, 0.0, Sense.MAXIMIZE, "prob" if goal is None else goal.kind)
    return conclude_found(leave_open(question.query.name, objective=zero), "the models are equal, tree by tree")


def compare_rows(found: Difference, question: ResolvedQuestion) -> None:
    """Adds how far apart rows are at most, and which of them the models decide differently."""
    rows = question.rows["d"]
    ensembles = [model.ensemble for model in question.query.models]
    scores = [_scores(ensemble, rows) for ensemble in ensembles]
    if averages_probabilities(*ensembles):
        last = slice(None) if len(ensembles[0].classes) > 2 else slice(-1, None)
        shown = [e.probabilities(of_rows)[:, last] for e, of_rows in zip(ensembles, scores, strict=True)]
        apart = np.abs(shown[0] - shown[1]).max(axis=1)
    else:
        apart = np.abs(scores[0] - scores[1]).max(axis=1)
    rounded = _by_rounding(ensembles, rows, apart)
    differ = _classes(question, 0, scores[0], rows) != _classes(question, 1, scores[1], rows)
    different = np.flatnonzero(differ if ensembles[0].classes else differ & ~rounded)
    order = different[np.argsort(-apart[different], kind="stable")]
    found.rows, found.changed = len(rows), [int(i) for i in order]
    found.largest_on_rows = float(apart[~rounded].max(initial=0.0))
    found.rounded, found.largest_rounding = int(rounded.sum()), float(apart[rounded].max(initial=0.0))


def labels_of_rows(
    old: LoadedModel, table: Table | None, price_by: Sequence[Sequence[str]]
) -> tuple[Labelled | None, tuple[str, ...]]:
    """The labels of a table, and their groups; or a note why there are no prices. UsageError and DataError for groups without
    prices.
    """
    if table is None or table.label is None:
        if price_by:
            raise UsageError(
                "--price-by needs labelled rows", remedy="add --data FILE and --label COLUMN, or leave out --price-by"
            )
        return None, ()
    try:
        return labelled(old, table, table.label, price_by), ()
    except (UsageError, DataError) as error:
        if price_by:
            raise
        return None, (f"no prices: {error}",)


def price_on_rows(
    question: ResolvedQuestion, labels: Labelled, varied: Sequence[Sequence[str]] | None
) -> dict[str, Any]:
    """What the second model costs on the rows of the question; rows that flip are counted if features are varied."""
    old, new = (model.ensemble for model in question.query.models)
    rows = question.rows["d"]
    names = sorted({name for group in varied or () for name in group})
    moved = Moved.of([old.feature_names.index(name) for name in names], rows) if names else None
    return price_of(old, new, replace(labels, rows=rows), moved)


def _by_rounding(ensembles: Sequence[Ensemble], rows: FloatArray, apart: FloatArray) -> BoolArray:
    """The rows whose exact sums are equal while the libraries' own sums differ: bool[rows]."""
    result = np.zeros(len(rows), dtype=np.bool_)
    if averages_probabilities(*ensembles) or any(e.blend is not None for e in ensembles):
        return result
    # Sums that are farther apart than both can be off have other exact ones.
    near = np.flatnonzero((apart > 0) & (apart <= 2 * sum(float(e.band()) for e in ensembles)))
    if len(near):
        one, other = (e.margins_exact(rows[near]) for e in ensembles)
        result[near] = (one == other).all(axis=1)
    return result


def _scores(ensemble: Ensemble, rows: FloatArray) -> FloatArray:
    """Raw scores in the library's arithmetic, float64[rows, outputs]."""
    return np.asarray(ensemble.margins_emulated(rows), dtype=np.float64)


def _classes(question: ResolvedQuestion, number: int, scores: FloatArray, rows: FloatArray) -> Int64Array | FloatArray:
    """The class that a model predicts for every row; of a regressor its values themselves."""
    e = question.query.models[number].ensemble
    if not e.classes:
        return scores[:, 0]
    return e.predicted_classes(scores, rows)
