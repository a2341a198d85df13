"""Answers questions of `check` in several processes: in parts (`--workers`, `--on`), or several at a time (`--jobs`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from treesens.binder.file import ResolvedQuestion
from treesens.commands.check import Faults
from treesens.commands.parameters import read_file
from treesens.compiler.base.budget import Budget
from treesens.compiler.result import Result, Verdict, afterwards
from treesens.errors import UsageError
from treesens.runtime.interruption import Interruption
from treesens.solve.options import Options
from treesens.solve.question import answer_question, located, with_certificates, with_nothing_else

if TYPE_CHECKING:
    from treesens.extensions.sweeps.executor import Executor
    from treesens.extensions.sweeps.worker import Shipment
    from treesens.records.journal import Journal
    from treesens.records.questions import Document
    from treesens.report.show import Progress


@dataclass(frozen=True)
class InParts:
    """Answers questions in parts; `executor` runs the parts, and `journal` stores them."""

    executor: Executor
    journal: Journal | None

    def answers(
        self,
        file: Path,
        asked: list[ResolvedQuestion],
        options: Options,
        trust_pickle: bool,
        interruption: Interruption,
        progress: Progress,
        faults: Faults,
    ) -> Iterator[tuple[ResolvedQuestion, Result]]:
        """The answers in the order of the file, found one after the other."""
        shipment = shipment_of(file, self.executor, trust_pickle=trust_pickle)
        for number, query in enumerate(asked):
            if interruption.happened:
                return
            progress.start(number, query.name)
            mine = query.replayed(options)
            ask = partial(self._answer, shipment, query, mine, mine.budget(interruption.event), progress)
            yield query, faults.answer(query, mine, ask)

    def _answer(
        self,
        shipment: Shipment,
        query: ResolvedQuestion,
        options: Options,
        budget: Budget,
        progress: Progress,
    ) -> Result:
        from treesens.extensions.sweeps.conquer import Coordinator, can_be_parted
        from treesens.extensions.sweeps.part_certificates import with_part_certificates

        reason = can_be_parted(query)
        if reason:
            result = answer_question(query, options, budget, progress=progress.say)
            return replace(result, notes=(*result.notes, f"run in one process: {reason}"))
        search = Coordinator(query, shipment, self.executor, options, journal=self.journal, say=progress.say)
        result = search.run(budget if options.certificates is None else budget.share(0.5))
        if search.parted:
            result = located(query, result, options)
        if options.certificates is None:
            return result
        if not search.proved_in_parts:
            return with_certificates(query.query, result, options, budget)
        proved = partial(with_part_certificates, search, result, options.certificates, budget)
        certified = afterwards(result, "certificate", proved)
        return with_nothing_else(certified) if options.require_certificate else certified


def shipment_of(file: Path, executor: Executor, *, trust_pickle: bool) -> Shipment:
    """The input of workers: the document with the questions and, for clusters, the model files that it names."""
    from treesens.extensions.sweeps.worker import ship

    return ship(_document(file, trust_pickle), executor.remote)


def in_parts(
    workers: int | None, on: str | None, *, jobs: int, confirm: str | None
) -> Callable[[Journal | None], InParts] | None:
    """A function that makes `InParts`, or None if no option requests parts. Raises UsageError for contradictory options."""
    if workers is None and on is None:
        return None
    from treesens.extensions.sweeps.executor import parse_executor

    if jobs > 1:
        raise UsageError("--jobs solves many questions at once, --workers one in parts", remedy="leave one out")
    if confirm is not None:
        raise UsageError("a question in parts cannot be confirmed", remedy="leave out --confirm")
    return partial(InParts, parse_executor(on, workers))


def side_by_side(
    file: Path,
    asked: list[ResolvedQuestion],
    options: Options,
    trust_pickle: bool,
    jobs: int,
    interruption: Interruption,
    faults: Faults,
) -> Iterator[tuple[ResolvedQuestion, Result]]:
    """Answers several questions at a time, and yields the answers in file order, not in the order of completion."""
    from treesens.extensions.sweeps.executor import Executor
    from treesens.extensions.sweeps.worker import Shipment, Task

    document = _document(file, trust_pickle)
    waiting = iter(asked)

    def take() -> Task | None:
        query = None if interruption.happened else next(waiting, None)
        if query is None:
            return None
        return Task(query.name, document.digest, query.name, options, record=False)

    ready: dict[str, Result] = {}
    left = list(asked)
    pool = Executor("local", min(jobs, len(asked)))
    outcomes = pool.run(take, {document.digest: Shipment(document)}, options.time_limit, interruption.event)
    for outcome in outcomes:
        if outcome.own_fault:
            faults.note_own(outcome.key, outcome.failure)
        open_still = Result(outcome.key, Verdict.UNKNOWN, f"error: {outcome.why}", backend=options.backend)
        ready[outcome.key] = outcome.result or open_still
        while left and left[0].name in ready:
            query = left.pop(0)
            yield query, ready.pop(query.name)


def _document(file: Path, trust_pickle: bool) -> Document:
    from treesens.records.questions import document_of

    return document_of(str(file), read_file(file), file.parent, trust_pickle=trust_pickle)[0]
