"""Compares two versions of a model: equality, the largest differences of their scores, and the rows with different decisions.

One search per score and direction maximises the difference of the two models at one input. The input that is found
attains the value of the search, and the proof gives a bound; bounds of 0 in both directions prove the models equal.

For every change of a decision's outcome, the study searches for an input, or for a proof that no input exists. Sensitivities
are compared by auditing both versions over one table. A sensitivity appears if no pair flips the old version (proved) and a
verified pair flips the new version; with an open answer, the change is unknown.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from treesens.binder.constructs.decided import outcomes
from treesens.binder.file import ResolvedQuestion, bind
from treesens.binder.terms import predicts_probabilities
from treesens.compiler.base.arrays import BoolArray, FloatArray, Int64Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.base.tolerance import Closeness
from treesens.compiler.model import Ensemble
from treesens.compiler.query.query import DecidedPoint, Query
from treesens.compiler.result import ObjectiveValue, Result, Sense, Verdict, answered
from treesens.data.tables import Table, align_table
from treesens.errors import DataError, UsageError
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.audit_search import audit, certified_of, size_of_record
from treesens.extensions.studies.decisions import check_votes
from treesens.extensions.studies.diff import DiffOptions, DiffRecord, OutcomeChange
from treesens.extensions.studies.events import Gap, gaps_of, is_decided, outcome_events
from treesens.extensions.studies.evidence import Answered, Best, Equal, Evidence, Made, Open
from treesens.extensions.studies.losses import Labelled, labelled
from treesens.extensions.studies.optima import Optimum, best, largest_of, score_of
from treesens.extensions.studies.prices import Moved, price_of
from treesens.extensions.studies.questions import sets_of
from treesens.extensions.studies.rows import decided_rows
from treesens.extensions.studies.study import Asking, Found
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.records.answers import points_of
from treesens.records.plain import plain, recorded
from treesens.solve.conclude import conclude_found, conclude_none, leave_open
from treesens.solve.options import Options
from treesens.solve.question import answer_question

LISTED = 100
"""Maximum number of changed rows that a record lists, with the largest differences first."""
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
"""Fields that a change copies from the record of an audit."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Largest(Optimum):
    """The largest difference of one score: the first model's minus the second's, or the reverse if `sign` is -1."""

    score: str
    sign: int
    of_probability: bool = False

    @property
    def way(self) -> str:
        """The direction in words."""
        return "old - new" if self.sign > 0 else "new - old"

    @property
    def is_shown(self) -> bool:
        """True if the scores at the input also differ in the arithmetic of the library, which may round both to one number."""
        witness = self.witness
        if witness is None or self.value is None or self.value <= 0:
            return False
        if self.of_probability:
            # For a single score, only the probability of the second class counts.
            one, other = (p if len(p) > 2 else p[-1:] for p in witness.probabilities)
            return bool(one != other)
        return bool(witness.margins[0] != witness.margins[1])

    def record(self) -> dict[str, Any]:
        """The difference as a dict for JSON; the input is in the user's own labels."""
        points = None if self.witness is None else points_of(self.query, self.witness)
        return {
            "score": self.score,
            "direction": self.way,
            "largest": self.value,
            "bound": self.bound,
            "status": str(self.status),
            "tolerance": None if self.result.objective is None else self.result.objective.tolerance.record(),
            "input": None if points is None else points["a"],
            "reason": self.reason,
        }


@dataclass
class Difference:
    """The findings about two models; rows are given by their indices in the table."""

    largest: list[Largest] = field(default_factory=list)
    rows: int | None = None
    changed: list[int] | None = None
    largest_on_rows: float | None = None
    rounded: int = 0
    """Number of rows whose exact sums are equal, but whose sums in the arithmetic of the libraries differ."""
    largest_rounding: float = 0.0
    prices: dict[str, Any] | None = None
    """The price of the new model on labelled rows."""
    sensitivities: list[ChangedSensitivity] | None = None
    outcomes: list[ChangedOutcome] | None = None
    """The changes of outcomes of a decision."""
    interrupted: bool = False
    same_trees: bool = False
    """True if the models are the same, tree by tree."""

    @property
    def bound(self) -> float | None:
        """A proved bound on the difference of any score on the whole domain; None if a score has no bound."""
        bounds = [one.bound for one in self.largest]
        return None if not bounds or None in bounds else max(0.0, *(b for b in bounds if b is not None))

    @property
    def verdict(self) -> str:
        """`equal` (proved), `different` (an input shows a difference), `close` (no input shows a difference, and only `bound`
        is proved) or `unknown`.
        """
        if any(one.is_shown for one in self.largest):
            return "different"
        if self.bound is None or self.interrupted:
            return "unknown"
        return "equal" if self.bound == 0.0 else "close"

    def record(self) -> dict[str, Any]:
        """All findings as a dict for JSON."""
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
    """Compares two models. A largest difference may differ from its bound by the relative `tolerance`; equality is always
    proved exactly. Raises UsageError for models whose outputs cannot be compared.

    If the table has a label column, the price of the new model on the table's rows is added, overall and for each group of
    `price_by`. With gaps, both models are also audited over the table, and their sensitivities are compared.
    """
    options, table = asked.options, asked.table
    first, second = asked.models
    old, new, matched = by_position(first, second, table)
    gaps = gaps_of(options.gap, options.margin) if options.gap or options.margin else []
    if options.vary and not gaps:
        raise UsageError("--vary names features whose sensitivities are compared", remedy="add --gap, e.g. --gap 0.1")
    check_comparable(old.ensemble, new.ensemble)
    if gaps and table is None:
        raise UsageError(
            "sensitivities are compared over the ranges of a table", remedy="add --data FILE, or leave out the gaps"
        )
    if table is not None:
        table = align_table(new, align_table(old, table))
    diagnostics = Diagnostics()
    labels, unpriced = labels_of_rows(old, table, options.price_by or ())
    of_scores, of_outcomes = questions_of_difference(old, new, table, diagnostics, options.decision)
    warnings = (*matched, *(item.render() for item in diagnostics), *unpriced)
    found = Difference(same_trees=_are_equal(old.ensemble, new.ensemble))
    how = Options(backend="native", time_limit=options.time_limit, seed=options.seed, tolerance=options.near_enough)
    for score, sign, question in of_scores:
        if asked.stop.is_set():
            break
        result = _nothing_between(question) if found.same_trees else _searched(score, question, how, asked.stop)
        averaged = averages_probabilities(old.ensemble, new.ensemble)
        found.largest.append(Largest.of(question, result, score=score, sign=sign, of_probability=averaged))
    if options.decision is not None:
        asking = replace(how, backend="auto")
        found.outcomes = changed_outcomes(options.decision, of_outcomes, asking, asked.stop, same=found.same_trees)
    found.interrupted = asked.stop.is_set()
    if table is not None:
        question = of_scores[0][2]
        compare_rows(found, question)
        if labels is not None:
            found.prices = price_on_rows(question, labels, options.vary)
        if gaps and not asked.stop.is_set():
            found.sensitivities = changed_sensitivities(old, new, table, gaps, options, asked.stop)
            found.interrupted = asked.stop.is_set()
    record: DiffRecord = recorded(DiffRecord, found.record())
    open_parts = [score.status == Closeness.OPEN for score in record.scores]
    open_parts += [one.change == "unknown" for one in record.sensitivities or ()]
    open_parts += [one.verdict == "unknown" for one in record.outcomes or ()]
    evidence = [list(_evidence(found, (old.ensemble, new.ensemble)))]
    return Found([record], warnings, found.interrupted, not any(open_parts), found, evidence=evidence)


_MADE_UP = re.compile(r"(?:Column_|[fx])?(\d+)")
"""Names of columns that libraries generate: those of LightGBM, of XGBoost and ONNX, and of scikit-learn's exports."""


def by_position(
    old: LoadedModel, new: LoadedModel, table: Table | None
) -> tuple[LoadedModel, LoadedModel, tuple[str, ...]]:
    """The models with equal feature names, and notes: if one has only generated names, its features match by position. The
    names are those that the table has.
    """
    one, other = old.ensemble.feature_names, new.ensemble.feature_names
    made_up = _are_made_up(old), _are_made_up(new)
    if len(one) != len(other) or set(one) & set(other) or not any(made_up):
        return old, new, ()
    note = ("the models' features have different names, and are matched by position",)
    if made_up[1] or (table is not None and set(one) <= set(table.inputs)):
        return old, _renamed(new, one), note
    return _renamed(old, other), new, note


def _are_made_up(model: LoadedModel) -> bool:
    found = [_MADE_UP.fullmatch(name) for name in model.ensemble.feature_names]
    return all(match is not None and match[1] == str(i) for i, match in enumerate(found))


def _renamed(model: LoadedModel, names: Sequence[str]) -> LoadedModel:
    if model.ensemble.blend is not None:  # its members have names of their own
        return model
    features = tuple(replace(f, name=name) for f, name in zip(model.ensemble.features, names, strict=True))
    called = dict(zip(model.ensemble.feature_names, names, strict=True))
    protected = tuple(called[name] for name in model.meaning.protected)
    meaning = replace(model.meaning, protected=protected)
    return replace(model, ensemble=replace(model.ensemble, features=features), meaning=meaning)


def _evidence(found: Difference, models: tuple[Ensemble, ...]) -> Iterator[Evidence]:
    """Evidence for equality or for the largest difference of every score in both directions, and evidence for all changes."""
    if found.same_trees:
        yield Equal("the models are equal", models, ())
    elif found.verdict == "equal" and not any(one.of_probability for one in found.largest):
        yield Equal("the models are equal", (), [one.query for one in found.largest])
    else:
        for one in found.largest:
            yield Best(f"the largest difference {one.way} of {one.score}", one.query, one.result)
    for change in found.outcomes or ():
        yield Answered(f"{change.record.old} becomes {change.record.new}", change.query, change.result)
    for turned in found.sensitivities or ():
        yield turned.evidence()


def _searched(score: str, question: ResolvedQuestion, options: Options, stop: threading.Event) -> Result:
    return answered(
        f"the difference of {score}",
        partial(best, question.query, options, Budget.of(options.time_limit, stop)),
        partial(Result, question.query.name, Verdict.UNKNOWN),
    )


def _are_equal(old: Ensemble, new: Ensemble) -> bool:
    """True if two models are the same, tree by tree; the names of their files may differ."""
    mine = [f.name for f in fields(Ensemble) if f.name not in {"name", "source"}]
    return all(_is_same(getattr(old, name), getattr(new, name)) for name in mine)


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
    return bool(one == other)


def _nothing_between(question: ResolvedQuestion) -> Result:
    """The largest difference between two equal models, which is 0."""
    goal = question.query.objective
    zero = ObjectiveValue(0.0, 0.0, Sense.MAXIMIZE, "prob" if goal is None else goal.kind)
    return conclude_found(leave_open(question.query.name, objective=zero), "the models are equal, tree by tree")


def compare_rows(found: Difference, question: ResolvedQuestion) -> None:
    """Adds the largest difference on rows, and the rows that the models decide differently."""
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
    """The labels of a table with their groups, or a note on why prices are missing. Raises UsageError or DataError if groups
    are requested but prices cannot be computed.
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
    """The price of the second model on the rows of the question; flipping rows are counted if `varied` names features."""
    old, new = (model.ensemble for model in question.query.models)
    rows = question.rows["d"]
    names = sorted({name for group in varied or () for name in group})
    moved = Moved.of([old.feature_names.index(name) for name in names], rows) if names else None
    return price_of(old, new, replace(labels, rows=rows), moved)


def _by_rounding(ensembles: Sequence[Ensemble], rows: FloatArray, apart: FloatArray) -> BoolArray:
    """True for rows whose exact sums are equal while the libraries' rounded sums differ, bool[rows]."""
    result = np.zeros(len(rows), dtype=np.bool_)
    if averages_probabilities(*ensembles) or any(e.blend is not None for e in ensembles):
        return result
    # If sums are farther apart than both numerical bands together, the exact sums differ too.
    near = np.flatnonzero((apart > 0) & (apart <= 2 * sum(float(e.band()) for e in ensembles)))
    if len(near):
        one, other = (e.margins_exact(rows[near]) for e in ensembles)
        result[near] = (one == other).all(axis=1)
    return result


def _scores(ensemble: Ensemble, rows: FloatArray) -> FloatArray:
    """The raw scores of `rows` in the library's arithmetic, float64[rows, outputs]."""
    return np.asarray(ensemble.margins_emulated(rows), dtype=np.float64)


def _classes(question: ResolvedQuestion, number: int, scores: FloatArray, rows: FloatArray) -> Int64Array | FloatArray:
    """The class that a model predicts for every row; for a regressor, the values themselves."""
    e = question.query.models[number].ensemble
    if not e.classes:
        return scores[:, 0]
    return e.predicted_classes(scores, rows)


def check_comparable(old: Ensemble, new: Ensemble) -> None:
    """Raises UsageError for models whose scores, calibrations or classes differ in kind."""
    for ensemble in (old, new):
        check_votes(ensemble, "a difference")
    if averages_probabilities(old, new):
        _check_probabilities(old, new)
        return
    if old.n_outputs != new.n_outputs or not old.link.is_like(new.link) or old.task is not new.task:
        raise UsageError(
            f"the scores of the models are not of one kind: {old.task.value} with {old.n_outputs} {old.link.name} "
            f"outputs, {new.task.value} with {new.n_outputs} {new.link.name}",
            remedy="compare versions of one model",
        )
    if old.link != new.link:
        raise UsageError(
            "the models are calibrated in different ways, so that equal scores mean different probabilities",
            remedy="compare the inner models, or ask in a file: `prob(a) - prob(b)`",
        )
    if tuple(map(str, old.classes)) != tuple(map(str, new.classes)):
        raise UsageError("the models have different classes", remedy="compare versions of one model")


def averages_probabilities(old: Ensemble, new: Ensemble) -> bool:
    """True if one of the models averages the probabilities of several models, so that probabilities are compared."""
    return old.link.averages or new.link.averages


def _check_probabilities(old: Ensemble, new: Ensemble) -> None:
    for ensemble in (old, new):
        if not ensemble.classes or not (predicts_probabilities(ensemble) or ensemble.link.is_probability):
            raise UsageError(
                "one model averages probabilities, and the other predicts no probabilities",
                remedy="compare versions of one model",
            )
    if tuple(map(str, old.classes)) != tuple(map(str, new.classes)):
        raise UsageError("the models have different classes", remedy="compare versions of one model")


def questions_of_difference(
    old: LoadedModel,
    new: LoadedModel,
    table: Table | None,
    diagnostics: Diagnostics,
    decision: ast.Decision | None,
) -> tuple[list[tuple[str, int, ResolvedQuestion]], list[ResolvedQuestion]]:
    """The question for the largest difference, for every score and direction, and the questions about the outcomes of a
    decision. Both points of a question are the same input, read by the old and by the new model.
    """
    one, two = ast.Name("old"), ast.Name("new")
    classes, averaged = old.ensemble.classes, averages_probabilities(old.ensemble, new.ensemble)
    outputs = range(len(classes) if averaged else old.ensemble.n_outputs)
    if averaged and len(classes) == 2:
        outputs = range(1, 2)
    units = [(output, sign) for output in outputs for sign in (1, -1)]
    queries = []
    for number, (output, sign) in enumerate(units):
        first, second = (score_of(old.ensemble, point, output, averaged=averaged) for point in (_A, _B))
        apart = ast.Sum((first, ast.Negate(second)) if sign > 0 else (second, ast.Negate(first)))
        more, goal = largest_of(apart, averaged=averaged)
        find = ast.Find((ast.Point(_A, one), ast.Point(_B, two)), (ast.PointsEqual(_A, _B, None), *more), goal)
        queries.append(ast.Query(ast.Name(f"q{number}"), find))
    data = () if table is None else (ast.Data(ast.Name("d"), ast.Text("d")), ast.DomainFrom(ast.Name("d")))
    models = (ast.Model(one, ast.Text("old")), ast.Model(two, ast.Text("new")))
    policy = () if decision is None else (decision,)
    of_outcomes = [] if decision is None else queries_of(decision, one, two)
    bound = bind(
        ast.File((*models, *data, *policy, *queries, *of_outcomes)),
        Path(),
        load_model=lambda path, _format: old if path.name == "old" else new,
        load_table=lambda _path, _label, _rows: table,  # type: ignore[arg-type, return-value]
        diagnostics=diagnostics,
    ).queries
    names = [str(classes[i]) if classes else f"output {i}" for i, _ in units]
    if len(outputs) == 1:
        names = ["probability" if averaged else "score"] * len(units)
    scores = zip(names, (sign for _, sign in units), bound[: len(units)], strict=True)
    return list(scores), list(bound[len(units) :])


@dataclass(frozen=True, eq=False)
class ChangedOutcome:
    """A change from one outcome to another: the record, the question, and its answer."""

    record: OutcomeChange
    query: Query
    result: Result


def queries_of(decision: ast.Decision, old: ast.Name, new: ast.Name) -> list[ast.Query]:
    """One question for every ordered pair of outcomes; its two points are one input, read by the old and the new model."""
    outcome_events(decision)  # raises UsageError for a single outcome
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
    """All ordered pairs of different outcomes."""
    return list(permutations(outcomes(decision), 2))


def changed_outcomes(
    decision: ast.Decision,
    questions: Sequence[ResolvedQuestion],
    options: Options,
    stop: threading.Event,
    *,
    same: bool,
) -> list[ChangedOutcome]:
    """The changes of outcome that were answered before the study was stopped. `same` is True if the models are equal."""
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
            changed_rows=None if rows is None else rows[1][:LISTED],
            seconds=round(time.perf_counter() - start, 6),
        )
        found.append(ChangedOutcome(record, question.query, result))
    return found


def _nothing(question: ResolvedQuestion) -> Result:
    """The answer for equal models: no outcome changes."""
    return conclude_none(leave_open(question.query.name), "the models are equal, tree by tree")


def changed_rows(question: ResolvedQuestion, before: str, after: str) -> tuple[int, list[int]] | None:
    """The number of rows that are legal inputs, and the indices of the rows with this change; None without a table."""
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
    """The change for one set of features at one gap: the records of both audits, and one question of each audit."""

    old: dict[str, Any]
    new: dict[str, Any]
    queries: tuple[Query, Query] | None = None

    @property
    def change(self) -> str:
        """`appears`, `goes` (disappears), `stays`, `never` (proved for both versions), or `unknown` if an answer is open."""
        return _WORDS.get((self.old["verdict"], self.new["verdict"]), "unknown")

    def evidence(self) -> Evidence:
        """The evidence for the findings of both audits, each with its certificate."""
        title = f"the sensitivity to {', '.join(self.new['varied'])} {size_of_record(self.new)}: {self.change}"
        if self.change == "unknown" or self.queries is None:
            return Open(title, "one of the answers is open")
        parts = []
        for query, record in zip(self.queries, (self.old, self.new), strict=True):
            made = [c for c in certified_of(record) if c.claim == record["verdict"]]
            if not made:
                return Open(title, "an answer without a certificate")
            parts.append((query, made))
        return Made(title, parts)

    def record(self) -> dict[str, Any]:
        """The change as a dict for JSON; the pairs are in the user's own labels."""
        about = {name: fact for name, fact in self.new.items() if name in _ABOUT}
        old, new = ({name: side.get(name) for name in _KEPT} for side in (self.old, self.new))
        return {**about, "change": self.change, "old": old, "new": new}


def changed_sensitivities(
    old: LoadedModel,
    new: LoadedModel,
    table: Table,
    gaps: Sequence[Gap],
    options: DiffOptions,
    stop: threading.Event,
) -> list[ChangedSensitivity]:
    """The audits of both models over one table: the questions that both audits answered before the study was stopped. By
    default, every feature that a tree of one of the models splits on is audited.
    """
    mine = AuditOptions(
        time_limit=options.set_limit,
        seed=options.seed,
        tolerance=options.near_enough,
        certificates=options.certificates,
    )
    groups = options.vary if options.vary is not None else list(dict.fromkeys(sets_of(old, None) + sets_of(new, None)))
    audits = [audit(m, table, varied=groups, gaps=gaps, options=mine, stop=stop) for m in (old, new)]
    both = [{_key(item): item for item in one.records} for one in audits]
    one, other = (made.query for made in audits)
    queries = None if one is None or other is None else (one, other)
    found = [ChangedSensitivity(item, both[1][key], queries) for key, item in both[0].items() if key in both[1]]
    return sorted(found, key=lambda one: not one.new.get("protected"))


def _key(record: dict[str, Any]) -> tuple[object, ...]:
    """The key of a record: its features, gap and classes."""
    return (*record["varied"], record.get("gap"), record.get("margin"), *map(str, record.get("classes", ())))
