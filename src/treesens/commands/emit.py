"""`treesens emit FILE.sens --to FORMAT -o OUT`: writes a solver's input; the solver is not needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treesens.backends.text.formats import FORMATS, PLUGINS, format_named, variable_names
from treesens.commands.common import (
    Pieces,
    Whole,
    chosen,
    exit_code_of,
    file_argument,
    load_file,
    option_like,
    trust_option,
)
from treesens.commands.modules import are_modules
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.files import check_writable, make_folder, will_write, write_atomically
from treesens.compiler.ir.files import read_module
from treesens.errors import UsageError
from treesens.report.terminal import say

if TYPE_CHECKING:
    from treesens.backends.base import Artifact
    from treesens.compiler.ir import Module
    from treesens.compiler.query.query import Query


@dataclass(frozen=True)
class Source:
    """A module to write, with the question that it belongs to; None for a module from a file."""

    name: str
    compiled: Callable[[], Module]
    query: Query | None = None


class Target(click.Choice[str]):
    """A built-in format, or a format of a plug-in."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in FORMATS and value in PLUGINS.names():
            return value
        found: str = super().convert(value, param, ctx)
        return found


@click.command("emit")
@file_argument
@click.argument("queries", nargs=-1)
@trust_option
@click.option("--to", "target", type=Target(list(FORMATS)), required=True)
@click.option("--output", "-o", type=OutputFile(either=True), help="The output file; for several questions, a folder.")
@click.option("--force", is_flag=True, help="Replace existing files in the folder.")
@click.option("--legend", is_flag=True, help="Also write FILE.legend.tsv per file, with the meaning of every variable.")
@option_like("time_limit", None, "Seconds to compile and write each question (default: no limit).")
@option_like("pipeline", "independent")
@click.option("--precision", type=Whole(min=0), default=0, help="0 relaxes rows outward; see docs/encodings.md.")
def command(
    file: Path,
    queries: tuple[str, ...],
    trust_pickle: bool,
    target: str,
    output: Path | None,
    force: bool,
    legend: bool,
    time_limit: float | None,
    pipeline: str,
    precision: int,
) -> int:
    """Write the questions of FILE, or the module NAME.sir, in a solver's format (or as IR, sir)."""
    from treesens.backends.text.value import legend as make_legend
    from treesens.backends.text.value import with_value
    from treesens.compiler.ir.text import print_module
    from treesens.compiler.pipeline import Pipeline, compile_query
    from treesens.compiler.query.probabilities import names_probabilities

    def compiled_module(query: Query) -> Module:
        return compile_query(query, pipeline).module

    steps = Pipeline.parse(pipeline)
    loaded, asked = None, list[Source]()
    if are_modules([file], queries, "target", "output", "force", "precision"):
        module = read_module(file)
        asked = [Source(module.name, lambda: steps.run(module).module)]
    else:
        loaded = load_file(file, queries, trust_pickle=trust_pickle)
        for bound in chosen(loaded, queries):
            asked.append(Source(bound.name, partial(compiled_module, bound.query), bound.query))
    if len(asked) > 1 and output is None:
        raise UsageError(
            f"{len(asked)} questions and one standard output",
            remedy="name one question, or pass a folder with --output",
        )
    if output is not None and len(asked) == 1:
        check_writable(output)
    if legend and output is None:
        raise UsageError("a legend requires an output file", remedy="pass a file with --output")
    paths = files_of([source.name for source in asked], output, target, force=force)
    legends = {name: path.with_name(f"{path.name}.legend.tsv") for name, path in paths.items() if legend}
    for beside in legends.values():
        will_write(beside, derived=True, force=force)
    if output is not None and len(asked) > 1:
        make_folder(output)

    def written(source: Source) -> tuple[str, Module, list[str]]:
        module = source.compiled()
        if target == "sir":
            return print_module(module, full=True), module, variable_names(target, module.variables)
        place, _, name = format_named(target).writer.partition(":")
        write: Callable[..., Artifact] = getattr(import_module(place), name)
        artifact = write(module, precision=precision)
        goal = None if source.query is None else source.query.objective
        return with_value(module, artifact, goal), module, artifact.names

    pieces = Pieces(time_limit)
    for source in asked:
        name, query = source.name, source.query
        done = pieces.done(name, partial(written, source))
        if done is None:
            continue
        text, module, names = done
        if query is not None and names_probabilities(query.constraints):
            words = "nonlinear probabilities are replaced by implied rows"
            say(f"note: {name}: {words}: a relaxation, for which only `infeasible` is conclusive", err=True)
        path = paths.get(name)
        if path is None:
            say(text, nl=False)
            continue
        write_atomically(path, text)
        say(f"wrote {path} ({len(text):,} characters)", err=True)
        if name in legends and query is not None:
            meanings = pieces.done(f"the legend of {name}", partial(make_legend, module, query, names))
            if meanings is not None:
                write_atomically(legends[name], meanings)
                say(f"wrote {legends[name]} ({meanings.count(chr(10)) - 1:,} variables)", err=True)
    return pieces.code if loaded is None else exit_code_of(loaded, pieces.code)


def files_of(names: Sequence[str], output: Path | None, target: str, *, force: bool) -> dict[str, Path]:
    """The file of each question: `output` itself for one question, files inside it for several; empty without `output`.

    Raises UsageError if two questions share a file name, and OverwriteError if a file exists, unless `force` is set.
    """
    if output is None or len(names) == 1:
        return {} if output is None else {names[0]: output}
    paths: dict[str, Path] = {}
    for name in names:
        path = output / f"{file_name(name)}.{target}"
        other = next((known for known, taken in paths.items() if taken.name.lower() == path.name.lower()), None)
        if other is not None:
            raise UsageError(
                f"`{other}` and `{name}` would both be written to {path}", remedy="write one question, or rename one"
            )
        paths[name] = will_write(path, derived=True, force=force)
    return paths


def file_name(query: str) -> str:
    """A query name as a file name."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in query).strip("_")
