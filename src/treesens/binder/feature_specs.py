"""Feature ranges: from a declaration, from the data, or from the model's own type."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from treesens.binder.declarations import Declarations, asked_about
from treesens.binder.domains import (
    FeatureSpec,
    Label,
    closed_range,
    coded_categories,
    domain_of_column,
    nearest_float,
    number_codes,
    steps_domain,
    undeclared_feature,
    value_domain,
)
from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.diagnostics import Span, did_you_mean
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Feature
from treesens.compiler.query.domain import RealDomain, Unit, whole_range
from treesens.data.tables import Categories
from treesens.grammar.tree import ast

MOST_STEPS = 1 << 22
"""Maximum number of values of `integer .. stored as`, since each value is stored separately."""


def feature_spec(found: Declarations, feature: Feature, number_type: NumberType) -> FeatureSpec:
    """The range of a feature in a question about a model of this number type."""
    declared = found.features.get(feature.name)
    if declared is not None:
        return replace(_declared_spec(found, feature, declared, number_type), mark=feature.mark)
    onehot = next((name for o in found.onehots for name in o.features if name.text == feature.name), None)
    if onehot is not None:
        domain, typed = value_domain([(0.0, 0), (1.0, 1)])
        return FeatureSpec(feature.name, number_type, domain, typed=typed, declared=True)
    if feature.categories:
        seen = _column_of_source(found, feature, number_type)
        return coded_categories(feature, number_type, seen)
    spec = _spec_from_data(found, feature.name, number_type, Categories(unsure=feature.unsure))
    return replace(spec or undeclared_feature(feature, number_type), unsure=feature.unsure)


def _column_of_source(found: Declarations, feature: Feature, number_type: NumberType) -> FloatArray | None:
    """The codes of a categorical feature, float64[rows], from the first table of `domain from` that has its column."""
    for source in found.sources:
        table = found.tables.get(source.data.text)
        if table is not None and feature.name in table:
            spec = coded_categories(feature, NumberType.FLOAT64)
            return found.column(table, feature.name, spec.categories, number_type, source.data.span)
    return None


def _spec_from_data(
    found: Declarations, name: str, number_type: NumberType, categories: Categories | None = None
) -> FeatureSpec | None:
    for source in found.sources:
        table = found.tables.get(source.data.text)
        if table is not None and name in table:
            column = found.column(table, name, categories, number_type, source.data.span)
            return domain_of_column(name, number_type, column)
    return None


def _declared_spec(found: Declarations, feature: Feature, node: ast.Feature, number_type: NumberType) -> FeatureSpec:
    if isinstance(node.type, ast.Category):
        if node.stored is not None:
            message = "`stored as` maps one interval onto another, but a category has no interval"
            raise found.fail("E305", message, node.stored.span, "write the stored number of each: `NAME = value`")
        return _category(found, feature, node, node.type, number_type)
    if feature.categories:
        message = f"the model reads `{feature.name}` as a category, but it is declared {node.type.kind}"
        raise found.fail("E205", message, node.type.span, "declare it `category {NAME, ..}`, or leave it undeclared")
    low, high = _ends(found, node.type.interval)
    if node.stored is None:
        return _unscaled(found, node, node.type, (low, high), number_type)
    unit = _unit(found, node.type, node.stored)
    if node.type.kind == "integer":
        first, last = _whole_ends(found, node.type, low, high)
        if last - first >= MOST_STEPS:
            message = f"an integer with {last - first + 1} values cannot be stored as fractions"
            raise found.fail("E220", message, node.type.span, "declare it `real`")
        tables = [table for table in found.tables.values() if table and feature.name in table]
        seen = [found.column(table, feature.name, None, number_type, node.name.span) for table in tables]
        domain = steps_domain(first, last, unit, number_type, np.concatenate([np.zeros(0), *seen]), node.missing)
        return FeatureSpec(feature.name, number_type, domain, steps=True, declared=True)
    first_float, last_float = closed_range(
        unit.stored_low, unit.stored_high, low_open=False, high_open=False, number_type=number_type
    )
    if first_float > last_float:
        raise found.fail("E301", f"the stored interval contains no {number_type.value}", node.stored.span, "widen it")
    real = RealDomain(first_float, last_float, missing=node.missing, unit=unit)
    return FeatureSpec(feature.name, number_type, real, declared=True)


def _unscaled(
    found: Declarations,
    node: ast.Feature,
    kind: ast.Numeric,
    ends: tuple[Fraction | None, Fraction | None],
    number_type: NumberType,
) -> FeatureSpec:
    interval = kind.interval
    if interval is None and (seen := _spec_from_data(found, node.name.text, number_type)) is not None:
        low, high = seen.ends
        return FeatureSpec(
            node.name.text,
            number_type,
            RealDomain(low, high, whole=kind.kind == "integer", missing=node.missing),
            declared=True,
        )
    low, high = closed_range(
        *ends,
        low_open=interval is not None and interval.low_open,
        high_open=interval is not None and interval.high_open,
        number_type=number_type,
    )
    span = interval.span if interval else kind.span
    if low > high:
        raise found.fail("E301", f"the interval contains no {number_type.value} number", span, "widen the interval")
    whole = kind.kind == "integer"
    if whole and whole_range(low, high)[0] > whole_range(low, high)[1]:
        raise found.fail("E302", "the interval contains no whole number", span, "widen the interval")
    domain = RealDomain(low, high, whole=whole, missing=node.missing)
    return FeatureSpec(node.name.text, number_type, domain, declared=interval is not None)


def _ends(found: Declarations, interval: ast.Interval | None) -> tuple[Fraction | None, Fraction | None]:
    """The lower and the upper end of an interval, None for an infinite end; checks their order."""
    if interval is None:
        return None, None
    return interval_ends(found, interval)


def interval_ends(found: Declarations, interval: ast.Interval) -> tuple[Fraction | None, Fraction | None]:
    """The lower and the upper end, None for an infinite end. E301 for ends in the wrong order."""
    low, high = interval.low, interval.high
    backwards = (isinstance(low, ast.Infinity) and not low.negative) or (
        isinstance(high, ast.Infinity) and high.negative
    )
    if isinstance(low, ast.Number) and isinstance(high, ast.Number):
        equal_open = low.value == high.value and (interval.low_open or interval.high_open)
        if equal_open:
            raise found.fail("E301", f"the interval `{interval.span.text}` is empty", interval.span, "close both ends")
        backwards = low.value > high.value
    if backwards:
        shown = f"{low.span.text} lies above {high.span.text}"
        swapped = f"swap the ends: `[{high.span.text}, {low.span.text}]`"
        raise found.fail("E301", f"the interval is empty: {shown}", interval.span, swapped)
    return tuple(None if isinstance(end, ast.Infinity) else end.value for end in (low, high))  # type: ignore[return-value]


def _whole_ends(found: Declarations, kind: ast.Numeric, low: Fraction | None, high: Fraction | None) -> tuple[int, int]:
    """The first and the last whole number in a finite interval."""
    assert low is not None
    assert high is not None
    assert kind.interval is not None
    first, last = -((-low).__floor__()), high.__floor__()
    if first > last:
        raise found.fail("E302", "the interval contains no whole number", kind.interval.span, "widen the interval")
    return first, last


def _unit(found: Declarations, kind: ast.Numeric, stored: ast.Interval) -> Unit:
    if kind.interval is None:
        remedy = "write `integer in [lo, hi] stored as [lo, hi]`"
        raise found.fail("E305", "`stored as` requires the interval that it maps", kind.span, remedy)
    ends = []
    for interval in (kind.interval, stored):
        low, high = interval_ends(found, interval)
        if low is None or high is None or interval.low_open or interval.high_open:
            remedy = "write finite ends in square brackets"
            raise found.fail("E305", "`stored as` requires finite, closed intervals", interval.span, remedy)
        if low == high:
            raise found.fail(
                "E304", "an interval without width cannot be mapped", interval.span, "give two different ends"
            )
        ends += [low, high]
    return Unit(*ends)


def _category(
    found: Declarations, feature: Feature, node: ast.Feature, kind: ast.Category, number_type: NumberType
) -> FeatureSpec:
    """The range of declared categories; the names and numbers of the model's categories are looked up in the model."""
    pairs: list[tuple[float, Label]] = []
    spans: list[Span] = []
    for place, item in enumerate(kind.items):
        pairs.append(_category_value(found, item, place, feature, number_type))
        spans.append(item.span)
    for i, (value, label) in enumerate(pairs):
        if any(value == v or label == t for v, t in pairs[:i]):
            raise found.fail("E303", f"`{spans[i].text}` repeats a name or a value", spans[i], "remove one of the two")
    domain, typed = value_domain(pairs, node.missing)
    # As without a declaration, a category name of the model that parses as a number is a name.
    own = dict(enumerate(feature.labels or ()))
    labels = {str(label): value for value, label in pairs if isinstance(label, str) or own.get(int(value)) == label}
    # Numbers of coded and of named categories may also be typed.
    typed |= {item.value.value: v for item, (v, _) in zip(kind.items, pairs, strict=True) if item.value is not None}
    codes = number_codes(feature.labels)
    typed |= {number: code for number, code in codes.items() if any(code == value for value, _ in pairs)}
    return FeatureSpec(
        feature.name,
        number_type,
        domain,
        unordered=True,
        coded=bool(feature.categories),
        labels=labels,
        others={str(label): float(code) for code, label in enumerate(feature.labels or ())},
        typed=typed,
        codes=codes,
        declared=True,
    )


def _category_value(
    found: Declarations, item: ast.CategoryItem, place: int, feature: Feature, number_type: NumberType
) -> tuple[float, Label]:
    """The stored value of a declared category, and its name in questions and answers."""
    labels = feature.labels or ()
    if item.value is None:
        assert item.name is not None
        names = [str(label) for label in labels]
        if item.name.text in names:
            code = names.index(item.name.text)
            return float(code), labels[code]
        if names:
            remedy = did_you_mean(item.name.text, names)
            raise found.fail("E106", f"`{feature.name}` has no category `{item.name.text}`", item.span, remedy)
        if feature.name not in asked_about(found):
            # A pipeline drops this column: no answer depends on its numbers, and only the names matter.
            return float(place), item.name.text
        message = f"the model has no names for the categories of `{feature.name}`, so `{item.name.text}` needs a number"
        raise found.fail("E310", message, item.span, f"write `{item.span.text} = value`")
    number, span = item.value.value, item.value.span
    if feature.unsure and item.name is None:
        message = (
            f"`{span.text}` may be a code of `{feature.name}` or a name: the model does not link its names to features"
        )
        raise found.fail("E310", message, span, f"write `NAME = {span.text}` for the code")
    if abs(number) > Fraction(number_type.max):
        raise found.fail("E311", f"`{span.text}` is not a {number_type.value} number", span)
    codes = number_codes(labels)
    if labels and number not in codes and (codes or item.name is None):
        message = f"the model has no category `{span.text}` of `{feature.name}`"
        listed = ", ".join(f"`{label}`" for label in labels[:8])
        other = "" if codes else f"; a code of the model needs a name: `NAME = {span.text}`"
        raise found.fail("E106", message, span, f"its categories are {listed}{other}")
    value = codes.get(number, nearest_float(number, number_type))
    if feature.categories and (value < 0 or value != int(value)):
        message = f"the model reads `{feature.name}` as codes 0, 1, 2, .."
        raise found.fail("E306", message, span, "write a whole number of at least 0")
    if item.name is not None:
        return value, item.name.text
    return value, int(number) if number.denominator == 1 else float(number)
