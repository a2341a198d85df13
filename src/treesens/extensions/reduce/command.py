"""`treesens reduce FILE`: a small example of a fault."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treesens.commands import common
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.files import make_folder, write_atomically
from treesens.errors import OverwriteError, UsageError
from treesens.report.terminal import say, say_json
from treesens.runtime.interruption import interruptible

if TYPE_CHECKING:
    from treesens.extensions.reduce.ddmin import Files
    from treesens.solve.options import Options

EVERY_SECONDS = 1.0
"""The least time between two lines of progress, in seconds."""


@click.command("reduce")
@common.file_argument
@click.argument("queries", nargs=-1)
@click.option(
    "--while", "program", metavar="COMMAND", help="Keep files for which COMMAND exits with 0; `{}` is the file."
)
@click.option("--keep", metavar="KIND", help="Keep disagreement, unknown, crash, error=CODE, or slower-than=SECONDS.")
@click.option("--backends", "-b", help="For --keep: comma-separated; default: auto, for disagreement those of compare.")
@click.option("--pipelines", help="For --keep: separated by semicolons; default: default, or independent.")
@common.option_like("time_limit", 60.0, "Seconds for the reduction; the result is the smallest file so far.")
@click.option("--timeout", type=common.SECONDS, default=10.0, show_default=True, help="Seconds for one candidate.")
@click.option("--output", "-o", type=OutputFile(folder=True), help="The folder of the result; default: FILE.reduced.")
@common.trust_option
@common.json_option
def command(
    file: Path,
    queries: tuple[str, ...],
    program: str | None,
    keep: str | None,
    backends: str | None,
    pipelines: str | None,
    time_limit: float,
    timeout: float,
    output: Path | None,
    trust_pickle: bool,
    as_json: bool,
) -> int:
    """Reduce the questions of FILE and their models, or a .sir module, to a small example of a fault.

    Exit codes: 0 the result shows the fault, 5 it does not show it again, 1 usage, or FILE does not show the fault, 2
    unreadable input, 130 interrupted (the result is the smallest file so far).
    """
    from treesens.extensions.reduce.ddmin import Reducer, Subject
    from treesens.extensions.reduce.module import read_rows
    from treesens.extensions.reduce.predicates import Outcome, Predicate, Program, kept
    from treesens.extensions.reduce.sens import read_questions

    if (program is None) == (keep is None):
        raise UsageError("one predicate is needed", remedy="pass --while COMMAND or --keep KIND")
    subject: Subject
    typed = None
    if file.suffix != ".sir":
        subject = read_questions(file, queries, trust_pickle=trust_pickle)
        typed = Outcome("typed", None, trust_pickle, (), timeout)
    elif keep is not None or queries:
        raise UsageError("a module has no questions", remedy="pass --while COMMAND, and no names of queries")
    else:
        subject = read_rows(file)
    predicate: Predicate
    if keep is not None:
        predicate = kept(keep, trust_pickle, _settings(keep == "disagreement", backends, pipelines, timeout), timeout)
    else:
        predicate = Program.parsed(str(program), timeout, typed)
    folder = Path(f"{Path(subject.name).stem}.reduced") if output is None else output
    if output is None and folder.exists():
        raise OverwriteError("the folder of the result exists", place=str(folder), remedy="pass another as --output")
    for note in subject.notes:
        say(note, err=True)
    start = said = time.monotonic()

    def progress(text: str) -> None:
        nonlocal said
        if time.monotonic() - said >= EVERY_SECONDS:
            said = time.monotonic()
            say(f"reduce: {text}", err=True)

    with tempfile.TemporaryDirectory(prefix="treesens-reduce-") as scratch, interruptible() as interruption:

        def holds(files: Files) -> bool:
            place = Path(scratch, str(reducer.tests))
            try:
                place.mkdir()
                for name, content in files.items():
                    (place / name).write_bytes(content)
                for name, original in subject.linked.items():
                    if original.exists():
                        (place / name).symlink_to(original.resolve())
                return predicate.holds(place / subject.name)
            finally:
                shutil.rmtree(place, ignore_errors=True)

        reducer = Reducer(holds, time_limit, interruption.event, progress)
        with interruption.giving_up():
            reducer.reduce(subject)
    if reducer.best is None:
        if interruption.happened:
            return common.INTERRUPTED
        remedy = "try the predicate on FILE; --timeout gives it more time"
        raise UsageError("the file does not satisfy the predicate", place=str(file), remedy=remedy)
    result, finished = (folder / subject.name).absolute(), reducer.finished
    names = _write(folder, subject.name, reducer.best.files(), subject.linked)
    again = interruption.happened or predicate.holds(result)
    record: dict[str, Any] = {
        "file": str(result), "files": names, "before": subject.sizes(), "after": reducer.best.sizes(),
        "candidates": reducer.tests, "seconds": round(time.monotonic() - start, 3), "finished": finished,
        "reproduced": again, "command": predicate.line(result),
    }  # fmt: skip
    if as_json:
        say_json(record)
    else:
        say(", ".join(f"{record['before'][part]:,} → {count:,} {part}" for part, count in record["after"].items()))
        say(f"{reducer.tests:,} candidates, {record['seconds']:.1f} s" + ("" if finished else ", not finished"))
        say(f"{', '.join(str(folder / name) for name in names)}: {record['command']}")
    if not again:
        say("the result does not satisfy the predicate a second time", err=True)
    return common.INTERRUPTED if interruption.happened else common.EXPECTED if again else common.INCONCLUSIVE


def _settings(several: bool, backends: str | None, pipelines: str | None, timeout: float) -> list[Options]:
    """The options of every backend with every pipeline, which share the time of a candidate."""
    from treesens.backends.base import get_backend
    from treesens.commands.compare import command as compare
    from treesens.compiler.pipeline import Pipeline
    from treesens.solve.options import Options

    default = next(str(option.default) for option in compare.params if option.name == "backends")
    names = common.split(backends) or (common.split(default) if several else ["auto"])
    texts = [text.strip() for text in (pipelines or "").split(";") if text.strip()]
    texts = texts or ["independent" if several else "default"]
    for name in set(names) - {"auto"}:
        get_backend(name)
    for text in texts:
        Pipeline.parse(text)
    return [Options(name, text, timeout / len(names) / len(texts)) for text, name in product(texts, names)]


def _write(folder: Path, name: str, files: Files, linked: Mapping[str, Path]) -> list[str]:
    """Writes a subject and the linked files; the main file comes last. Returns the names of all files."""
    make_folder(folder)
    for other, original in linked.items():
        if original.is_dir():
            shutil.copytree(original, folder / other, dirs_exist_ok=True)
        elif original.exists():
            write_atomically(folder / other, original.read_bytes())
    for one in sorted(files, key=lambda one: one == name):
        write_atomically(folder / one, files[one])
    return [name, *sorted({*files, *linked} - {name})]
