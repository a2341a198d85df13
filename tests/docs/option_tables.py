"""The option tables of the pages about studies, made from their declarations: python -m tests.docs.option_tables --write."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import click

from treesens.builtin import STUDIES
from treesens.cli import group
from treesens.extensions.studies.registry import study_of
from treesens.extensions.studies.study import Door, declared

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "cli-study.md", DOCS / "cli-compare.md")
BEGIN = "<!-- options of {}, made from its declaration: python -m tests.docs.option_tables --write -->\n"
END = "<!-- end -->\n"


def table(name: str) -> str:
    """The options of a study, as Markdown."""
    command = group.get_command(click.Context(group), name)
    assert command is not None
    more = {one.flag: one.option.more for one in declared(study_of(name).options, Door.COMMAND)}
    options = [one for one in command.params if isinstance(one, click.Option)]
    return "\n".join(["| option | meaning |", "| --- | --- |", *(row(one, more) for one in options)]) + "\n"


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


def pages() -> dict[Path, str]:
    """The pages with the tables of today."""
    texts = {page: page.read_text("utf-8") for page in PAGES}
    for name in STUDIES.names():
        begin = BEGIN.format(name)
        places = [page for page, text in texts.items() if begin in text]
        assert len(places) == 1, (
            f"no table of {name}: put `{begin.strip()}` and `{END.strip()}` on a page about commands"
        )
        before, _, rest = texts[places[0]].partition(begin)
        texts[places[0]] = f"{before}{begin}\n{table(name)}\n{END}{rest.partition(END)[2]}"
    return texts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", required=True, help="writes the pages")
    parser.parse_args()
    for page, text in pages().items():
        page.write_text(text, "utf-8")
