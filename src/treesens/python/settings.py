"""Options as callers give them, checked before anything is asked: one clear message each, on the command line and in Python."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.errors import UsageError
from treesens.solve.options import Options

MOST_SECONDS = 1e9
MOST_THREADS = 4096
MOST_SEED = 2**31 - 1
"""What every solver takes as a seed."""

_INTERNAL = frozenset(("library_predict", "near", "hints", "verify_each", "require_certificate"))
"""Options that the program sets itself."""


def checked_options(given: Mapping[str, Any], *, also: Sequence[str] = ()) -> Options:
    """Options of the engine from names and values. UsageError for an unknown name or a value that makes no sense.

    `also` are names of further options that the caller knows.
    """
    known = [field.name for field in fields(Options) if field.name not in _INTERNAL]
    for name in given:
        if name not in known:
            raise UsageError(f"there is no option `{name}`", remedy=did_you_mean(name, (*known, *also)))
    for name, check in _CHECKS.items():
        if name in given:
            check(name, given[name])
    certificates = given.get("certificates")
    return Options(**{**given, "certificates": None if certificates is None else path_of("certificates", certificates)})


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """UsageError where a text is none of a few."""
    if not isinstance(value, str) or value not in choices:
        raise UsageError(f"`{name}` is {_shown(value)}", remedy=f"one of: {', '.join(choices)}")


def check_backend(name: str, value: Any) -> None:
    """UsageError, or BackendError for a text that names no backend."""
    from treesens.backends.base import get_backend

    if not isinstance(value, str):
        raise UsageError(f"`{name}` is {_shown(value)}", remedy='give the name of a backend as a text, e.g. "native"')
    if value != "auto":
        get_backend(value)


def check_pipeline(name: str, value: Any) -> None:
    """UsageError, or PipelineError for a text that is no pipeline."""
    from treesens.compiler.pipeline import Pipeline

    if not isinstance(value, str):
        raise UsageError(f"`{name}` is {_shown(value)}", remedy='give passes as a text, e.g. "default"')
    Pipeline.parse(value)


def check_seconds(name: str, value: Any) -> None:
    """UsageError for what is no positive number of seconds."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= MOST_SECONDS:
        raise UsageError(f"`{name}` is {_shown(value)}", remedy="give a positive number of seconds")


def check_number(name: str, value: Any, least: float, most: float) -> None:
    """UsageError for what is no number in a range."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        raise UsageError(f"`{name}` is {_shown(value)}", remedy=f"give a number from {least:g} to {most:g}")


def check_flag(name: str, value: Any) -> None:
    """UsageError for what is neither True nor False."""
    if not isinstance(value, bool):
        raise UsageError(f"`{name}` is {_shown(value)}", remedy="give True or False")


def check_tolerance(name: str, value: Any, *, most: float = sys.float_info.max) -> None:
    """UsageError for what is no number from 0 to `most`; infinity is none."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= most:
        words = (
            "give a number from 0 (the last unit) to 1" if most == 1.0 else "give a number, 0 (the last unit) or more"
        )
        raise UsageError(f"`{name}` is {_shown(value)}", remedy=words)


def check_whole(name: str, value: Any, least: int, most: int) -> None:
    """UsageError for what is no whole number in a range."""
    import numpy as np

    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise UsageError(f"`{name}` is {_shown(value)}", remedy=f"give a whole number from {least} to {most}")


def _check_memory(name: str, value: Any) -> None:
    if value is not None:
        check_whole(name, value, 1, 2**62)


def check_threshold(value: Any) -> Fraction:
    """A cut-off of probabilities as it is written. UsageError if it does not lie between 0 and 1."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < 1:
        raise UsageError(f"`threshold` is {_shown(value)}", remedy="give a number between 0 and 1, e.g. 0.2")
    return Fraction(repr(float(value)))


def path_of(name: str, value: Any) -> Path:
    """A path. UsageError for what names none."""
    if not isinstance(value, str | PathLike):
        raise UsageError(f"`{name}` is {value!r:.60}", remedy="give the path of a file")
    return Path(value)


def _shown(value: Any) -> str:
    return f"{value!r:.60}"


_CHECKS: dict[str, Callable[[str, Any], None]] = {
    "backend": check_backend,
    "pipeline": check_pipeline,
    "time_limit": check_seconds,
    "tolerance": lambda name, value: check_tolerance(name, value, most=1.0),
    "absolute_tolerance": check_tolerance,
    "threads": lambda name, value: check_whole(name, value, 1, MOST_THREADS),
    "memory_limit": _check_memory,
    "regions": check_flag,
    "seed": lambda name, value: check_whole(name, value, 0, MOST_SEED),
}
