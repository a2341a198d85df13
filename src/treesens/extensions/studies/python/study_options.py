"""The options of a study as arguments of a call: the annotation of each kind, and the checks and conversions of a value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from treesens.compiler.base import option_kinds as kinds
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.data.tables import Table
from treesens.errors import UsageError
from treesens.extensions.studies.study import REQUIRED, Declared
from treesens.python import settings
from treesens.python.settings import MOST_SEED, check_threshold, check_whole, path_of

if TYPE_CHECKING:
    from treesens.extensions.studies.limits import Permission


def annotation_of(one: Declared) -> str:
    """The type of an argument, as written in source code."""
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
        case kinds.ClassLabel():
            return "str | int"
        case kinds.Names(words=words):
            few = f"Literal[{', '.join(map(repr, words))}]" if words else "str"
            return f"{few} | Sequence[{few}]" if not kind.numbers else "Sequence[str | int]"
        case kinds.Groups():
            return "str | Sequence[str | Sequence[str]]"
        case kinds.Sizes(single=True):
            return "float | None"
        case kinds.Sizes():
            return "float | Sequence[float] | None"
        case kinds.Numbers():
            return "Sequence[float]"
        case kinds.RowNumbers():
            return "int | str | Sequence[int | str]"
        case kinds.Ends():
            return "tuple[float, float]"
        case kinds.Budgets():
            return "Mapping[str, int]"
        case kinds.Directions():
            return "Mapping[str, Literal['up', 'down']]"
        case kinds.Permitted():
            return "Mapping[str, tuple[float, float] | Collection[float | str]]"
        case kinds.DomainFile():
            return "str | Path | None"
        case kinds.InputFile() | kinds.OutputPath() | kinds.DecisionFile():
            return "str | Path"
        case kinds.TableFile():
            return "Data"
        case _:
            return "str"


def default_of(one: Declared) -> Any:
    """The default value of an argument: None for empty sizes and domains."""
    return None if isinstance(one.option.kind, kinds.Sizes | kinds.DomainFile) and not one.default else one.default


def taken(one: Declared, value: Any, data: Any = None) -> Any:
    """The checked value of an option; rows may be labels of the index of `data`. Raises UsageError for an invalid value."""
    name = one.field
    if value is None and (one.default is None or default_of(one) is None):
        return one.default if one.default is not MISSING else value
    match one.option.kind:
        case kinds.Chance():
            return check_threshold(value)
        case kinds.Text():
            return _text_of(name, value, numbers=False)
        case kinds.ClassLabel():
            return _text_of(name, value, numbers=True)
        case kinds.Percent():
            return str(value)
        case kinds.Names(numbers=numbers):
            several = [value] if isinstance(value, str) or not isinstance(value, Iterable) else value
            return tuple(_text_of(name, one_of_them, numbers=numbers) for one_of_them in several)
        case kinds.Groups():
            return _some_sets(one, sets_of(value, name))
        case kinds.Sizes():
            return tuple(numbers_of(value))
        case kinds.Numbers():
            return tuple(map(float, numbers_of(value)))
        case kinds.RowNumbers():
            return rows_of(value, data)
        case kinds.Ends():
            ends = [] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
            if len(ends) != 2:
                raise UsageError(f"`{name}` is {value!r:.60}", remedy=f"pass both ends, e.g. {name}=(0, 100)")
            return tuple(map(Fraction, numbers_of(ends)))
        case kinds.Directions() | kinds.Permitted():
            return _mapped(one, value)
        case kinds.DomainFile():
            from treesens.extensions.studies.sens_file import read_domain

            return read_domain(path_of(name, value))
        case kinds.DecisionFile():
            from treesens.extensions.studies.sens_file import read_decision

            return read_decision(path_of(name, value))
    return settings.taken(one, value)


def _some_sets(one: Declared, sets: list[list[str]]) -> list[list[str]]:
    """The sets of features. Raises UsageError for an empty set, because an answer about no feature would be misleading."""
    if not sets or not all(sets):
        without = "" if one.default is REQUIRED else f"; without `{one.field}` each is tried"
        raise UsageError(
            f"`{one.field}` names no feature", remedy=f'write {one.field}="sex", or a set as [["a", "b"]]{without}'
        )
    return sets


def _text_of(name: str, value: Any, *, numbers: bool) -> str:
    """A text, or the label of a class. Raises UsageError for anything else."""
    if not isinstance(value, str) and not (numbers and isinstance(value, int | np.integer | np.bool_)):
        remedy = 'pass the label of a class, e.g. "approved" or 1' if numbers else "pass a text"
        raise UsageError(f"`{name}` is {value!r:.60}", remedy=remedy)
    return str(value)


def _mapped(one: Declared, value: Any) -> dict[str, Any]:
    """The values passed per feature, by name. Raises UsageError if `value` does not map names."""
    example = '{"age": "up"}' if isinstance(one.option.kind, kinds.Directions) else '{"income": (0, 100)}'
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise UsageError(f"`{one.field}` names no features", remedy=f"write {one.field}={example}")
    if isinstance(one.option.kind, kinds.Directions):
        return {name: str(way) for name, way in value.items()}
    return {name: _permission(name, v) for name, v in value.items()}


def _permission(name: str, given: Any) -> Permission:
    """The permitted values of a feature: a tuple of two numbers is a range, and anything else lists single values."""
    from treesens.extensions.studies.limits import Range

    values = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    found = tuple(value if isinstance(value, str) else Fraction(numbers_of(value)[0]) for value in values)
    numbers = [value for value in found if isinstance(value, Fraction)]
    if len(found) == len(numbers) == 2 and not isinstance(given, set | frozenset):
        if not isinstance(given, tuple):
            low, high = values
            raise UsageError(
                f"`permitted` has {given!r:.60} for `{name}`, which may mean two ends or two values",
                remedy=f"write ({low}, {high}) for a range, or {{{low}, {high}}} for the values",
            )
        return Range(*numbers)
    return found


def sets_of(vary: Any, argument: str = "vary") -> list[list[str]]:
    """Sets of features as lists of names; a single name means a set with one feature."""
    groups = [vary] if isinstance(vary, str) or not isinstance(vary, Iterable) else vary
    found = [[group] if isinstance(group, str) or not isinstance(group, Iterable) else list(group) for group in groups]
    for name in (name for group in found for name in group):
        if not isinstance(name, str):
            remedy = "write it as a text: a model that was trained on an array has features such as f0 or x0 (ts.info)"
            raise UsageError(f"`{argument}` contains {name!r:.60}, which is not a name", remedy=remedy)
    return found


def numbers_of(given: Any) -> list[str]:
    """Numbers in the notation of the language. Raises UsageError for values that are not finite numbers."""
    if isinstance(given, str):
        remedy = "pass a number, e.g. gap=0.1, or a list: gap=[0.1, 0.2]"
        raise UsageError(f"{given!r:.60} is a text", remedy=remedy)
    try:
        numbers = [float(x) for x in np.atleast_1d(np.asarray(given, dtype=np.float64)).tolist()]
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{given!r:.60} is not a number", remedy="pass e.g. gap=0.1 or gap=[0.1, 0.2]") from None
    if not all(map(math.isfinite, numbers)):
        raise UsageError(f"{given!r:.60} is not finite", remedy="pass e.g. gap=0.1 or gap=[0.1, 0.2]")
    return list(map(repr, numbers))


def in_library_of(source: Any, columns: dict[str, list[Any]]) -> Any:
    """The columns as a frame of the library of `source`; unchanged if `source` is a path, a table, an array or None."""
    if source is None or isinstance(source, str | Path | Table | np.ndarray):
        return columns
    import narwhals as nw

    namespace = nw.get_native_namespace(nw.from_native(source, eager_only=True))
    return nw.from_dict(columns, backend=namespace).to_native()


def rows_of(rows: Any, data: Any = None) -> list[int]:
    """Row numbers, starting at 0. `rows` contains row numbers, a mask, or labels of the index of `data`, as texts or as an
    index. Raises UsageError for anything else.
    """
    index = getattr(data, "index", None)
    index = None if callable(index) or not hasattr(index, "get_indexer_for") else index
    labels = hasattr(rows, "get_indexer_for")  # an index itself: `frame.index[:3]`, `frame[frame.x > 1].index`
    mask = rows if isinstance(rows, np.ndarray) else getattr(rows, "values", None)
    if isinstance(mask, np.ndarray) and mask.dtype == bool:
        return _chosen(mask, data)
    given = [rows] if isinstance(rows, str) or not isinstance(rows, Iterable) else list(rows)
    return [_number(row, index, label=labels or isinstance(row, str)) for row in given]


def _chosen(mask: np.ndarray[Any, Any], data: Any) -> list[int]:
    if data is not None and hasattr(data, "__len__") and not isinstance(data, str) and len(mask) != len(data):
        raise UsageError(f"`rows` is a mask of {len(mask)} rows, but the data has {len(data)}")
    return np.flatnonzero(mask).tolist()


def _number(row: Any, index: Any, *, label: bool) -> int:
    if not label:
        check_whole("rows", row, 0, MOST_SEED)
        return int(row)
    if (
        isinstance(row, str)
        and (ends := re.fullmatch(r"(\d{1,9})-(\d{1,9})", row))
        and (index is None or row not in index)
    ):
        remedy = f"pass rows=range({int(ends[1])}, {int(ends[2]) + 1})"
        raise UsageError(f"`rows` is {row!r}, which is not the label of a row", remedy=remedy)
    if index is None:
        raise UsageError(f"`rows` has {row!r:.60}, but the data has no index", remedy="pass row numbers, starting at 0")
    places: list[int] = index.get_indexer_for([row]).tolist()
    if places == [-1] or not places:
        near = did_you_mean(row, map(str, index[:1000])) if isinstance(row, str) else ""
        raise UsageError(f"no row is called {row!r:.60}", remedy=near or "pass labels of the index, or row numbers")
    if len(places) > 1:
        raise UsageError(f"{len(places)} rows are called {row!r:.60}", remedy="pass their numbers, from 0")
    return places[0]
