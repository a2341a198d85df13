"""Runs a sweep: solves questions, and writes answers into the journal. Only this process writes; workers only answer."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from treesens.compiler.result import Verdict
from treesens.extensions.sweeps.executor import Executor
from treesens.extensions.sweeps.order import Plan
from treesens.extensions.sweeps.settings import Settings
from treesens.extensions.sweeps.worker import Outcome, Points, Shipment, Task, resident, ship
from treesens.records.journal import Entry, Journal, key_of
from treesens.records.questions import Question


@dataclass
class Summary:
    """The result of a sweep: numbers of questions. `left` counts questions that were not started or not finished."""

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


def sweep(
    questions: Sequence[Question],
    settings: Settings,
    executor: Executor,
    journal: Journal,
    *,
    stop: threading.Event | None = None,
    on_answer: OnAnswer | None = None,
) -> Summary:
    """Solves the questions missing from the journal. KeyboardInterrupt ends the sweep; all received answers are kept."""
    return _Sweep(questions, settings, executor, journal, stop, on_answer).run()


class _Sweep:
    def __init__(
        self,
        questions: Sequence[Question],
        settings: Settings,
        executor: Executor,
        journal: Journal,
        stop: threading.Event | None,
        on_answer: OnAnswer | None,
    ) -> None:
        self.questions = {q.digest: q for q in questions}
        self.settings = settings
        self.executor = executor
        self.journal = journal
        self.stop = stop or threading.Event()
        self.on_answer = on_answer
        self.keys = {q.digest: key_of(q.digest, settings) for q in self.questions.values()}
        self.by_key = {key: digest for digest, key in self.keys.items()}
        self.plan = Plan(questions, share=settings.share)
        self.pairs: dict[str, Points] = {}
        self.summary = Summary(questions=len(self.questions))
        self.deadline = None if settings.total_limit is None else time.time() + settings.total_limit

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
        known: list[tuple[Question, Entry]] = []
        for digest, key in self.keys.items():
            entry = self.journal.known(key, self.settings.time_limit)
            if entry is None or (self.settings.retry and entry.failure is not None):
                continue
            known.append((self.questions[digest], entry))
            del self.plan.open[digest]
        for question, entry in known:
            self.summary.reused += 1
            self._count(question, entry)
        for question, entry in known:
            if entry.verdict == Verdict.FOUND:
                self._offer(question, self._record(entry))
            elif entry.verdict == Verdict.NONE:
                self._decide(question, entry)

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
        question, helper = taken
        return Task(
            key=self.keys[question.digest],
            document=question.document.digest,
            question=question.name,
            options=replace(self.settings, pipeline=self.settings.passes),
            regions=False,
            try_first=None if helper is None else self.pairs[helper],
            tried_of="" if helper is None else self.questions[helper].name,
            deadline=self.deadline,
        )

    def _take_in(self, outcome: Outcome) -> None:
        """Stores an answer, counts it, and applies it to open questions."""
        question = self.questions[self.by_key[outcome.key]]
        self.summary.asked += 1
        self.summary.cpu += outcome.cpu
        self.summary.worker_rss = max(self.summary.worker_rss, outcome.rss)
        if outcome.clipped:
            return
        verdict = Verdict.UNKNOWN if outcome.result is None else outcome.result.verdict
        record = outcome.record or record_of_failure(question, outcome, self.settings)
        entry = self._keep(question, verdict, record, outcome)
        if verdict is Verdict.FOUND:
            self.summary.shared += outcome.implied_by is not None
            self._offer(question, record)
        elif verdict is Verdict.NONE:
            self._decide(question, entry)

    def _keep(self, question: Question, verdict: Verdict, record: dict[str, Any], outcome: Outcome) -> Entry:
        entry = Entry(
            self.keys[question.digest],
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
        self._count(question, entry)
        return entry

    def _count(self, question: Question, entry: Entry) -> None:
        self.summary.verdicts[entry.verdict] += 1
        self.summary.failed += entry.failure is not None
        if self.on_answer is not None:
            self.on_answer(question, entry)

    def _record(self, entry: Entry) -> dict[str, Any]:
        """The record of an answer in the journal."""
        record = self.journal.record(entry.key, self.settings.time_limit)
        assert record is not None
        return record

    def _offer(self, question: Question, record: dict[str, Any]) -> None:
        if question.family is None or not self.settings.share:
            return
        self.pairs[question.digest] = tuple(tuple(values) for values in record["raw_points"].values())
        self.plan.found(question)

    def _decide(self, question: Question, entry: Entry) -> None:
        """Records that the answer `none` to a question also decides every harder question."""
        decided = self.plan.none(question)
        if not decided:
            return
        record = self._record(entry)
        for other in decided:
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
            outcome = Outcome(self.keys[other.digest], implied_by=question.name, attempts=0)
            self._keep(other, Verdict(entry.verdict), said, outcome)


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
        "pipeline": settings.passes,
        "seconds": {},
        "failure": outcome.failure,
        "internal": outcome.own_fault,
    }
