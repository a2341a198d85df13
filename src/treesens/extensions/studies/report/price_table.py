"""Prices in a terminal: one model compared with another, over all rows and by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from treesens.report.show import out
from treesens.report.tables import Table, value_text

_COLUMNS: tuple[tuple[str, Literal["left", "right"]], ...] = (
    ("rows", "right"),
    ("loss", "right"),
    ("AUC", "right"),
    ("decisions changed", "right"),
    ("positive", "right"),
    ("rows that change class", "right"),
)


def show_price(price: dict[str, Any]) -> None:
    """Prints one price as a table: a line for all rows, and one per group."""
    show_prices([("all", price)])


def show_prices(prices: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Prints prices by name, each with its groups."""
    lines = [line for name, price in prices for line in ((name, price), *_groups(name, price))]
    table = Table(box=None, pad_edge=False)
    table.add_column("prices")
    for name, justify in _COLUMNS:
        table.add_column(f"{name} ({prices[0][1]['loss']})" if name == "loss" else name, justify=justify)
    for name, price in lines:
        table.add_row(
            name,
            str(price["rows"]),
            both(price, "loss", ".4f"),
            both(price, "auc", ".4f"),
            str(price.get("decisions_changed", "–")),
            both(price, "positive", ".1%"),
            both(price, "rows_flip", "d"),
        )
    table.print_fitted(out(), ("positive", "rows that change class"))


def _groups(name: str, price: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The groups of a price, each labelled with its values."""
    first = "" if name == "all" else f"{name}, "
    return [
        (
            first + ", ".join(f"{b} {value_text(v)}" for b, v in zip(one["by"], one["values"], strict=True)),
            one,
        )
        for one in price.get("groups", ())
    ]


def both(price: dict[str, Any], name: str, form: str) -> str:
    """A number before and after the change."""
    before, after = price.get(f"{name}_before"), price.get(f"{name}_after")
    if before is None or after is None:
        return "–"
    return f"{before:{form}} → {after:{form}}"
