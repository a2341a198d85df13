"""Shares of inputs in words."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

_RARE = 1e-3
_LEAST = 1e-7


def percent(share: float, rounding: str = ROUND_HALF_EVEN, of: float = 0.0) -> str:
    """A share for display: a percentage with four digits, `1 in 23,000` below a thousandth, or `fewer than 1 in 10 million`. A
    bound is rounded to the side on which it remains valid: ROUND_FLOOR for lower bounds and ROUND_CEILING for upper bounds.
    `of` is the upper end of an interval that contains the share: both ends have one unit.
    """
    if share <= 0:
        return "0 %"
    if max(share, of) >= _RARE:
        return f"{Context(4, rounding).create_decimal_from_float(100 * share).normalize():f} %"
    if share < _LEAST:
        return "fewer than 1 in 10 million"
    # A larger denominator means a smaller share.
    turned = {ROUND_FLOOR: ROUND_CEILING, ROUND_CEILING: ROUND_FLOOR}.get(rounding, rounding)
    times = Context(2, turned).divide(1, Decimal(share)).normalize()
    return f"1 in {times / 1_000_000:f} million" if times >= 1_000_000 else f"1 in {times:,f}"


def interval(record: dict[str, Any]) -> str:
    """The proved interval of a share. Both ends are rounded outward, unless they differ by less than a millionth."""
    low, high = record["lower"], record["upper"]
    if high - low <= 1e-6 * high:
        return percent(high)
    least, most = percent(low, ROUND_FLOOR, high), percent(high, ROUND_CEILING)
    return f"at most {most}" if low < _LEAST and high >= _LEAST else f"{least} to {most}"


def estimated(record: dict[str, Any]) -> str:
    """The estimate with its interval, or "" if there is no estimate."""
    found = record["estimate"]
    if found is None:
        return ""
    value, low, high = (percent(found[name], of=found["high"]) for name in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def share_words(record: dict[str, Any]) -> str:
    """The share of a question in one line: the proved interval, the estimate, and the verdict on the expected bound."""
    parts = [f"share of {record['of']}: {interval(record)} (proved)"]
    if record["estimate"] is not None:
        failing = record["estimate"]["delta"]
        parts.append(f"estimated at {estimated(record)}, wrong with a probability of at most {failing:g}")
    if not record["closed"]:
        parts.append(f"open: {record['reason']}")
    return "; ".join(parts)
