"""Reads the fields of a PMML file: the columns of rows, and functions of a single column.

A continuous field is a monotone function of one column, computed in the arithmetic of its data type. Other fields are tables
over the categories of a column, or over intervals of a continuous field. Fields of two columns and functions that are not
monotone are rejected; errors state the cause. PMML 4.4, Data Mining Group 2019: DataDictionary, MiningSchema, Transformations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import (
    Float64,
    NumberType,
    float32_of_decimals,
    largest_true,
    next_up,
    round_to_float32,
)
from treesens.errors import ModelError
from treesens.extensions.formats.pmml.xml import Element

Function: TypeAlias = Callable[[Float64], Float64]
Image: TypeAlias = str | float | None
"""A value of a field: a text, a number, or None for missing."""

NUMBERS = ("double", "float", "integer")
_NO_TRANSFORMATION = "compute the transformation outside the file, or write it with constants and + - * / only"


@dataclass(frozen=True, eq=False)
class Column:
    """A column of rows. `categories` holds the category texts as in the file, or is None for a numeric column."""

    name: str
    index: int
    kind: str
    categories: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Number:
    """A continuous field: the function `value(x)` of column float64s, which is non-decreasing or, if `falls`, non-increasing.

    `missing` replaces a missing value; if `missing` is NaN, the value stays missing.
    """

    column: Column
    kind: str
    value: Function
    falls: bool = False
    missing: float = math.nan

    def parse(self, text: str, at: Element) -> float:
        """A constant operand of the field, in the field's type."""
        return parse_number(text, self.kind, at)

    def cut(self, bound: float, strictly_above: bool) -> float:
        """The strict column cut where the truth of `value >= bound` (or `> bound`) changes; infinite if there is none."""

        if self.value is identity and not self.falls and abs(bound) < np.finfo(np.float64).max:
            return next_up(bound, NumberType.FLOAT64) if strictly_above else bound + 0.0

        def below(x: Float64) -> NDArray[np.bool_]:
            value = self.value(x)
            if self.falls:
                return np.asarray(value > bound if strictly_above else value >= bound)
            return np.asarray(value <= bound if strictly_above else value < bound)

        last = float(largest_true(below, 1)[0])
        return next_up(last, NumberType.FLOAT64) if math.isfinite(last) else last


@dataclass(frozen=True, eq=False)
class Category:
    """A field over categories. `images` holds the values for the codes of the column; the last value is for all other codes.

    An image is a text, a number of the type `kind`, or None for a missing value. `missing` replaces a missing value.
    """

    column: Column
    images: tuple[Image, ...]
    missing: Image = None
    kind: str = "string"

    def mapped(self, image: Callable[[Image], Image], kind: str) -> Category:
        """The field with `image` applied to its images."""
        return Category(self.column, tuple(map(image, self.images)), image(self.missing), kind)


@dataclass(frozen=True, eq=False)
class Bins:
    """A field over intervals of a continuous field: a value x has the image of the interval between `cuts` that contains it."""

    number: Number
    cuts: tuple[float, ...]
    """Strict cuts of the column, ascending."""
    images: tuple[Image, ...]
    missing: Image = None
    kind: str = "string"

    @property
    def column(self) -> Column:
        return self.number.column

    def mapped(self, image: Callable[[Image], Image], kind: str) -> Bins:
        """The field with `image` applied to its images."""
        return Bins(self.number, self.cuts, tuple(map(image, self.images)), image(self.missing), kind)


Field: TypeAlias = Number | Category | Bins


@dataclass(eq=False)
class Fields:
    """The fields that are visible at one position in a file, by name; `inner` is the scope of a nested model."""

    columns: tuple[Column, ...]
    known: dict[str, Field] = field(default_factory=dict)
    functions: dict[str, Element] = field(default_factory=dict)

    def inner(self) -> Fields:
        return Fields(self.columns, dict(self.known), dict(self.functions))

    def find(self, name: str, at: Element) -> Field:
        """The field with this name. Raises ModelError if the field does not exist, or is the output of another model."""
        if name not in self.known:
            raise at.error(f"there is no field `{name[:60]}`")
        return self.known[name]

    def derive(self, holder: Element) -> None:
        """Adds the derived fields, and the functions, of a TransformationDictionary or LocalTransformations."""
        holder.only("DefineFunction", "DerivedField")
        for element in holder.children:
            if element.tag == "DefineFunction":
                self.functions[element.require("name")] = element
        for element in holder.each("DerivedField"):
            self.known[element.require("name")] = _derived(self, element)


def parse_number(text: str, kind: str, at: Element) -> float:
    """The number that a text represents in the data type `kind`, rounded only once (to float32 for `float`)."""
    try:
        value = float("no" if "_" in text else text)
    except ValueError:
        raise at.error(f"expected a number, found `{text[:40]}`") from None
    if math.isnan(value) or (kind == "integer" and not value.is_integer()):
        raise at.error(f"expected a number of type {kind}, found `{text[:40]}`")
    return nearest_float32(text, value) if kind == "float" else value


def nearest_float32(text: str, value: float) -> float:
    """The float32 nearest to a decimal text; `value` is the nearest float64, and converting `value` could round twice."""
    narrow, unsure = float32_of_decimals(np.array([value]))
    return float(round_to_float32(Fraction(text.strip()))) if unsure.any() else float(narrow[0])


def identity(x: Float64) -> Float64:
    return x


def to_float32(x: Float64) -> Float64:
    with np.errstate(over="ignore"):
        return np.asarray(x.astype(np.float32).astype(np.float64))


def cast(number: Number, kind: str) -> Number:
    """The field in another type; numbers are rounded to float32 or stay unchanged."""
    if kind != "float":
        return number if number.kind != "float" or kind == "double" else _refused_cast(number, kind)
    inner = number.value
    missing = float(np.float32(number.missing))
    return Number(number.column, kind, lambda x: to_float32(inner(x)), number.falls, missing)


def _refused_cast(number: Number, kind: str) -> Number:
    raise ModelError(f"`{number.column.name}` is rounded to {kind}", remedy=_NO_TRANSFORMATION)


def _derived(fields: Fields, element: Element) -> Field:
    """The field of a DerivedField: the value of its single expression, in its data type."""
    found = [child for child in element.children if child.tag not in ("Extension", "Value", "Interval")]
    if len(found) != 1:
        raise element.error("a derived field needs exactly one expression")
    made = _expression(fields, found[0], {})
    kind = element.require("dataType")
    if isinstance(made, float):
        raise element.error("a derived field without a column is not supported", _NO_TRANSFORMATION)
    if isinstance(made, Number) and kind in NUMBERS:
        return made if kind == made.kind else cast(made, kind)
    if isinstance(made, Number):
        raise element.error(f"a conversion from number to {kind[:20]} is not supported", _NO_TRANSFORMATION)
    # Categorical fields keep the texts of their values, which are compared as written.
    return _numbered(made, kind, element) if kind in NUMBERS and element.get("optype") == "continuous" else made


def _numbered(made: Category | Bins, kind: str, at: Element) -> Category | Bins:
    """The field with its texts parsed as numbers."""

    def image(value: Image) -> Image:
        if value is None:
            return None
        text = value if isinstance(value, str) else repr(value)
        return parse_number(text, kind, at)

    return made.mapped(image, kind)


def _expression(fields: Fields, element: Element, bound: Mapping[str, Field | float]) -> Field | float:
    """The value of an expression: a field, or a constant. `bound` maps the parameters of a function to its arguments."""
    match element.tag:
        case "FieldRef":
            name = element.require("field")
            found = bound[name] if name in bound else fields.find(name, element)
            return _filled(found, element.attributes.get("mapMissingTo"), element)
        case "Constant":
            return parse_number(element.text.strip(), element.get("dataType", "double"), element)
        case "Apply":
            return _applied(fields, element, bound)
        case "NormDiscrete":
            return _indicator(fields, element, bound)
        case "Discretize":
            return _discretised(fields, element, bound)
        case "MapValues":
            return _mapped(fields, element, bound)
    raise element.error(f"{element.tag} is not supported", _NO_TRANSFORMATION)


def _filled(found: Field | float, text: str | None, at: Element) -> Field | float:
    """The field with missing values replaced."""
    if text is None or isinstance(found, float):
        return found
    if isinstance(found, Number):
        missing = found.parse(text, at)
        return Number(found.column, found.kind, found.value, found.falls, missing)
    filled: Image = parse_number(text, found.kind, at) if found.kind in NUMBERS else text
    return found.mapped(lambda image: filled if image is None else image, found.kind)


def _indicator(fields: Fields, element: Element, bound: Mapping[str, Field | float]) -> Field:
    """The field that is 1 for one category and 0 for all other categories."""
    name, value = element.require("field"), element.require("value")
    found = bound[name] if name in bound else fields.find(name, element)
    if not isinstance(found, Category | Bins) or found.kind in NUMBERS:
        raise element.error("an indicator of a number is not supported", _NO_TRANSFORMATION)
    missing = element.attributes.get("mapMissingTo")
    empty = None if missing is None else parse_number(missing, "double", element)
    return found.mapped(lambda image: empty if image is None else float(image == value), "double")


def _applied(fields: Fields, element: Element, bound: Mapping[str, Field | float]) -> Field | float:
    """The value of a function call: arithmetic on a field and a constant in float64, or a function defined in the file."""
    name = element.require("function")
    if any(key in element.attributes for key in ("mapMissingTo", "defaultValue", "invalidValueTreatment")):
        raise element.error("a function's rules for missing or invalid values are not supported", _NO_TRANSFORMATION)
    operands = [child for child in element.children if child.tag != "Extension"]
    arguments = [_expression(fields, child, bound) for child in operands]
    if name in fields.functions:
        return _called(fields, fields.functions[name], arguments, element)
    if name not in ("+", "-", "*", "/") or len(arguments) != 2:
        raise element.error(f"the function `{name[:40]}` is not supported", _NO_TRANSFORMATION)
    left, right = arguments
    for number, constant, turned in ((left, right, False), (right, left, True)):
        if isinstance(number, Category | Bins) and isinstance(constant, float) and number.kind in NUMBERS:
            return number.mapped(lambda image, c=constant, t=turned: _computed(image, name, c, t, element), "double")  # type: ignore[misc]
    if isinstance(left, Number) and isinstance(right, float):
        return _monotone(left, name, right, element)
    if isinstance(right, Number) and isinstance(left, float) and name in ("+", "*"):
        return _monotone(right, name, left, element)
    if isinstance(right, Number) and isinstance(left, float) and name == "-":
        inner, constant = right, left
        return Number(
            inner.column, "double", lambda x: constant - inner.value(x), not inner.falls, constant - inner.missing
        )
    raise element.error(f"`{name}` of these arguments is not a monotone function of one column", _NO_TRANSFORMATION)


def _monotone(number: Number, name: str, constant: float, at: Element) -> Number:
    """The result of arithmetic on a number and a constant, which is also monotone in floats, since rounding keeps the order."""
    if name in "*/" and constant == 0:
        raise at.error(f"`{name}` by 0 is not supported", _NO_TRANSFORMATION)
    if number.kind == "integer" and name == "/":
        raise at.error("integer division, which truncates, is not supported", _NO_TRANSFORMATION)
    inner = number.value

    def value(x: Float64) -> Float64:
        with np.errstate(over="ignore", under="ignore"):
            given = inner(x)
            match name:
                case "+":
                    return given + constant
                case "-":
                    return given - constant
                case "*":
                    return given * constant
            return given / constant

    falls = number.falls != (name in "*/" and constant < 0)
    return Number(number.column, "double", value, falls, float(value(np.array([number.missing]))[0]))


def _computed(image: Image, name: str, constant: float, turned: bool, at: Element) -> Image:
    """The value of an arithmetic function of one image and a constant, in float64."""
    if image is None:
        return None
    assert isinstance(image, float)
    left, right = (constant, image) if turned else (image, constant)
    with np.errstate(all="ignore"):
        value = float(
            {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[name](np.float64(left), np.float64(right))
        )
    if not math.isfinite(value):
        raise at.error(f"`{name}` is not finite for some category", _NO_TRANSFORMATION)
    return value


def _called(fields: Fields, function: Element, arguments: Sequence[Field | float], at: Element) -> Field | float:
    """The value of a call of a DefineFunction, which may use only its parameters."""
    names = [child.require("name") for child in function.each("ParameterField")]
    if len(names) != len(arguments):
        raise at.error(f"the function takes {len(names)} arguments, but receives {len(arguments)}")
    body = [child for child in function.children if child.tag not in ("Extension", "ParameterField")]
    if len(body) != 1:
        raise function.error("a function needs exactly one expression")
    # The function itself is not visible inside, so that a file cannot cause endless recursion.
    others = Fields(fields.columns, {}, {n: f for n, f in fields.functions.items() if f is not function})
    return _expression(others, body[0], dict(zip(names, arguments, strict=True)))


def _discretised(fields: Fields, element: Element, bound: Mapping[str, Field | float]) -> Field:
    """The bins of a continuous field; values outside all intervals get the default value, or become missing."""
    name = element.require("field")
    number = bound[name] if name in bound else fields.find(name, element)
    if not isinstance(number, Number):
        raise element.error("only a number can be discretised")
    element.only("DiscretizeBin")
    edges: list[tuple[float, float, str]] = []
    filled: str | None = None
    for bin_ in element.children:
        if bin_.tag != "DiscretizeBin":
            continue
        interval = bin_.need("Interval")
        edges.append((*interval_cuts(number, interval), bin_.require("binValue")))
        if filled is None and _contains(number, interval, number.missing):
            filled = edges[-1][2]
    cuts = sorted({c for low, high, _ in edges for c in (low, high) if math.isfinite(c)})
    default = element.attributes.get("defaultValue")
    starts = [-math.inf, *cuts]
    images = tuple(next((v for low, high, v in edges if low <= start < high), default) for start in starts)
    if math.isnan(number.missing):
        filled = element.attributes.get("mapMissingTo")
    return Bins(number, tuple(cuts), images, default if filled is None and not math.isnan(number.missing) else filled)


def _contains(number: Number, interval: Element, value: float) -> bool:
    """True if an interval contains a value of the field (not of the column)."""
    if math.isnan(value):
        return False
    closure = interval.require("closure")
    inside = True
    if "leftMargin" in interval.attributes:
        low = number.parse(interval.get("leftMargin"), interval)
        inside &= value > low if closure.startswith("open") else value >= low
    if "rightMargin" in interval.attributes:
        high = number.parse(interval.get("rightMargin"), interval)
        inside &= value <= high if closure.endswith("Closed") else value < high
    return inside


def interval_cuts(number: Number, interval: Element) -> tuple[float, float]:
    """The strict cuts of the column where an interval of a field begins and ends."""
    closure = interval.require("closure")
    if closure not in ("openClosed", "openOpen", "closedOpen", "closedClosed"):
        raise interval.error(f"unknown closure `{closure[:40]}` of an interval")
    low, high = -math.inf, math.inf
    if "leftMargin" in interval.attributes:
        low = number.cut(number.parse(interval.get("leftMargin"), interval), closure.startswith("open"))
    if "rightMargin" in interval.attributes:
        high = number.cut(number.parse(interval.get("rightMargin"), interval), closure.endswith("Closed"))
    return (high, low) if number.falls else (low, high)


def _mapped(fields: Fields, element: Element, bound: Mapping[str, Field | float]) -> Field:
    """The field that a mapping table computes from the categories of another field."""
    pairs = list(element.each("FieldColumnPair"))
    table = element.child("InlineTable")
    if len(pairs) != 1 or table is None:
        raise element.error("a map of several fields, or with an external table, is not supported", _NO_TRANSFORMATION)
    name = pairs[0].require("field")
    given = bound[name] if name in bound else fields.find(name, element)
    if not isinstance(given, Category | Bins):
        raise element.error("a map of numbers is not supported", _NO_TRANSFORMATION)
    source, target = pairs[0].require("column"), element.require("outputColumn")
    if given.kind in NUMBERS:
        raise element.error("a map of numbers is not supported", _NO_TRANSFORMATION)
    images: dict[str, str] = {}
    for row in table.each("row"):
        cells = {child.tag: child.text.strip() for child in row.children}
        if source not in cells or target not in cells:
            raise row.error(f"a row lacks `{source[:40]}` or `{target[:40]}`")
        images.setdefault(cells[source], cells[target])
    default = element.attributes.get("defaultValue")
    missing = element.attributes.get("mapMissingTo")

    def image(value: Image) -> Image:
        return missing if value is None else images.get(str(value), default)

    return given.mapped(image, "string")
