"""Checks callers' options before any work: one clear message per option, on the command line and in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

from treesens.compiler.base import option_kinds as kinds
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.option_kinds import Declared, Door
from treesens.errors import UsageError
from treesens.solve.options import Options

MOST_SECONDS = 1e9
MOST_SEED = 2**31 - 1
"""The largest seed accepted by all solvers."""


def checked_options(given: Mapping[str, Any]) -> Options:
    """Options from names and values. Raises UsageError for an unknown name or an invalid value."""
    known = {one.field: one for one in kinds.declared(Options, Door.PYTHON | Door.NAMED)}
    for name in given:
        if name not in known:
            raise UsageError(f"there is no option `{name}`", remedy=did_you_mean(name, known))
    return Options(**{name: taken(known[name], value) for name, value in given.items()})


def taken(one: Declared, value: Any) -> Any:
    """The checked value of an option. Raises UsageError for an invalid value."""
    name = one.field
    if value is None and one.default is None:
        return None
    match one.option.kind:
        case kinds.Flag():
            check_flag(name, value)
        case kinds.Whole(least, most):
            check_whole(name, value, least, MOST_SEED if most is None else most)
        case kinds.Bytes():
            check_whole(name, value, 1, 2**62)
        case kinds.Number(low, high):
            check_number(name, value, low, high)
        case kinds.Seconds():
            check_seconds(name, value)
        case kinds.Choice() as kind:
            value = kind.present(value)
            check_choice(name, value, kind.words)
        case kinds.Solver() as kind:
            check_solver(name, value, kind)
        case kinds.Passes():
            check_pipeline(name, value)
        case kinds.InputFile() | kinds.OutputPath():
            return path_of(name, value)
    return value


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raises UsageError if the value is not one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise UsageError(f"`{name}` is {_shown(value)}", remedy=f"one of: {', '.join(choices)}")


def check_solver(name: str, value: Any, kind: kinds.Solver = kinds.Solver()) -> None:  # noqa: B008 (frozen)
    """Raises UsageError, or BackendError for an unknown backend."""
    from treesens.backends.worker import check_options

    if not isinstance(value, str):
        raise UsageError(f"`{name}` is {_shown(value)}", remedy='pass the name of a backend as a text, e.g. "native"')
    if value not in {"auto", *kind.also}:
        check_options(value)


def check_pipeline(name: str, value: Any) -> None:
    """Raises UsageError, or PipelineError for an invalid pipeline."""
    from treesens.compiler.pipeline import Pipeline

    if not isinstance(value, str):
        raise UsageError(f"`{name}` is {_shown(value)}", remedy='pass passes as a text, e.g. "default"')
    Pipeline.parse(value)


def check_seconds(name: str, value: Any) -> None:
    """Raises UsageError unless the value is a positive number of seconds."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= MOST_SECONDS:
        raise UsageError(f"`{name}` is {_shown(value)}", remedy="pass a positive number of seconds")


def check_number(name: str, value: Any, least: float, most: float) -> None:
    """Raises UsageError unless the value is a number in the range."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        raise UsageError(f"`{name}` is {_shown(value)}", remedy=f"pass a number from {least:g} to {most:g}")


def check_flag(name: str, value: Any) -> None:
    """Raises UsageError unless the value is True or False."""
    if not isinstance(value, bool):
        raise UsageError(f"`{name}` is {_shown(value)}", remedy="pass True or False")


def check_whole(name: str, value: Any, least: int, most: int) -> None:
    """Raises UsageError unless the value is an integer in the range."""
    import numpy as np

    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise UsageError(f"`{name}` is {_shown(value)}", remedy=f"pass a whole number from {least} to {most}")


def check_threshold(value: Any) -> Fraction:
    """A probability threshold as written. Raises UsageError unless the value is between 0 and 1."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < 1:
        raise UsageError(f"`threshold` is {_shown(value)}", remedy="pass a number between 0 and 1, e.g. 0.2")
    return Fraction(repr(float(value)))


def path_of(name: str, value: Any) -> Path:
    """A path. Raises UsageError for other types."""
    if not isinstance(value, str | PathLike):
        raise UsageError(f"`{name}` is {value!r:.60}", remedy="pass the path of a file")
    return Path(value)


def _shown(value: Any) -> str:
    return f"{value!r:.60}"
