"""The ranges of a model's scores as a table on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treesens.compiler.base.tolerance import Closeness, Tolerance
from treesens.report.show import out
from treesens.report.tables import Table
from treesens.visible import visible


def show_ranges(records: Sequence[dict[str, Any]]) -> None:
    """One line per end of a score: what an input reaches, what no input exceeds, and the probability there."""
    table = Table(box=None, pad_edge=False)
    table.add_column("class")
    table.add_column("score")
    table.add_column("reached", justify="right")
    table.add_column("proved bound", justify="right")
    table.add_column("probability", justify="right")
    table.add_column("seconds", justify="right")
    table.add_column("")
    for record in records:
        table.add_row(
            "" if record["class"] is None else visible(str(record["class"])),
            f"{record['end']} {record['score']}",
            _number(record["value"]),
            _number(record["bound"]),
            _probability(record),
            f"{record['seconds']:.2f}",
            closed_words(record) if record["closed"] else record["reason"],
        )
    table.drop_empty("class")
    table.drop_empty("probability")
    table.print_fitted(out(), ("seconds", ""))


def closed_words(record: Mapping[str, Any]) -> str:
    """`optimal`, or within which tolerance a bound is closed."""
    if record["status"] == Closeness.OPTIMAL:
        return "optimal"
    return f"closed within {Tolerance(**record['tolerance']).words()}"


def _probability(record: dict[str, Any]) -> str:
    """That of the class whose raw score it is."""
    found = (record["scores"] or {}).get("prob")
    if isinstance(found, dict):
        found = found.get(str(record["class"]))
    return "" if found is None or record["score"] == "probability" else _number(found)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}"
