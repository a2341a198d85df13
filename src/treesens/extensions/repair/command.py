"""The output of `treesens repair`: progress, a table with the prices of every size, a plot, and reasons for missing files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from treesens.commands.common import end_with
from treesens.errors import UsageError
from treesens.extensions.studies.commands.study_outputs import Outputs
from treesens.extensions.studies.report.price_table import both, show_prices
from treesens.extensions.studies.study import Found
from treesens.report.show import out
from treesens.report.tables import Table
from treesens.report.terminal import say


class RepairOutputs(Outputs):
    """The outputs of one run."""

    def say(self, words: str) -> None:
        """Prints a line after each step, because a repair takes minutes."""
        say(words, err=True)

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Prints a table with one line per size."""
        del found
        show_repairs(records, document["kind"])

    def write(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Writes the plot, and prints a line for each unproved size."""
        super().write(records, document, found)
        for record in records:
            if "unwritten" in record:
                end_with(UsageError.exit_code)
            if not record["proved"]:
                say(f"{document['kind']} {record['size']:g}: no file, {record['reason']}", err=True)


def show_repairs(records: Sequence[dict[str, Any]], kind: str) -> None:
    """Prints a table with one line per size. Prices refer to held-out rows, if there are any."""
    table = Table(box=None, pad_edge=False)
    columns: tuple[tuple[str, Literal["left", "right"]], ...] = (
        (kind, "right"),
        ("method", "left"),
        ("rows", "left"),
        ("loss", "right"),
        ("AUC", "right"),
        ("decisions changed", "right"),
        ("rows that change class", "right"),
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
