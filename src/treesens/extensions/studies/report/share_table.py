"""Shares of inputs on the terminal, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treesens.extensions.studies.report.audit_table import classes_of
from treesens.extensions.studies.report.share_words import MEANINGS, who_of
from treesens.report.share_words import estimated, interval, percent
from treesens.report.show import out
from treesens.report.tables import Table
from treesens.report.terminal import say_wrapped


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
    say_wrapped(
        f"Shares are {MEANINGS[measure]}: those for which other values of the varied features alone flip the decision."
    )
    deltas = {r["estimate"]["delta"] for r in records if r["estimate"] is not None}
    if deltas:
        say_wrapped(f"The interval in brackets fails to hold the share with a probability of at most {max(deltas):g}.")
    for record in records:
        _show_concerned(record)


def _show_concerned(record: dict[str, Any]) -> None:
    if not record["who"] and not record["boxes"]:
        return
    say_wrapped(f"\n{', '.join(record['varied'])} at {size_of(record)}: {record['question']}")
    for line in who_of(record):
        say_wrapped(f"  {line}")
    for box in record["boxes"]:
        parts = ", ".join(f"`{name}` {values}" for name, values in box["where"].items()) or "everything"
        say_wrapped(f"  all inputs with {parts} are concerned: {percent(box['share'])} of all")
