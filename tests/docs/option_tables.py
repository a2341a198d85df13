"""Tables that are made from declarations when the site is built (website/hooks.py): options, methods, errors and rules.

`python -m tests.docs.option_tables --write` writes the pages with their tables into build/docs.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from tests.docs import solving_page
from treesens.builtin import STUDIES
from treesens.cli import group
from treesens.compiler.ir.verifier import RULES
from treesens.extensions.studies.registry import study_of
from treesens.extensions.studies.study import Door, declared
from treesens.extensions.sweeps.settings import Settings
from treesens.grammar.messages.catalogue import CATALOGUE
from treesens.solve.options import Options

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MARK = re.compile(r"^<!-- options of (\w+) -->$", re.MULTILINE)
"""The line of a page that is replaced by the option table of a command."""
OPTIONS: dict[str, type[Options]] = {"check": Options, "compare": Options, "sweep": Settings}
"""Commands that are no studies, with the class of their options."""
METHODS_MARK = "<!-- methods -->\n"
"""The line of docs/solving.md that is replaced by the list of methods."""
UNSAID = {
    "--json": "The records as JSON on standard output.",
    "--models": "The folder of the models.",
    "--output": "The file of results, JSON lines.",
    "--pipeline": "As for `check`.",
    "--replay": "Replay in the library itself, or emulated.",
    "--seed": "Seed of all random choices.",
    "--time-limit": "Seconds for each question.",
    "--to": "The format.",
}
"""Sentences for options whose help says nothing."""


def table(name: str) -> str:
    """The options of a command, as Markdown."""
    command = group.get_command(click.Context(group), name)
    assert command is not None
    options = study_of(name).options if name in STUDIES.names() else OPTIONS.get(name)
    more = {one.flag: one.option.more for one in (declared(options, ~Door(0)) if options else ())}
    listed = [one for one in command.params if isinstance(one, click.Option)]
    return markdown("option | meaning", (row(one, more) for one in listed))


def errors() -> str:
    """Every error of the language with its cause and remedy."""
    rows = ([code, entry.title, entry.cause, entry.remedy] for code, entry in CATALOGUE.items())
    return markdown("code | title | cause | remedy", map(" | ".join, rows))


def schedule() -> str:
    """The engine's numbers that choose among methods, from the header that declares them."""
    header = (ROOT / "src/treesens/engine/problem/schedule.hpp").read_text("utf-8")
    options = re.findall(r"OPTION\((\w+), ([\d']+), \d+, \"([^\"]+)\"\)", header)
    return markdown(
        "number | default | meaning",
        (f"`{name}` | {value.replace(chr(39), ',')} | {says}" for name, value, says in options),
    )


def rules() -> str:
    """The rules that `verify` checks."""
    return markdown("rule | says", (f"{name} | {text}" for name, text, _ in RULES))


def decisions() -> str:
    """The list of ADRs, by their titles."""
    pages = sorted((DOCS / "adr").glob("0*.md"))
    titles = (page.read_text("utf-8").partition("\n")[0].removeprefix("# ") for page in pages)
    return "\n".join(
        f"- [{title[:4]}]({page.name}) {title[4:].lstrip(': ')}" for page, title in zip(pages, titles, strict=True)
    )


def markdown(head: str, rows: Iterable[str]) -> str:
    return "\n".join(f"| {line} |" for line in (head, " | ".join(["---"] * head.count(" | ") + ["---"]), *rows))


def row(option: click.Option, more: dict[str, str]) -> str:
    """One option: its words, its sentence, its default and what the page says besides."""
    long = long_word(option)
    words = ", ".join(f"`{word}`" for word in (long, *(word for word in option.opts if word != long)))
    return f"{words} | {' '.join(sentences(option, more.get(long, '')))}"


def long_word(option: click.Option) -> str:
    return next(word for word in option.opts if word.startswith("--"))


def sentences(option: click.Option, more: str) -> Iterator[str]:
    if option.help:
        yield option.help.replace("|", "\\|")
    else:
        yield UNSAID[long_word(option)]
    if isinstance(option.type, click.Choice):
        yield f"One of {', '.join(f'`{word}`' for word in option.type.choices)}."
    if option.required:
        yield "It has to be given."
    if option.show_default:
        yield f"Default: {option.default}."
    if more:
        yield more


def filled(text: str) -> str:
    """A page with today's table in the place of each mark."""
    for mark, made in {
        METHODS_MARK: solving_page.table,
        "<!-- decisions -->\n": decisions,
        "<!-- errors -->\n": errors,
        "<!-- schedule -->\n": schedule,
        "<!-- rules -->\n": rules,
    }.items():
        if mark in text:
            text = text.replace(mark, made() + "\n")
    return MARK.sub(lambda mark: table(mark[1]), text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", required=True, help="writes the pages into build/docs")
    parser.parse_args()
    target = ROOT / "build" / "docs"
    target.mkdir(parents=True, exist_ok=True)
    for page in [DOCS / f"{name}.md" for name in ("engine", "ir", "language", "options", "solving")]:
        (target / page.name).write_text(filled(page.read_text("utf-8")), "utf-8")
