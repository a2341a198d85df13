"""`treesens sweep SPEC`: answers thousands of questions, with a journal."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treesens.commands.common import (
    EXPECTED,
    INCONCLUSIVE,
    INTERNAL,
    INTERRUPTED,
    VIOLATED,
    Function,
    Whole,
    certificate_summary,
    checked_folder,
    click_option,
    quiet_option,
    trust_option,
    write_output,
)
from treesens.commands.outputs import OutputFile, warn_of_journal
from treesens.commands.parameters import parameter_options
from treesens.compiler.base.option_kinds import Door
from treesens.extensions.sweeps.settings import Settings, settings_of, settings_text
from treesens.report.terminal import say, say_json

if TYPE_CHECKING:
    from treesens.extensions.sweeps.run import Summary
    from treesens.records.journal import Entry, Journal
    from treesens.records.questions import Question


def sweep_options(function: Function) -> Function:
    """Adds the options of a sweep, which override the settings of the SPEC."""
    for one in reversed(settings_of(Door.SWEEP)):
        function = click_option(replace(one, default=None))(function)
    return function


@click.command("sweep")
@click.argument("spec", type=click.Path(path_type=Path))
@parameter_options
@click.option("--journal", type=OutputFile(), help="Default: SPEC with the ending .sqlite.")
@click.option("--jobs", "-j", type=Whole(min=1), help="Processes here. Default: one per core.")
@click.option("--executor", help="local, dask://HOST:8786, ray or ray://HOST:10001. Default: local.")
@sweep_options
@click.option("--no-share", is_flag=True, help="Solve every question; no answer is used for other questions.")
@trust_option
@click.option("--report", type=OutputFile(), help="Write a table of all answers (CSV).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per question on standard output.")
@quiet_option
def command(
    spec: Path,
    journal: Path | None,
    jobs: int | None,
    executor: str | None,
    trust_pickle: bool,
    report: Path | None,
    as_json: bool,
    no_share: bool,
    **given: Any,
) -> int:
    """Answer the questions of SPEC: a TOML file of models, features and gaps, or a .sens file (docs/sweeps.md).

    Every answer is written to a journal immediately. The same command reads the journal, and resumes an interrupted run.

    Exit codes: as for check; 130 interrupted, with all answers kept.
    """
    from treesens.extensions.sweeps.executor import parse_executor
    from treesens.extensions.sweeps.report import line_of, show_sweep, write_answers
    from treesens.extensions.sweeps.run import sweep
    from treesens.extensions.sweeps.spec import read_spec
    from treesens.records.journal import Journal
    from treesens.report.show import tracker

    where = parse_executor(executor, jobs)
    read = read_spec(spec, trust_pickle=trust_pickle)
    share = read.settings.share and not no_share
    settings = replace(
        read.settings, share=share, **{name: value for name, value in given.items() if value is not None}
    )
    checked_folder(settings.certificates, settings.require_certificate)
    for warning in read.warnings:
        say(warning, err=True)
    counts = {"found": 0, "none": 0, "unknown": 0}
    line = shlex.join(["treesens", *sys.argv[1:]])
    place, text = journal or spec.with_suffix(".sqlite"), settings_text(settings)
    with Journal(place, command=line, settings=text, tell=warn_of_journal) as book:
        if where.remote:
            say(f"answers are kept in {book.path}: if the cluster shuts down, the same command resumes there", err=True)
        with tracker("sweeping", len(read.questions)) as advance:

            def on_answer(_: Question, entry: Entry) -> None:
                counts[entry.verdict] += 1
                advance(", ".join(f"{n} {verdict}" for verdict, n in counts.items()))

            summary = sweep(read.questions, settings, where, book, on_answer=on_answer)
        book.peak_rss = summary.rss
        if report is not None:
            write_output(str(report), lambda: write_answers(report, answers(read.questions, settings, book)))
        if as_json:
            for record in answers(read.questions, settings, book):
                say_json(record, indent=None)
        lines = [line_of(record) for record in answers(read.questions, settings, book)]
        if settings.certificates is not None:
            say(certificate_summary(answers(read.questions, settings, book)), err=True)
    if not as_json:
        show_sweep(lines, summary.left, f"{spec}: {summary.questions} questions, {summary.seconds:.1f} s")
    say(told(summary), err=True)
    if any(line.as_expected is False for line in lines):
        return VIOLATED
    if summary.interrupted:
        return INTERRUPTED
    if any(line.internal for line in lines):
        return INTERNAL
    return INCONCLUSIVE if summary.left or any(line.verdict == "unknown" for line in lines) else EXPECTED


def answers(questions: Sequence[Question], settings: Settings, journal: Journal) -> Iterator[dict[str, Any]]:
    """The records of all answered questions, in the order of the SPEC."""
    from treesens.records.journal import key_of

    for question in questions:
        key = key_of(question.digest, settings)
        entry, record = journal.known(key, settings.time_limit), journal.record(key, settings.time_limit)
        if entry is not None and record is not None:
            yield {
                **record,
                "query": question.name,
                "document": question.document.name,
                "implied_by": entry.implied_by,
                "attempts_made": entry.attempts,
                "cpu": entry.cpu,
                "key": key,
                **({"parameters": dict(question.parameters)} if question.parameters else {}),
            }


def told(summary: Summary) -> str:
    """The summary of the run in two lines; zero counts are omitted."""
    shared = f" ({summary.shared} of them by the pair of a harder question)" if summary.shared else ""
    parts = [f"{summary.asked} asked{shared}"]
    numbers = {"implied by others": summary.implied, "from the journal": summary.reused}
    numbers |= {"failed (--retry repeats these)": summary.failed, "left": summary.left}
    parts += [f"{number} {word}" for word, number in numbers.items() if number]
    memory = f"peak memory {summary.rss / 1e6:.0f} MB here, {summary.worker_rss / 1e6:.0f} MB in a worker"
    return f"{', '.join(parts)}\n{summary.seconds:.1f} s, {summary.cpu:.1f} s of CPU; {memory}"
