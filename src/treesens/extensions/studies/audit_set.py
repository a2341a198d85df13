"""The audit of one set of features and one decision: the sweep over the rows, the largest swing, and every gap."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.budget import Budget
from treesens.compiler.model.evaluate import LibraryReplay
from treesens.compiler.query.evaluate import inputs_of
from treesens.compiler.query.query import Query
from treesens.compiler.result import (
    Certified,
    NearestRow,
    ObjectiveValue,
    Proof,
    Result,
    Sense,
    Verdict,
    afterwards,
    answered,
    is_own_fault,
)
from treesens.data.flips import FlipQuestion, Flips
from treesens.errors import DataError
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.audit_put import (
    LISTED,
    NO_ROWS,
    About,
    put,
    swing_part,
    typical_answer,
    typical_record,
    unknown,
)
from treesens.extensions.studies.count import CountOptions
from treesens.extensions.studies.decisions import Between
from treesens.extensions.studies.questions import Gap, Questions
from treesens.extensions.studies.running import with_study_certificates
from treesens.extensions.studies.shares import Unit, check_countable, share_record
from treesens.extensions.studies.sweeps import RowSweep
from treesens.extensions.studies.typicality import TypicalLevel
from treesens.solve.bounds import consistent, value_of
from treesens.solve.conclude import conclude_found, conclude_none, leave_open
from treesens.solve.options import Options
from treesens.solve.question import answer, located
from treesens.solve.tasks.data_rows import hints_of, order_of_rows, pair_of_row, table_in_play, witness_among_rows
from treesens.values.verify import Witness, verify_values

_MOMENT = 0.2
"""Fewest seconds for one search of an audit."""
_SEARCH_SHARE = 0.6
"""Share of the time that is left which one gap may take; the rest is for other gaps and for the largest swing."""

_EXACT = ("native", "compiler")
"""Backends whose bounds are exact, up to the rounding of the value shown."""
_ROUNDINGS, _BITS = Fraction(1, 1 << 48), 128


class SetAudit:
    """One set of features and one decision: the sweep, the largest swing, and every gap."""

    def __init__(
        self,
        questions: Questions,
        options: AuditOptions,
        level: TypicalLevel | None,
        library_predict: list[LibraryReplay] | None,
        stop: threading.Event,
    ) -> None:
        self.questions, self.varied = questions, questions.varied
        self.query = questions.swing.query
        self.stop = stop
        self.decision = questions.decision
        self.budget = Budget.of(0.0, stop)
        self.limit = options.time_limit
        self.certificates = options.certificates
        self.level = level
        self.counting = (
            None
            if options.measure is None
            else CountOptions(measure=options.measure, time_limit=self.limit, seed=options.seed)
        )
        if options.measure is not None:
            # Before any search: an audit must not end in an error after all of its work.
            check_countable(questions.gaps[0][1], options.measure)
        self.base = Options(
            backend="native", time_limit=options.time_limit, seed=options.seed, library_predict=library_predict
        ).asking_for(options.near_enough)

    def run(self) -> list[dict[str, Any]]:
        if self.stop.is_set():
            return []
        start = time.monotonic()
        first = self.questions.gaps[0][1]
        table = table_in_play(first)
        assert table is not None
        self.rows = table[1]
        self.sweep = RowSweep(self.decision, first.query, self.rows, self.limit)
        if len(self.sweep.of(self.questions.gaps[0][0])) == 0:
            raise DataError("no row of the table lies in the domain", place=table[0])
        self.budget = Budget.of(self.limit, self.stop)
        answers: list[tuple[Gap, ResolvedQuestion, Result]] = []
        for (gap, query), near in zip(self.questions.gaps, self.questions.near, strict=True):
            if self.stop.is_set():
                break
            before = [r for _, _, r in answers]
            result = answered(
                f"{gap.kind} {gap.text}", partial(self._answer, gap, query, before), partial(unknown, query.query)
            )
            if result.verdict is Verdict.FOUND and result.backend != "rows":
                result = afterwards(result, "nearest row", partial(self._nearer, near, result))
            answers.append((gap, query, result))
        swing = answered("largest swing", self._swing, partial(unknown, self.questions.swing.query))
        answers = [
            (gap, query, afterwards(result, "largest swing", partial(self._settled, gap, query, result, swing)))
            for gap, query, result in answers
        ]
        seconds = time.monotonic() - start
        of_swing = self._certified_swing(swing)
        answers = [
            (gap, query, self._with_certificates(gap, query, result, of_swing)) for gap, query, result in answers
        ]
        results = [result for _, _, result in answers]
        notes = [swing.reason] if is_own_fault(swing.reason) else []
        typical = answered("typical inputs", partial(self._typical, results), partial(self._untold, results, notes))
        answers = [(gap, query, replace(result, notes=(*result.notes, *notes))) for gap, query, result in answers]
        return [
            {**self._record(gap, query, result, swing, seconds), **self._share(gap, query, result), **part}
            for (gap, query, result), part in zip(answers, typical, strict=True)
        ]

    @staticmethod
    def _untold(results: list[Result], notes: list[str], reason: str) -> list[dict[str, Any]]:
        """Nothing about typical inputs; why becomes a note."""
        notes.append(reason)
        return [{} for _ in results]

    def _typical(self, results: list[Result]) -> list[dict[str, Any]]:
        """What is left among typical inputs, for every gap that was asked about."""
        level, goal = self.level, self.questions.typical_swing
        if level is None or goal is None:
            return [{} for _ in results]
        budget = Budget.of(self.limit, self.stop)
        swing = swing_part(goal, answer(goal.query, self.base, budget.at_least(_MOMENT).within(self.limit / 2)))
        parts = []
        for (gap, query), question, result in zip(self.questions.gaps, self.questions.typical, results, strict=False):
            shape, found = self.sweep.shape(query, gap), self.sweep.of(gap)

            def ask(question: ResolvedQuestion = question, shape: FlipQuestion = shape, found: Flips = found) -> Result:
                part = budget.share(_SEARCH_SHARE).at_least(_MOMENT)
                return typical_answer(question, shape, found, self.rows, self.base, part)

            parts.append({"typical": typical_record(level, question, result, ask, swing)})
        return parts

    def _share(self, gap: Gap, query: ResolvedQuestion, result: Result) -> dict[str, Any]:
        """How much of the measure is concerned: nothing where there is no pair, searched for otherwise."""
        if self.counting is None:
            return {}
        if result.verdict is Verdict.NONE:
            none = {"measure": self.counting.measure, "lower": 0.0, "upper": 0.0, "estimate": None, "closed": True}
            return {"share": none}
        unit = Unit(self.questions.varied, self.decision, gap, query)
        return {"share": share_record(unit, self.counting, self.stop)}

    def _certified_swing(self, swing: Result) -> tuple[Certified, ...]:
        """The certificate of the bound of the largest swing."""
        name = f"{'_'.join(self.questions.varied)}.swing"
        options = replace(self.base, certificates=self.certificates)
        # Its pair is none of a gap that was asked for: what counts here is the bound.
        bare = replace(swing, verdict=Verdict.UNKNOWN, witness=None)
        return with_study_certificates(
            replace(self.questions.swing.query, name=name), bare, options, self.limit
        ).certificates

    def _with_certificates(
        self, gap: Gap, query: ResolvedQuestion, result: Result, more: tuple[Certified, ...]
    ) -> Result:
        about = ["_".join(self.questions.varied), *map(str, self.decision.record().get("classes", ()))]
        name = f"{'.'.join(about)}.{gap.kind}_{gap.text}"
        options = replace(self.base, certificates=self.certificates)
        # The record speaks of the gap, not of the nearest pair that was looked for on the way.
        made = with_study_certificates(
            replace(query.query, name=name), replace(result, objective=None), options, self.limit
        )
        return replace(result, certificates=(*made.certificates, *more))

    def _swing(self) -> Result:
        query = self.questions.swing.query
        found = self.sweep.of(self.questions.gaps[-1][0])
        hints = hints_of(query, self.sweep.widest, found, self.rows)
        part = self.budget.at_least(_MOMENT).within(self.limit / 2)
        result = answer(query, replace(self.base, hints=hints), part)
        if result.objective is None:
            return self._swing_of_rows(query, found, result)
        trivial = self.sweep.swing_bound()
        known = result.objective.bound
        bound = trivial if known is None else min(known, trivial)
        bound = consistent(bound, result.objective.value, maximize=True, exact=False, who="the sum of the leaves")
        return replace(result, objective=replace(result.objective, bound=bound))

    def _swing_of_rows(self, query: Query, found: Flips, result: Result) -> Result:
        """A search that found nothing in its time: the row that swings most, if it is one score that swings, and the bound that
        the leaves give.
        """
        bound = self.sweep.swing_bound()
        if isinstance(self.decision, Between):
            return result
        place = int(np.argmax(found.highest - found.lowest))
        row = query.space.grid[0].number_type.cast(self.rows[found.index[place]])
        values = pair_of_row(query, self.sweep.widest, found, place, row)
        pair = verify_values(query, values, library_predict=self.base.library_predict)
        if not isinstance(pair, Witness):
            return result
        assert query.objective is not None
        value = value_of(query.objective, inputs_of(query, pair.values))
        bound = consistent(bound, value, maximize=True, exact=False, who="the sum of the leaves")
        known = ObjectiveValue(value, bound, Sense.MAXIMIZE, query.objective.kind, self.base.closeness)
        return replace(result, witness=pair, objective=known)

    def _answer(self, gap: Gap, query: ResolvedQuestion, before: list[Result]) -> Result:
        """Rows first; then what smaller gaps have settled; then a search."""
        shape, found, rows = self.sweep.shape(query, gap), self.sweep.of(gap), self.rows
        pair = witness_among_rows(query.query, shape, found, rows, self.base)
        if pair is not None:
            result = conclude_found(
                leave_open(query.name, witness=pair[1], backend="rows"), "verified: a row of the table"
            )
            done = located(query, result, self.base)
            return replace(done, nearest=NearestRow("d", pair[0], 0.0, 0.0))
        for known in before:
            if known.verdict is Verdict.NONE:
                return replace(known, query=query.name, reason=f"none at a smaller gap ({known.reason})")
        hints = hints_of(query.query, shape, found, rows)
        options = replace(self.base, hints=hints)
        part = self.budget.share(_SEARCH_SHARE).at_least(_MOMENT)
        return located(query, answer(query.query, options, part), options)

    def _nearer(self, query: ResolvedQuestion, result: Result) -> Result:
        """The nearest pair that a share of the time finds, if it is nearer than the one that is known."""
        part = self.budget.share(_SEARCH_SHARE).at_least(_MOMENT)
        found = located(query, answer(query.query, self.base, part), self.base)
        if found.nearest is None or (result.nearest is not None and result.nearest.distance <= found.nearest.distance):
            return result
        return replace(
            result, witness=found.witness, region=found.region, nearest=found.nearest, objective=found.objective
        )

    def lost(self, reason: str) -> list[dict[str, Any]]:
        """The records of a set about which nothing is known, not even of the rows."""
        return [
            self._put(gap, query, unknown(query.query, reason), unknown(query.query, reason), 0.0, NO_ROWS)
            for gap, query in self.questions.gaps
        ]

    def _settled(self, gap: Gap, query: ResolvedQuestion, result: Result, swing: Result) -> Result:
        """What the largest swing says about a gap that is still open: its bound is a proof, its pair perhaps an answer."""
        if result.verdict is not Verdict.UNKNOWN or swing.objective is None:
            return result
        bound = exact_bound(swing, self.sweep.swing_bound())
        if bound < needed_swing(self.sweep.shape(query, gap), query):
            open_result = leave_open(query.name, backend="native", notes=result.notes)
            return conclude_none(open_result, f"the largest swing is at most {float(bound):.6g}", Proof.BOUND)
        if swing.witness is not None:
            again = verify_values(query.query, swing.witness.values, library_predict=self.base.library_predict)
            if isinstance(again, Witness):
                pair = conclude_found(leave_open(query.name, witness=again, backend="native", notes=result.notes))
                return located(query, pair, self.base)
        return result

    def _record(
        self, gap: Gap, query: ResolvedQuestion, result: Result, swing: Result, seconds: float
    ) -> dict[str, Any]:
        shape, found = self.sweep.shape(query, gap), self.sweep.of(gap)
        order = order_of_rows(shape, found)
        extra: dict[str, Any] = {
            "rows": len(found),
            "rows_flipped": len(order),
            "rows_complete": found.complete,
            "flipped_rows": found.index[order[:LISTED]].tolist(),
        }
        if shape.high is not None and shape.low is not None:
            down, up = int(shape.falling(found)[order].sum()), int(shape.rising(found)[order].sum())
            # The first point is the one whose score is high, also if this is the probability of the first class.
            extra["rows_flipped_down"], extra["rows_flipped_up"] = (down, up) if shape.upper == 0 else (up, down)
        return self._put(gap, query, result, swing, seconds, extra)

    def _put(
        self,
        gap: Gap,
        query: ResolvedQuestion,
        result: Result,
        swing: Result,
        seconds: float,
        of_rows: dict[str, Any],
    ) -> dict[str, Any]:
        """A record with what is known of the rows."""
        about = About(
            self.questions.varied,
            {gap.kind: gap.value, **self.decision.record()},
            self.decision.words(gap.size),
            self.decision.unit,
        )
        return put(about, query, result, swing, self.base, seconds, of_rows)


def exact_bound(swing: Result, leaves: float) -> Fraction:
    """An upper bound on all swings: that of the leaves, which is rounded upwards, or the one of an exact search.

    A bound of a search is shown as the nearest float, after a few roundings of half a unit each; one of a solver that rounds
    proves nothing without its tolerance.
    """
    bound = None if swing.objective is None or swing.backend not in _EXACT else swing.objective.bound
    return (
        Fraction(leaves)
        if bound is None
        else min(Fraction(leaves), Fraction(bound) + abs(Fraction(bound)) * _ROUNDINGS)
    )


def needed_swing(shape: FlipQuestion, query: ResolvedQuestion) -> Fraction:
    """The least swing of the margin that the question requires, or slightly less."""
    average = query.query.models[shape.model].ensemble.average
    if shape.swing is not None:
        return shape.swing.enclose(_BITS)[0] / average
    assert shape.high is not None
    assert shape.low is not None
    return (shape.high + -shape.low).enclose(_BITS)[0] / average
