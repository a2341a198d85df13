"""Words for facts in records. Only this module writes `at least`, `at most` or `not used` for a largest value."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context
from typing import Any

from treesens.extensions.measure.share_words import estimated, interval, percent
from treesens.extensions.studies.largest import Largest, Status, swing_of_record


def largest_words(known: Largest, digits: int = 4) -> str:
    """`5.869`, `at least 2.445, at most 13.6`, `not audited`, ..: the exact value, or the known bounds on this value."""
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
    """A number with `digits` digits. Bounds are rounded so that they remain valid; whole numbers are written in full."""
    if isinstance(value, int) or value is None:
        return f"{value:,}" if value is not None else "–"
    return f"{float(Context(digits, rounding).create_decimal_from_float(value)):.{digits}g}"


MEANINGS = {
    "uniform": "of all inputs of the domain, by length of ranges and number of values",
    "cells": "of the cells that the model distinguishes",
    "marginals": "of inputs that are drawn feature by feature from the columns of the table",
    "chow-liu": "of inputs that are drawn from a Chow-Liu tree of the table",
    "rows": "of the rows of the table",
}


def rarity(share: dict[str, Any]) -> str:
    """The rarity of a finding in words: the estimate, or the proved interval."""
    if share["estimate"] is not None:
        return f"about {percent(share['estimate']['value'])} of inputs"
    return f"{interval(share)} of inputs"


def who_of(share: dict[str, Any]) -> list[str]:
    """Sentences about affected inputs, one for every statement that distinguishes affected inputs from all inputs."""
    parts = [(100 * one["concerned"], one["words"].replace("`", ""), 100 * one["all"]) for one in share["who"]]
    return [
        f"{part:.0f} % of affected inputs have {words} ({everybody:.0f} % of all)" for part, words, everybody in parts
    ]


def typical_of(record: dict[str, Any]) -> str:
    """The finding among typical inputs, with their largest swing; empty unless requested."""
    part = record.get("typical")
    if part is None:
        return ""
    known = swing_of_record(part)
    shown = "" if known.status is Status.UNKNOWN else f", largest swing {largest_words(known)}"
    return f"{part['verdict']}{shown}"


def share_of(record: dict[str, Any]) -> str:
    """The share in an audit record: the estimate if it exists, otherwise the proved interval; empty unless requested."""
    share = record.get("share")
    return "" if share is None else estimated(share) or interval(share)
