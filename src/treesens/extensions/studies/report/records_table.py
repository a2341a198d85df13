"""Records of any study as a table: a column for each field that is a text, a number or a list of names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treesens.report.show import out
from treesens.report.tables import Table


def show_records(records: Sequence[dict[str, Any]]) -> None:
    """One line per record. Columns without a value are left out, and so are seconds."""
    columns = {
        name: cells
        for name, cells in columns_of(records).items()
        if name != "seconds" and any(cell not in (None, "") for cell in cells)
    }
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name.replace("_", " "))
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*map(_cell, cells))
    table.print_fitted(out())


def columns_of(records: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """The fields that are texts, numbers or lists of names, a list per field; None if a record has no such field."""
    names = dict.fromkeys(name for record in records for name in record)
    found = {name: [record.get(name) for record in records] for name in names}
    plain = {
        name: [", ".join(map(str, x)) if isinstance(x, list) else x for x in cells] for name, cells in found.items()
    }
    return {name: cells for name, cells in plain.items() if not any(isinstance(x, dict) for x in found[name])}


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
