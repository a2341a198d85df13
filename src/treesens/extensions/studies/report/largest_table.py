"""The largest gaps of a model as a table on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treesens.extensions.studies.report.audit_table import classes_of
from treesens.report.show import out
from treesens.report.tables import Table


def show_largest(records: Sequence[dict[str, Any]]) -> None:
    """One line per set of features: the gap that a pair reaches, what no pair exceeds, and why a search stopped early."""
    table = Table(box=None, pad_edge=False)
    table.add_column("varied")
    table.add_column("classes")
    units = dict.fromkeys(record["unit"] for record in records)
    table.add_column(f"largest gap ({next(iter(units))})" if len(units) == 1 else "largest gap", justify="right")
    table.add_column("proved bound", justify="right")
    table.add_column("seconds", justify="right")
    table.add_column("")
    for record in records:
        how = record["reason"] or ("closed" if record["closed"] else "")
        table.add_row(
            ", ".join(record["varied"]),
            classes_of(record),
            "–" if record["largest_gap"] is None else f"{record['largest_gap']:.6g}",
            "–" if record["largest_gap_bound"] is None else f"{record['largest_gap_bound']:.6g}",
            f"{record['seconds']:.2f}",
            how,
        )
    table.drop_empty("classes")
    table.print_fitted(out(), ("seconds", ""))
