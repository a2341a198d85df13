"""The options that replace numbers of `param` in a file of questions, for every command that reads one."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from treesens.compiler.base.files import read_text
from treesens.errors import DataError, UsageError
from treesens.grammar.tree import ast

NAMES = ("defined", "params")
"""The parameter names of the options, which are not arguments of the commands."""


def parameter_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `-D` and `--params`."""
    own = click.option(
        *("--define", "-D", "defined"), metavar="NAME=NUMBER", multiple=True, expose_value=False, callback=_keep,
        help="Replace the number of `param NAME`.",
    )  # fmt: skip
    file = click.option(
        *("--params", "params"), type=click.Path(path_type=Path), expose_value=False, callback=_keep,
        help="Read such numbers from a TOML or JSON file.",
    )  # fmt: skip
    return own(file(function))


def _keep(context: click.Context, option: click.Parameter, value: Any) -> None:
    context.meta[f"{__name__}.{option.name}"] = value


def read_file(path: Path) -> ast.File:
    """The expanded tree of a file of questions, with the numbers that the command's options replace."""
    from treesens.grammar.parsing.parser import read

    return read(path, given_parameters())


def given_parameters() -> dict[str, object]:
    """The numbers of the command's options by name; `-D` replaces numbers of the file of `--params`."""
    context = click.get_current_context(silent=True)
    file, pairs = (
        (None, ()) if context is None else (context.meta.get(f"{__name__}.{name}") for name in reversed(NAMES))
    )
    given = {} if file is None else _read(file)
    for pair in pairs or ():
        name, equal, value = pair.partition("=")
        if not equal or not name.strip():
            raise UsageError(f"-D: `{pair}` has no name or no number", remedy="write e.g. -D gap=0.1")
        given[name.strip().strip("`")] = value.strip()
    return given


def _read(path: Path) -> dict[str, object]:
    text = read_text(path, "parameters", "save them as UTF-8")
    try:
        given = (json if path.suffix == ".json" else tomllib).loads(text, parse_float=Decimal)
    except (ValueError, RecursionError, ArithmeticError) as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise DataError(f"this is not {kind}: {error}", place=str(path), remedy="write e.g. gap = 0.1") from None
    if not isinstance(given, dict):
        raise DataError("the parameters are not an object", place=str(path), remedy='write e.g. {"gap": 0.1}')
    return given
