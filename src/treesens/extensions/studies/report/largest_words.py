"""Facts about largest values in words: the only place that says `at least`, `at most` or `not used`."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context

from treesens.extensions.studies.largest import Largest, Status


def largest_words(known: Largest, digits: int = 4) -> str:
    """`5.869`, `at least 2.445, at most 13.6`, `not audited`, ..: the exact value, or the known bounds on it."""
    match known.status:
        case Status.PROVED:
            return rounded(known.value, digits, ROUND_HALF_EVEN)
        case Status.BETWEEN:
            return (
                f"at least {rounded(known.value, digits, ROUND_FLOOR)}, "
                f"at most {rounded(known.bound, digits, ROUND_CEILING)}"
            )
        case Status.AT_LEAST:
            return f"at least {rounded(known.value, digits, ROUND_FLOOR)}"
        case Status.AT_MOST:
            return f"at most {rounded(known.bound, digits, ROUND_CEILING)}"
        case Status.UNKNOWN:
            return "not known"
        case Status.NOT_AUDITED:
            return "not audited"
        case Status.NOT_USED:
            return "not used (proved)"


def rounded(value: float | None, digits: int, rounding: str) -> str:
    """A number with `digits` digits, a bound rounded to the side on which it holds; whole numbers in full."""
    if isinstance(value, int) or value is None:
        return f"{value:,}" if value is not None else "–"
    return f"{float(Context(digits, rounding).create_decimal_from_float(value)):.{digits}g}"
