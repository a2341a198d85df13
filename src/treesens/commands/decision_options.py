"""Options of commands about the decision of a model: its cut-off, its classes, its domain, and what makes CI fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import click

from treesens.commands.common import EXPECTED, VIOLATED, split
from treesens.compiler.base.numbers import fraction_of
from treesens.grammar.tree.words import TYPICAL_WAYS

Function = TypeVar("Function", bound=Callable[..., Any])


class Cutoff(click.ParamType[Fraction]):
    """A probability between 0 and 1, kept as it is written."""

    name = "probability"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        try:
            number = fraction_of(str(value))
        except (ValueError, ZeroDivisionError):
            self.fail(f"`{value}` is no number; write e.g. 0.2", param, ctx)
        if not 0 < number < 1:
            self.fail(f"`{value}` does not lie between 0 and 1", param, ctx)
        return number


def decision_options(function: Function) -> Function:
    """`threshold` (a Fraction or None), `classes` (a list), `domain` (a path or None), `fail_on` and `quiet`."""
    options = (
        click.option(
            "--threshold", type=Cutoff(), help="The decision is probability >= THRESHOLD (default: the model's own)."
        ),
        click.option(
            "--classes",
            callback=lambda _context, _option, text: split(text),
            help="Classes, as A,B. One: its score alone; several: changes between them. Default: all.",
        ),
        click.option(
            "--domain",
            type=click.Path(path_type=Path, dir_okay=False),
            help="A .sens file whose `feature` and `onehot` lines say what inputs are possible.",
        ),
        click.option(
            "--fail-on",
            type=click.Choice(["found", "rows"]),
            help="Exit with 10 if a pair is found, or if a row of the data flips.",
        ),
        click.option("--quiet", "-q", is_flag=True, help="No table: warnings, and the exit code."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def typical_options(function: Function) -> Function:
    """`typical` (a text or None) and `typical_by`."""
    by = click.option(
        "--typical-by",
        type=click.Choice(TYPICAL_WAYS),
        help="How to tell what is typical: a tree of pairs of features (the default), or an isolation forest.",
    )
    level = click.option(
        "--typical",
        metavar="LEVEL",
        help="Only inputs that are typical of the data count, e.g. 95%: the region that holds so many fresh ones.",
    )
    return level(by(function))


def failing(records: Sequence[dict[str, Any]], fail_on: str | None) -> int:
    """The exit code that `--fail-on` asks for."""
    if fail_on == "found" and any(record["verdict"] == "found" for record in records):
        return VIOLATED
    if fail_on == "rows" and any(record.get("rows_flipped") for record in records):
        return VIOLATED
    return EXPECTED
