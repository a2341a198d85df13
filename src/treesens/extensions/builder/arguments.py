"""Converts arguments of callers to nodes of the syntax tree; invalid arguments raise an error that names them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, Literal, TypeAlias, TypeVar

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.errors import UsageError
from treesens.grammar.printing.print_terms import decimal
from treesens.grammar.tree import ast

Numeric: TypeAlias = "float | Fraction | Decimal"
"""A Python or numpy number. A float stands for its shortest decimal, so that 0.1 is one tenth, as in a `.sens` file."""

Ends: TypeAlias = Literal["both", "left", "right", "neither"]
"""The ends that an interval includes."""

W = TypeVar("W", bound=str)


def wrong(argument: str, wanted: str, given: object, remedy: str = "") -> UsageError:
    """The error for an invalid argument."""
    shown = repr(given)
    shown = f"{shown[:60]}…" if len(shown) > 60 else shown
    return UsageError(f"`{argument}` must be {wanted}, not {type(given).__name__} {shown}", remedy=remedy)


def name_of(value: object, argument: str) -> ast.Name:
    """A name that a text can contain, on one line and without backquotes."""
    if not isinstance(value, str):
        raise wrong(argument, "a name", value, f'write the name as a string, e.g. {argument}="sex"')
    if not value or any(c in value for c in "`\n\0"):
        raise wrong(argument, "a name that a text can contain", value, "names are not empty and have no backquotes")
    return ast.Name(value)


def given_name_of(value: object, argument: str) -> ast.Name:
    """The name of a feature, column, class or category in a model or table, which may be any text.

    A question may use a name with a backquote or a line break, but such a question cannot be printed.
    """
    if not isinstance(value, str):
        raise wrong(argument, "a name", value, f'write the name as a string, e.g. {argument}="sex"')
    return ast.Name(value)


def names_of(value: object, argument: str) -> tuple[ast.Name, ...]:
    """One or several names; at least one."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return (given_name_of(value, argument),)
    names = tuple(given_name_of(item, f"{argument}[{i}]") for i, item in enumerate(value))
    if not names:
        raise UsageError(f"`{argument}` names no feature", remedy=f'pass at least one name, e.g. {argument}="sex"')
    return names


def path_of(value: object, argument: str) -> ast.Text:
    """A path, as it is written in a file."""
    text = str(value)
    if any(c in text for c in '"\n\0'):
        raise wrong(argument, "a path without double quotes", value)
    return ast.Text(text)


def bound_of(value: object, argument: str) -> ast.Bound:
    """A finite number, or an infinity."""
    if isinstance(value, Real) and not isinstance(value, Rational) and math.isinf(float(value)):
        return ast.Infinity(float(value) < 0)
    return number_of(value, argument)


def number_of(value: object, argument: str) -> ast.Number:
    """A finite number, converted exactly."""
    match value:
        case bool():
            raise wrong(argument, "a number", value, "write 0 or 1")
        case Integral():
            exact = Fraction(int(value))
        case Rational():
            exact = Fraction(int(value.numerator), int(value.denominator))
        case Decimal() if value.is_finite():
            exact = Fraction(value)
        case Real() if math.isfinite(float(value)):
            exact = Fraction(repr(float(value)))
        case Real() | Decimal():
            raise wrong(argument, "a finite number", value, "for missing values use `a[FEATURE].is_missing()`")
        case _:
            raise wrong(argument, "a number", value)
    try:
        decimal(exact)
    except ValueError:
        raise wrong(
            argument, "a number with finitely many decimals", value, "round it, or multiply both sides"
        ) from None
    return ast.Number(exact)


def whole_of(value: object, argument: str) -> ast.Whole:
    """A whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 0:
        raise wrong(argument, "a whole number that is not negative", value)
    return ast.Whole(int(value))


def label_of(value: object, argument: str) -> ast.Label:
    """A class or a category, by name or by number."""
    return given_name_of(value, argument) if isinstance(value, str) else number_of(value, argument)


def word_of(value: object, words: Iterable[W], argument: str) -> W:
    """One of the given words."""
    known = tuple(words)
    for word in known:
        if isinstance(value, type(word)) and value == word:
            return word
    listed = ", ".join(map(repr, known))
    raise wrong(argument, f"one of {listed}", value, did_you_mean(value, known) if isinstance(value, str) else "")


def interval_of(low: object, high: object, inclusive: object) -> ast.Interval:
    """The interval from `low` to `high`, with the ends that `inclusive` names."""
    ends: tuple[Ends, ...] = ("both", "left", "right", "neither")
    kept = word_of(inclusive, ends, "inclusive")
    return ast.Interval(
        bound_of(low, "low"), bound_of(high, "high"), kept in ("right", "neither"), kept in ("left", "neither")
    )


def optional(make: Any, value: object, argument: str) -> Any:
    """`make(value, argument)`, or None if the value is None."""
    return None if value is None else make(value, argument)
