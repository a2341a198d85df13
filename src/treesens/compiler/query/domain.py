"""Domains: the legal values of a feature, and the representative value of a cell.

Values are stored values, floats of the model's input type. A `Unit` maps between stored and typed values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray
from treesens.compiler.base.floats import NumberType, ceil_to, ceil_to_array, floor_to, floor_to_array
from treesens.compiler.model.grid import FeatureGrid


@dataclass(frozen=True)
class Unit:
    """A linear map from typed values to the model's stored values: typed [low, high] -> stored [low, high]."""

    typed_low: Fraction
    typed_high: Fraction
    stored_low: Fraction
    stored_high: Fraction

    def to_stored(self, typed: Fraction) -> Fraction:
        slope = (self.stored_high - self.stored_low) / (self.typed_high - self.typed_low)
        return self.stored_low + (typed - self.typed_low) * slope

    def to_typed(self, stored: Fraction) -> Fraction:
        slope = (self.typed_high - self.typed_low) / (self.stored_high - self.stored_low)
        return self.typed_low + (stored - self.stored_low) * slope


@dataclass(frozen=True)
class RealDomain:
    """All floats of the input type in the closed range [low, high]; `whole` restricts them to integers."""

    low: float
    high: float
    whole: bool = False
    missing: bool = False
    unit: Unit | None = None


@dataclass(frozen=True, eq=False)
class ValueDomain:
    """Finitely many legal values: `values`, float64[n] ascending, each with a label for input and output.

    Several values may share a label (an integer stored as a rounded fraction, and its form in a table).
    """

    values: FloatArray
    labels: Sequence[str | int | float]
    missing: bool = False
    unit: Unit | None = None


Domain: TypeAlias = RealDomain | ValueDomain


def whole_range(low: float, high: float) -> tuple[int, int]:
    """The integers within a closed range of floats; empty if the first float exceeds the second."""
    return -((-Fraction(low)).__floor__()), Fraction(high).__floor__()


def cell_range(domain: RealDomain, grid: FeatureGrid, cell: int) -> tuple[float, float]:
    """The legal floats of an ordered cell as a closed range; empty if low > high."""
    low, high = grid.interval(cell)
    low, high = max(low, domain.low), min(high, domain.high)
    if not domain.whole or low > high:
        return low, high
    first, last = whole_range(low, high)
    number_type = grid.number_type
    # Beyond 2**24 (for float32) not all integers are floats: only integers that are floats count.
    return ceil_to(Fraction(first), number_type), floor_to(Fraction(last), number_type)


def legal_cells(domain: Domain, grid: FeatureGrid) -> BoolArray:
    """Marks cells with at least one legal value; bool[n_cells]."""
    legal = np.zeros(grid.n_cells, bool)
    if isinstance(domain, ValueDomain):
        legal[grid.cell_of(domain.values)] = True
    elif grid.categories:
        for cell in range(grid.present_cells):
            low, high = cell_range(domain, grid, cell)
            legal[cell] = low <= high
    else:
        legal[: grid.present_cells] = _ordered_legal(domain, grid)
    if grid.missing:
        legal[grid.missing_cell] = domain.missing
    return legal


def _ordered_legal(domain: RealDomain, grid: FeatureGrid) -> BoolArray:
    """Marks the ordered cells whose `cell_range` is not empty, bool[cells]."""
    if not domain.whole and _is_value(domain.low, grid.number_type) and domain.low <= domain.high:
        # A cell ends below its upper cut: the lowest legal value is in the first cell whose upper cut is above it.
        first, last = grid.cuts.searchsorted([domain.low, domain.high], side="right")
        cells = np.arange(len(grid.cuts) + 1)
        return np.asarray((cells >= first) & (cells <= last))
    lows, highs = grid.intervals()
    low, high = np.maximum(lows, domain.low), np.minimum(highs, domain.high)
    if domain.whole:
        low = ceil_to_array(np.ceil(low), grid.number_type)
        high = floor_to_array(np.floor(high), grid.number_type)
    return np.asarray(low <= high)


def _is_value(number: float, number_type: NumberType) -> bool:
    """True if a finite float is representable in `number_type`."""
    return abs(number) <= number_type.max and float(number_type.dtype.type(number)) == number


def allowed_values(domain: Domain, values: FloatArray) -> BoolArray:
    """Marks the floats of the input type that are in a domain, bool[n]; NaN is marked if missing values are allowed."""
    if isinstance(domain, ValueDomain):
        inside = np.isin(values, domain.values)
    else:
        with np.errstate(invalid="ignore"):
            inside = (values >= domain.low) & (values <= domain.high)
            inside &= (values == np.trunc(values)) if domain.whole else True
    return np.asarray(np.where(np.isnan(values), domain.missing, inside), bool)


def is_allowed(domain: Domain, value: float) -> bool:
    """`allowed_values` for one float."""
    if isinstance(domain, RealDomain) and not np.isnan(value):
        return domain.low <= value <= domain.high and (not domain.whole or value.is_integer())
    return bool(allowed_values(domain, np.array([value]))[0])


def pick_value(domain: Domain, grid: FeatureGrid, cell: int, near: float | None = None) -> float:
    """A legal value in a cell: the nearest to `near` if `near` is passed, otherwise a round value. NaN for the missing cell.

    Raises `ValueError` if the cell contains no legal value.
    """
    if grid.missing and cell == grid.missing_cell:
        return float("nan")
    if isinstance(domain, ValueDomain):
        inside = domain.values[grid.cell_of(domain.values) == cell]
        if len(inside) == 0:
            raise ValueError(f"cell {cell} of {grid.name} contains no legal value")
        return float(inside[0] if near is None else inside[np.argmin(np.abs(inside - near))])
    low, high = cell_range(domain, grid, cell)
    if low > high:
        raise ValueError(f"cell {cell} of {grid.name} contains no legal value")
    if near is not None:
        value = min(max(near, low), high)
        if domain.whole:
            value = min(max(float(round(value)), low), high)
        return float(_as_type(value, grid.number_type, low, high))
    return round_value(low, high, grid.number_type)


def _as_type(value: float, number_type: NumberType, low: float, high: float) -> float:
    cast = float(number_type.dtype.type(value))
    return min(max(cast, low), high)


def round_value(low: float, high: float, number_type: NumberType) -> float:
    """A value in [low, high] with few decimals: zero, a whole number, or the shortest decimal inside.

    An open cell ends at the largest float, which is not a natural value, so the search starts at the other end.
    """
    if low <= 0.0 <= high:
        return 0.0
    if low > 0:
        return -_round_down(-high, -low, number_type)
    return _round_down(low, high, number_type)


def _round_down(low: float, high: float, number_type: NumberType) -> float:
    """For low <= high < 0: a round value near `high`, the end with the smaller magnitude."""
    (least, unit), (most, parts) = low.as_integer_ratio(), high.as_integer_ratio()
    for decimals in range(50):
        scale = 10**decimals
        steps = most * scale // parts
        if steps * unit < least * scale:
            continue
        value = float(number_type.dtype.type(steps / scale))
        if low <= value <= high:
            return value
    return high
