"""`treesens check FILE.sens [QUERY…]`: answers questions."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from treesens.binder.file import ResolvedFile, ResolvedQuestion
from treesens.builtin import service
from treesens.commands.check_journal import AnswerMemory
from treesens.commands.common import (
    EXPECTED,
    INCONCLUSIVE,
    INTERNAL,
    INTERRUPTED,
    UNREADABLE,
    VIOLATED,
    Whole,
    certificate_summary,
    checked_folder,
    chosen,
    exit_code_of,
    file_argument,
    load_file,
    options_at,
    trust_option,
    write_output,
)
from treesens.commands.modules import are_modules, check_modules
from treesens.commands.outputs import OutputFile, journal_option, open_journal
from treesens.compiler.base.option_kinds import Door
from treesens.compiler.result import Result, Verdict, has_own_fault
from treesens.errors import InternalError, TreesensError, UsageError, told
from treesens.report.terminal import say, say_json
from treesens.runtime.interruption import Hurry, Interruption, interruptible

if TYPE_CHECKING:
    from treesens.records.journal import Journal
    from treesens.report.show import Progress
    from treesens.solve.options import Options


@dataclass
class Asked:
    """One file of questions with its answers."""

    path: Path
    bound: ResolvedFile
    results: list[tuple[ResolvedQuestion, Result]]


@dataclass
class Faults:
    """Errors of single questions; all other questions are still answered."""

    shown: list[str] = field(default_factory=list)
    own: bool = False
    """True if one of the errors is an internal error of treesens."""

    def note(self, query: ResolvedQuestion, error: TreesensError) -> None:
        self.shown.append(f"{query.name}: error[{error.code}]: {error}")
        self.own |= isinstance(error, InternalError)

    def note_own(self, name: str, text: str) -> None:
        self.shown.append(f"{name}: error[{InternalError.code}]: {text}")
        self.own = True

    @contextmanager
    def kept(self, query: ResolvedQuestion) -> Iterator[None]:
        try:
            yield
        except TreesensError as error:
            self.note(query, error)

    def answer(self, query: ResolvedQuestion, options: Options, ask: Callable[[], Result]) -> Result:
        """The answer of `ask`; after an error, an open answer with the error as its reason, so that other questions proceed."""
        from treesens.solve.question import result_of_error, result_of_interruption

        try:
            return ask()
        except Hurry:
            return result_of_interruption(query, options)
        except Exception as error:  # noqa: BLE001 - every kind of error becomes a typed one here
            failed = told(error, query.name)
            self.note(query, failed)
            return result_of_error(query.name, options, failed)


@click.command("check")
@file_argument
@click.argument("queries", nargs=-1)
@click.option("--jobs", "-j", type=Whole(min=1), default=1, show_default=True, help="Questions at a time.")
@click.option(
    "--workers",
    type=Whole(min=1),
    help="Split every question into parts, and solve the parts in this many processes (docs/sweeps.md).",
)
@click.option("--on", metavar="EXECUTOR", help="Solve parts on dask://HOST:8786, ray or ray://HOST:10001.")
@journal_option
@click.option("--junit", type=OutputFile(made_by="ci"), help="Write the answers as JUnit XML for CI.")
@click.option("--sarif", type=OutputFile(made_by="ci"), help="Write the answers as SARIF 2.1.0 for CI.")
@click.option("--markdown", type=OutputFile(made_by="ci"), help="Write the answers as Markdown for CI.")
@click.option("--quiet", "-q", is_flag=True, help="Print no answers, only errors, and set the exit code.")
@trust_option
@options_at(Door.COMMAND)
def command(
    file: Path,
    queries: tuple[str, ...],
    options: Options,
    jobs: int,
    workers: int | None,
    on: str | None,
    journal: Path | None,
    quiet: bool,
    trust_pickle: bool,
    as_json: bool,
    **documents: Path | None,
) -> int:
    """Answer the questions of FILE: found (with a verified pair), none (with the proof), or unknown (with the reason). Several
    files, each NAME.sens, are answered one after another; query names are allowed with a single file only. FILE may also be a
    module, NAME.sir (docs/ir.md).

    Exit codes: 0 all expectations hold, 10 a violated expectation with a verified witness, 5 inconclusive, 1 usage, 2 a file
    does not parse or type-check, 130 interrupted.
    """
    from treesens.records.answers import envelope
    from treesens.records.plain import SCHEMA_VERSION

    files, names = files_and_queries(file, queries)
    if are_modules(files, names):
        return check_modules(files, options, as_json=as_json, quiet=quiet)
    options = replace(options, regions=as_json)
    certificates = checked_folder(options.certificates, options.require_certificate)
    whole = workers is None and on is None and jobs == 1
    processes: Processes | None = None if whole else service("parts")
    in_parts = None if processes is None else processes.in_parts(workers, on, jobs=jobs, confirm=options.confirm)
    if journal is not None and in_parts is None and certificates is not None:
        raise UsageError(
            "certificates are made only when a question is solved", remedy="leave out --journal or --certificate"
        )
    started = time.perf_counter()
    with open_journal(journal) as kept, interruptible() as interruption:
        # A question in parts resumes from its parts, even if its stored answer is open.
        parts = None if in_parts is None else in_parts(kept)
        memory = AnswerMemory(kept if parts is None else None, options)
        run = Run(options, jobs, trust_pickle, memory, as_json or quiet, processes, parts)
        for path in files:
            if not interruption.happened:
                run.ask(path, names, interruption)
    if as_json:
        seconds = round(time.perf_counter() - started, 6)
        objects = [envelope(asked.path, _records(asked, options.seed), seconds=seconds) for asked in run.asked]
        say_json(objects[0] if len(files) == 1 else {"schema_version": SCHEMA_VERSION, "files": objects})
    for text in run.faults.shown:
        say(text, err=True)
    if written := {kind: path for kind, path in documents.items() if path is not None}:
        service("ci").write(run.asked, written)
    if certificates is not None:
        from treesens.records.answers import certificate_records

        results = [result for asked in run.asked for _, result in asked.results]
        say(certificate_summary({"certificates": certificate_records(result)} for result in results), err=True)
    code = worst([exit_code_of(asked.bound, exit_code(asked.results, interruption)) for asked in run.asked])
    return INTERNAL if run.faults.own else code


def files_and_queries(first: Path, others: Sequence[str]) -> tuple[list[Path], tuple[str, ...]]:
    """The files of a command line, and the query names after them. Raises UsageError for names after several files."""
    files, names = [first], []
    for text in others:
        if text.endswith((".sens", ".sir")):
            files.append(Path(text))
        else:
            names.append(text)
    if len(files) > 1 and names:
        raise UsageError(
            f"`{names[0]}` could be a query of several files", remedy="pass query names with one file, or only files"
        )
    return files, tuple(names)


def worst(codes: list[int]) -> int:
    """The exit code for several files: a violated expectation takes precedence, then errors that left questions open."""
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
"""The questions of a file in order, each with its answer."""


class InParts(Protocol):
    """Questions solved in parts, with the journal of the parts."""

    def answers(
        self,
        file: Path,
        asked: list[ResolvedQuestion],
        options: Options,
        trust_pickle: bool,
        interruption: Interruption,
        progress: Progress,
        faults: Faults,
    ) -> Answers: ...


class Processes(Protocol):
    """The interface of the service "parts" (`builtin.SERVICES`)."""

    def in_parts(
        self, workers: int | None, on: str | None, *, jobs: int, confirm: str | None
    ) -> Callable[[Journal | None], InParts] | None: ...

    def side_by_side(
        self,
        file: Path,
        asked: list[ResolvedQuestion],
        options: Options,
        trust_pickle: bool,
        jobs: int,
        interruption: Interruption,
        faults: Faults,
    ) -> Answers: ...


@dataclass
class Run:
    """The options of a run over files, and its results so far."""

    options: Options
    jobs: int
    trust_pickle: bool
    memory: AnswerMemory
    silent: bool
    processes: Processes | None = None
    parts: InParts | None = None
    asked: list[Asked] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)

    def ask(self, path: Path, names: tuple[str, ...], interruption: Interruption) -> None:
        """Answers the questions of a file, and shows each answer as it arrives."""
        from treesens.report.show import Progress, show_result
        from treesens.solve.question import explain_none

        bound = load_file(path, names, trust_pickle=self.trust_pickle)
        wanted = chosen(bound, names)
        here = Asked(path, bound, [])
        self.asked.append(here)
        with Progress(len(wanted)) as progress:
            for query, answered in self._known_first(here, wanted, interruption, progress):
                mine, result = query.replayed(self.options), answered
                with self.faults.kept(query), interruption.giving_up():
                    result = explain_none(query, answered, mine, stop=interruption.event)
                self.faults.own |= has_own_fault(result)
                here.results.append((query, result))
                if not self.silent:
                    progress.clear()
                    write_output(query.name, partial(show_result, query, result))

    def _known_first(
        self, here: Asked, wanted: list[ResolvedQuestion], interruption: Interruption, progress: Progress
    ) -> Answers:
        """All answers in file order. Known answers come from the journal; new answers are written to it."""
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
            how = (self.options, self.trust_pickle, interruption, progress, self.faults)
            return self.parts.answers(path, wanted, *how)
        jobs = min(self.jobs, len(wanted))
        if self.processes is None or jobs <= 1:
            return _one_by_one(wanted, self.options, interruption, progress, self.faults)
        settings = (self.options, self.trust_pickle, jobs, interruption, self.faults)
        return self.processes.side_by_side(path, wanted, *settings)


def _one_by_one(
    asked: list[ResolvedQuestion],
    options: Options,
    interruption: Interruption,
    progress: Progress,
    faults: Faults,
) -> Answers:
    from treesens.solve.question import answer_question

    for number, query in enumerate(asked):
        if interruption.happened:
            return
        progress.start(number, query.name)
        mine = query.replayed(options)
        ask = partial(answer_question, query, mine, mine.budget(interruption.event), progress=progress.say)
        yield query, faults.answer(query, mine, ask)


def exit_code(results: list[tuple[ResolvedQuestion, Result]], interruption: Interruption) -> int:
    """The exit code, by CBMC's convention: a violated expectation takes precedence over open answers, which never yield 0."""
    from treesens.records.answers import as_expected

    verdicts = [as_expected(query.query, result) for query, result in results]
    if any(v is False for v in verdicts):
        return VIOLATED
    if interruption.happened:
        return INTERRUPTED
    if any(v is None for v in verdicts) or any(r.verdict is Verdict.UNKNOWN for _, r in results):
        return INCONCLUSIVE
    return EXPECTED
