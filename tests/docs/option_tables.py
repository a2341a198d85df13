"""Tables that are made from declarations when the site is built (website/hooks.py): options of commands, and methods.

`python -m tests.docs.option_tables --write` writes the pages with their tables into build/docs.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import click

from tests.docs import solving_page
from treesens.cli import group
from treesens.extensions.studies.registry import study_of
from treesens.extensions.studies.study import Door, declared
from treesens.extensions.sweeps.settings import Settings
from treesens.solve.options import Options

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MARK = re.compile(r"^<!-- options of (\w+) -->$", re.MULTILINE)
"""The line of a page that is replaced by the table of a command."""
OPTIONS: dict[str, type[Options]] = {"check": Options, "sweep": Settings}
"""Commands that are no studies, with the class of their options."""
METHODS_MARK = "<!-- methods -->\n"
"""The line of docs/solving.md that is replaced by the list of methods."""


def table(name: str) -> str:
    """The options of a command, as Markdown."""
    command = group.get_command(click.Context(group), name)
    assert command is not None
    options = OPTIONS[name] if name in OPTIONS else study_of(name).options
    more = {one.flag: one.option.more for one in declared(options, ~Door(0))}
    options = [one for one in command.params if isinstance(one, click.Option)]
    return "\n".join(["| option | meaning |", "| --- | --- |", *(row(one, more) for one in options)])


def row(option: click.Option, more: dict[str, str]) -> str:
    """One option: its words, its sentence, its default and what the page says besides."""
    long = next(word for word in option.opts if word.startswith("--"))
    words = ", ".join(f"`{word}`" for word in (long, *(word for word in option.opts if word != long)))
    return f"| {words} | {' '.join(sentences(option, more.get(long, '')))} |"


def sentences(option: click.Option, more: str) -> Iterator[str]:
    if option.help:
        yield option.help.replace("|", "\\|")
    elif option.name == "seed":
        yield "Seed of all random choices."
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
    return MARK.sub(lambda mark: table(mark[1]), text.replace(METHODS_MARK, solving_page.table() + "\n"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", required=True, help="writes the pages into build/docs")
    parser.parse_args()
    target = ROOT / "build" / "docs"
    target.mkdir(parents=True, exist_ok=True)
    for page in [*sorted(DOCS.glob("cli-*.md")), DOCS / "solving.md"]:
        (target / page.name).write_text(filled(page.read_text("utf-8")), "utf-8")
