"""Finds the principal reasons of denials: minimal sets of few features whose change alone makes the decision favourable.

First, all rows are swept at once: in each row, the feature that raises the score most is changed, then the next such feature,
until the decision is favourable. The other rows are searched one by one (`extensions/answers`). A smallest set of features that
suffices is a minimum hitting set of all sets of features that keep the decision if they do not change (implicit hitting sets:
Ignatiev, Narodytska, Asher and Marques-Silva, *From contrastive to abductive explanations and back again*, AIxIA 2020).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.query.bounds import least_units
from treesens.compiler.query.domain import ValueDomain
from treesens.compiler.query.evaluate import holds, inputs_of
from treesens.compiler.query.query import AtLeast, LinearForm, Query, pinned
from treesens.compiler.result import answered
from treesens.data.flips import flips
from treesens.data.rows import cells_of_rows
from treesens.data.tables import Table, align_table
from treesens.errors import UsageError
from treesens.extensions.answers.decisions import Other, RowDecisions
from treesens.extensions.methods.fewest_changes import Features, TimeUp, hitting_set
from treesens.extensions.studies.contributions import Contributions
from treesens.extensions.studies.decisions import favourable_clause
from treesens.extensions.studies.events import favourable_class
from treesens.extensions.studies.evidence import Answered, Change, Evidence, Open
from treesens.extensions.studies.evidence import Reason as Because
from treesens.extensions.studies.limits import Limits, permitted_cells
from treesens.extensions.studies.questions import bind_study, check_features, declarations_of
from treesens.extensions.studies.reasons import DenialRecord, PrincipalReason, ReasonOptions, read_codes
from treesens.extensions.studies.running import library_of
from treesens.extensions.studies.study import Asking, Found
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.records.answers import label_of
from treesens.records.plain import ABSENT
from treesens.solve.conclude import conclude_none, leave_open
from treesens.solve.options import Options
from treesens.solve.question import answer
from treesens.solve.tasks.data_rows import legal_rows
from treesens.values.verify import Witness, verify_cells

DEPENDS = "the decision also depends on features that are excluded as reasons (an input shows it)"
NOTHING_HELPS = "no change of the features that are allowed as reasons makes the decision favourable (proved)"


@dataclass(frozen=True)
class Known:
    """The findings about one denial."""

    features: Features = frozenset()
    other: Other | None = None
    suffice: str = "open"
    needed: int | None = None
    reason: str = ""


def ask(asked: Asking[ReasonOptions]) -> Found[DenialRecord]:
    """Finds the reasons of every denial."""
    assert asked.table is not None
    study = _Denials(asked.model, align_table(asked.model, asked.table), asked)
    records = []
    for place, row in enumerate(study.denied):
        if asked.stop.is_set():
            break
        records.append(answered(f"row {row}", partial(study.record, place), partial(study.unsettled, place)))
        asked.advance(records[-1])
    decided = all(one.suffice != "open" for one in records)
    evidence = [[study.evidence(record)] for record in records]
    favourable = str(asked.model.ensemble.classes[study.favourable])
    return Found(records, study.warnings, asked.stop.is_set(), decided, favourable, evidence=evidence)


class _Denials:
    """The denials of one table, and the search for their reasons."""

    def __init__(self, model: LoadedModel, table: Table, asked: Asking[ReasonOptions]) -> None:
        options = asked.options
        self.options, self.stop = options, asked.stop
        self.known: dict[int, tuple[Int32Array, Features]] = {}
        """For each row, its cells int32[features] and the features known to suffice."""
        names = model.ensemble.feature_names
        protected = options.protected or model.meaning.protected
        check_features(model, [protected])
        self.favourable = favourable_class(model.ensemble, options.favourable, model.meaning)
        if len(model.ensemble.classes) != 2:
            raise UsageError("principal reasons are supported only for two-class models", remedy="ask `treesens why`")
        if options.shap and model.ensemble.link.of_several:
            raise UsageError(
                "--shap divides one score among the features, but this model has several scores",
                remedy="leave out --shap, or ask about each inner model separately",
            )
        limits = Limits(frozenset(options.fixed), options.direction, options.permitted)
        if options.way == "values" and any(True for _ in limits.names):
            raise UsageError(
                "reasons by values have no changes to limit", remedy="leave out --fixed, --direction and --permitted"
            )
        used = set(model.ensemble.used_features)
        self.usable = frozenset(f for f, n in enumerate(names) if n in used and n not in (*protected, *options.fixed))
        self.names = model.meaning.classes
        self.every = frozenset(range(len(names)))
        diagnostics = Diagnostics()
        declared = declarations_of(model, options.real, has_table=True, domain=options.domain)
        favourable = favourable_clause(model.ensemble, self.favourable, options.threshold)

        def bound(*formulas: ast.Formula) -> ResolvedQuestion:
            find = ast.Find((ast.Point(ast.Name("a")),), formulas)
            (question,) = bind_study(model, table, (*declared, ast.Query(ast.Name("q"), find)), diagnostics)
            return question

        self.bound, self.limits, self.goal = bound, limits, favourable
        question = self.question = bound(favourable)
        space = question.query.space
        limits.check(space)
        labels = {
            name: domain.labels
            if isinstance(domain, ValueDomain) and any(isinstance(x, str) for x in domain.labels)
            else ()
            for name, domain in zip(space.names, space.domains, strict=True)
        }
        self.words = read_codes(options.codes, labels, [names[f] for f in sorted(self.usable)])
        self.ensemble = question.models[0].ensemble
        self.warnings = tuple(item.render() for item in diagnostics)
        self.library = library_of(model, options.replay)
        self.rows = question.rows["d"]
        self.denied = self._denied(table.rows)
        legal = set(legal_rows(question.query, self.rows).tolist())
        self.outside = [row not in legal for row in self.denied]
        self.cells = np.zeros((len(self.denied), len(names)), np.int32)
        inside = [place for place, out in enumerate(self.outside) if not out]
        if inside:
            self.cells[inside] = cells_of_rows(question.query.space.grid, self.rows[self.denied][inside])
        self.sweep = sweep_denials(
            question.query,
            self.cells,
            np.array(self.outside, np.bool_),
            sorted(self.usable),
            options.most,
            self.favourable,
            Budget.of(0 if limits.bounded else options.time_limit * max(1, len(self.denied)), asked.stop),
        )
        self.shap = Contributions(self.ensemble, self.rows) if options.shap and self.denied else None

    def _denied(self, count: int) -> list[int]:
        """The requested rows without the favourable decision; the decision is the library's own class, bit for bit, or is
        determined by the cut-off in exact arithmetic.
        """
        wanted = list(range(count)) if self.options.rows is None else list(self.options.rows)
        for row in wanted:
            if not 0 <= row < count:
                raise UsageError(f"the table has no row {row}", remedy=f"its rows are 0 to {count - 1}")
        if not wanted:
            return []
        if self.options.threshold is None:
            margins = np.asarray(self.ensemble.margins_emulated(self.rows[wanted]), dtype=np.float64)
            classes = self.ensemble.predicted_classes(margins)
            return [row for row, known in zip(wanted, classes.tolist(), strict=True) if known != self.favourable]
        return [row for row in wanted if not self._is_favourable(row)]

    def _is_favourable(self, row: int) -> bool:
        query = self.question.query
        x = inputs_of(query, self.rows[row : row + 1])
        return all(holds(constraint, x) for constraint in query.constraints)

    def record(self, place: int) -> DenialRecord:
        """The record of one denial, with its reasons."""
        start, row = time.perf_counter(), self.denied[place]
        if self.outside[place]:
            return replace(self.unsettled(place, "the row lies outside the domain"), seconds=0.0)
        if self.options.threshold is None and self._is_favourable(row):
            return self.unsettled(place, "the sum of the library and the exact sum lead to different decisions")
        options = Options(time_limit=self.options.time_limit, seed=self.options.seed, regions=False)
        budget = Budget.of(self.options.time_limit, self.stop)
        query, cells, sweep = self._question(place, budget)
        judge = RowDecisions([query], cells, budget, options, answer)
        known = self._settled(judge, place, sweep)
        witness = None if known.other is None else self._verified(known.other, row)
        if known.other is not None and witness is None:
            known = Known(reason="no input in these cells could be verified")
        self.known[row] = cells, known.features
        ranked = sorted(known.features, key=lambda f: (-int(sweep.rises[0, f]), f))[: self.options.most]
        return DenialRecord(
            row=row,
            decision=self._decision(row),
            decision_name=self.names.get(self._decision(row), ABSENT),
            reasons=[self._reason(f, place, witness, sweep) for f in ranked],
            suffice=known.suffice,
            needed=known.needed,
            reason=known.reason,
            proof=None if known.suffice == "open" else str(judge.proof),
            replay=None if witness is None else str(witness.replay),
            shap=ABSENT if self.shap is None else self._against(row),
            seconds=round(time.perf_counter() - start, 6),
        )

    def evidence(self, record: DenialRecord) -> Evidence:
        """The evidence that the reasons of a denial suffice and that no reason can be left out, or that no change helps."""
        title, query = f"the reasons of row {record.row}", self.question.query
        if record.row not in self.known or record.suffice == "open":
            return Open(title, record.reason or "no reasons were found")
        if self.limits.bounded:
            return Open(title, "no statement covers the permitted changes")
        cells, features = self.known[record.row]
        if record.suffice == "yes":
            if self.options.way == "values":
                return Because(title, [query], cells, features)
            return Change(title, [query], cells, features, minimal=True)
        if record.reason == NOTHING_HELPS:
            none = conclude_none(leave_open(query.name), record.reason)
            return Answered(title, pinned(query, cells, self.every - self.usable), none)
        return Open(title, f"that {record.reason.removesuffix(' (proved)')} has no certificate")

    def _settled(self, judge: RowDecisions, place: int, sweep: Sweep) -> Known:
        """The finding: a minimal set of features whose change suffices, or a proof that no set of `most` features suffices."""
        known = Known()
        if self.options.way == "values":
            return self._deciding(judge)
        try:
            if sweep.reached[0]:
                judge.known.append((judge.queries[0], sweep.cells))
                if self._verified(judge.known[0], self.denied[place]) is None:
                    judge.known.clear()
            found = judge.other(self.every - self.usable)
            if found is None:
                return Known(suffice="no", reason=NOTHING_HELPS)
            features, found = self._minimal(judge, found, sweep)
            known = Known(features, found, needed=None)
            if len(features) <= self.options.most:
                return replace(known, suffice="yes")
            return self._fewest(judge, known)
        except TimeUp:
            return replace(known, reason=judge.unsettled or judge.budget.reason or "the time was over")

    def _minimal(self, judge: RowDecisions, found: Other, sweep: Sweep) -> tuple[Features, Other]:
        """A minimal subset of the features that an input changes; features that raise the score least are removed first."""
        freed = judge.changed(found[1])
        for f in sorted(freed, key=lambda f: (int(sweep.rises[0, f]), f)):
            if f not in freed:
                continue
            better = judge.other(self.every - (freed - {f}))
            if better is not None:
                freed, found = judge.changed(better[1]), better
        return freed, found

    def _fewest(self, judge: RowDecisions, known: Known) -> Known:
        """The finding: a smallest set of features that suffices, or the proof that no set of `most` features suffices."""
        to_hit: list[Features] = []
        while (chosen := hitting_set(to_hit, lambda: judge.budget.over)) is not None:
            if len(chosen) > self.options.most:
                reason = f"no {self.options.most} features suffice (proved)"
                return replace(known, suffice="no", needed=len(chosen), reason=reason)
            found = judge.other(self.every - chosen)
            if found is not None:
                return Known(chosen, found, suffice="yes")
            kept = self.usable - chosen
            for f in sorted(kept):
                if judge.other((self.every - self.usable) | (kept - {f})) is None:
                    kept -= {f}
            to_hit.append(kept)
        return known

    def _deciding(self, judge: RowDecisions) -> Known:
        """A smallest set of features whose values alone keep the decision: a hitting set of all sets whose change alters it."""
        to_hit: list[Features] = []
        try:
            if judge.other(self.usable) is not None:
                return Known(suffice="no", reason=DEPENDS)
            while (chosen := hitting_set(to_hit, lambda: judge.budget.over)) is not None:
                if len(chosen) > self.options.most:
                    reason = f"no values of {self.options.most} features keep the decision (proved)"
                    return Known(chosen, None, "no", len(chosen), reason)
                found = judge.other(chosen)
                if found is None:
                    return Known(chosen, None, "yes", None, "" if chosen else "no input gets another decision (proved)")
                to_hit.append(judge.contrastive(self.usable - chosen, self.usable, found)[0])
        except TimeUp:
            pass
        return Known(reason=judge.unsettled or judge.budget.reason or "the time was over")

    def _question(self, place: int, budget: Budget) -> tuple[Query, Int32Array, Sweep]:
        """The question of the favourable decision, with the limits on changes of a row, the row's cells int32[features], and
        the sweep of the row.
        """
        if not self.limits.bounded:
            return self.question.query, self.cells[place], self.sweep.of(place)
        row = self.denied[place]
        values = self.rows[row : row + 1]
        formulas = tuple(self.limits.formulas(self.question.query.space, row, values[0]))
        query, limited = self.bound(self.goal, *formulas).query, self.bound(*formulas).query
        start = query.space.grid.cells(values).astype(np.int32)
        changed = [f for f, name in enumerate(query.space.names) if f in self.usable and name in self.limits.names]
        legal = permitted_cells(query, limited, values, changed)
        usable, most = sorted(self.usable), self.options.most
        inside = np.zeros(1, np.bool_)
        sweep = sweep_denials(query, start, inside, usable, most, self.favourable, budget.share(0.5), legal)
        return query, start[0], sweep

    def _verified(self, other: Other, row: int) -> Witness | None:
        query, cells = other
        found = verify_cells(query, cells, near=self.rows[row], library_predict=self.library)
        return found if isinstance(found, Witness) else None

    def _reason(self, feature: int, place: int, witness: Witness | None, sweep: Sweep) -> PrincipalReason:
        name = self.ensemble.feature_names[feature]
        value = self._label(feature, float(self.rows[self.denied[place], feature]))
        instead = None if witness is None else self._label(feature, float(witness.values[0][feature]))
        words = self.words[name].about(value, instead)
        return PrincipalReason(
            feature=name,
            code=words.code,
            phrase=words.phrase,
            value=value,
            instead=instead,
            rise=float(sweep.rises[0, feature]) * sweep.unit if sweep.swept[feature] else None,
        )

    def _label(self, feature: int, value: float) -> Any:
        space = self.question.query.space
        kind = space.grid[feature].number_type
        return label_of(space.domains[feature], float(kind.cast(np.float64(value))), kind.dtype)

    def _against(self, row: int) -> list[str]:
        """The features with the greatest TreeSHAP values against the favourable decision."""
        assert self.shap is not None
        output = self.favourable if self.ensemble.n_outputs > 1 else 0
        sign = 1 if self.ensemble.n_outputs > 1 or self.favourable == 1 else -1
        values = sign * self.shap.of(self.rows[row], output)
        order: Sequence[int] = np.argsort(values, kind="stable").tolist()
        return [self.ensemble.feature_names[f] for f in order[: self.options.most] if values[f] < 0]

    def _decision(self, row: int) -> str:
        margins = np.asarray(self.ensemble.margins_emulated(self.rows[row : row + 1]), dtype=np.float64)
        return str(self.ensemble.classes[int(self.ensemble.predicted_classes(margins)[0])])

    def unsettled(self, place: int, why: str = "") -> DenialRecord:
        """The record of a denial about which nothing is known."""
        row = self.denied[place]
        return DenialRecord(
            row=row,
            decision=self._decision(row),
            decision_name=self.names.get(self._decision(row), ABSENT),
            reasons=[],
            suffice="open",
            needed=None,
            reason=why,
            proof=None,
            replay=None,
            shap=ABSENT,
            seconds=0.0,
        )


@dataclass(frozen=True, eq=False)
class Sweep:
    """`rises`, int64[rows, features], holds the increase in the score, in units, from changing each feature alone; `swept`,
    bool[features], marks the features whose rises are known. `cells`, int32[rows, features], holds the rows after greedy
    changes; `reached`, bool[rows], marks the rows whose decision is then favourable.
    """

    rises: Int64Array
    cells: Int32Array
    reached: BoolArray
    swept: BoolArray
    unit: float

    def of(self, place: int) -> Sweep:
        """The sweep of one row."""
        one = slice(place, place + 1)
        return replace(self, rises=self.rises[one], cells=self.cells[one], reached=self.reached[one])


def sweep_denials(
    query: Query,
    start: Int32Array,
    outside: BoolArray,
    usable: Sequence[int],
    most: int,
    favourable: int,
    budget: Budget,
    permitted: Sequence[BoolArray] | None = None,
) -> Sweep:
    """Greedily changes up to `most` usable features of each row of `start`, int32[rows, features]: each step changes the
    feature that raises the score most, until the query's decision is reached. Rows `outside` the domain stay unchanged.
    `permitted`, bool[n_cells] for each feature, limits the changes to some legal cells.

    The sweep is only a heuristic: its results are verified, and unsolved rows are searched. The rises of features that the time
    budget does not reach are unknown; all rises for means of models and for votes are unknown, too, for lack of a single score.
    """
    model, legal, (count, features) = query.models[0], permitted or query.space.legal, start.shape
    rises, reached, cells = np.zeros((count, features), np.int64), np.zeros(count, dtype=np.bool_), start.copy()
    swept = np.zeros(features, dtype=np.bool_)
    if not count or model.ensemble.link.of_several:
        return Sweep(rises, cells, reached, swept, 1.0)
    output, sign, least = _goal(query, favourable)
    first = flips(model, cells, [0], legal, output=output)
    own = sign * first.own
    score, open_rows = own.copy(), np.flatnonzero(~outside)
    for step in range(min(most, len(usable))):
        best, where = score[open_rows].copy(), np.zeros(len(open_rows), np.int32)
        chosen = np.full(len(open_rows), -1)
        for f in usable:
            if budget.left() <= 0:
                break
            found = flips(model, cells[open_rows], [f], legal, output=output, with_own=False)
            high = found.highest if sign > 0 else -found.lowest
            cell = (found.highest_cells if sign > 0 else found.lowest_cells)[:, 0]
            if step == 0:
                rises[open_rows, f] = np.maximum(0, high - own[open_rows])
                swept[f] = True
            better = high > best
            best[better], where[better], chosen[better] = high[better], cell[better], f
        moved = chosen >= 0
        cells[open_rows[moved], chosen[moved]] = where[moved]
        score[open_rows] = best
        reached[open_rows] = best >= least(first.shift)
        open_rows = open_rows[moved & ~reached[open_rows]]
        if not len(open_rows):
            break
    return Sweep(rises, cells, reached, swept, Unit(first.shift).nearest(1) / model.ensemble.average)


def _goal(query: Query, favourable: int) -> tuple[int, int, Callable[[int], int]]:
    """The output, the direction (1 or -1) in which its score has to change, and the least score as a function of the shift."""
    for constraint in query.constraints:
        if isinstance(constraint, AtLeast) and isinstance(constraint.form, LinearForm):
            terms = constraint.form.scores
            if len(terms) == 1 and not (constraint.form.costs or constraint.form.changes):
                bound = constraint.bound * (1 / abs(terms[0].coefficient))
                sign = 1 if terms[0].coefficient > 0 else -1
                return terms[0].output, sign, partial(least_units, bound, strict=constraint.strict)
    half = Fraction(query.models[0].ensemble.average, 2)
    return favourable, 1, lambda shift: Unit(shift).floor(half) + 1
