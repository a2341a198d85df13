"""The range of a feature in a question: its declaration, its column in `domain from DATA`, or all finite floats.

A `FeatureSpec` turns typed values into cuts of the grid. A constant c becomes exactly the strict cut at which the truth of `x
>= c` changes among the floats of the model's input type; c is never rounded to the nearest float.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray
from treesens.compiler.base.floats import (
    NumberType,
    ceil_to,
    float32_of_decimals,
    floor_to,
    next_down,
    next_up,
    round_to_float32,
)
from treesens.compiler.model import Feature, FeatureKind
from treesens.compiler.query.domain import Domain, RealDomain, Unit, ValueDomain
from treesens.data.tables import Categories, decimal_of

FEW_VALUES = 12
"""`domain from DATA`: a column with at most this many distinct values becomes a category (see `domain_of_column`)."""

Label = str | int | float


@dataclass(frozen=True, eq=False)
class FeatureSpec:
    """A feature of a question: its domain, the typed form of its values, and its category names.

    `unordered`: the values are named categories, or categories of the model, and only equality is defined for them. `coded`:
    the model itself reads categories; their cells are codes. `labels`: stored values by category name. `typed`: stored values
    of numbers whose float is rounded (0.1). `codes`: codes of the model's categories whose names are numbers; if not empty, no
    other number is a category. `others`: codes by name for all categories of the model, since a table may contain categories
    outside the domain. `steps`: whole numbers are stored as fractions, rounded. `declared`: False if all floats are legal. For
    `unsure` and `mark` see `Feature`."""

    name: str
    number_type: NumberType
    domain: Domain
    unordered: bool = False
    coded: bool = False
    labels: Mapping[str, float] = field(default_factory=dict)
    typed: Mapping[Fraction, float] = field(default_factory=dict)
    codes: Mapping[Fraction, float] = field(default_factory=dict)
    others: Mapping[str, float] = field(default_factory=dict)
    steps: bool = False
    declared: bool = False
    unsure: bool = False
    mark: str | None = None

    @property
    def unit(self) -> Unit | None:
        return self.domain.unit

    @property
    def missing(self) -> bool:
        return self.domain.missing

    @property
    def categories(self) -> Categories:
        """The feature's categories as tables write them."""
        names = {**self.others, **self.labels}
        return Categories(names, self.codes, self.declared or not self.labels, self.unsure, self.mark)

    @property
    def whole(self) -> bool:
        """True if the typed form of every legal value is a whole number."""
        if isinstance(self.domain, RealDomain):
            return self.domain.whole
        return self.steps or not (self.unit or (self.domain.values % 1).any())

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest legal value."""
        if isinstance(self.domain, ValueDomain):
            return float(self.domain.values[0]), float(self.domain.values[-1])
        return self.domain.low, self.domain.high

    @property
    def words(self) -> str:
        """The domain in words: its categories, or its range in typed units."""
        if self.labels:
            return ", ".join(f"`{label}`" for label in list(self.labels)[:8]) + (", …" if len(self.labels) > 8 else "")
        low, high = (float(self.unit.to_typed(Fraction(v))) if self.unit else v for v in self.ends)
        return f"{'a whole number' if self.whole else 'a number'} in [{low:.9g}, {high:.9g}]"

    @cached_property
    def width(self) -> Fraction | None:
        """The width of the domain, in stored units; None if unbounded, 1 for a single value."""
        low, high = self.ends
        if isinstance(self.domain, RealDomain) and (low <= -self.number_type.max or high >= self.number_type.max):
            return None
        return Fraction(high) - Fraction(low) or Fraction(1)

    def stored(self, typed: Fraction) -> Fraction:
        """The exact image of a typed number in the model's units."""
        return self.unit.to_stored(typed) if self.unit else typed

    @property
    def slope(self) -> Fraction:
        """The change of the stored value per unit of the typed value."""
        return self.stored(Fraction(1)) - self.stored(Fraction(0))

    def at_least(self, typed: Fraction) -> float:
        """The strict cut v such that a value, in typed units, is >= `typed` iff its stored form is >= v."""
        if self.steps:
            # Stored values are rounded, but each is far closer to its own step than to the midpoint between two steps.
            return ceil_to(self.stored(-((-typed).__floor__()) - Fraction(1, 2)), self.number_type)
        return ceil_to(self.stored(typed), self.number_type)

    def above(self, typed: Fraction) -> float:
        """The strict cut v such that a value, in typed units, is > `typed` iff its stored form is >= v."""
        if self.steps:
            return ceil_to(self.stored(typed.__floor__() + Fraction(1, 2)), self.number_type)
        return next_up(floor_to(self.stored(typed), self.number_type), self.number_type)

    def equal(self, typed: Fraction) -> tuple[float, float] | None:
        """The run [low, high) of stored values that a typed number denotes; None if the run contains no float of the type."""
        if self.steps:
            return (self.at_least(typed), self.above(typed)) if typed.denominator == 1 else None
        if typed in self.typed:
            return self.only(self.typed[typed])
        run = self.at_least(typed), self.above(typed)
        return run if run[0] < run[1] else None

    def only(self, value: float) -> tuple[float, float]:
        """The run [low, high) that contains a single stored value."""
        if self.coded:
            return float(np.trunc(value)), float(np.trunc(value)) + 1.0
        return value, next_up(value, self.number_type)

    def allows(self, values: FloatArray) -> BoolArray:
        """Marks legal stored values, bool[...]; NaN is legal where missing is allowed."""
        x = self.number_type.cast(values)
        if isinstance(self.domain, ValueDomain):
            legal = self.domain.values
            inside = legal[np.minimum(np.searchsorted(legal, x), len(legal) - 1)] == x
        else:
            with np.errstate(invalid="ignore"):
                inside = (x >= self.domain.low) & (x <= self.domain.high)
                inside &= (x == np.trunc(x)) if self.domain.whole else True
        return np.asarray(np.where(np.isnan(x), self.missing, inside), dtype=bool)


def undeclared_feature(feature: Feature, number_type: NumberType) -> FeatureSpec:
    """The specification of an undeclared feature: all floats, whole numbers, or 0 and 1, according to the model file."""
    if feature.kind is FeatureKind.INDICATOR:
        domain, typed = value_domain([(0.0, 0), (1.0, 1)])
        return FeatureSpec(feature.name, number_type, domain, typed=typed)
    whole = feature.kind is FeatureKind.INTEGER
    return FeatureSpec(feature.name, number_type, RealDomain(-number_type.max, number_type.max, whole=whole))


def number_codes(labels: Sequence[Label] | None) -> dict[Fraction, float]:
    """Codes by number, for labels that are numbers or texts that parse as numbers. Omits numbers that two labels share."""
    numbers = [(decimal_of(str(label)), float(code)) for code, label in enumerate(labels or ())]
    count = Counter(number for number, _ in numbers)
    return {number: code for number, code in numbers if number is not None and count[number] == 1}


def coded_categories(feature: Feature, number_type: NumberType, seen: FloatArray | None = None) -> FeatureSpec:
    """A feature that the model reads as categories: codes 0..n-1, with the model's names.

    `seen`, float64[rows], holds the codes in a table used by `domain from`: codes unknown to the model become legal too, and
    missing is legal if the table has a missing value.
    """
    count, labels = feature.categories, feature.labels
    codes = np.arange(count, dtype=np.float64)
    absent = False
    if seen is not None:
        present = seen[~np.isnan(seen)]
        absent = len(present) < len(seen)
        if not labels:
            codes = np.union1d(codes, present[(present >= count) & (present == np.trunc(present))])
    names: list[Label] = [labels[int(c)] if labels else int(c) for c in codes]
    known = {str(label): float(i) for i, label in enumerate(labels or ())}
    numbers = number_codes(labels)
    domain = ValueDomain(codes, tuple(names), absent)
    return FeatureSpec(
        feature.name, number_type, domain, True, True, known, numbers, numbers, unsure=feature.unsure, mark=feature.mark
    )


def value_domain(
    pairs: Sequence[tuple[float, Label]], missing: bool = False, unit: Unit | None = None
) -> tuple[ValueDomain, dict[Fraction, float]]:
    """A domain of labelled values, and the stored values by numeric label."""
    ordered = sorted(pairs, key=lambda pair: pair[0])
    domain = ValueDomain(np.array([v for v, _ in ordered], np.float64), tuple(t for _, t in ordered), missing, unit)
    return domain, {Fraction(label): value for value, label in ordered if not isinstance(label, str)}


def nearest_float(value: Fraction, number_type: NumberType) -> float:
    """The float of the type nearest to a rational."""
    return float(nearest_floats([value.numerator], value.denominator, number_type)[0])


def nearest_floats(numerators: Sequence[int], denominator: int, number_type: NumberType) -> FloatArray:
    """The floats of the type nearest to numerator / denominator; exact, and fast for millions of values."""
    largest = max(abs(numerators[0]), abs(numerators[-1]), denominator) if isinstance(numerators, range) else 1 << 53
    if largest < 1 << 53:
        # Both operands are floats, and IEEE division rounds to the nearest float.
        wide = np.asarray(numerators, np.float64) / denominator
    else:
        # Division of Python integers rounds to the nearest float, too.
        wide = np.array([n / denominator for n in numerators], np.float64)
    if number_type is NumberType.FLOAT64:
        return wide + 0.0
    narrow, unsure = float32_of_decimals(wide)
    for i in np.flatnonzero(unsure).tolist():
        narrow[i] = round_to_float32(Fraction(numerators[i], denominator))
    return narrow


def steps_domain(
    low: int, high: int, unit: Unit, number_type: NumberType, seen: FloatArray, missing: bool
) -> ValueDomain:
    """The domain of the whole numbers low..high, each stored as the float nearest to its exact image on another scale.

    A table may contain a nearby float (scaling may have rounded more than once): values in `seen` within eight floats of a step
    are also legal, and receive the label of the step.
    """
    images = [unit.to_stored(Fraction(low)), unit.to_stored(Fraction(low + 1))]
    step = images[1] - images[0]
    common = images[0].denominator * step.denominator
    first, grow = int(images[0] * common), int(step * common)
    count = high - low + 1
    values = nearest_floats(range(first, first + count * grow, grow), common, number_type)
    extra = np.setdiff1d(number_type.cast(seen[np.isfinite(seen)]), values)
    nearest = np.rint((extra - float(images[0])) / float(step)).astype(np.int64)
    inside = (nearest >= 0) & (nearest < count)
    extra, nearest = extra[inside], nearest[inside]
    spacing = np.spacing(np.maximum(np.abs(extra), np.abs(values[nearest])).astype(number_type.dtype)).astype(float)
    close = (np.abs(extra - values[nearest]) <= 8 * spacing) & (8 * spacing < float(step) / 2)
    if not close.any():
        return ValueDomain(values, range(low, high + 1), missing, unit)
    every = np.concatenate((values, extra[close]))
    labels = np.concatenate((np.arange(count), nearest[close])) + low
    order = np.argsort(every, kind="stable")
    return ValueDomain(every[order], tuple(labels[order].tolist()), missing, unit)


def domain_of_column(name: str, number_type: NumberType, column: FloatArray) -> FeatureSpec:
    """`domain from DATA`: [min, max] of the column or, if there are few, its distinct values.

    "Few" means at most 12 whole values, or at most 12 values of any kind in a column with at least four times as many rows (a
    short table says little about a continuous feature). A column of whole numbers yields a domain of whole numbers. Missing is
    legal if the column has missing values.
    """
    present = column[~np.isnan(column)]
    missing = len(present) < len(column)
    if len(present) == 0:
        return FeatureSpec(name, number_type, RealDomain(-number_type.max, number_type.max, missing=missing))
    distinct = np.unique(present)
    whole = bool((distinct == np.trunc(distinct)).all())
    if len(distinct) <= FEW_VALUES and (whole or len(column) >= 4 * len(distinct)):
        numbers = distinct.tolist()
        stored = number_type.cast(distinct).tolist()
        unique: dict[float, Label] = {v: int(n) if n == int(n) else n for v, n in zip(stored, numbers, strict=True)}
        domain, typed = value_domain(list(unique.items()), missing)
        return FeatureSpec(name, number_type, domain, typed=typed, declared=True)
    low, high = (float(v) for v in number_type.cast([distinct[0], distinct[-1]]))
    low, high = max(low, -number_type.max), min(high, number_type.max)
    return FeatureSpec(name, number_type, RealDomain(low, high, whole=whole, missing=missing), declared=True)


def closed_range(
    low: Fraction | None, high: Fraction | None, *, low_open: bool, high_open: bool, number_type: NumberType
) -> tuple[float, float]:
    """The floats of an interval as a closed range, empty if its lower end exceeds its upper end; None means infinity."""
    first, last = -number_type.max, number_type.max
    if low is not None:
        first = ceil_to(low, number_type)
        if low_open and first == low:
            first = next_up(first, number_type)
    if high is not None:
        last = floor_to(high, number_type)
        if high_open and last == high:
            last = next_down(last, number_type)
    return first, last
