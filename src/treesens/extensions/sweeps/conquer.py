"""Solves one hard question in many processes: workers decide parts of the question, and undecided parts are split further.

This process also solves the whole question until the question or all of its parts are decided, so the answer is never worse
than without parts. The time limit of a part is a few seconds, and longer while enough other parts wait to keep every worker
busy, because a split would then gain nothing. Up to sixteen smaller parts replace an undecided part. A part proved to have no
answer is closed for good; an answer ends the question or, with an objective, sets the value that other parts have to improve
on. If a worker is lost, only its current part is lost, and the part is retried. Closed and split parts are written to a
journal, from which the search can be resumed. Every process reads the question itself, so only cuts and answers are sent.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.tolerance import Closeness
from treesens.compiler.query.evaluate import form_value, inputs_of
from treesens.compiler.query.query import Objective
from treesens.compiler.result import Proof, Result, Verdict
from treesens.extensions.sweeps.executor import Executor
from treesens.extensions.sweeps.parts import Conquest, Part, Splitter, checked_line, with_part_cut
from treesens.extensions.sweeps.worker import Outcome, PartTask, Shipment, Task
from treesens.records.journal import Journal, versions
from treesens.records.questions import sha256
from treesens.solve.combine import combine, proof_of_parts
from treesens.solve.conclude import conclude_found, conclude_none, leave_open, shown_objective
from treesens.solve.options import Options
from treesens.solve.question import answer, answer_question
from treesens.values.verify import Witness, verify_values

PER_WORKER, MANY = 4, 64
"""Numbers of initial parts: for each local worker, and for a whole cluster."""
MOST_LOSSES = 5
"""Maximum number of workers that a part may lose; after one more loss, the part is given up."""
MOST_LONGER = 4**5
LEAST_SLICE, MOST_SLICE = 0.5, 60.0
MOST_WAITING = 8
"""Maximum factor by which a part's time limit may grow while other parts wait."""


def can_be_parted(question: ResolvedQuestion) -> str:
    """The reason why a question is solved in one process; empty if the question can be split into parts."""
    query = question.query
    if query.rows is not None or query.explained is not None or query.top > 1 or query.share is not None:
        return "counts, reasons, lists and shares cannot be split into parts"
    goal = query.objective
    if goal is None:
        return ""
    form = goal.form
    if goal.probability is not None:
        return "a probability is optimised by successive decisions"
    if goal.nearest is not None or goal.values or form.changes or form.pairs or len(form.levels) or form.forests:
        return "only sums of scores and of costs are optimised in parts"
    return ""


class Coordinator:
    """Solves a question of a document in parts of `slice_seconds` each. The whole question is first solved alone for
    `first_seconds` (default: `slice_seconds`), then alongside the parts; if this time is 0, only the parts are solved.
    """

    def __init__(
        self,
        question: ResolvedQuestion,
        shipment: Shipment,
        executor: Executor,
        options: Options,
        *,
        slice_seconds: float | None = None,
        first_seconds: float | None = None,
        journal: Journal | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.question, self.query, self.shipment, self.executor = question, question.query, shipment, executor
        self.options, self.say = options, say
        usual = min(max(options.time_limit / 50, LEAST_SLICE), MOST_SLICE)
        self.slice = usual if slice_seconds is None else slice_seconds
        self.first_seconds = self.slice if first_seconds is None else first_seconds
        self.splitter = Splitter(self.query)
        self.known = Conquest()
        self.parted = False
        self.longer: dict[Part, int] = {}
        """For each indivisible part, the factor by which its time is extended."""
        self.journal = journal
        self.lock = threading.Lock()
        self.offered: deque[Witness] = deque()
        """Answers of the whole question, for parts to improve on; only the thread that writes the journal takes the answers."""

    def _key(self) -> str:
        """The key of the parts in a journal: the question, the tolerance, and everything that determines when a part closes."""
        o, close = self.options, self.options.closeness
        how = [o.backend, o.pipeline, close.relative, close.absolute, o.replay]
        asked = [self.shipment.document.digest, self.question.name, *how]
        return sha256(json.dumps([*asked, versions(o.backend)], sort_keys=True))

    # --- the search -----------------------------------------------------------------------------------------------------

    def run(self, budget: Budget) -> Result:
        """The answer that follows from all parts decided within the budget."""
        start = time.perf_counter()
        resumed = self.journal is not None and self._recall()
        first = leave_open(self.question.name) if resumed else self._as_a_whole(budget)
        goal = self.query.objective
        if self._is_final(first):
            return first
        self.parted = True
        if not resumed:
            if first.witness is not None:
                self._improve(first.witness)
            self._begin()
        with self._beside(budget) as (whole, mine):
            while self.known.open and not (mine.over or budget.over or self._answered()):
                before = len(self.known.open), self.known.asked
                self._round(mine)
                if (len(self.known.open), self.known.asked) == before:
                    break
            if not self._concludes():
                whole.result()  # the parts are exhausted: wait for the whole question
        self._take_offers()
        result = self._joined(self._concluded(first, goal, budget), whole.result())
        return replace(result, seconds={"solve": time.perf_counter() - start}, notes=(*result.notes, self._note()))

    @contextmanager
    def _beside(self, budget: Budget) -> Iterator[tuple[Future[Result], Budget]]:
        """The whole question, solved in a thread, and a budget for its parts, which ends when the whole question is answered.

        The thread runs in parallel, because the engine releases the interpreter lock; the thread is stopped when the parts end.
        """
        options = self.options.uncertified
        parts_over, whole_over = threading.Event(), threading.Event()

        def ask() -> Result:
            result = answer(self.query, options, replace(budget, stop=whole_over), on_better=self.offered.append)
            if self._is_final(result):
                parts_over.set()
            return result

        def pass_on() -> None:
            """Stops the parts and the whole question if a stop is requested."""
            while not (budget.stopped or whole_over.wait(0.05)):
                pass
            if budget.stopped:
                parts_over.set()
                whole_over.set()

        if self.first_seconds <= 0 or budget.stopped:
            nothing: Future[Result] = Future()
            nothing.set_result(leave_open(self.question.name))
            yield nothing, budget
            return
        with ThreadPoolExecutor(2) as pool:
            try:
                pool.submit(pass_on)
                yield pool.submit(ask), replace(budget, stop=parts_over)
            finally:
                whole_over.set()

    @property
    def proved_in_parts(self) -> bool:
        """True if every part is closed: the parts then form the proof."""
        return self.parted and set(self.known.leaves()) == set(self.known.closed)

    def _concludes(self) -> bool:
        """True if the parts decide the question."""
        return self._answered() or self.proved_in_parts

    def _joined(self, parts: Result, whole: Result) -> Result:
        """The combined result of the parts and the whole question: the better answer and the tighter bound."""
        if self._is_final(whole):
            return combine(whole, parts)
        return parts if self._concludes() else combine(parts, whole)

    def _take_offers(self) -> None:
        while self.offered:
            self._improve(self.offered.popleft())

    def _as_a_whole(self, budget: Budget) -> Result:
        """The result of solving the whole question in one process for a short time, because most questions need no parts."""
        if self.first_seconds <= 0:
            return leave_open(self.question.name)
        options = replace(self.options.uncertified, time_limit=self.first_seconds)
        return answer_question(self.question, options, budget.within(self.first_seconds))

    def _is_final(self, first: Result) -> bool:
        if self.query.objective is None or first.verdict is Verdict.NONE:
            return first.verdict is not Verdict.UNKNOWN
        reached = first.objective
        return (
            reached is not None and self.options.closeness.closeness(reached.value, reached.bound) is not Closeness.OPEN
        )

    def _answered(self) -> bool:
        return self.query.objective is None and self.known.best is not None

    def _begin(self) -> None:
        """Opens enough parts for all workers, with a reserve."""
        wanted = MANY if self.executor.remote else PER_WORKER * self.executor.jobs
        self._open_whole()
        for part in list(self.known.open):
            if len(self.known.open) >= wanted:
                return
            self.known.open.remove(part)
            if self._open_up(part):
                self._write("cut", part)
            else:
                self.known.open.append(part)

    def _improve(self, witness: Witness) -> None:
        """Records an answer if the answer improves on the best answer so far."""
        if self.known.best is None or self._value(witness) > self._value(self.known.best):
            self.known.best = witness
            values = [[None if math.isnan(x) else float(x) for x in point] for point in witness.values]
            self._write("found", Part(), values=values)

    def _open_whole(self) -> None:
        """Opens the parts of the whole question, or the whole question as a single part if it cannot be split."""
        if not self._open_up(Part()):
            self.known.open.append(Part())

    def _open_up(self, part: Part) -> bool:
        """Replaces a part by smaller parts; returns False if it cannot be split."""
        tree, parts = self.splitter.split(part)
        if len(parts) == 1:
            return False
        self.known.tree = with_part_cut(self.known.tree, part, tree)
        self.known.open.extend(parts)
        return True

    def _round(self, budget: Budget) -> None:
        """Submits open parts until there are none left, and records their results."""
        longest = self._longer_while_others_wait(self.slice * max(self.longer.values(), default=1), MOST_WAITING)
        outcomes = self.executor.run(lambda: self._take(budget), self.shipments(), longest, budget.stop)
        away = time.monotonic()
        for outcome in outcomes:
            with self.lock:
                self._take_offers()
                self._take_in(outcome)
            if time.monotonic() - away > 1.0:
                away = time.monotonic()
                self.say(f"{len(self.known.closed)} parts closed, {len(self.known.open)} open")
            if self._answered() or budget.over:
                break
        # The loss of a worker may lose other parts sent to its cluster: the next round sends them again.
        self.known.open.extend(self.known.again)
        self.known.again.clear()

    def _take(self, budget: Budget) -> Task | None:
        with self.lock:
            if budget.over or self._answered() or not self.known.open:
                return None
            part = self.known.open.popleft()
        return self.task(part, self.limit(), min(self._seconds_of(part), max(budget.left(), LEAST_SLICE)))

    def _seconds_of(self, part: Part) -> float:
        """The time limit for a part, in seconds; it is longer while other parts wait, because splitting a part wastes its time.

        A part whose worker was lost gets at most the usual time, so that another loss costs less.
        """
        usual = self.slice * self.longer.get(part, 1)
        if part in self.known.losses:
            return usual
        workers = MANY // PER_WORKER if self.executor.remote else self.executor.jobs
        return self._longer_while_others_wait(usual, 1 + len(self.known.open) // workers)

    @staticmethod
    def _longer_while_others_wait(usual: float, times: int) -> float:
        return max(usual, min(usual * min(times, MOST_WAITING), MOST_SLICE))

    def shipments(self) -> dict[str, Shipment]:
        """The documents that workers need, by digest."""
        return {self.shipment.document.digest: self.shipment}

    def task(self, part: Part, limit: Fraction | None, seconds: float, *, certify: bool = False) -> Task:
        """The task for a worker that solves a part."""
        options = replace(self.options.uncertified, time_limit=seconds, library_predict=None)
        key = json.dumps(part.plain())
        asked = PartTask(part, limit, certify)
        document = self.shipment.document.digest
        return Task(key, document, self.question.name, options, record=False, regions=False, part=asked)

    def _take_in(self, outcome: Outcome) -> None:
        known, part = self.known, Part.of_plain(json.loads(outcome.key))
        known.asked += 1
        known.cpu += outcome.cpu
        result = outcome.result
        if result is None:
            known.losses[part] = known.losses.get(part, 0) + 1
            if outcome.own_fault or known.losses[part] > MOST_LOSSES:
                known.lost = outcome.why
            else:
                known.again.append(part)
        elif result.verdict is Verdict.NONE and result.proof is not Proof.LIBRARY:
            known.closed[part] = result.proof or Proof.BOUND
            self._write("none", part, proof=str(known.closed[part]))
        elif result.verdict is Verdict.FOUND and result.witness is not None:
            self._improve(result.witness)
            if self.query.objective is not None:
                known.open.append(part)
        elif self._open_up(part):
            self._write("cut", part)
        elif self.longer.get(part, 1) < MOST_LONGER:
            # The part cannot be split: it is retried with more time.
            self.longer[part] = 4 * self.longer.get(part, 1)
            known.again.append(part)
        else:
            known.lost = result.reason

    def _value(self, witness: Witness) -> Fraction:
        """The value of an answer's objective, negated if the objective is minimised, so that a greater value is better."""
        goal = self.query.objective
        if goal is None:
            return Fraction(0)
        value = form_value(goal.form, inputs_of(self.query, witness.values))
        return value if goal.maximize else -value

    def limit(self) -> Fraction | None:
        """The value that the objective's form must pass to improve on the best answer by more than the tolerance."""
        goal, best = self.query.objective, self.known.best
        if goal is None or best is None:
            return None
        value = form_value(goal.form, inputs_of(self.query, best.values))
        allowed = self.options.closeness
        shown = abs(value * goal.unit + goal.offset)
        # Slightly less than the tolerance, because reported bounds are rounded again.
        slack = Fraction(0.99) * max(Fraction(allowed.relative) * shown, Fraction(allowed.absolute)) / abs(goal.unit)
        return value + slack if goal.maximize else value - slack

    # --- journal --------------------------------------------------------------------------------------------------------

    def _write(self, what: str, part: Part, **more: Any) -> None:
        if self.journal is not None:
            self.journal.keep_part(self._key(), {"did": what, "part": part.plain(), **more})

    def _recall(self) -> bool:
        """Resumes from a journal; False if it is empty. The best answer, on which closed parts rely, is verified again."""
        assert self.journal is not None
        lines = self.journal.parts(self._key(), checked_line)
        if not lines:
            return False
        known = self.known
        self._open_whole()
        for line in lines:
            part = Part.of_plain(line["part"])
            if line["did"] == "found":
                self._recall_answer(line["values"])
            elif part in known.open:
                known.open.remove(part)
                if line["did"] == "none":
                    known.closed[part] = Proof(line["proof"])
                else:
                    self._open_up(part)
        return True

    def _recall_answer(self, values: Any) -> None:
        assert self.journal is not None
        shape = (len(self.query.points), len(self.query.space.names))
        points = np.array([[np.nan if x is None else x for x in point] for point in values], np.float64)
        seen = (
            verify_values(self.query, points, library_predict=self.options.library_predict)
            if points.shape == shape
            else None
        )
        if not isinstance(seen, Witness):
            raise self.journal.damaged("an answer in it is not valid")
        self.known.best = seen

    # --- the answer -----------------------------------------------------------------------------------------------------

    def _note(self) -> str:
        known = self.known
        return f"{len(known.leaves())} parts, {known.asked} tasks, {known.cpu:.1f} s in workers"

    def _concluded(self, first: Result, goal: Objective | None, budget: Budget) -> Result:
        """The combined result of all parts."""
        known, name = self.known, self.question.name
        done = not known.open and not known.lost and set(known.leaves()) == set(known.closed)
        proof = proof_of_parts(known.closed.values()) if done and known.closed else None
        bare = leave_open(name, known.lost or budget.reason, backend="native", pipeline=self.options.pipeline)
        if known.best is None:
            return bare if proof is None else conclude_none(bare, f"none in any of {len(known.closed)} parts", proof)
        if goal is None:
            return conclude_found(replace(bare, witness=known.best))
        limit, value = self.limit(), form_value(goal.form, inputs_of(self.query, known.best.values))
        objective = shown_objective(goal, value, None if proof is None else limit)
        if proof is None and first.objective is not None:
            objective = replace(objective, bound=first.objective.bound)
        objective = replace(objective, tolerance=self.options.closeness)
        return conclude_found(replace(bare, witness=known.best, objective=objective, proof=proof))
