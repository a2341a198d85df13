"""`treesens compare FILE.sens --backends A,B --pipelines P,Q`: one question on many backends and pipelines."""

from __future__ import annotations

import itertools
import shlex
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
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
    write_output,
)
from treesens.commands.measure import Runs, measure_options, plotted, run_facts, spread_text, work_text
from treesens.commands.modules import OF_EVERY_COMMAND, are_modules, refuse_others
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.files import write_atomically
from treesens.compiler.base.option_kinds import Door, declared
from treesens.compiler.ir.files import read_module
from treesens.compiler.result import Result, Verdict
from treesens.errors import TreesensError
from treesens.report.terminal import say, say_json, say_wrapped
from treesens.runtime.interruption import interruptible
from treesens.solve.exported import ExportedFile, answer_exported, check_readers, is_exported, read_exported, readers_of
from treesens.solve.options import Options
from treesens.solve.question import result_of_error
from treesens.visible import visible

if TYPE_CHECKING:
    from treesens.compiler.ir import Module


@dataclass(frozen=True)
class Cell:
    """One run of one question on one backend and pipeline; the pipeline is empty for an exported file."""

    backend: str
    pipeline: str
    result: Result
    seed: int = 0
    number: int = 1

    @property
    def who(self) -> str:
        """The run, for sentences."""
        which = (self.pipeline, f"seed {self.seed}" * bool(self.seed), f"run {self.number}" * (self.number > 1))
        said = ", ".join(filter(None, which))
        return f"{self.backend} ({said})" if said else self.backend


@dataclass(frozen=True)
class ModuleFile:
    """A module in place of a question."""

    module: Module

    @property
    def name(self) -> str:
        return self.module.name


Subject: TypeAlias = ResolvedQuestion | ModuleFile | ExportedFile


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
@measure_options
@click.option("--plot", type=OutputFile(), help="Draw times, and bounds over time (SVG).")
@quiet_option
def command(
    file: Path,
    queries: tuple[str, ...],
    backends: str,
    pipelines: str,
    trust_pickle: bool,
    options: Options,
    as_json: bool,
    runs: Runs,
    plot: Path | None,
) -> int:
    """Run the questions of FILE on many backends and pipelines. A contradiction between verdicts is an error (exit code 6), and
    both sides are shown. Witnesses are replayed in the library itself.

    FILE can also be a text of `emit` (.lp, .mps, .smt2) for the solvers that read this format.
    """
    from treesens.backends.worker import check_options
    from treesens.compiler.pipeline import Pipeline
    from treesens.records.answers import envelope
    from treesens.report.show import Progress

    exported = is_exported(file)
    names = _backends(backends, file)
    for name in names:
        check_options(name)
    # Opinions that depend on the same engine are compared with each other only on request.
    texts = [text.strip() for text in pipelines.split(";") if text.strip()] or [
        options.pipeline if _given("pipeline") else "independent"
    ]
    for text in texts:
        Pipeline.parse(text)
    loaded = None
    asked: Sequence[Subject]
    if exported:
        known = {one.field for one in declared(Options, Door.MODULE)} - {"pipeline"}
        refuse_others(f"the file {file}", queries, known | OF_EVERY_COMMAND | _OWN - {"pipelines"})
        asked, texts = [read_exported(file, options.closeness)], [""]
    elif are_modules([file], queries, *_OWN):
        asked = [ModuleFile(read_module(file))]
    else:
        loaded = load_file(file, queries, trust_pickle=trust_pickle)
        asked = chosen(loaded, queries)
    each = list(itertools.product(range(1, runs.repeat + 1), runs.seeds_or(options.seed), texts, names))
    disagreements: list[str] = []
    rows: list[tuple[Subject, list[Cell]]] = []
    with interruptible() as interruption, Progress(len(asked)) as progress:
        for number, bound in enumerate(asked):
            cells: list[Cell] = []
            for run, seed, text, name in each:
                if interruption.happened:
                    break
                progress.start(number, f"{bound.name} on {name}, {text}".removesuffix(", "))
                with interruption.giving_up():
                    mine = replace(options, backend=name, pipeline=text, seed=seed, watch=True)
                    mine = replace(mine, log=runs.log(bound.name, mine, run))
                    cells.append(Cell(name, text, _answered(bound, mine, interruption.event), seed, run))
            progress.clear()
            rows.append((bound, cells))
            disagreements += disagreement(bound, cells)
            if not as_json:
                show(bound, cells)
    if as_json or plot is not None:
        records = [_recorded(bound, cell) for bound, cells in rows for cell in cells]
        if as_json:
            say_json(envelope(file, records, disagreements=disagreements))
        if plot is not None:
            write_output(str(plot), lambda: write_atomically(plot, plotted(records)))
    for text in disagreements:
        say(text, err=True)
    if disagreements and exported:
        return INTERNAL
    if disagreements:
        words = ["reduce", str(file), "--keep", "disagreement", "-b", ",".join(names), "--pipelines", ";".join(texts)]
        say(f"a small example: {shlex.join(['treesens', *words])}", err=True)
        return INTERNAL
    if interruption.happened:
        return INTERRUPTED
    undecided = any(all(c.result.verdict is Verdict.UNKNOWN for c in cells) for _, cells in rows)
    code = INCONCLUSIVE if undecided else EXPECTED
    return code if loaded is None else exit_code_of(loaded, code)


_OWN = frozenset({"backends", "pipelines", "repeat", "seeds", "logs", "plot"})


def _given(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def _backends(text: str, file: Path) -> list[str]:
    """The names of the backends; for an exported file, by default all that read its format and are installed."""
    from treesens.backends.base import BACKENDS, get_backend

    every = BACKENDS.names() if text == "all" else [BACKENDS.canonical(n) for n in split(text)]
    if not is_exported(file):
        return every
    if text == "all" or not _given("backends"):
        return [name for name in readers_of(file) if get_backend(name).available() is None]
    check_readers(file, every)
    return every


def _answered(bound: Subject, options: Options, stop: threading.Event) -> Result:
    from treesens.frontends.registry import libraries_of
    from treesens.solve.module import answer_module
    from treesens.solve.question import answer

    budget = options.budget(stop)
    try:
        if isinstance(bound, ModuleFile):
            return answer_module(bound.module, options, budget)
        if isinstance(bound, ExportedFile):
            return answer_exported(bound, options, budget)
        known = options.replay != "emulated" and all(libraries_of(bound.models, options.replay))
        predict = [model.replay for model in bound.models] if known else None
        options = replace(options, library_predict=predict)
        # Other steps of `answer_question` (rows of tables, steps after an answer) do not test a backend.
        return answer(bound.query, options, budget)
    except TreesensError as error:
        return result_of_error(bound.name, options, error)


def _recorded(bound: Subject, cell: Cell) -> dict[str, Any]:
    facts = {"timings": timings(cell.result), **run_facts(cell.result, cell.seed, cell.number)}
    return {**_answer_recorded(bound, replace(cell.result, backend=cell.backend)), **facts}


def _answer_recorded(bound: Subject, result: Result) -> dict[str, Any]:
    from treesens.records.answers import record
    from treesens.records.modules import file_record, module_record

    if isinstance(bound, ModuleFile):
        return module_record(bound.module, result)
    if isinstance(bound, ExportedFile):
        return file_record(bound, result)
    return record(bound.query, result, data=bound.known_tables())


def _shown_point(bound: Subject, result: Result) -> Mapping[str, Any]:
    from treesens.records.answers import points_of
    from treesens.records.modules import cells_of, value_reached

    if isinstance(bound, ModuleFile):
        assert result.solution is not None
        return cells_of(bound.module, result.solution.assignment)
    if isinstance(bound, ExportedFile):
        return {"objective": value_reached(result)}
    assert result.witness is not None
    return points_of(bound.query, result.witness)


def disagreement(bound: Subject, cells: list[Cell]) -> list[str]:
    """A sentence with two contradictory verdicts, or optima of a file; none without a contradiction. One sentence is enough."""
    found = [c for c in cells if c.result.verdict is Verdict.FOUND]
    none = [c for c in cells if c.result.verdict is Verdict.NONE]
    if not found or not none:
        return _other_optimum(bound, found) if isinstance(bound, ExportedFile) else []
    return [
        f"disagreement on {bound.name}: {found[0].who} found {_shown_point(bound, found[0].result)}, "
        f"{none[0].who} says none ({none[0].result.reason})"
    ]


_CLOSE = 1e-5
"""Solvers with tolerances agree on an optimum up to this part of it, or this number."""


def _other_optimum(file: ExportedFile, cells: Sequence[Cell]) -> list[str]:
    """A sentence if the least and the largest optimum differ by more than the solvers' tolerances."""
    from treesens.records.modules import value_reached

    ended = [c for c in cells if c.result.attempts[-1].termination == "optimal"]
    optima = sorted((value, c.who) for c in ended if (value := value_reached(c.result)) is not None)
    largest = max((abs(value) for value, _ in optima), default=0.0)
    close = max(_CLOSE, 2 * file.tolerance.relative) * max(1.0, largest) + 2 * file.tolerance.absolute
    if not optima or optima[-1][0] - optima[0][0] <= close:
        return []
    (low, first), (high, last) = optima[0], optima[-1]
    return [f"disagreement on {file.name}: the optimum is {low!r} by {first}, and {high!r} by {last}"]


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
    for column in ("backend", "pipeline", "verdict", "proof / replay", *SECONDS, "search", "variables", "rows", *ENDS):
        table.add_column(column, justify="right" if column[-1] == "s" else "left")
    for runs in _runs(cells):
        # The row shows the verdict of the first run that decided the question.
        cell = next((run for run in runs if run.result.verdict is not Verdict.UNKNOWN), runs[0])
        result = cell.result
        verdicts = Counter(run.result.verdict for run in runs)
        shown = Text(str(result.verdict), style=COLOURS[result.verdict])
        if len(verdicts) > 1:
            shown = Text(", ".join(f"{verdict} {count}" for verdict, count in verdicts.items()))
        how: Any = result.proof or (result.witness.replay if result.witness is not None else result.reason)
        times = [timings(run.result) for run in runs]
        table.add_row(
            cell.backend,
            cell.pipeline,
            shown,
            str(how),
            *(spread_text([one[key] for one in times]) for key in ("build", "emit", "solve")),
            work_text(run_facts(run.result, run.seed, run.number)["search"] for run in runs),
            *("" if isinstance(bound, ExportedFile) else f"{n:,}" for n in (result.size.variables, result.size.rows)),
            *("" if end is None else f"{end:.6g}" for end in _ends(bound, result)),
        )
    table.drop_empty("pipeline", "variables", "rows", "search", *ENDS)
    table.print_fitted(out(), ("build s", "emit s", "proof / replay", "rows", "variables", "search", "pipeline"))


SECONDS = ("build s", "emit s", "solve s")
ENDS = ("value", "bound")


def _runs(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The runs of each backend and pipeline."""
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.backend, cell.pipeline), []).append(cell)
    return list(found.values())


def _ends(bound: Subject, result: Result) -> tuple[float | None, float | None]:
    """The value that was reached, and its proved bound."""
    from treesens.records.modules import value_reached

    if isinstance(bound, ExportedFile):
        reached = value_reached(result)
        return reached if reached is None or bound.line is None else bound.line.value(reached), None
    return (None, None) if result.objective is None else (result.objective.value, result.objective.bound)
