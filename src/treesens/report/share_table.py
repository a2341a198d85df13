"""Shares of inputs on the terminal, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treesens.report.audit_table import classes_of
from treesens.report.show import out
from treesens.report.tables import Table
from treesens.report.terminal import say

_MEANINGS = {
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


def size_of(record: dict[str, Any]) -> str:
    """The gap or the margin of a record."""
    return f"{record['gap' if 'gap' in record else 'margin']:g}"


def show_shares(records: Sequence[dict[str, Any]]) -> None:
    """A line per question, and below it who is concerned."""
    if not records:
        return
    kind = "gap" if "gap" in records[0] else "margin"
    table = Table(box=None, pad_edge=False)
    for name in ("varied", "classes", kind, "proved share", "estimate", "seconds", ""):
        table.add_column(name, justify="right" if name in (kind, "seconds") else "left")
    for record in records:
        table.add_row(
            ", ".join(record["varied"]),
            classes_of(record),
            size_of(record),
            interval(record),
            estimated(record),
            f"{record['seconds']:.2f}",
            "" if record["closed"] else f"open: {record['reason']}",
        )
    table.drop_empty("classes", "estimate", "")
    table.print_fitted(out(), ("seconds",))
    measure = records[0]["measure"]
    say(
        f"Shares are {_MEANINGS[measure]}: those for which other values of the varied features alone flip the decision."
    )
    deltas = {r["estimate"]["delta"] for r in records if r["estimate"] is not None}
    if deltas:
        say(f"The interval in brackets fails to hold the share with a probability of at most {max(deltas):g}.")
    for record in records:
        _show_concerned(record)


def _show_concerned(record: dict[str, Any]) -> None:
    if not record["who"] and not record["boxes"]:
        return
    say(f"\n{', '.join(record['varied'])} at {size_of(record)}: {record['question']}")
    for trait in record["who"]:
        some, every = (f"{100 * trait[key]:.0f} %" for key in ("concerned", "all"))
        say(f"  {some} of those concerned have {trait['words']} ({every} of all)")
    for box in record["boxes"]:
        parts = ", ".join(f"`{name}` {values}" for name, values in box["where"].items()) or "everything"
        say(f"  all inputs with {parts} are concerned: {percent(box['share'])} of all")
