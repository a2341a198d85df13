"""`treesens explain FILE.sens [QUERY…]`: the meaning of a question and its compilation."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from treesens.binder.file import ResolvedQuestion
from treesens.commands.common import (
    Pieces,
    chosen,
    exit_code_of,
    file_argument,
    json_option,
    load_file,
    option_like,
    trust_option,
)
from treesens.report.terminal import say_json
from treesens.visible import visible


@click.command("explain")
@file_argument
@click.argument("queries", nargs=-1)
@trust_option
@option_like("time_limit", None, "Seconds to compile each question (default: no limit).")
@option_like("backend", "native", "Backend whose legalisations and methods are shown.")
@option_like("pipeline", "default")
@json_option
def command(
    file: Path,
    queries: tuple[str, ...],
    trust_pickle: bool,
    time_limit: float | None,
    backend: str,
    pipeline: str,
    as_json: bool,
) -> int:
    """Explain the questions of FILE, in English and in formulas, and show their compiled form. Solves nothing."""
    from treesens.backends.base import get_backend
    from treesens.compiler.pipeline import Pipeline, pipeline_for
    from treesens.records.answers import envelope
    from treesens.report.explain import explanation
    from treesens.solve.options import Options

    # `auto` starts with the native engine, so that engine is shown.
    chosen_backend = get_backend("native" if backend == "auto" else backend)
    options = Options(backend=backend, pipeline=pipeline)
    pipeline = pipeline_for(chosen_backend.name, pipeline)
    Pipeline.parse(pipeline)
    loaded = load_file(file, queries, trust_pickle=trust_pickle)
    pieces, records = Pieces(time_limit), list[dict[str, Any]]()

    def explained(bound: ResolvedQuestion) -> dict[str, Any]:
        return explanation(bound, pipeline, chosen_backend, options)

    for bound in chosen(loaded, queries):
        made = pieces.done(bound.name, partial(explained, bound))
        records += [] if made is None else [made]
    if as_json:
        say_json(envelope(file, records))
    else:
        for record in records:
            _show(record)
    return exit_code_of(loaded, pieces.code)


def _show(record: dict[str, Any]) -> None:
    from rich.text import Text

    from treesens.report.show import out
    from treesens.report.terminal import console as console_of

    console = out()
    prose = console_of()

    def title(text: str) -> None:
        console.print(Text(f"\n{text}", style="bold"))

    console.print(Text(visible(record["query"]), style="bold yellow"))
    prose.print(Text(visible(record["sentence"])))
    title("In .sens, without shorthand")
    console.print(record["expansion"])
    title("In formulas (S is the raw score: the exact sum of leaves and base margin; values as stored in the model)")
    for line in record["formulas"]:
        console.print(f"  {visible(line)}")
    title("Cells")
    _cells(record["cells"]).print_fitted(console)
    title(f"Compiled by {record['pipeline']['name']} ({record['relation']})")
    _passes(record["passes"]).print_fitted(console)
    for step in record["passes"]:
        prose.print(Text(f"  {step['pass']}: {step['about']}"))
    if record["rows"]:
        title("Score rows, exact integers")
        for row in record["rows"]:
            kind = ", implied" if row["implied"] else ", conditional" if row["conditional"] else ""
            text = f"  {row['name']}: {row['terms']:,} terms, sum >= {row['bound']} · 2^-{row['shift']}{kind}"
            console.print(text)
    how = record["legalisation"]
    title(f"For the backend {how['backend']} ({how['proof']} proofs)")
    console.print(f"  takes as they are: {', '.join(how['takes']) or 'nothing'}")
    for item in how["rewritten"]:
        console.print(f"  {item['kind']} ({item['nodes']} node(s)) becomes {item['becomes']}")
    console.print(f"  rounding: {how['rounding']}")
    if how["characters"]:
        console.print(f"  written as {how['format']}, {how['characters']:,} characters")
    title("Fitting methods, in order")
    _methods(record["methods"]).print_fitted(console)
    for note in record["method_notes"]:
        prose.print(Text(f"  {visible(note)}"))
    console.print()


def _methods(methods: list[dict[str, Any]]) -> Any:
    from rich.text import Text

    from treesens.report.tables import Table
    from treesens.solve.method import time_words

    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    for name in ("  method", "time", "proves"):
        table.add_column(name)
    for method in methods:
        time = time_words(method["share"], method["most_seconds"])
        table.add_row(Text(f"  {method['method']}"), Text(time), Text(method["proves"]))
    return table


def _cells(cells: list[dict[str, Any]]) -> Any:
    from rich.text import Text

    from treesens.report.tables import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    table.add_column("  feature")
    for name in ("guards", "cells", "legal"):
        table.add_column(name, justify="right")
    table.add_column("domain")
    for row in cells:
        style = "yellow" if row["varied"] else ""
        guards = " + ".join(str(g) for g in row["guards"])
        domain = row["domain"] + (", may differ" if row["varied"] else "")
        numbers = (guards, str(row["cells"]), str(row["legal"]))
        table.add_row(Text(f"  {row['feature']}", style=style), *numbers, Text(domain, style=style))
    return table


def _passes(passes: list[dict[str, Any]]) -> Any:
    from rich.text import Text

    from treesens.report.tables import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    table.add_column("  after")
    for name in ("variables", "rows", "non-zeros", "ms"):
        table.add_column(name, justify="right")
    table.add_column("counted")
    for step in passes:
        size = [f"{step['size'][key]:,}" for key in ("variables", "rows", "nonzeros")]
        took = "" if step["seconds"] is None else f"{step['seconds'] * 1000:.1f}"
        facts = ", ".join(f"{key} {count:,}" for key, count in step["statistics"].items())
        table.add_row(Text(f"  {step['pass']}"), *size, took, Text(facts))
    return table
