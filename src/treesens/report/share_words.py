"""Shares of inputs in words."""

from __future__ import annotations

from typing import Any

MEANINGS = {
    "uniform": "of all inputs of the domain, by length of ranges and number of values",
    "cells": "of the cells that the model tells apart",
    "marginals": "of inputs that are drawn feature by feature from the columns of the table",
    "chow-liu": "of inputs that are drawn from a Chow-Liu tree of the table",
    "rows": "of the rows of the table",
}


def percent(share: float) -> str:
    """A share in percent, with four digits that count."""
    return f"{100 * share:.4g} %" if share > 1e-200 else "0 %"


def interval(record: dict[str, Any]) -> str:
    """What is proved of a share."""
    low, high = percent(record["lower"]), percent(record["upper"])
    return low if low == high else f"{low} to {high}"


def estimated(record: dict[str, Any]) -> str:
    """The estimate with its interval, if there is one."""
    found = record["estimate"]
    return "" if found is None else f"{percent(found['value'])} ({percent(found['low'])} to {percent(found['high'])})"


def share_words(record: dict[str, Any]) -> str:
    """The share that a question asks for, in a line: what is proved, what is estimated, and whether that is enough."""
    parts = [f"share of {record['of']}: {interval(record)} (proved)"]
    if record["estimate"] is not None:
        failing = record["estimate"]["delta"]
        parts.append(f"estimated at {estimated(record)}, wrong with a probability of at most {failing:g}")
    if not record["closed"]:
        parts.append(f"open: {record['reason']}")
    return "; ".join(parts)


def who_of(share: dict[str, Any]) -> list[str]:
    """Who is concerned, a sentence for every statement that tells those concerned from all."""
    return [
        f"{100 * trait['concerned']:.0f} % of those concerned have {trait['words']} ({100 * trait['all']:.0f} % of all)"
        for trait in share["who"]
    ]


def typical_of(record: dict[str, Any]) -> str:
    """What is left of a finding among typical inputs, with their largest swing; empty if nobody asked."""
    part = record.get("typical")
    if part is None:
        return ""
    swing, bound = part["max_swing"], part["max_swing_bound"]
    shown = "" if swing is None else f", swing {swing:.4g}" + (f" (≤ {bound:.4g})" if bound is not None else "")
    return f"{part['verdict']}{shown}"


def share_of(record: dict[str, Any]) -> str:
    """What is known of the share of a record of the audit, the estimate if there is one; empty if nobody asked."""
    share = record.get("share")
    return "" if share is None else estimated(share) or interval(share)
