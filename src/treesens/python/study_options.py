"""The options of a study as arguments of a call: what each kind is annotated with, and how a value is checked and taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from treesens.data.tables import Table
from treesens.errors import UsageError
from treesens.python.settings import (
    MOST_SEED,
    check_choice,
    check_flag,
    check_number,
    check_seconds,
    check_threshold,
    check_whole,
)
from treesens.studies import kinds
from treesens.studies.study import Declared

MOST = 2**31 - 1


def annotation_of(one: Declared) -> str:
    """The type of an argument, as people write it."""
    words, optional = _type_of(one.option.kind), one.default is None
    return f"{words} | None" if optional and words != "Any" else words


def _type_of(kind: kinds.Kind) -> str:
    match kind:
        case kinds.Flag():
            return "bool"
        case kinds.Whole():
            return "int"
        case kinds.Number() | kinds.Seconds() | kinds.Chance() | kinds.Percent():
            return "float"
        case kinds.Choice(words):
            return f"Literal[{', '.join(map(repr, words))}]"
        case kinds.Names(words=words):
            few = f"Literal[{', '.join(map(repr, words))}]" if words else "str"
            return f"Sequence[{few if not kind.numbers else 'str | int'}]"
        case kinds.Groups():
            return "Sequence[str | Sequence[str]]"
        case kinds.Sizes(single=True):
            return "float | None"
        case kinds.Sizes():
            return "float | Sequence[float] | None"
        case kinds.Numbers():
            return "Sequence[float]"
        case kinds.RowNumbers():
            return "int | Sequence[int]"
        case kinds.Ends():
            return "tuple[float, float]"
        case kinds.DomainFile():
            return "str | Path | None"
        case kinds.InputFile() | kinds.OutputPath():
            return "str | Path"
        case kinds.TableFile():
            return "Any"
        case _:
            return "str"


def default_of(one: Declared) -> Any:
    """What an argument is if it is not given. Sizes and domains that are empty are None."""
    return None if isinstance(one.option.kind, kinds.Sizes | kinds.DomainFile) and not one.default else one.default


def taken(one: Declared, value: Any) -> Any:
    """The value of an option, checked. UsageError for one that makes no sense."""
    name = one.field
    if value is None and (one.default is None or default_of(one) is None):
        return one.default if one.default is not MISSING else value
    match one.option.kind:
        case kinds.Flag():
            check_flag(name, value)
        case kinds.Whole(least, most):
            check_whole(name, value, least, MOST if most is None else most)
        case kinds.Number(low, high):
            check_number(name, value, low, high)
        case kinds.Seconds():
            check_seconds(name, value)
        case kinds.Choice(words):
            check_choice(name, value, words)
        case kinds.Chance():
            return check_threshold(value)
        case kinds.Percent():
            return str(value)
        case kinds.Names():
            return tuple(map(str, _listed(name, value)))
        case kinds.Groups():
            return sets_of(_listed(name, value))
        case kinds.Sizes():
            return tuple(numbers_of(value))
        case kinds.Numbers():
            return tuple(map(float, numbers_of(value)))
        case kinds.RowNumbers():
            return rows_of(value)
        case kinds.Ends():
            return tuple(map(Fraction, numbers_of(list(value))))
        case kinds.DomainFile():
            from treesens.studies.domain_file import read_domain

            return read_domain(Path(value))
        case kinds.InputFile() | kinds.OutputPath():
            return Path(value)
    return value


def _listed(name: str, value: Any) -> Any:
    if isinstance(value, str):
        raise UsageError(f"`{name}` is a list", remedy=f"write {name}=[{value!r}]")
    return value


def sets_of(vary: Sequence[str | Sequence[str]]) -> list[list[str]]:
    """Sets of features as lists of names."""
    return [[group] if isinstance(group, str) else list(group) for group in vary]


def numbers_of(given: Any) -> list[str]:
    """Numbers as the language writes them. UsageError for what is none."""
    if isinstance(given, str):
        raise UsageError(f"{given!r:.60} is a text", remedy="give a number, e.g. gap=0.1, or several: gap=[0.1, 0.2]")
    try:
        return [repr(float(x)) for x in np.atleast_1d(np.asarray(given, dtype=np.float64)).tolist()]
    except (TypeError, ValueError):
        raise UsageError(f"{given!r:.60} is no number", remedy="give e.g. gap=0.1 or gap=[0.1, 0.2]") from None


def rows_of(rows: int | Sequence[int]) -> list[int]:
    """Numbers of rows from 0. UsageError for what is none."""
    chosen: list[Any] = np.atleast_1d(np.asarray(rows)).tolist()
    for row in chosen:
        check_whole("rows", row, 0, MOST_SEED)
    return chosen


def in_library_of(source: Any, columns: dict[str, list[Any]]) -> Any:
    """Columns as a frame of the library that a frame came from; as they are for a path, a table, or nothing."""
    if source is None or isinstance(source, str | Path | Table):
        return columns
    import narwhals as nw

    namespace = nw.get_native_namespace(nw.from_native(source, eager_only=True))
    return nw.from_dict(columns, backend=namespace).to_native()
