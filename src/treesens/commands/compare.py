"""`treesens compare FILE.sens --backends A,B --pipelines P,Q`: one question on many backends and pipelines."""

from __future__ import annotations

import itertools
import shlex
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.core import ParameterSource

from treesens.binder.file import ResolvedQuestion
from treesens.commands.common import (
    EXPECTED,
    INCONCLUSIVE,
    INTERNAL,
    INTERRUPTED,
    chosen,
    exit_code_of,
    file_argument,
    load_file,
    options_at,
    quiet_option,
    split,
    trust_option,
)
from treesens.commands.modules import are_modules
from treesens.compiler.base.option_kinds import Door
from treesens.compiler.ir.files import read_module
from treesens.compiler.result import Result, Verdict
from treesens.errors import TreesensError
from treesens.report.terminal import say, say_json, say_wrapped
from treesens.runtime.interruption import interruptible
from treesens.solve.question import result_of_error
from treesens.visible import visible

if TYPE_CHECKING:
    from treesens.compiler.ir import Module
    from treesens.solve.options import Options


@dataclass(frozen=True)
class Cell:
    """One question on one backend and pipeline."""

    backend: str
    pipeline: str
    result: Result


@dataclass(frozen=True)
class ModuleFile:
    """A module in place of a question."""

    module: Module

    @property
    def name(self) -> str:
        return self.module.name


Subject: TypeAlias = ResolvedQuestion | ModuleFile


@click.command("compare")
@file_argument
@click.argument("queries", nargs=-1)
@click.option("--backends", "-b", default="native,cpsat,highs,z3", show_default=True, help="Comma-separated, or `all`.")
@click.option(
    "--pipelines",
    default="",
    help="Pipelines, separated by semicolons; default: --pipeline, or `independent`, which does not use the engine.",
)
@trust_option
@options_at(Door.COMPARE)
@quiet_option
def command(
    file: Path,
    queries: tuple[str, ...],
    backends: str,
    pipelines: str,
    trust_pickle: bool,
    options: Options,
    as_json: bool,
) -> int:
    """Run the questions of FILE on many backends and pipelines. A contradiction between verdicts is an error (exit code 6), and
    both sides are shown. Witnesses are replayed in the library itself.
    """
    from treesens.backends.base import BACKENDS
    from treesens.backends.worker import check_options
    from treesens.compiler.pipeline import Pipeline
    from treesens.records.answers import envelope
    from treesens.report.show import Progress

    names = BACKENDS.names() if backends == "all" else [BACKENDS.canonical(n) for n in split(backends)]
    for name in names:
        check_options(name)
    # Opinions that depend on the same engine are compared with each other only on request.
    given = click.get_current_context().get_parameter_source("pipeline") is not ParameterSource.DEFAULT
    texts = [text.strip() for text in pipelines.split(";") if text.strip()] or [
        options.pipeline if given else "independent"
    ]
    for text in texts:
        Pipeline.parse(text)
    module = are_modules([file], queries, "backends", "pipelines")
    loaded = None if module else load_file(file, queries, trust_pickle=trust_pickle)
    asked: Sequence[Subject] = [ModuleFile(read_module(file))] if loaded is None else chosen(loaded, queries)
    disagreements: list[str] = []
    rows: list[tuple[Subject, list[Cell]]] = []
    with interruptible() as interruption, Progress(len(asked)) as progress:
        for number, bound in enumerate(asked):
            cells: list[Cell] = []
            for text, name in itertools.product(texts, names):
                if interruption.happened:
                    break
                progress.start(number, f"{bound.name} on {name}, {text}")
                with interruption.giving_up():
                    mine = replace(options, backend=name, pipeline=text)
                    cells.append(Cell(name, text, _answered(bound, mine, interruption.event)))
            progress.clear()
            rows.append((bound, cells))
            disagreements += disagreement(bound, cells)
            if not as_json:
                show(bound, cells)
    if as_json:
        records = [
            {
                **_recorded(bound, replace(cell.result, backend=cell.backend)),
                "timings": timings(cell.result),
            }
            for bound, cells in rows
            for cell in cells
        ]
        say_json(envelope(file, records, disagreements=disagreements))
    for text in disagreements:
        say(text, err=True)
    if disagreements:
        words = ["reduce", str(file), "--keep", "disagreement", "-b", ",".join(names), "--pipelines", ";".join(texts)]
        say(f"a small example: {shlex.join(['treesens', *words])}", err=True)
        return INTERNAL
    if interruption.happened:
        return INTERRUPTED
    undecided = any(all(c.result.verdict is Verdict.UNKNOWN for c in cells) for _, cells in rows)
    code = INCONCLUSIVE if undecided else EXPECTED
    return code if loaded is None else exit_code_of(loaded, code)


def _answered(bound: Subject, options: Options, stop: threading.Event) -> Result:
    from treesens.frontends.registry import libraries_of
    from treesens.solve.module import answer_module
    from treesens.solve.question import answer

    budget = options.budget(stop)
    try:
        if isinstance(bound, ModuleFile):
            return answer_module(bound.module, options, budget)
        known = options.replay != "emulated" and all(libraries_of(bound.models, options.replay))
        predict = [model.replay for model in bound.models] if known else None
        options = replace(options, library_predict=predict)
        # Other steps of `answer_question` (rows of tables, steps after an answer) do not test a backend.
        return answer(bound.query, options, budget)
    except TreesensError as error:
        return result_of_error(bound.name, options, error)


def _recorded(bound: Subject, result: Result) -> dict[str, Any]:
    from treesens.records.answers import record
    from treesens.records.modules import module_record

    if isinstance(bound, ModuleFile):
        return module_record(bound.module, result)
    return record(bound.query, result, data=bound.known_tables())


def _shown_point(bound: Subject, result: Result) -> dict[str, dict[str, Any]]:
    from treesens.records.answers import points_of
    from treesens.records.modules import cells_of

    if isinstance(bound, ModuleFile):
        assert result.solution is not None
        return cells_of(bound.module, result.solution.assignment)
    assert result.witness is not None
    return points_of(bound.query, result.witness)


def disagreement(bound: Subject, cells: list[Cell]) -> list[str]:
    """A sentence with two contradictory verdicts, or none without a contradiction; one sentence per question is enough."""
    found = [c for c in cells if c.result.verdict is Verdict.FOUND]
    none = [c for c in cells if c.result.verdict is Verdict.NONE]
    if not found or not none:
        return []
    return [
        f"disagreement on {bound.name}: {found[0].backend} ({found[0].pipeline}) found {_shown_point(bound, found[0].result)}, "
        f"{none[0].backend} ({none[0].pipeline}) says none ({none[0].result.reason})"
    ]


def timings(result: Result) -> dict[str, float]:
    """Seconds to build the module, to emit it, and to solve it, over all attempts."""
    emit = sum(a.seconds.get("emit", 0.0) for a in result.attempts)
    solve = sum(a.seconds.get("solve", 0.0) for a in result.attempts)
    return {"build": result.seconds.get("build", 0.0), "emit": emit, "solve": solve}


def show(bound: Subject, cells: list[Cell]) -> None:
    """Prints a table for each question."""
    from rich.text import Text

    from treesens.report.show import COLOURS, out
    from treesens.report.tables import Table

    say_wrapped(visible(bound.name))
    table = Table(box=None, padding=(0, 2))
    for column in (
        "backend",
        "pipeline",
        "verdict",
        "proof / replay",
        "build s",
        "emit s",
        "solve s",
        "variables",
        "rows",
        "bound",
    ):
        table.add_column(column, justify="right" if column[-1] == "s" else "left")
    for cell in cells:
        result = cell.result
        times = timings(result)
        how: Any = result.proof or (result.witness.replay if result.witness is not None else result.reason)
        bound_text = (
            "" if result.objective is None or result.objective.bound is None else f"{result.objective.bound:.6g}"
        )
        table.add_row(
            cell.backend,
            cell.pipeline,
            Text(str(result.verdict), style=COLOURS[result.verdict]),
            str(how),
            *(f"{times[key]:.2f}" for key in ("build", "emit", "solve")),
            f"{result.size.variables:,}",
            f"{result.size.rows:,}",
            bound_text,
        )
    table.print_fitted(out(), ("build s", "emit s", "proof / replay", "rows", "variables", "pipeline"))
