"""`treesens reduce FILE --while 'COMMAND'`: the smallest question and model that still show a fault."""

from __future__ import annotations

import tempfile
import time
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treesens.commands.common import (
    EXPECTED,
    INCONCLUSIVE,
    INTERRUPTED,
    SECONDS,
    file_argument,
    json_option,
    option_like,
    split,
    trust_option,
)
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.interruption import interruptible
from treesens.errors import UsageError
from treesens.report.terminal import say, say_json

if TYPE_CHECKING:
    from treesens.extensions.reduce.ddmin import Files
    from treesens.solve.options import Options

EVERY_SECONDS = 1.0
"""The least time between two lines of progress, in seconds."""


@click.command("reduce")
@file_argument
@click.argument("queries", nargs=-1)
@click.option(
    "--while",
    "program",
    metavar="COMMAND",
    help="Keep files for which COMMAND exits with 0; `{}` is the file, in whose folder COMMAND runs.",
)
@click.option(
    "--keep",
    metavar="KIND",
    help="Keep an outcome: disagreement, unknown, crash, error=CODE, or slower-than=SECONDS.",
)
@click.option("--backends", "-b", help="For --keep, comma-separated; default: auto, or those of compare.")
@click.option("--pipelines", help="For --keep, separated by semicolons; default: default, or that of compare.")
@option_like("seed", 0)
@option_like("time_limit", 60.0, "Seconds for the reduction; the result is the smallest file so far.")
@click.option("--timeout", type=SECONDS, default=10.0, show_default=True, help="Seconds for one candidate.")
@click.option("--output", "-o", type=OutputFile(folder=True), help="The folder of the result; default: FILE.reduced.")
@trust_option
@json_option
def command(
    file: Path,
    queries: tuple[str, ...],
    program: str | None,
    keep: str | None,
    backends: str | None,
    pipelines: str | None,
    seed: int,
    time_limit: float,
    timeout: float,
    output: Path | None,
    trust_pickle: bool,
    as_json: bool,
) -> int:
    """Reduce the questions of FILE and their models, or a .sir module, to a small example of the same fault.

    Exit codes: 0 the result shows the fault, 5 it does not show it in a second run, 1 usage, or FILE does not show it, 2
    unreadable input, 130 interrupted (the result is the smallest file so far).
    """
    from treesens.extensions.reduce.ddmin import Reducer
    from treesens.extensions.reduce.folder import Candidates, unused_folder, write_result
    from treesens.extensions.reduce.module import read_rows
    from treesens.extensions.reduce.predicates import Answers, Command, kept
    from treesens.extensions.reduce.sens import read_questions

    if (program is None) == (keep is None):
        raise UsageError("give one predicate", remedy="--while 'COMMAND', or --keep KIND")
    module = file.suffix == ".sir"
    if module and (keep is not None or queries):
        raise UsageError("a module has no questions", remedy="give --while 'COMMAND', and no query")
    subject = read_rows(file) if module else read_questions(file, queries, trust_pickle=trust_pickle)
    predicate = (
        Command.parsed(program, timeout, None if module else Answers("typed", None, trust_pickle, (), timeout))
        if program is not None
        else kept(str(keep), trust_pickle, settings_of(str(keep), backends, pipelines, seed, timeout), timeout)
    )
    target = unused_folder(file) if output is None else output
    for note in subject.notes:
        say(note, err=True)
    start = said = time.monotonic()

    def progress(text: str) -> None:
        nonlocal said
        if time.monotonic() - said >= EVERY_SECONDS:
            said = time.monotonic()
            say(f"reduce: {text}", err=True)

    with tempfile.TemporaryDirectory(prefix="treesens-reduce-") as folder, interruptible() as interruption:
        candidates = Candidates(Path(folder), subject.name, subject.linked)

        def holds(files: Files) -> bool:
            with candidates.written(files) as path:
                return predicate.holds(path)

        reducer = Reducer(holds, time_limit, interruption.event, progress)
        if reducer.interesting(subject):
            with interruption.giving_up():
                reducer.reduced(subject)
    if reducer.best is None and interruption.happened:
        return INTERRUPTED
    if reducer.best is None:
        raise UsageError(
            "the file itself does not satisfy the predicate",
            place=str(file),
            remedy="try the predicate on the file; with more time, give --timeout",
        )
    names = write_result(target, subject.name, reducer.best.files(), reducer.best.linked)
    result = target / subject.name
    again = interruption.happened or predicate.holds(result.absolute())
    before, after = subject.sizes(), reducer.best.sizes()
    finished = not (interruption.happened or reducer.over)
    seconds = round(time.monotonic() - start, 3)
    if as_json:
        say_json(
            {
                "file": str(file), "result": str(result), "files": names, "before": before, "after": after,
                "candidates": reducer.tests, "seconds": seconds, "finished": finished, "reproduced": again,
                "command": predicate.command(result.absolute()), "notes": list(subject.notes),
            }
        )  # fmt: skip
    else:
        for name, count in after.items():
            say(f"{name}: {before[name]:,} → {count:,}")
        say(f"{reducer.tests:,} candidates, {seconds:.1f} s" + ("" if finished else "; not finished"))
        say(f"{', '.join(str(target / name) for name in names)}: {predicate.command(result.absolute())}")
    if interruption.happened:
        return INTERRUPTED
    if not again:
        say("the result does not satisfy the predicate in a second run", err=True)
    return EXPECTED if again else INCONCLUSIVE


def settings_of(keep: str, backends: str | None, pipelines: str | None, seed: int, timeout: float) -> list[Options]:
    """The options of each backend with each pipeline. Raises UsageError or PipelineError for an unknown name."""
    from treesens.commands.compare import command as compare
    from treesens.compiler.pipeline import Pipeline
    from treesens.solve.options import Options

    several = keep == "disagreement"
    default = next(option.default for option in compare.params if option.name == "backends")
    names = split(backends) or (split(str(default)) if several else ["auto"])
    texts = [text.strip() for text in (pipelines or "").split(";") if text.strip()]
    texts = texts or ["independent" if several else "default"]
    for text in texts:
        Pipeline.parse(text)
    shared = timeout / (len(names) * len(texts))
    return [Options(name, text, time_limit=shared, seed=seed) for text, name in product(texts, names)]
