"""`check --workers N` and `--on EXECUTOR`: every question in parts, in many processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from treesens.binder.file import ResolvedQuestion
from treesens.commands.check_faults import Faults
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.interruption import Interruption
from treesens.compiler.result import Result
from treesens.errors import UsageError
from treesens.solve.afterwards import afterwards
from treesens.solve.options import Options
from treesens.solve.question import (
    answer_question,
    located,
    with_certificates,
    with_nothing_else,
)

if TYPE_CHECKING:
    from treesens.extensions.sweeps.executor import Executor
    from treesens.extensions.sweeps.worker import Shipment
    from treesens.records.journal import Journal
    from treesens.report.show import Progress


@dataclass(frozen=True)
class QuestionFile:
    """The file that workers read."""

    path: Path
    trust_pickle: bool


@dataclass(frozen=True)
class InParts:
    """Where parts are asked, and the journal that they are kept in."""

    executor: Executor
    journal: Journal | None

    def answers(
        self,
        file: QuestionFile,
        asked: list[ResolvedQuestion],
        options: Options,
        replay: str,
        interruption: Interruption,
        progress: Progress,
        faults: Faults,
    ) -> Iterator[tuple[ResolvedQuestion, Result]]:
        """The answers in the order of the file, one after another."""
        shipment = shipment_of(file, self.executor)
        for number, query in enumerate(asked):
            if interruption.happened:
                return
            progress.start(number, query.name)
            mine = replace(options, library_predict=query.library_predicts(replay))
            budget = mine.budget(interruption.event)
            ask = partial(self._answer, shipment, query, mine, replay, budget, progress)
            yield query, faults.answer(query, mine, ask)

    def _answer(
        self,
        shipment: Shipment,
        query: ResolvedQuestion,
        options: Options,
        replay: str,
        budget: Budget,
        progress: Progress,
    ) -> Result:
        from treesens.extensions.sweeps.conquer import Coordinator, can_be_parted
        from treesens.extensions.sweeps.part_certificates import with_part_certificates

        reason = can_be_parted(query)
        if reason:
            result = answer_question(query, options, budget, progress=progress.say)
            return replace(result, notes=(*result.notes, f"asked in one process: {reason}"))
        search = Coordinator(
            query, shipment, self.executor, options, replay=replay, journal=self.journal, say=progress.say
        )
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


def shipment_of(file: QuestionFile, executor: Executor) -> Shipment:
    """What workers read: the file of the questions, and for those of a cluster the models that it names."""
    from treesens.extensions.sweeps.worker import ship
    from treesens.grammar.parsing.parser import load
    from treesens.records.questions import document_of

    text = load(file.path).text
    document, _ = document_of(str(file.path), text, file.path.parent, trust_pickle=file.trust_pickle)
    return ship(document, executor.remote)


def executor_of_parts(workers: int | None, on: str | None, *, jobs: int, confirm: str | None) -> Executor | None:
    """Where options ask for parts; None if questions are asked as a whole. UsageError for what does not go together."""
    if workers is None and on is None:
        return None
    from treesens.extensions.sweeps.executor import parse_executor

    if jobs > 1:
        raise UsageError("--jobs asks several questions at a time, and --workers one in parts", remedy="leave one out")
    if confirm is not None:
        raise UsageError("a question in parts has no second opinion", remedy="leave out --confirm")
    return parse_executor(on, workers)
