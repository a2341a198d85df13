"""Lists of cavities in a file, as the tool of the paper writes them: JSON, a list of clauses.

A clause is a list of literals `[feature, "<" or ">=", number]`, one of which has to hold. What breaks it is a box, so that the
file lists cavities. Whether these hold no row of a table is not looked at here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from treesens.compiler.base.files import MOST_TEXT_BYTES, read_regular
from treesens.errors import DataError, ModelError
from treesens.frontends.documents import parse_document

Literal: TypeAlias = tuple[str, bool, float]
"""A feature, whether it has to lie below the number (or at or above it), and the number."""
Clause: TypeAlias = tuple[Literal, ...]
_LARGEST = 1e300
_REMEDY = 'a clause is a list of literals such as ["age", "<", 0.5]'


def read_clauses(path: Path) -> tuple[Clause, ...]:
    """The clauses of a file. Raises DataError with the place of the first mistake."""
    try:
        document = parse_document(read_regular(path, MOST_TEXT_BYTES), str(path))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", place=str(path)) from None
    except ModelError as error:
        raise DataError(error.message, place=error.place, remedy=_REMEDY) from None
    if not isinstance(document, list):
        raise DataError("the file holds no list of clauses", place=str(path), remedy=_REMEDY)
    return tuple(_clause(item, f"{path}: clause {number}") for number, item in enumerate(document))


def _clause(item: Any, place: str) -> Clause:
    if not isinstance(item, list) or not item:
        raise DataError("a clause is a list of at least one literal", place=place, remedy=_REMEDY)
    return tuple(_literal(part, f"{place}, literal {number}") for number, part in enumerate(item))


def _literal(part: Any, place: str) -> Literal:
    match part:
        case [str(feature), "<" | ">=" as sign, int() | float() as number] if not isinstance(number, bool):
            if -_LARGEST <= number <= _LARGEST:
                return feature, sign == "<", float(number)
    raise DataError('a literal is a feature, "<" or ">=", and a number', place=place, remedy=_REMEDY)


def broken_box(clause: Sequence[Literal]) -> dict[str, tuple[float, float]] | None:
    """The box of values that break a clause, low <= value < high by feature; None if nothing breaks it."""
    box: dict[str, tuple[float, float]] = {}
    for feature, below, number in clause:
        low, high = box.get(feature, (-math.inf, math.inf))
        box[feature] = (max(low, number), high) if below else (low, min(high, number))
    return box if all(low < high for low, high in box.values()) else None
