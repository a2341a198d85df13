"""`treesens check FILE.sens [QUERY…]`: answers."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from treesens.binder.file import ResolvedQuestion
from treesens.builtin import service
from treesens.commands.beside import write_beside
from treesens.commands.check_cases import Asked, ci_options, files_and_queries, write_ci
from treesens.commands.check_faults import Faults
from treesens.commands.check_journal import AnswerMemory
from treesens.commands.common import (
    EXPECTED,
    INCONCLUSIVE,
    INTERNAL,
    INTERRUPTED,
    UNREADABLE,
    VIOLATED,
    Whole,
    certificate_option,
    certificate_summary,
    checked_folder,
    chosen,
    engine_options,
    exit_code_of,
    file_argument,
    load_file,
    require_option,
    trust_option,
)
from treesens.commands.outputs import journal_option, open_journal
from treesens.compiler.base.interruption import Interruption, interruptible
from treesens.compiler.result import Result, Verdict, has_own_fault
from treesens.errors import UsageError
from treesens.report.terminal import say, say_json

if TYPE_CHECKING:
    from treesens.records.journal import Journal
    from treesens.report.show import Progress
    from treesens.solve.options import Options


@click.command("check")
@file_argument
@click.argument("queries", nargs=-1)
@click.option("--backend", "-b", default="auto", show_default=True, help="auto or the name of a solver (see doctor).")
@click.option(
    "--confirm",
    metavar="BACKEND|library",
    help="Ask this backend too; its proof upgrades the answer, a contradiction is an error. `library`: a `none` must hold "
    "however the library rounds.",
)
@click.option("--core", is_flag=True, help="Name the constraints that clash for every none; needs further searches.")
@click.option("--jobs", "-j", type=Whole(min=1), default=1, show_default=True, help="Questions at a time.")
@click.option(
    "--workers", type=Whole(min=1), help="Ask every question in parts, in so many processes (docs/sweeps.md)."
)
@click.option("--on", metavar="EXECUTOR", help="Ask in parts on dask://HOST:8786, ray or ray://HOST:10001.")
@journal_option
@ci_options
@trust_option
@certificate_option
@require_option
@engine_options
def command(
    file: Path,
    queries: tuple[str, ...],
    backend: str,
    confirm: str | None,
    core: bool,
    jobs: int,
    workers: int | None,
    on: str | None,
    journal: Path | None,
    junit_file: Path | None,
    sarif_file: Path | None,
    markdown_file: Path | None,
    quiet: bool,
    trust_pickle: bool,
    certificates: Path | None,
    require_certificate: bool,
    pipeline: str,
    time_limit: float,
    threads: int,
    memory_limit: int | None,
    tolerance: float,
    absolute_tolerance: float,
    seed: int,
    replay: str,
    as_json: bool,
) -> int:
    """Answer the questions of FILE: found (with a verified pair), none (with the proof), or unknown (with the reason). Several
    files, NAME.sens each, are answered one after another; names of queries are for a single file.

    Exit codes: 0 everything as expected, 10 a violated expectation with a verified witness, 5 inconclusive, 1 usage, 2 a
    file does not parse or type-check, 130 interrupted.
    """
    from treesens.compiler.pipeline import Pipeline
    from treesens.records.answers import envelope
    from treesens.records.plain import SCHEMA_VERSION
    from treesens.solve.options import Options

    Pipeline.parse(pipeline)
    _check_backend(backend)
    if confirm not in {None, "library"}:
        _check_backend(confirm)
    files, names = files_and_queries(file, queries)
    options = Options(
        backend=backend,
        pipeline=pipeline,
        time_limit=time_limit,
        threads=threads,
        memory_limit=None if memory_limit is None else memory_limit * 1_000_000,
        seed=seed,
        regions=as_json,
        certificates=checked_folder(certificates, require_certificate),
        require_certificate=require_certificate,
        tolerance=tolerance,
        absolute_tolerance=absolute_tolerance,
    )
    whole = workers is None and on is None and jobs == 1
    processes: Processes | None = None if whole else service("parts")
    in_parts = None if processes is None else processes.in_parts(workers, on, jobs=jobs, confirm=confirm)
    if journal is not None and in_parts is None and certificates is not None:
        raise UsageError(
            "certificates are made when a question is asked", remedy="leave out --journal or --certificate"
        )
    started = time.perf_counter()
    with open_journal(journal) as kept, interruptible() as interruption:
        # A question in parts goes on from its parts; an answer that was left open is no reason to stop there.
        parts = None if in_parts is None else in_parts(kept)
        memory = AnswerMemory(kept if parts is None else None, options, replay, confirm)
        run = Run(options, replay, confirm, core, jobs, trust_pickle, memory, as_json or quiet, processes, parts)
        for path in files:
            if not interruption.happened:
                run.ask(path, names, interruption)
    if as_json:
        seconds = round(time.perf_counter() - started, 6)
        objects = [envelope(asked.path, _records(asked, seed), seconds=seconds) for asked in run.asked]
        say_json(objects[0] if len(files) == 1 else {"schema_version": SCHEMA_VERSION, "files": objects})
    for text in run.faults.shown:
        say(text, err=True)
    write_ci(run.asked, junit_file, sarif_file, markdown_file)
    if certificates is not None:
        from treesens.records.answers import certificate_records

        results = [result for asked in run.asked for _, result in asked.results]
        say(certificate_summary({"certificates": certificate_records(result)} for result in results), err=True)
    code = worst([exit_code_of(asked.bound, exit_code(asked.results, interruption)) for asked in run.asked])
    return INTERNAL if run.faults.own else code


def worst(codes: list[int]) -> int:
    """The exit code of several files: a violated expectation first, then what kept questions from being asked."""
    order = (VIOLATED, INTERRUPTED, UNREADABLE, INCONCLUSIVE, EXPECTED)
    return next((code for code in order if code in codes), EXPECTED)


def _records(asked: Asked, seed: int) -> list[dict[str, Any]]:
    from treesens.records.answers import record

    line = shlex.join(["treesens", *sys.argv[1:]])
    return [
        record(query.query, result, command=line, seed=seed, data=query.known_tables())
        for query, result in asked.results
    ]


Answers = Iterator[tuple[ResolvedQuestion, Result]]
"""Questions of a file in its order, each with its answer."""


class InParts(Protocol):
    """Questions in parts, with the journal that their parts are kept in."""

    def answers(
        self,
        file: Path,
        asked: list[ResolvedQuestion],
        options: Options,
        replay: str,
        trust_pickle: bool,
        interruption: Interruption,
        progress: Progress,
        faults: Faults,
    ) -> Answers: ...


class Processes(Protocol):
    """The service "parts"."""

    def in_parts(
        self, workers: int | None, on: str | None, *, jobs: int, confirm: str | None
    ) -> Callable[[Journal | None], InParts] | None: ...

    def side_by_side(
        self,
        file: Path,
        asked: list[ResolvedQuestion],
        options: Options,
        replay: str,
        confirm: str | None,
        trust_pickle: bool,
        jobs: int,
        interruption: Interruption,
        faults: Faults,
    ) -> Answers: ...


@dataclass
class Run:
    """How files are asked, and what came of it so far."""

    options: Options
    replay: str
    confirm: str | None
    core: bool
    jobs: int
    trust_pickle: bool
    memory: AnswerMemory
    silent: bool
    processes: Processes | None = None
    parts: InParts | None = None
    asked: list[Asked] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)

    def ask(self, path: Path, names: tuple[str, ...], interruption: Interruption) -> None:
        """Answers the questions of a file, and shows each answer when it is there."""
        from treesens.compiler.model.numbers import LEVELS
        from treesens.report.show import Progress, show_result
        from treesens.solve.question import explain_none

        bound = load_file(path, names, trust_pickle=self.trust_pickle, steps=LEVELS[0])
        wanted = chosen(bound, names)
        here = Asked(path, bound, [])
        self.asked.append(here)
        with Progress(len(wanted)) as progress:
            for query, answered in self._known_first(here, wanted, interruption, progress):
                mine = replace(self.options, library_predict=query.library_predicts(self.replay, self.confirm))
                result = answered
                with self.faults.kept(query), interruption.giving_up():
                    result = explain_none(query, answered, mine, stop=interruption.event, always=self.core)
                self.faults.own |= has_own_fault(result)
                here.results.append((query, result))
                if not self.silent:
                    progress.clear()
                    write_beside(query.name, partial(show_result, query, result))

    def _known_first(
        self, here: Asked, wanted: list[ResolvedQuestion], interruption: Interruption, progress: Progress
    ) -> Answers:
        """All answers in the order of the file. Known ones come from the journal; new ones are written to it."""
        known = self.memory.known(here.path, here.bound, wanted)
        left = [query for query in wanted if query.name not in known]
        fresh = self._answers(here.path, left, interruption, progress)
        for query in wanted:
            if query.name in known:
                yield query, known[query.name]
                continue
            answered = next(fresh, None)
            if answered is None:
                return
            self.memory.keep(here.path, here.bound, query, answered[1])
            yield answered

    def _answers(
        self, path: Path, wanted: list[ResolvedQuestion], interruption: Interruption, progress: Progress
    ) -> Answers:
        if self.parts is not None:
            how = (self.options, self.replay, self.trust_pickle)
            return self.parts.answers(path, wanted, *how, interruption, progress, self.faults)
        jobs = min(self.jobs, len(wanted))
        if self.processes is None or jobs <= 1:
            return _one_by_one(wanted, self.options, self.replay, self.confirm, interruption, progress, self.faults)
        settings = (self.options, self.replay, self.confirm, self.trust_pickle)
        return self.processes.side_by_side(path, wanted, *settings, jobs, interruption, self.faults)


def _one_by_one(
    asked: list[ResolvedQuestion],
    options: Options,
    replay: str,
    confirm: str | None,
    interruption: Interruption,
    progress: Progress,
    faults: Faults,
) -> Answers:
    from treesens.solve.question import answer_question

    for number, query in enumerate(asked):
        if interruption.happened:
            return
        progress.start(number, query.name)
        mine = replace(options, library_predict=query.library_predicts(replay, confirm))
        budget = mine.budget(interruption.event)
        ask = partial(answer_question, query, mine, budget, confirm=confirm, progress=progress.say)
        yield query, faults.answer(query, mine, ask)


def _check_backend(name: str) -> None:
    from treesens.backends.base import get_backend

    if name != "auto":
        get_backend(name)


def exit_code(results: list[tuple[ResolvedQuestion, Result]], interruption: Interruption) -> int:
    """CBMC's: a violated expectation before everything that is open, never 0 on unknown."""
    from treesens.records.answers import as_expected

    verdicts = [as_expected(query.query, result) for query, result in results]
    if any(v is False for v in verdicts):
        return VIOLATED
    if interruption.happened:
        return INTERRUPTED
    if any(v is None for v in verdicts) or any(r.verdict is Verdict.UNKNOWN for _, r in results):
        return INCONCLUSIVE
    return EXPECTED
