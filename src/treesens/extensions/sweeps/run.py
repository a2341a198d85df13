"""Runs a sweep: solves questions, and writes answers into the journal. Only this process writes; workers only answer."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from treesens.compiler.result import Verdict
from treesens.extensions.sweeps.executor import Executor
from treesens.extensions.sweeps.order import Plan, order_questions
from treesens.extensions.sweeps.settings import Settings
from treesens.extensions.sweeps.worker import Outcome, Points, Shipment, Task, resident, ship
from treesens.records.journal import Entry, Journal, key_of
from treesens.records.questions import Question


@dataclass
class Summary:
    """The result of a sweep: numbers of questions. `left` is the number of questions not started or not finished."""

    questions: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    reused: int = 0
    asked: int = 0
    implied: int = 0
    shared: int = 0
    failed: int = 0
    left: int = 0
    interrupted: bool = False
    seconds: float = 0.0
    cpu: float = 0.0
    rss: int = 0
    worker_rss: int = 0


OnAnswer = Callable[[Question, Entry], None]


@dataclass(frozen=True)
class Measurement:
    """Settings to compare. Each question is solved with all settings in succession, so that other load affects all settings.

    Questions are solved in the given order, by the engine or solver alone. `record` makes the record of an answer. Records of
    sweeps differ from this record, so questions of sweeps must have other digests.
    """

    settings: Sequence[Settings]
    record: Callable[[Question, Settings, Outcome], dict[str, Any]]
    begin: Callable[[Question, Settings], Settings] = lambda _question, settings: settings
    """Called before each run: the settings of this run."""


def sweep(
    questions: Sequence[Question],
    settings: Settings,
    executor: Executor,
    journal: Journal,
    *,
    stop: threading.Event | None = None,
    on_answer: OnAnswer = lambda _question, _entry: None,
    measurement: Measurement | None = None,
) -> Summary:
    """Solves the questions missing from the journal. KeyboardInterrupt ends the sweep; all received answers are kept."""
    return _Sweep(questions, settings, executor, journal, stop or threading.Event(), on_answer, measurement).run()


@dataclass
class _Sweep:
    questions: Sequence[Question]
    settings: Settings
    executor: Executor
    journal: Journal
    stop: threading.Event
    on_answer: OnAnswer
    measurement: Measurement | None

    def __post_init__(self) -> None:
        ordered, each = order_questions(self.questions), [self.settings]
        if self.measurement is not None:
            ordered, each = list(self.questions), list(self.measurement.settings)
        self.asked = {key_of(q.digest, one): (q, one) for q in ordered for one in each}
        self.plan = Plan({key: question for key, (question, _) in self.asked.items()}, share=self.settings.share)
        self.pairs: dict[str, Points] = {}
        self.summary = Summary(questions=len(self.asked))
        self.deadline = None if self.settings.total_limit is None else time.time() + self.settings.total_limit

    def run(self) -> Summary:
        start = time.perf_counter()
        self._recall()
        executor = self.executor.for_questions(len(self.plan.open))
        outcomes = executor.run(self._take, self._shipments(), self.settings.time_limit, self.stop)
        try:
            for outcome in outcomes:
                self._take_in(outcome)
        except KeyboardInterrupt:
            self.summary.interrupted = True
        self.summary.interrupted |= self.stop.is_set()
        self.summary.left = self.summary.questions - self.summary.verdicts.total()
        self.summary.seconds = time.perf_counter() - start
        self.summary.rss = max(self.summary.rss, resident())
        return self.summary

    def _recall(self) -> None:
        """Takes answers from the journal; like new answers, they may decide other questions."""
        known: list[Entry] = []
        for key in self.asked:
            entry = self.journal.known(key, self.settings.time_limit)
            if entry is None or (self.settings.retry and entry.failure is not None):
                continue
            known.append(entry)
            del self.plan.open[key]
        for entry in known:
            self.summary.reused += 1
            self._count(entry)
        for entry in known:
            self._apply(entry)

    def _shipments(self) -> Mapping[str, Shipment]:
        """The documents with open questions, including file contents if workers cannot read the files."""
        documents = {q.document.digest: q.document for q in self.plan.open.values()}
        return {digest: ship(document, self.executor.remote) for digest, document in documents.items()}

    def _take(self) -> Task | None:
        """The next question; called by the executor from its threads."""
        if self.stop.is_set() or (self.deadline is not None and time.time() >= self.deadline):
            return None
        taken = self.plan.take()
        if taken is None:
            return None
        key, helper = taken
        question, settings = self.asked[key]
        bare = self.measurement is not None
        if self.measurement is not None:
            settings = self.measurement.begin(question, settings)
        return Task(
            key=key,
            document=question.document.digest,
            question=question.name,
            options=settings,
            record=not bare,
            bare=bare,
            regions=False,
            try_first=None if helper is None else self.pairs[helper],
            tried_of="" if helper is None else self.asked[helper][0].name,
            deadline=self.deadline,
        )

    def _take_in(self, outcome: Outcome) -> None:
        """Stores an answer, counts it, and applies it to open questions."""
        question, settings = self.asked[outcome.key]
        self.summary.asked += 1
        self.summary.cpu += outcome.cpu
        self.summary.worker_rss = max(self.summary.worker_rss, outcome.rss)
        verdict = Verdict.UNKNOWN if outcome.result is None else outcome.result.verdict
        if outcome.clipped or (self.stop.is_set() and verdict is Verdict.UNKNOWN):
            return
        if self.measurement is not None:
            record = self.measurement.record(question, settings, outcome)
        else:
            record = outcome.record or record_of_failure(question, outcome, settings)
        self.summary.shared += verdict is Verdict.FOUND and outcome.implied_by is not None
        self._apply(self._keep(verdict, record, outcome))

    def _keep(self, verdict: Verdict, record: dict[str, Any], outcome: Outcome) -> Entry:
        question, _ = self.asked[outcome.key]
        entry = Entry(
            outcome.key,
            str(verdict),
            question.name,
            question.document.name,
            outcome.implied_by,
            outcome.failure or None,
            outcome.attempts,
            round(outcome.cpu, 6),
            outcome.rss,
            outcome.worker,
        )
        held = resident()
        self.summary.rss = max(self.summary.rss, held)
        self.journal.keep(entry, self.settings.time_limit, record, held)
        self._count(entry)
        return entry

    def _count(self, entry: Entry) -> None:
        self.summary.verdicts[entry.verdict] += 1
        self.summary.failed += entry.failure is not None
        self.on_answer(self.asked[entry.key][0], entry)

    def _apply(self, entry: Entry) -> None:
        """Marks a pair as worth trying on easier questions; the answer `none` also decides every harder question."""
        question, _ = self.asked[entry.key]
        if entry.verdict == Verdict.UNKNOWN or question.family is None or not self.settings.share:
            return
        record = self.journal.record(entry.key, self.settings.time_limit)
        assert record is not None
        if entry.verdict == Verdict.FOUND:
            self.pairs[entry.key] = tuple(tuple(values) for values in record["raw_points"].values())
            self.plan.found(entry.key)
            return
        for key in self.plan.none(entry.key):
            other, _ = self.asked[key]
            self.summary.implied += 1
            said = {
                **record,
                "query": other.name,
                "reason": f"none for `{question.name}`, which is easier ({record['reason']})",
                "expect": other.expect,
                "as_expected": other.expect != "some",
                "varied": sorted(other.features),
                "seconds": {},
                "attempts": [],
                "query_sha256": None,
            }
            self._keep(Verdict(entry.verdict), said, Outcome(key, implied_by=question.name, attempts=0))


def record_of_failure(question: Question, outcome: Outcome, settings: Settings) -> dict[str, Any]:
    """The record of a question whose task failed."""
    return {
        "query": question.name,
        "verdict": str(Verdict.UNKNOWN),
        "reason": f"error: {outcome.why}",
        "proof": None,
        "expect": question.expect,
        "as_expected": None,
        "varied": sorted(question.features),
        "points": None,
        "backend": settings.backend,
        "pipeline": settings.pipeline,
        "seconds": {},
        "failure": outcome.failure,
        "internal": outcome.own_fault,
    }
