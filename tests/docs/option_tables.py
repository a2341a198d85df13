"""The option tables of the pages about studies, made from their declarations: python -m tests.docs.option_tables --write."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import click

from treesens.cli import group
from treesens.studies.registry import STUDIES, study_of
from treesens.studies.study import Door, declared

PAGE = Path(__file__).parents[2] / "docs" / "cli-study.md"
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


def page(text: str) -> str:
    """The page with the tables of today."""
    for name in STUDIES:
        begin = BEGIN.format(name)
        before, found, rest = text.partition(begin)
        assert found, f"no table of {name} on {PAGE.name}: put `{begin.strip()}` and `{END.strip()}` there"
        text = f"{before}{begin}\n{table(name)}\n{END}{rest.partition(END)[2]}"
    return text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", required=True, help="writes the page")
    parser.parse_args()
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
