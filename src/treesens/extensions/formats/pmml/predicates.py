"""Evaluates PMML predicates: the truth values in every cell of their columns and for missing values.

A predicate is true, false, or unknown. A predicate over one column is a table over cells: the intervals of a number between
strict cuts, or the codes of a category, then all other codes; the last cell is the missing value. Compound predicates are
tables if they use a single column, and otherwise trees of tables (PMML 4.4, TreeModel: predicates and their truth tables).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from treesens.compiler.base.floats import NumberType, next_down
from treesens.extensions.formats.pmml.fields import (
    NUMBERS,
    Bins,
    Category,
    Column,
    Field,
    Fields,
    Image,
    Number,
    parse_number,
)
from treesens.extensions.formats.pmml.xml import Element

Truth: TypeAlias = bool | None

_ORDERS = {
    "lessThan": (False, False),
    "lessOrEqual": (True, False),
    "greaterThan": (True, True),
    "greaterOrEqual": (False, True),
}
"""Two flags per operator: whether truth changes strictly above the bound, and whether the comparison holds above that point."""
_UNARY = ("isMissing", "isNotMissing")
_JOINTS = ("and", "or", "xor", "surrogate")


@dataclass(frozen=True, eq=False)
class Test:
    """A predicate about one field: a comparison of the field's value with `bounds` (numbers) or `texts`."""

    field: Field
    operator: str
    bounds: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def column(self) -> Column:
        return self.field.column

    def cuts(self) -> list[float]:
        """The strict cuts of the column between which the truth is constant."""
        if isinstance(self.field, Bins):
            return list(self.field.cuts)
        if isinstance(self.field, Category) or self.operator in _UNARY:
            return []
        if self.operator in _ORDERS:
            cuts = [self.field.cut(self.bounds[0], _ORDERS[self.operator][0])]
        else:
            cuts = [self.field.cut(bound, above) for bound in self.bounds for above in (False, True)]
        return [cut for cut in cuts if math.isfinite(cut)]

    def on_numbers(self, cuts: Sequence[float]) -> tuple[Truth, ...]:
        """The truth values of all cells between `cuts`, followed by that of a missing value: len(cuts) + 2 entries."""
        inside = [next_down(cuts[0], NumberType.FLOAT64) if cuts else 0.0, *cuts]
        if isinstance(self.field, Bins):
            images = [self.field.images[_place(self.field.cuts, x)] for x in inside]
            return (*map(self._of_image, images), self._of_image(self.field.missing))
        assert isinstance(self.field, Number)
        values = self.field.value(np.array(inside)).tolist()
        return (*(self._of_number(value) for value in values), self._of_number(self.field.missing))

    def on_codes(self) -> tuple[Truth, ...]:
        """The truth values of all codes, then of other codes, and finally of a missing value."""
        assert isinstance(self.field, Category)
        return tuple(map(self._of_image, (*self.field.images, self.field.missing)))

    def _of_number(self, value: float) -> Truth:
        if self.operator in _UNARY:
            return math.isnan(value) == (self.operator == "isMissing")
        if math.isnan(value):
            return None
        match self.operator:
            case "lessThan":
                return value < self.bounds[0]
            case "lessOrEqual":
                return value <= self.bounds[0]
            case "greaterThan":
                return value > self.bounds[0]
            case "greaterOrEqual":
                return value >= self.bounds[0]
        return (value in self.bounds) == (self.operator == "isIn")

    def _of_image(self, value: Image) -> Truth:
        if isinstance(value, float):
            return self._of_number(value)
        if self.operator in _UNARY:
            return (value is None) == (self.operator == "isMissing")
        return None if value is None else (value in self.texts) == (self.operator == "isIn")


def _place(cuts: Sequence[float], x: float) -> int:
    """The index of the interval that contains x: the number of cuts that are at most x."""
    place = bisect_left(cuts, x)
    return place + 1 if place < len(cuts) and cuts[place] == x else place


@dataclass(frozen=True, eq=False)
class Joint:
    """A compound of predicates: `and`, `or`, `xor`, or the first known truth value (`surrogate`)."""

    operator: str
    parts: tuple[Predicate, ...]


@dataclass(frozen=True, eq=False)
class Always:
    """A predicate that is always true, or always false."""

    truth: bool


Predicate: TypeAlias = Test | Joint | Always


def is_predicate(element: Element) -> bool:
    return element.tag in ("True", "False", "SimplePredicate", "SimpleSetPredicate", "CompoundPredicate")


def predicate_of(holder: Element, fields: Fields) -> Predicate:
    """The single predicate of a node, a segment, or an attribute."""
    found = [child for child in holder.children if is_predicate(child)]
    if len(found) != 1:
        raise holder.error(f"expected one predicate, found {len(found)}")
    return _read(found[0], fields)


def tests_of(predicate: Predicate) -> Iterable[Test]:
    """All simple predicates that a predicate contains."""
    if isinstance(predicate, Test):
        yield predicate
    elif isinstance(predicate, Joint):
        for part in predicate.parts:
            yield from tests_of(part)


def _read(element: Element, fields: Fields) -> Predicate:
    if element.tag in ("True", "False"):
        return Always(element.tag == "True")
    if element.tag == "CompoundPredicate":
        return _joint(element, fields)
    name = element.require("field")
    field = fields.find(name, element)
    if element.tag == "SimpleSetPredicate":
        operator: str = element.require("booleanOperator")
        if operator not in ("isIn", "isNotIn"):
            raise element.error(f"unknown operator `{operator[:40]}` of sets")
        array = element.need("Array")
        return among(field, operator, words_of(array), array)
    operator = element.require("operator")
    if operator in _UNARY:
        return Test(field, operator)
    value = element.require("value")
    if operator in ("equal", "notEqual"):
        return among(field, "isIn" if operator == "equal" else "isNotIn", (value,), element)
    if operator not in _ORDERS:
        raise element.error(f"unknown operator `{operator[:40]}`")
    if field.kind not in NUMBERS:
        raise element.error(f"the categories of `{name[:40]}` have no order", "declare the field as continuous")
    return Test(field, operator, bounds=(parse_number(value, field.kind, element),))


def among(field: Field, operator: str, values: Sequence[str], at: Element) -> Test:
    if field.kind in NUMBERS:
        return Test(field, operator, bounds=tuple(parse_number(v, field.kind, at) for v in values))
    return Test(field, operator, texts=tuple(values))


def _joint(element: Element, fields: Fields) -> Predicate:
    operator = element.require("booleanOperator")
    if operator not in _JOINTS:
        raise element.error(f"unknown operator `{operator[:40]}` of predicates")
    parts = tuple(_read(child, fields) for child in element.children if child.tag != "Extension")
    if not parts:
        raise element.error("a compound predicate is empty")
    return parts[0] if len(parts) == 1 else Joint(operator, parts)


def words_of(array: Element) -> tuple[str, ...]:
    """The values of an Array: words separated by blanks, or quoted texts with quotes escaped by backslashes."""
    text, words, at = array.text, list[str](), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] == '"':
            at, word = _quoted(text, at + 1, array)
            words.append(word)
        else:
            end = next((i for i in range(at, len(text)) if text[i].isspace()), len(text))
            words.append(text[at:end])
            at = end
    if "n" in array.attributes and array.get("n") != str(len(words)):
        raise array.error(f"the array has {len(words)} values, but its attribute `n` says {array.get('n')[:20]}")
    return tuple(words)


def _quoted(text: str, at: int, array: Element) -> tuple[int, str]:
    word = ""
    while at < len(text) and text[at] != '"':
        if text[at] == "\\" and at + 1 < len(text) and text[at + 1] in '"\\':
            at += 1
        word += text[at]
        at += 1
    if at == len(text):
        raise array.error("unterminated quote")
    return at + 1, word


Outcome: TypeAlias = Literal["true", "false", "unknown"]


def outcome(truth: Truth) -> Outcome:
    return "unknown" if truth is None else "true" if truth else "false"
