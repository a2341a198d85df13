"""Repaired models as a table on the terminal: a line per size, with prices beside the model as it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from treesens.extensions.studies.report.price_table import both, show_prices
from treesens.report.show import out
from treesens.report.tables import Table


def show_repairs(records: Sequence[dict[str, Any]], kind: str) -> None:
    """Prices are those of the rows that were held out, if there are any."""
    table = Table(box=None, pad_edge=False)
    columns: tuple[tuple[str, Literal["left", "right"]], ...] = (
        (kind, "right"),
        ("method", "left"),
        ("rows", "left"),
        ("loss", "right"),
        ("AUC", "right"),
        ("decisions changed", "right"),
        ("rows that flip", "right"),
        ("largest swing", "right"),
        ("trees changed", "right"),
        ("file", "left"),
    )
    for name, justify in columns:
        table.add_column(name, justify=justify)
    for record in records:
        if not record["proved"]:
            table.add_row(f"{record['size']:g}", record["method"], *["–"] * 7, "not proved")
            continue
        rows, price = list(record["prices"].items())[-1]
        swings = [proof["largest_swing"] for proof in record["proofs"]]
        table.add_row(
            f"{record['size']:g}",
            record["method"],
            f"{price['rows']} ({rows})",
            f"{price['loss_before']:.4f} → {price['loss_after']:.4f}",
            both(price, "auc", ".4f"),
            f"{price['decisions_changed']}" if "decisions_changed" in price else "–",
            both(price, "rows_flip", "d"),
            ", ".join(f"{_number(s['before'])} → {_number(s['after'])}" for s in swings),
            f"{record['changes']['trees_changed']} of {record['changes']['trees']}",
            record.get("file", "not written" if "unwritten" in record else "–"),
        )
    table.print_fitted(out(), ("trees changed", "file"))
    last = [(f"{kind} {r['size']:g}", list(r["prices"].values())[-1]) for r in records if r["proved"]]
    if any("groups" in price for _, price in last):
        show_prices(last)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
