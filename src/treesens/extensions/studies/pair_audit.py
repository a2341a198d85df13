"""The audit of one set of features by pairs: rows first, then a search for each question, the largest swing last.

It is about outcomes of a decision, or about a probability that is no function of one score. What a single score decides is
audited by `audit_set.py`, whose sweeps are faster.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from treesens.compiler.base.budget import Budget
from treesens.compiler.model.evaluate import LibraryReplay
from treesens.compiler.result import NearestRow, Result, Verdict, afterwards, answered, is_own_fault
from treesens.errors import DataError
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.audit_put import LISTED, NO_ROWS, NO_SWING, About, put, typical_record, unknown
from treesens.extensions.studies.halving import largest_difference
from treesens.extensions.studies.pair_questions import PairQuestion, PairQuestions
from treesens.extensions.studies.pair_rows import PairRows, pair_rows, witness_of_rows
from treesens.extensions.studies.running import with_study_certificates
from treesens.extensions.studies.typicality import TypicalLevel
from treesens.solve.conclude import conclude_found, leave_open
from treesens.solve.options import Options
from treesens.solve.question import answer, located
from treesens.solve.tasks.data_rows import table_in_play

_MOMENT = 0.2
"""Fewest seconds for one search."""
_ROWS_SHARE = 0.4
_SEARCH_SHARE = 0.6
"""Shares of the time that is left which the rows of one question, and its search, may take."""

Answer = tuple[PairQuestion, PairRows | None, Result]


class PairAudit:
    """One set of features with all questions about it."""

    def __init__(
        self,
        questions: PairQuestions,
        options: AuditOptions,
        level: TypicalLevel | None,
        library_predict: list[LibraryReplay] | None,
        stop: threading.Event,
    ) -> None:
        self.questions, self.stop, self.limit = questions, stop, options.time_limit
        self.varied = questions.varied
        self.query = questions.asked[0].query.query
        self.certificates, self.level = options.certificates, level
        self.counts_rows = options.measure is not None
        self.budget = Budget.of(0.0, stop)
        self.base = Options(
            backend="auto", time_limit=options.time_limit, seed=options.seed, library_predict=library_predict
        ).asking_for(options.near_enough)

    def run(self) -> list[dict[str, Any]]:
        """The records of all questions; those that were not reached after an interruption are left out."""
        start = time.monotonic()
        self.budget = Budget.of(self.limit, self.stop)
        answers: list[Answer] = []
        for one in self.questions.asked:
            if self.stop.is_set():
                break
            answers.append(self._answered(one, answers))
        swing = None if self.questions.swing is None or self.stop.is_set() else self._swing()
        seconds = time.monotonic() - start
        records = []
        for one, found, bare in answers:
            result = self._with_certificates(one, bare)
            typical, notes = self._typical(one, result)
            result = replace(result, notes=(*result.notes, *notes))
            records.append({**self._record(one, found, result, swing, seconds), **typical})
        return records

    def lost(self, reason: str) -> list[dict[str, Any]]:
        """The records of a set about which nothing is known, not even of the rows."""
        return [self._record(one, None, unknown(one.query.query, reason), None, 0.0) for one in self.questions.asked]

    def _answered(self, one: PairQuestion, before: Sequence[Answer]) -> Answer:
        table = table_in_play(one.query)
        assert table is not None
        found = pair_rows(one.query.query, table[1], self.budget.share(_ROWS_SHARE).at_least(_MOMENT))
        if len(found.index) == 0:
            raise DataError("no row of the table lies in the domain", place=table[0])
        result = answered(
            one.wanted.words, partial(self._answer, one, found, table, before), partial(unknown, one.query.query)
        )
        if result.verdict is Verdict.FOUND and result.backend != "rows":
            result = afterwards(result, "nearest row", partial(self._nearer, one, result))
        return one, found, result

    def _answer(self, one: PairQuestion, found: PairRows, table: tuple[str, Any], before: Sequence[Answer]) -> Result:
        """Rows first; then what easier questions have settled; then a search."""
        query = one.query
        pair = witness_of_rows(query.query, found, table[1], self.base)
        if pair is not None:
            bare = leave_open(query.name, witness=pair[1], backend="rows")
            result = conclude_found(bare, "verified: a row of the table")
            return replace(located(query, result, self.base), nearest=NearestRow(table[0], pair[0], 0.0, 0.0))
        for _, _, known in before if one.wanted.harder else ():
            if known.verdict is Verdict.NONE:
                return replace(known, query=query.name, reason=f"none at a smaller gap ({known.reason})")
        part = self.budget.share(_SEARCH_SHARE).at_least(_MOMENT)
        return located(query, answer(query.query, self.base, part), self.base)

    def _nearer(self, one: PairQuestion, result: Result) -> Result:
        """The nearest pair that a share of the time finds, if it is nearer than the one that is known."""
        part = self.budget.share(_SEARCH_SHARE).at_least(_MOMENT)
        found = located(one.near, answer(one.near.query, self.base, part), self.base)
        if found.nearest is None or (result.nearest is not None and result.nearest.distance <= found.nearest.distance):
            return result
        return replace(
            result, witness=found.witness, region=found.region, nearest=found.nearest, objective=found.objective
        )

    def _typical(self, one: PairQuestion, result: Result) -> tuple[dict[str, Any], list[str]]:
        """What is left among typical inputs, and a note if nothing is known of it."""
        level, question = self.level, one.typical
        if level is None or question is None or self.stop.is_set():
            return {}, []
        part = Budget.of(self.limit, self.stop).share(_SEARCH_SHARE).at_least(_MOMENT)

        def told() -> dict[str, Any]:
            made = typical_record(level, question, result, lambda: answer(question.query, self.base, part), NO_SWING)
            return {"typical": made}

        notes: list[str] = []

        def untold(reason: str) -> dict[str, Any]:
            notes.append(reason)
            return {}

        return answered("typical inputs", told, untold), notes

    def _swing(self) -> Result:
        """The largest difference of the probability of two inputs, by questions at one difference after the other."""
        question = self.questions.swing
        assert question is not None
        part = self.budget.at_least(_MOMENT).within(self.limit / 2)
        return answered(
            "largest swing",
            partial(largest_difference, question.query, self.base, part),
            partial(unknown, question.query),
        )

    def _with_certificates(self, one: PairQuestion, result: Result) -> Result:
        facts = "_".join(str(part) for value in one.wanted.facts.values() for part in _listed(value))
        options = replace(self.base, certificates=self.certificates)
        query = replace(one.query.query, name=f"{'_'.join(self.varied)}.{facts}")
        # The record speaks of the pair, not of the nearest one that was looked for on the way.
        made = with_study_certificates(query, replace(result, objective=None), options, self.limit)
        return replace(result, certificates=made.certificates)

    def _record(
        self, one: PairQuestion, found: PairRows | None, result: Result, swing: Result | None, seconds: float
    ) -> dict[str, Any]:
        if swing is not None and is_own_fault(swing.reason):
            result = replace(result, notes=(*result.notes, swing.reason))
        unit = None if self.questions.swing is None else "probability"
        about = About(self.varied, one.wanted.facts, one.wanted.words, unit)
        of_rows = NO_ROWS if found is None else _of_rows(found)
        made = put(about, one.query, result, swing, self.base, seconds, of_rows)
        if self.counts_rows and found is not None:
            made["share"] = _share_of_rows(found)
        return made


def _of_rows(found: PairRows) -> dict[str, Any]:
    """Which rows flip; down are those that are the first point as they are, up those that are the second."""
    order = found.order()
    return {
        "rows": len(found.index),
        "rows_flipped": len(order),
        "rows_complete": found.complete,
        "flipped_rows": found.index[order[:LISTED]].tolist(),
        "rows_flipped_down": int(np.count_nonzero(found.own[0, order])),
        "rows_flipped_up": int(np.count_nonzero(found.own[1, order])),
    }


def _share_of_rows(found: PairRows) -> dict[str, Any]:
    """The share of rows that flip; of those that were not tried nothing is known."""
    part = len(found.order()) / len(found.index)
    above = part if found.complete else 1.0
    return {"measure": "rows", "lower": part, "upper": above, "estimate": None, "closed": found.complete}


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]
