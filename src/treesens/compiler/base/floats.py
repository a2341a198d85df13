"""Number types of model inputs, neighbours of floats, and outward rounding of rationals.

A feature value has exactly one number type, the type in which the library compares (float32 for XGBoost and scikit-learn trees,
float64 for LightGBM and histogram boosting). Values are passed as float64, which represents every float32 exactly. Zero is
always +0.0: both zeros compare equal, so they are one value, and one bit pattern keeps sets of values duplicate-free.

Text is a number if it is a decimal in ASCII digits, as in tables and other languages. Python also accepts `1_000` as 1000, and
digits of all scripts. Other programs do not parse such fields as numbers, and would read the table differently.
"""

from __future__ import annotations

import ctypes
import math
import re
import struct
import sys
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]


_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_LARGEST = (2.0 - 2.0**-23) * 2.0**127
_SINGLES, _BITS = struct.Struct("<f"), struct.Struct("<i")


class NumberType(Enum):
    """IEEE 754 binary32 or binary64."""

    FLOAT32 = "float32"
    FLOAT64 = "float64"

    @property
    def dtype(self) -> np.dtype[np.float32] | np.dtype[np.float64]:
        """The numpy dtype of the same format."""
        return _SINGLE if self is NumberType.FLOAT32 else _DOUBLE

    @property
    def max(self) -> float:
        """The largest finite value."""
        return _LARGEST if self is NumberType.FLOAT32 else sys.float_info.max

    @property
    def tiny(self) -> float:
        """The smallest positive value (denormal)."""
        return 2.0**-149 if self is NumberType.FLOAT32 else 5e-324

    @property
    def precision(self) -> int:
        """Significant bits, including the hidden bit: rounding to nearest has a relative error of at most 2**-precision."""
        return 24 if self is NumberType.FLOAT32 else 53

    def cast(self, values: object) -> Float64Array:
        """Values rounded to nearest in this type, as float64 of the same shape; overflow gives infinity, and -0.0 gives 0."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            rounded = np.asarray(values, dtype=np.float64).astype(self.dtype).astype(np.float64)
        return rounded + 0.0

    def holds(self, values: object) -> NDArray[np.bool_]:
        """True where values are exactly representable, which includes infinities and NaN."""
        array = np.asarray(values, dtype=np.float64)
        return np.asarray((self.cast(array) == array) | np.isnan(array))


def next_up_array(values: object, number_type: NumberType) -> Float64Array:
    """The next larger value of the type for each value of the type; the neighbour of the largest value is infinity."""
    narrow = np.asarray(values, dtype=np.float64).astype(number_type.dtype)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.nextafter(narrow, number_type.dtype.type(np.inf)), dtype=np.float64) + 0.0


def next_down_array(values: object, number_type: NumberType) -> Float64Array:
    """The next smaller value of the type for each value of the type; the neighbour of the smallest value is -infinity."""
    narrow = np.asarray(values, dtype=np.float64).astype(number_type.dtype)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.nextafter(narrow, number_type.dtype.type(-np.inf)), dtype=np.float64) + 0.0


def next_up(value: float, number_type: NumberType) -> float:
    """The next larger value of the type; `value` must be representable in the type."""
    if number_type is NumberType.FLOAT64:
        return math.nextafter(value, math.inf) + 0.0
    if value == 0.0:
        return NumberType.FLOAT32.tiny
    if value == math.inf or math.isnan(value):
        return value
    # Floats of one sign are ordered like their bits; for one number this is several times faster than numpy.
    (bits,) = _BITS.unpack(_SINGLES.pack(value))
    (above,) = _SINGLES.unpack(_BITS.pack(bits + 1 if bits >= 0 else bits - 1))
    return float(above) + 0.0


def next_down(value: float, number_type: NumberType) -> float:
    """The next smaller value of the type; `value` must be representable in the type."""
    return 0.0 - next_up(0.0 - value, number_type)


def ceil_to_array(values: object, number_type: NumberType) -> Float64Array:
    """The smallest value of the type that is >= x, for each float64 x; infinity if no such finite value exists."""
    exact = np.asarray(values, dtype=np.float64)
    rounded = number_type.cast(exact)
    result = np.where(rounded < exact, next_up_array(rounded, number_type), rounded)
    return np.where(np.isneginf(result) & np.isfinite(exact), -number_type.max, result)


def floor_to_array(values: object, number_type: NumberType) -> Float64Array:
    """The largest value of the type that is <= x, for each float64 x; -infinity if no such finite value exists."""
    return 0.0 - ceil_to_array(0.0 - np.asarray(values, dtype=np.float64), number_type)


_WHOLE = 1 << 24
"""Integers up to this bound are exact in every number type."""


def ceil_to(value: Fraction | float, number_type: NumberType) -> float:
    """The smallest finite value of the type that is >= `value`, or infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return -number_type.max if value < 0 else math.inf
    numerator, denominator = value.as_integer_ratio()
    if denominator == 1 and abs(numerator) <= _WHOLE:
        return float(numerator)
    largest = int(number_type.max)
    if numerator > largest * denominator:
        return math.inf
    if numerator <= -largest * denominator:
        return float(-largest)

    def falls_short(candidate: float) -> bool:
        whole, parts = candidate.as_integer_ratio()
        return whole * denominator < numerator * parts

    # Integer division rounds to the nearest float64, and the cast rounds again, so that the result is at most one step off.
    result = float(number_type.dtype.type(numerator / denominator)) + 0.0
    while falls_short(result):
        result = next_up(result, number_type)
    while result > -largest and not falls_short(below := next_down(result, number_type)):
        result = below
    return result


def floor_to(value: Fraction | float, number_type: NumberType) -> float:
    """The largest finite value of the type that is <= `value`, or -infinity."""
    return 0.0 - ceil_to(-value if isinstance(value, float) else -Fraction(value), number_type)


def shortest(value: float, number_type: np.dtype[Any]) -> int | float:
    """The shortest decimal that parses as exactly this float of the type; an int if the float is whole and below 2**53."""
    shown = float(str(number_type.type(value)))
    return int(shown) if shown.is_integer() and abs(shown) < 2**53 else shown


def rounded_to(value: Fraction, number_type: np.dtype[Any]) -> float:
    """The float of a type nearest to a rational."""
    return round_to_float32(value) if number_type == np.float32 else float(value)


def round_to_float32(value: Fraction) -> float:
    """The float32 nearest to a rational, ties to even, like a C library's `strtof`."""
    below, above = floor_to(value, NumberType.FLOAT32), ceil_to(value, NumberType.FLOAT32)
    if below == above:
        return below
    if math.isinf(below) or math.isinf(above):
        limit = Fraction(2) ** 128 - Fraction(2) ** 103  # half a step past the largest float32
        finite = above if math.isinf(below) else below
        return finite if abs(value) < limit else math.copysign(math.inf, finite)
    twice = 2 * value - Fraction(below) - Fraction(above)
    if twice:
        return above if twice > 0 else below
    even = int(np.float32(below).view(np.int32)) % 2 == 0
    return below if even else above


def float32_of_decimals(values: object) -> tuple[Float64Array, NDArray[np.bool_]]:
    """Float32 values of decimals that were parsed as float64, and a mask of values that direct rounding may change.

    Double rounding is wrong only if the float64 is exactly halfway between two float32 values (even if the decimal itself is
    not). The mask marks these values, whose text has to be rounded exactly (`round_to_float32`).
    """
    wide = np.asarray(values, dtype=np.float64)
    narrow = NumberType.FLOAT32.cast(wide)
    off = np.isfinite(wide) & (narrow != wide)
    up = next_up_array(narrow, NumberType.FLOAT32)
    down = next_down_array(narrow, NumberType.FLOAT32)
    with np.errstate(invalid="ignore", over="ignore"):
        # Sums of two float32 neighbours and their halves are exact in float64.
        halfway = off & (((narrow + up) / 2 == wide) | ((narrow + down) / 2 == wide))
    edge = off & (np.abs(wide) == 2.0**128 - 2.0**103)
    return narrow, halfway | edge


def libm_float32(function: str, value: float) -> float:
    """`logf` or `expf` of the C library, which compiled tree libraries call for link functions.

    numpy's vectorised float32 functions may differ from the C library in the last bit. If no C library is found, the result is
    the float64 function rounded to float32, which differs from glibc's `logf` for less than one value in a thousand.
    """
    library = _libm()
    if library is not None:
        call = getattr(library, function)
        call.restype = ctypes.c_float
        call.argtypes = [ctypes.c_float]
        return float(call(value))
    wide = {"logf": math.log, "expf": math.exp}[function](value)
    return float(np.float32(wide))


def _libm() -> ctypes.CDLL | None:
    names = {"linux": "libm.so.6", "win32": "ucrtbase", "darwin": "libSystem.dylib"}
    try:
        return ctypes.CDLL(names.get(sys.platform, "libm.so"))
    except OSError:
        return None


Float64 = NDArray[np.float64]
# The rank of infinity. Floats are numbered by rank: 0 has rank 0, and negative floats have negative ranks.
_INFINITY = np.int64(0x7FF0_0000_0000_0000)


def largest_true(holds: Callable[[Float64], NDArray[np.bool_]], count: int) -> Float64:
    """For `count` monotone predicates, the largest float at which each predicate is true (or -infinity)."""
    low, high = np.full(count, -_INFINITY), np.full(count, _INFINITY)
    while (low < high).any():
        # Half of the sum, rounded up, without overflow.
        middle = (low >> 1) + (high >> 1) + (((low & 1) + (high & 1) + 1) >> 1)
        with np.errstate(over="ignore", invalid="ignore"):
            true = holds(_float(middle))
        low, high = np.where(true, middle, low), np.where(true, high, np.maximum(middle - 1, low))
    return _float(low)


def _float(rank: NDArray[np.int64]) -> Float64:
    return np.where(rank < 0, -np.abs(rank).view(np.float64), np.abs(rank).view(np.float64)) + 0.0


_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)
_WHOLE_TEXT = re.compile(r"[+-]?[0-9]+")
_MOST_DIGITS = 4000
"""Maximum digits of an integer; Python itself refuses longer integers."""


def is_decimal(text: str) -> bool:
    """True if a text is a finite decimal number: `12`, `-.5`, `1e-3`."""
    return _DECIMAL.fullmatch(text) is not None


def float_of(text: str) -> float | None:
    """The float64 nearest to a decimal, or the infinity or NaN that the text names; None for any other text."""
    return float(text) if is_decimal(text) or _NOT_FINITE.fullmatch(text) else None


def whole_of(text: str) -> int | None:
    """The integer that a text in ASCII digits represents; None for any other text."""
    return int(text) if len(text) <= _MOST_DIGITS and _WHOLE_TEXT.fullmatch(text) else None


def fraction_of(text: str) -> Fraction:
    """The exact value of a decimal or of a ratio of integers, `1/3`. Raises ValueError for any other text."""
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
