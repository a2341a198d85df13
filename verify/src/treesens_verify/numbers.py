"""Exact numbers: float32 as C reads it, neighbours of floats, and logarithms and powers of e between two fractions."""

import functools
import math
import re
import struct
from fractions import Fraction

MOST_BITS, MOST_EXPONENT = 1 << 16, 1 << 16
SHORT = 40
"""Texts of numbers up to this length are read once: tables of costs hold the same ones again and again."""


class Rejected(Exception):
    """The certificate proves nothing; the text says why."""


def require(condition, words):
    if not condition:
        raise Rejected(words)


LARGEST = {"float32": struct.unpack("f", b"\xff\xff\x7f\x7f")[0], "float64": math.nextafter(math.inf, 0)}

WHOLE = {"float32": 1 << 24, "float64": 1 << 53}
"""Up to here every whole number is one of the type, and after it no longer: codes of categories lie below."""
PACKED = {"float32": "f", "float64": "d"}


def is_value(x, kind):
    """True if a feature of this number type can have exactly this JSON number as its value.

    Every number that values are compared with must have this property; any other number would be ambiguous.
    """
    if type(x) not in (int, float):
        return False
    try:
        (stored,) = struct.unpack(PACKED[kind], struct.pack(PACKED[kind], x))
    except OverflowError:
        return False
    return math.isfinite(stored) and stored == x


def float32(text):
    """The float32 nearest to a decimal. Rounding by way of float64 can only be wrong where float64 lies halfway."""
    wide = float(text)
    near = struct.unpack("f", struct.pack("f", wide))[0] + 0.0
    if wide == 0:  # whatever its exponent
        return 0.0
    if struct.unpack("Q", struct.pack("d", wide))[0] & 0x1FFFFFFF != 1 << 28 and not abs(near) < 2.0**-126:
        return near
    around = [step(near, -1), near, step(near, 1)]
    return min((x for x in around if math.isfinite(x)), key=lambda x: (abs(Fraction(x) - Fraction(text)), x != near))


def fraction(text):
    """A fraction, of a text (n, n/d or a decimal without an exponent) or a number of JSON."""
    if isinstance(text, str):
        return _short(text) if len(text) <= SHORT else _of_text(text)
    require(not isinstance(text, bool), "a flag is no number")
    return Fraction(text)


def _of_text(text):
    require(re.fullmatch(r"-?[0-9]+(/[0-9]+|\.[0-9]+)?", text), "a text of no fraction")
    return Fraction(text)


_short = functools.lru_cache(1 << 14)(_of_text)


def common(denominators):
    """The least common multiple, within a limit: that of many large denominators could be endless."""
    found = 1
    for one in {*denominators}:
        found = math.lcm(found, one)
        require(found.bit_length() <= MOST_BITS, f"numbers whose common denominator has more than {MOST_BITS} bits")
    return found


def step(x, direction, number="float32"):
    """The next float above (1) or below (-1)."""
    if number == "float64":
        return math.nextafter(x, direction * math.inf) + 0.0
    if x == 0:
        return direction * 2.0**-149
    bits = struct.unpack("I", struct.pack("f", x))[0] + (direction if x > 0 else -direction)
    return struct.unpack("f", struct.pack("I", bits))[0] + 0.0


def ln_bounds(x, bits=256):
    """Rationals around the natural logarithm of a positive rational.

    x = 2^k m with 2/3 <= m <= 4/3, and ln m = 2 artanh((m-1)/(m+1)) as a series of whole numbers of units 2^-bits. Powers
    are at most 9/8 units too low, each of fewer than bits/3 + 2 terms less than 3 units, and what is left out is below 3.
    """

    def artanh(t):
        power, total, n = abs(t.numerator) * (1 << bits) // t.denominator, 0, 1
        while power:
            total, n = total + power // n, n + 2
            power = power * t.numerator**2 // t.denominator**2
        return total if t >= 0 else -total

    require(x > 0, f"{x} has no logarithm")
    if x == 1:
        return Fraction(0), Fraction(0)
    k = x.numerator.bit_length() - x.denominator.bit_length()
    k += (x / Fraction(2) ** k > Fraction(4, 3)) - (x / Fraction(2) ** k < Fraction(2, 3))
    m = x / Fraction(2) ** k
    middle, error = artanh((m - 1) / (m + 1)) + k * artanh(Fraction(1, 3)), (1 + abs(k)) * 3 * (bits // 3 + 3)
    return Fraction(2 * (middle - error), 1 << bits), Fraction(2 * (middle + error), 1 << bits)


def exp_bounds(x, bits=256):
    """Rationals around e to the power of a rational; None for the upper one of a very large power.

    x = k ln 2 + 2 r with r between 0 and 1, and e^x = 2^k (e^r)^2. The series of e^r is added up in whole numbers of units
    2^-bits: a term is less than 2 units too low, since to less than 1 comes at most half of what the one before it lacks, and
    all from the first one of no units on are less than 8 together.
    """
    if abs(x) > MOST_EXPONENT:
        return (exp_bounds(MOST_EXPONENT)[0], None) if x > 0 else (Fraction(0), exp_bounds(-MOST_EXPONENT)[1])
    low, high = ln_bounds(Fraction(2), bits + 32)
    k = math.floor(x / high) - 1
    ends = sorted((x - k * low, x - k * high))
    require(ends[0] >= 0 and ends[1] <= 2, "a power of e that is not enclosed")
    (least, _), (_, most) = (_series(end / 2, bits) for end in ends)
    scale = Fraction(2) ** k
    return least**2 * scale, most**2 * scale


def _series(r, bits):
    """Rationals around e^r, for r between 0 and 1."""
    term, total, n = 1 << bits, 0, 0
    while term:
        total, n = total + term, n + 1
        term = term * r.numerator // (r.denominator * n)
    return Fraction(total, 1 << bits), Fraction(total + 2 * n + 8, 1 << bits)
