"""Explains the classes of rows: features whose values alone decide the class, and changes that give another class.

The search is in `extensions/answers/reasons.py`. Options add the box of values around a reason within which the class is the
same, the distance to the nearest input of another class, the cheapest change, and the attributions of TreeSHAP.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query
from treesens.compiler.result import Region, answered
from treesens.errors import UsageError
from treesens.extensions.answers.decisions import RowDecisions
from treesens.extensions.answers.reasons import RowReason, Wanted, reason_of
from treesens.extensions.methods.fewest_changes import Features
from treesens.extensions.studies.contributions import Contributions
from treesens.extensions.studies.evidence import Change, Evidence, Open
from treesens.extensions.studies.evidence import Reason as Because
from treesens.extensions.studies.limits import Limits
from treesens.extensions.studies.robust_search import RowQuestions, nearest_input
from treesens.extensions.studies.study import Asking, Found
from treesens.extensions.studies.why import ALSO, DistanceRecord, ShapRecord, WhyOptions, WhyRecord
from treesens.grammar.tree import ast
from treesens.records.answers import label_of, points_of, region_of
from treesens.records.plain import ABSENT
from treesens.solve.options import Options
from treesens.solve.question import answer
from treesens.values.verify import Witness, verify_cells


@dataclass(frozen=True)
class Reason:
    """The reason for the class of a row. `features` decide the class (None if the usable features do not); `minimal` is True if
    every feature is needed, and `smallest` if no smaller set decides the class. `contrast` names features whose change to
    `point` gives another class; if changes are restricted, `changeable` states whether a permitted change does so. `several`
    holds the smallest reasons if several are requested, `complete` is True if no others exist, and `also` holds more results.
    """

    row: int
    predicted: str
    features: dict[str, Any] | None
    minimal: bool
    smallest: bool
    contrast: tuple[str, ...] | None
    point: dict[str, Any] | None
    decisions: int
    reason: str
    seconds: float
    several: tuple[dict[str, Any], ...] | None = None
    complete: bool = False
    changeable: bool | None = None
    class_name: str | None = None
    also: dict[str, Any] | None = None
    decision: str | None = None
    """The name of the decision if `predicted` is an outcome of the decision instead of a class."""
    others: Sequence[Query] = ()
    """One question for each of the other classes."""
    cells: Int32Array | None = None

    def evidence(self) -> Iterator[Evidence]:
        """The evidence for the reason, for its minimality, and for the change; additional results have no certificates."""
        title = f"why row {self.row}"
        if self.features is None or self.cells is None:
            yield Open(title, self.reason or "no reason was found")
            return
        names = self.others[0].space.names
        for reason in (self.features,) if self.several is None else self.several:
            yield Because(title, self.others, self.cells, [names.index(name) for name in reason], self.smallest)
        if self.several is not None and self.complete:
            yield Open(f"{title}: no other reasons exist", "the absence of other reasons has no certificate")
        if self.contrast is not None:
            yield Change(f"{title}: the change", self.others, self.cells, [names.index(name) for name in self.contrast])
        if self.changeable is not None:
            yield Open(f"{title}: the permitted changes", "no statement covers the permitted changes")
        for word in ("box", "radius", "recourse"):
            if (self.also or {}).get(word) is not None:
                yield Open(f"{title}: {word}", f"`{word}` has no certificate")

    def record(self) -> WhyRecord:
        """The reason as a record."""
        return WhyRecord(
            row=self.row,
            class_=self.predicted,
            class_name=ABSENT if self.class_name is None else self.class_name,
            decision=ABSENT if self.decision is None else self.decision,
            sufficient=self.features,
            minimal=self.minimal,
            smallest=self.smallest,
            reasons=ABSENT if self.several is None else list(self.several),
            complete=ABSENT if self.several is None else self.complete,
            contrast=None if self.contrast is None else list(self.contrast),
            changeable=ABSENT if self.changeable is None else self.changeable,
            point=self.point,
            **(self.also or {}),
            decisions=self.decisions,
            reason=self.reason,
            seconds=round(self.seconds, 6),
        )


def _no_reason(row: int, why: str = "") -> Reason:
    """The record of a row about which nothing is known."""
    return Reason(row, "", None, False, False, None, None, 0, why, 0.0)


class _Study:
    """The reasons for rows of one table, with one binding of the model."""

    def __init__(self, questions: RowQuestions, wanted: WhyOptions, stop: threading.Event | None) -> None:
        self.questions, self.asked, self.stop = questions, wanted, stop
        self.space = questions.of_class[0].query.space
        self.ensemble = questions.of_class[0].models[0].ensemble
        names = self.space.names
        protected = questions.model.meaning.protected
        held = frozenset((*wanted.without, *wanted.fixed, *protected))
        self.limits = Limits(held, wanted.direction, wanted.permitted)
        self.limits.check(self.space)
        self.limited = any(True for _ in self.limits.names)
        for word in wanted.also:
            if word not in ALSO:
                raise UsageError(f"`{word}` cannot be shown with a reason", remedy="use " + ", ".join(ALSO))
        if "shap" in wanted.also and questions.decision is not None and self.ensemble.n_outputs > 1:
            raise UsageError(
                "TreeSHAP explains one score, but this decision's model has several scores", remedy="leave out `shap`"
            )
        if "shap" in wanted.also:
            self.contributions.of(questions.rows[0], 0)  # errors are raised before the first row
        used = questions.model.ensemble.used_features
        self.wanted = Wanted(
            order=sorted(range(len(names)), key=lambda f: (names[f] in used, f)),
            smallest=wanted.smallest,
            most=wanted.most,
            barred=frozenset(names.index(name) for name in wanted.without),
            held=frozenset(map(names.index, held)),
            box="box" in wanted.also,
        )

    @cached_property
    def contributions(self) -> Contributions:
        return Contributions(self.ensemble, self.questions.rows)

    def row(self, row: int) -> Reason:
        """The reason for the class of a row."""
        start = time.perf_counter()
        questions, options = self.questions, self.asked
        budget = Budget.of(options.time_limit, self.stop)
        predicted = questions.predicted(row)
        bare = _no_reason(row)
        if predicted is None:
            return replace(bare, reason="a value is missing, and the domain does not allow this")
        label = questions.labels[predicted]
        bare = replace(bare, predicted=label)
        if questions.decision is None:
            bare = replace(bare, class_name=questions.model.meaning.classes.get(label))
        else:
            bare = replace(bare, decision=questions.decision.name.text)
        cells = self.space.grid.cells(questions.rows[row : row + 1])[0].astype(np.int32)
        outside = [self.space.names[f] for f, cell in enumerate(cells) if not self.space.legal[f][cell]]
        if outside:
            return replace(bare, reason=f"`{outside[0]}` lies outside its domain")
        others = [asked.query for c, asked in enumerate(questions.of_class) if c != predicted]
        bare = replace(bare, others=others, cells=cells)
        judge = RowDecisions(others, cells, budget, Options(time_limit=options.time_limit, seed=options.seed), answer)
        known = reason_of(judge, self.wanted, self._changes(row, predicted, judge))
        found = self._told(known, row, replace(bare, reason=budget.reason if known.open else ""))
        found = replace(found, also=self._beside(known, row, predicted) if self.asked.also else None)
        return replace(found, decisions=judge.decisions, seconds=time.perf_counter() - start)

    def _allowed(self, row: int) -> tuple[ast.Formula, ...]:
        """The constraints on a change of a row."""
        return tuple(self.limits.formulas(self.space, row, self.questions.rows[row]))

    def _changes(self, row: int, predicted: int, judge: RowDecisions) -> RowDecisions | None:
        """The decisions about permitted changes; None if the only limits are features that stay fixed."""
        if not self.limits.bounded:
            return None
        others = [asked.query for asked in self.questions.others(predicted, self._allowed(row))]
        cells = others[0].space.grid.cells(self.questions.rows[row : row + 1])[0].astype(np.int32)
        return RowDecisions(others, cells, judge.budget, judge.options, answer)

    def _told(self, known: RowReason, row: int, bare: Reason) -> Reason:
        """The known reason, with feature names and category labels."""
        several = tuple(self._shown(one, row) for one in known.several)
        if known.other is not None and known.contrast is not None:
            query, cells = known.other
            witness = verify_cells(query, cells, near=self.questions.rows[row])
            bare = replace(bare, point=points_of(query, witness)["a"] if isinstance(witness, Witness) else None)
        if known.within is not None:
            bare = replace(bare, reason="the class depends on features that are left out")
        return replace(
            bare,
            features=several[0] if several else None,
            minimal=bool(several),
            smallest=known.smallest,
            contrast=None if known.contrast is None else tuple(self.space.names[f] for f in sorted(known.contrast)),
            changeable=None if not self.limited or known.open else known.contrast is not None,
            several=several if self.asked.most > 1 else None,
            complete=known.complete,
        )

    def _shown(self, features: Features, row: int) -> dict[str, Any]:
        """The values of a row by feature."""
        space, values = self.space, self.questions.rows[row]
        return {
            space.names[f]: label_of(space.domains[f], float(values[f]), space.grid[f].number_type.dtype)
            for f in sorted(features)
        }

    def _beside(self, known: RowReason, row: int, predicted: int) -> dict[str, Any]:
        """The additional results requested with the reason, by name."""
        found: dict[str, Any] = {}
        if "box" in self.asked.also:
            found["box"] = self._box(known)
        for word, norm in (("radius", "linf"), ("recourse", "l1")):
            if word in self.asked.also:
                found[word] = self._nearest(row, predicted, norm, word)
        if "shap" in self.asked.also:
            found["shap"] = self._shap(known, row, predicted)
        return found

    def _box(self, known: RowReason) -> dict[str, list[Any]] | None:
        """The box around the reason within which the class is the same, in the form of an answer's region."""
        if known.box is None:
            return None
        masks = tuple(known.box.get(f, legal) for f, legal in enumerate(self.space.legal))
        query = self.questions.of_class[0].query
        return region_of(query, Region((masks,), frozenset())).get(query.points[0].name, {})

    def _nearest(self, row: int, predicted: int, norm: str, word: str) -> DistanceRecord:
        """The nearest input of another class, measured by a norm, with its changes."""
        limits = self.asked
        mine = Options(time_limit=limits.time_limit, seed=limits.seed, regions=False)
        more = self._allowed(row) if word == "recourse" and self.limited else ()
        found = nearest_input(self.questions, row, predicted, mine, norm=norm, more=more, stop=self.stop)
        own = self._shown(frozenset(range(len(self.space.names))), row)
        changes = [] if found.point is None else [name for name, value in found.point.items() if value != own[name]]
        bound = None if found.bound is None or math.isinf(found.bound) else found.bound
        return DistanceRecord(
            norm=norm,
            verdict=str(found.verdict),
            distance=found.distance,
            bound=bound,
            closed=found.closed,
            changes=changes,
            point=found.point,
        )

    def _shap(self, known: RowReason, row: int, predicted: int) -> ShapRecord:
        """TreeSHAP values, and the share of the reason's n features that is among the n features with the greatest values."""
        output = predicted if self.ensemble.n_outputs > 1 else 0
        values = self.contributions.of(self.questions.rows[row], output)
        order = np.argsort(-np.abs(values), kind="stable")
        agreement = None
        if known.several and known.several[0]:
            reason = known.several[0]
            agreement = len(reason & set(order[: len(reason)].tolist())) / len(reason)
        return ShapRecord(values={self.space.names[f]: float(values[f]) for f in order}, agreement=agreement)


def ask(asked: Asking[WhyOptions]) -> Found[WhyRecord]:
    """Finds a reason for every row. If the event `stop` is set, the rows answered so far are returned.

    Raises UsageError for unknown rows and features, and for parts that cannot be shown with a reason.
    """
    options, table = asked.options, asked.table
    assert table is not None
    wanted = range(table.rows) if options.rows is None else options.rows
    questions = RowQuestions(asked.model, table, domain=options.range, seed=options.seed, decision=options.decision)
    study, found = _Study(questions, options, asked.stop), list[Reason]()
    for row in wanted:
        if not 0 <= row < table.rows:
            raise UsageError(f"the table has no row {row}", remedy=f"its rows are 0 to {table.rows - 1}")
        if asked.stop.is_set():
            break
        found.append(answered(f"row {row}", partial(study.row, row), partial(_no_reason, row)))
        asked.advance(found[-1])
    warnings = tuple(item.render() for item in questions.session.warnings)
    records = [one.record() for one in found]
    decided = all(one.sufficient is not None for one in records)
    evidence = [list(one.evidence()) for one in found]
    return Found(records, warnings, len(found) < len(wanted), decided, found, evidence=evidence)
