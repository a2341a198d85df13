"""Sets of features that flip a decision, and those that do not, on the terminal."""

from __future__ import annotations

from typing import Any

from treesens.extensions.studies.report.audit_table import classes_of
from treesens.report.show import out
from treesens.report.tables import Table


def show_sets(record: dict[str, Any]) -> None:
    """One line per set: what is known of it, and whether it is proved that no smaller (larger) one will do."""
    table = Table(box=None, pad_edge=False)
    table.add_column("features")
    table.add_column(classes_of(record) or "answer")
    table.add_column("")
    for item in record["flip"]:
        table.add_row(_named(item), "flip", "minimal" if item["minimal"] else "perhaps not minimal")
    for item in record["hold"]:
        table.add_row(_named(item), "never", "maximal" if item["maximal"] else "perhaps not maximal")
    for item in record["open"]:
        table.add_row(_named(item), "unknown", item["reason"])
    table.print_fitted(out())
    if not record["complete"]:
        out().print("not all sets are decided")


def _named(item: dict[str, Any]) -> str:
    return ", ".join(item["features"]) or "(none)"
