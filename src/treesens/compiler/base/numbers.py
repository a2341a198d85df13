"""Which text is a number: decimals in ASCII digits, as tables and other languages write them.

Python itself takes more: `1_000` is 1000 to it, and it knows the digits of every script. Nobody else reads such a field as a
number, so a table that has one would be read as another table.
"""

from __future__ import annotations

import re
from fractions import Fraction

_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?[0-9]+")
_MOST_DIGITS = 4000
"""Of a whole number; Python refuses to read more than that by itself."""


def is_decimal(text: str) -> bool:
    """Whether a text is a finite number in decimals: `12`, `-.5`, `1e-3`."""
    return _DECIMAL.fullmatch(text) is not None


def float_of(text: str) -> float | None:
    """The float64 nearest to a decimal, infinities and NaN by their names; None for any other text."""
    return float(text) if is_decimal(text) or _NOT_FINITE.fullmatch(text) else None


def whole_of(text: str) -> int | None:
    """The whole number that a text is in ASCII digits; None for any other text."""
    return int(text) if len(text) <= _MOST_DIGITS and _WHOLE.fullmatch(text) else None


def fraction_of(text: str) -> Fraction:
    """The exact number of a decimal or of a ratio of whole numbers, `1/3`. ValueError for any other text."""
    above, slash, below = text.strip().partition("/")
    if slash and whole_of(above) is not None and whole_of(below) is not None:
        return Fraction(int(above), int(below))
    if (
        not slash
        and is_decimal(above)
        and abs(int((re.findall(r"[eE]([+-]?[0-9]+)$", above) or ["0"])[0])) < _MOST_DIGITS
    ):
        return Fraction(above)
    raise ValueError(f"`{text[:40]}` is no number")
