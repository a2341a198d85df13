"""Computes the distance of rows to another class: a verified nearest input for each row, and a proof that no input is nearer.

Each row has one question, `find a such that class(a) != C minimize distance(a, row N of d, NORM)`; the model and the table
are bound once, and the questions about one class are compiled once.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from treesens.binder.constructs.decided import outcomes
from treesens.binder.file import ResolvedQuestion
from treesens.binder.session import Session
from treesens.compiler.base.budget import Budget
from treesens.compiler.model.evaluate import LibraryReplay
from treesens.compiler.query.evaluate import holds, inputs_of
from treesens.compiler.query.query import Query
from treesens.compiler.result import Proof, Verdict, answered
from treesens.data.tables import Table, align_table
from treesens.errors import UsageError
from treesens.extensions.studies.decisions import label_of_class
from treesens.extensions.studies.events import is_decided
from treesens.extensions.studies.evidence import Beyond, Evidence, Open
from treesens.extensions.studies.questions import declarations_of
from treesens.extensions.studies.robust import RobustOptions, RobustRecord, TargetRecord
from treesens.extensions.studies.running import Memory, library_of
from treesens.extensions.studies.study import Asking, Found
from treesens.frontends.base import LoadedModel
from treesens.grammar.printing.printer import identity
from treesens.grammar.tree import ast
from treesens.records.answers import points_of
from treesens.records.plain import ABSENT
from treesens.solve.options import Options
from treesens.solve.question import answer

_A = ast.Name("a")


@dataclass(frozen=True)
class Nearest:
    """The findings about the nearest input of another class: `point` is verified at `distance`, and no input is nearer than
    `bound` (infinite if no such input exists). `target` is the requested class, or None for any other class.
    """

    target: str | None
    verdict: Verdict
    distance: float | None
    bound: float | None
    point: dict[str, Any] | None
    reason: str

    @property
    def closed(self) -> bool:
        """True if value and bound agree (up to a millionth for sums of costs), or if no such input exists."""
        if self.verdict is Verdict.NONE:
            return True
        if self.distance is None or self.bound is None:
            return False
        # A search that ends at a gap of a millionth rounds both numbers once more.
        return self.distance - self.bound <= max(1e-9, 1.001e-6 * self.distance)

    def record(self) -> dict[str, Any]:
        """The findings as a dict for JSON."""
        return {
            "target": self.target,
            "verdict": str(self.verdict),
            "distance": self.distance,
            "bound": None if self.verdict is Verdict.NONE else self.bound,
            "closed": self.closed,
            "point": self.point,
            "reason": self.reason,
        }

    @staticmethod
    def of_record(record: Mapping[str, Any]) -> Nearest:
        """Rebuilds the findings from the dict that `record` returns."""
        verdict = Verdict(record["verdict"])
        bound = math.inf if verdict is Verdict.NONE else record["bound"]
        return Nearest(record["target"], verdict, record["distance"], bound, record["point"], record["reason"])


def nearest_of(targets: Sequence[Nearest]) -> Nearest:
    """The nearest input of any of several classes."""
    found = [one for one in targets if one.distance is not None]
    bounds = [one.bound for one in targets]
    bound = None if None in bounds else min(b for b in bounds if b is not None)
    if found:
        best = min(found, key=lambda one: one.distance or 0.0)
        return replace(best, target=None, bound=bound)
    left = [one for one in targets if one.verdict is not Verdict.NONE]
    return replace(left[0] if left else targets[0], target=None, bound=bound)


@dataclass(frozen=True)
class RowRobustness:
    """The findings about one row. `point` is verified at `distance`, and no input of another class is nearer than `bound`
    (infinite if none exist). `reason` says why point and bound are None. `targets` holds the findings for each class.
    """

    row: int
    predicted: str
    verdict: Verdict | None
    distance: float | None
    bound: float | None
    point: dict[str, Any] | None
    reason: str
    seconds: float
    correct: bool | None = None
    targets: tuple[Nearest, ...] = ()
    queries: tuple[Query, ...] = ()
    """The questions about the targets, or about any other class, if certificates are requested."""

    def evidence(self) -> Iterator[Evidence]:
        """The evidence that no input of another class is nearer than its bound."""
        if self.verdict is None or not self.queries:
            yield Open(f"row {self.row}", self.reason or "nothing is known")
            return
        known = self.targets or (Nearest(None, self.verdict, self.distance, self.bound, self.point, self.reason),)
        for one, query in zip(known, self.queries, strict=True):
            title = f"row {self.row}" + ("" if one.target is None else f", class {one.target}")
            yield Beyond(title, query, one.bound, one.reason)

    @property
    def closed(self) -> bool:
        """True if value and bound agree for all questions about the row, or if no such input exists."""
        if self.verdict is None:
            return False
        whole = Nearest(None, self.verdict, self.distance, self.bound, self.point, self.reason)
        return whole.closed and all(one.closed for one in self.targets)

    def certified(self, radius: float) -> bool:
        """True if a proof excludes inputs of another class within a radius."""
        return self.verdict is Verdict.NONE or (self.bound is not None and self.bound > radius)

    def record(self) -> RobustRecord:
        """The row as a record."""
        return RobustRecord(
            row=self.row,
            class_=self.predicted,
            correct=self.correct,
            verdict=None if self.verdict is None else str(self.verdict),
            distance=self.distance,
            bound=None if self.verdict is Verdict.NONE else self.bound,
            closed=self.closed,
            point=self.point,
            reason=self.reason,
            targets=[TargetRecord(**one.record()) for one in self.targets] or ABSENT,
            seconds=round(self.seconds, 6),
        )


@dataclass
class Robustness:
    """The rows in the order of the request, without the rows that were not tried."""

    rows: list[RowRobustness] = field(default_factory=list)

    def certified(self, radius: float) -> float:
        """The share of rows whose prediction is proved robust at a radius; wrongly predicted rows never count as robust."""
        judged = [row for row in self.rows if row.verdict is not None]
        good = [row for row in judged if row.certified(radius) and row.correct is not False]
        return len(good) / len(judged) if judged else 0.0

    def curve(self) -> list[tuple[float, float]]:
        """Every radius at which the certified share drops, ascending from 0, with the share from this radius on."""
        bounds = {row.bound for row in self.rows if row.bound is not None and math.isfinite(row.bound)}
        return [(radius, self.certified(radius)) for radius in sorted({0.0, *bounds})]

    @property
    def labelled(self) -> bool:
        """True if labels state which rows the model predicts correctly."""
        return any(row.correct is not None for row in self.rows)


class RowQuestions:
    """The questions about single rows of a table, with one binding of the model."""

    def __init__(
        self,
        model: LoadedModel,
        table: Table,
        *,
        domain: tuple[Fraction, Fraction] | None = None,
        norm: str = "linf",
        seed: int = 0,
        decision: ast.Decision | None = None,
    ) -> None:
        if not model.ensemble.classes and decision is None:
            raise UsageError("a regressor has no classes", remedy="ask about its value in a file: `value(a) >= ..`")
        self.decision = decision
        self.labels = list(map(str, model.ensemble.classes)) if decision is None else outcomes(decision)
        """The possible answers for a row: the classes, or the outcomes of the decision."""
        self.model, self.table, self.norm, self.seed = model, align_table(model, table), norm, seed
        self._declared = (*_declarations(model, domain), *(() if decision is None else (decision,)))
        self.session = Session(
            ast.File((*self._declared, ast.Query(ast.Name("q"), self._find(0, 0)))),
            Path(),
            load_model=lambda _path, _format: model,
            load_table=lambda _path, _label, _rows: self.table,
        )
        # One question per class is bound, which defines the class.
        self.of_class = [self._bound(ast.Find((ast.Point(_A),), (self._is(c),))) for c in range(len(self.labels))]
        self.rows = self._bound(self._find(0, 0)).rows["d"]

    def _is(self, index: int) -> ast.Formula:
        """The formula stating that the point `a` has a class, or an outcome."""
        if self.decision is not None:
            return is_decided("a", self.decision, self.labels[index])
        return ast.ClassIs(_A, label_of_class(self.model.ensemble, index))

    def _is_not(self, index: int) -> ast.Formula:
        if self.decision is not None:
            return ast.Not(self._is(index))
        return ast.Comparison(ast.ClassOf(_A), "!=", label_of_class(self.model.ensemble, index))

    def _find(
        self,
        index: int,
        row: int,
        *,
        target: int | None = None,
        norm: str | None = None,
        more: Sequence[ast.Formula] = (),
    ) -> ast.Find:
        """The question for the nearest input that satisfies `more` and has class `target` (if None, any class but `index`)."""
        other = self._is_not(index) if target is None else self._is(target)
        to_row = ast.Distance(_A, ast.Row(ast.Whole(row), ast.Name("d")), norm or self.norm)  # type: ignore[arg-type]
        return ast.Find((ast.Point(_A),), (other, *more), ast.Objective("minimize", to_row))

    def _bound(self, find: ast.Find) -> ResolvedQuestion:
        return self.session.bind(ast.Query(ast.Name("q"), find))

    def predicted(self, row: int) -> int | None:
        """The class of a row in exact arithmetic; None if a missing value is not allowed."""
        values = self.rows[row : row + 1]
        grids = self.of_class[0].query.space.grid
        if any(np.isnan(v) and not grid.missing for v, grid in zip(values[0], grids, strict=True)):
            return None
        x = inputs_of(self.of_class[0].query, values)
        for index, asked in enumerate(self.of_class):
            if all(holds(constraint, x) for constraint in asked.query.constraints):
                return index
        return None

    def question(
        self,
        row: int,
        predicted: int,
        target: int | None = None,
        norm: str | None = None,
        more: Sequence[ast.Formula] = (),
    ) -> ResolvedQuestion:
        """The question for the nearest input with a class other than `predicted` or, if given, with the class `target`."""
        return self._bound(self._find(predicted, row, target=target, norm=norm, more=more))

    def others(self, predicted: int, more: Sequence[ast.Formula]) -> list[ResolvedQuestion]:
        """For each class except `predicted`, the question for an input of the class that satisfies `more`."""
        others = (c for c in range(len(self.labels)) if c != predicted)
        return [self._bound(ast.Find((ast.Point(_A),), (self._is(c), *more))) for c in others]

    def identified(self, row: int, predicted: int, target: int | None = None) -> str:
        """The part of an answer's key that is not about the model or the table: the text of the question, and the seed."""
        find = identity(ast.Query(ast.Name("q"), self._find(predicted, row, target=target)))
        return f"{self._declarations}\0{find}\0{self.seed}"

    @cached_property
    def _declarations(self) -> str:
        return identity(ast.File(self._declared))


def _declarations(model: LoadedModel, given: tuple[Fraction, Fraction] | None) -> tuple[ast.Declaration, ...]:
    named = declarations_of(model, (), has_table=True)
    if given is None:
        return named
    low, high = given
    if low >= high:
        raise UsageError("the range is empty", remedy="pass the lower end of --range first")
    domain = ast.Numeric("real", ast.Interval(ast.Number(low), ast.Number(high)))
    numbers = [f.name for f in model.ensemble.features if not f.categories]
    kept = tuple(d for d in named if not isinstance(d, ast.DomainFrom | ast.Feature))
    return (*kept, *(ast.Feature(ast.Name(name), domain) for name in numbers))


def _labels(model: LoadedModel, table: Table) -> list[str] | None:
    """The labels of the table as texts; None if the table has no labels, or if a label is not a class of the model."""
    if table.label is None:
        return None
    known = {str(c) for c in model.ensemble.classes}
    found = [_plain(v) for v in table.columns[table.label]]
    return found if known.issuperset(found) else None


def _plain(value: Any) -> str:
    """A label as the text of a class: 1.0 becomes 1."""
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)


def _one(
    questions: RowQuestions,
    row: int,
    options: RobustOptions,
    truth: list[str] | None,
    predict: list[LibraryReplay] | None,
    memory: Memory | None,
    stop: threading.Event | None,
) -> RowRobustness:
    start = time.perf_counter()
    classes = questions.model.ensemble.classes
    predicted = questions.predicted(row)
    if predicted is None:
        return RowRobustness(row, "", None, None, None, None, "the domain does not allow the row's missing value", 0.0)
    asked = [c for c in range(len(classes)) if c != predicted] if options.targeted else [None]
    mine = Options(time_limit=options.time_limit, seed=options.seed, library_predict=predict, regions=False)
    found = [_nearest(questions, row, predicted, target, mine, memory, stop) for target in asked]
    best = nearest_of(found)
    reason = "" if best.verdict is Verdict.FOUND else best.reason
    seconds, name = time.perf_counter() - start, str(classes[predicted])
    known = RowRobustness(row, name, best.verdict, best.distance, best.bound, best.point, reason, seconds)
    known = replace(known, targets=tuple(found) if options.targeted else ())
    if options.certificates is not None:
        known = replace(known, queries=tuple(questions.question(row, predicted, c).query for c in asked))
    return known if truth is None else replace(known, correct=truth[row] == name)


def nearest_input(
    questions: RowQuestions,
    row: int,
    predicted: int,
    options: Options,
    *,
    target: int | None = None,
    norm: str | None = None,
    more: Sequence[ast.Formula] = (),
    stop: threading.Event | None = None,
) -> Nearest:
    """The findings about the nearest input that satisfies `more` and has class `target` (if None, any class but the row's)."""
    asked = questions.question(row, predicted, target, norm, more)
    result = answer(asked.query, options, Budget.of(options.time_limit, stop))
    if target is not None and result.verdict is Verdict.NONE and result.proof is Proof.LIBRARY:
        # Combined with the answers for other classes, this answer would mix two arithmetics (solve/combine.py).
        result = replace(result, verdict=Verdict.UNKNOWN, reason="numerical band: exact arithmetic has such inputs")
    goal, none = result.objective, result.verdict is Verdict.NONE
    return Nearest(
        None if target is None else str(questions.model.ensemble.classes[target]),
        result.verdict,
        None if goal is None else goal.value,
        math.inf if none else (None if goal is None else goal.bound),
        None if result.witness is None else points_of(asked.query, result.witness)["a"],
        "" if result.verdict is Verdict.FOUND else result.reason,
    )


def _nearest(
    questions: RowQuestions,
    row: int,
    predicted: int,
    target: int | None,
    options: Options,
    memory: Memory | None,
    stop: threading.Event | None,
) -> Nearest:
    """The answer to one question, or its answer from an earlier run."""
    key = "" if memory is None else questions.identified(row, predicted, target)
    record = memory.known(key) if memory is not None else None
    if record is not None:
        return Nearest.of_record(record)
    found = nearest_input(questions, row, predicted, options, target=target, stop=stop)
    # An open answer is kept if the time limit was the reason, but not if an interruption was.
    if memory is not None and (found.closed or stop is None or not stop.is_set()):
        memory.keep(key, str(found.verdict) if found.closed else "unknown", found.record())
    return found


def ask(asked: Asking[RobustOptions]) -> Found[RobustRecord]:
    """Finds the nearest input of another class for every row; `memory` holds answers of earlier runs. If the event `stop` is
    set, the rows answered so far are returned.

    Raises UsageError for rows that are not in the table.
    """
    options, model, table, stop = asked.options, asked.model, asked.table, asked.stop
    assert table is not None
    questions = RowQuestions(model, table, domain=options.range, norm=options.norm, seed=options.seed)
    wanted = range(table.rows) if options.rows is None else options.rows
    beyond = [row for row in wanted if not 0 <= row < table.rows]
    if beyond:
        raise UsageError(f"the table has no row {beyond[0]}", remedy=f"its rows are 0 to {table.rows - 1}")
    truth, predict, result, interrupted = _labels(model, table), library_of(model, options.replay), Robustness(), False
    for row in wanted:
        if stop.is_set():
            interrupted = True
            break
        found = answered(
            f"row {row}",
            partial(_one, questions, row, options, truth, predict, asked.memory, stop),
            partial(RowRobustness, row, "", None, None, None, None, seconds=0.0),
        )
        interrupted |= stop.is_set() and not found.closed
        result.rows.append(found)
        asked.advance(found)
    records, warnings = (
        [row.record() for row in result.rows],
        tuple(item.render() for item in questions.session.warnings),
    )
    evidence, closed = [list(row.evidence()) for row in result.rows], all(one.closed for one in records)
    return Found(records, warnings, interrupted, closed, result, evidence=evidence)
