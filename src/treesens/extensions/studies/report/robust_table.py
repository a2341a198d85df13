"""The robustness of rows as tables on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treesens.report.show import out
from treesens.report.tables import Table


def show_rows(records: Sequence[dict[str, Any]]) -> None:
    """One line per row: its class, how near another one is, and what is proved."""
    table = Table(box=None, pad_edge=False)
    for name, justify in (("row", "right"), ("class", "left"), ("distance", "right"), ("proved bound", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("")
    for record in records:
        none = record["verdict"] == "none"
        how = "no other class in the domain" if none else record["reason"] or ("closed" if record["closed"] else "")
        numbers = ("–" if record[key] is None else f"{record[key]:.9g}" for key in ("distance", "bound"))
        table.add_row(str(record["row"]), record["class"], *numbers, how)
        for one in record.get("targets", ()):
            numbers = ("–" if one[key] is None else f"{one[key]:.9g}" for key in ("distance", "bound"))
            how = "no input of the domain" if one["verdict"] == "none" else one["reason"]
            table.add_row("", f"to {one['target']}", *numbers, how or ("closed" if one["closed"] else ""))
    table.print_fitted(out())


def show_curve(curve: Sequence[tuple[float, float]], *, labelled: bool) -> None:
    """The part of the rows that is proved robust at each radius."""
    table = Table(box=None, pad_edge=False)
    table.add_column("radius", justify="right")
    table.add_column("certified accuracy" if labelled else "certified part of the rows", justify="right")
    for radius, part in curve:
        table.add_row(f"{radius:.6g}", f"{100 * part:.1f} %")
    table.print_fitted(out())
