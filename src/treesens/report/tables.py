"""Tables of rich in which a cell is one line that steers nothing."""

from __future__ import annotations

from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from treesens.visible import visible


class Table(RichTable):
    """A table whose cells are names from files."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        super().add_row(*map(_seen, cells), **options)


def _seen(cell: Any) -> Any:
    if isinstance(cell, str):
        return visible(cell)
    return Text(visible(cell.plain), style=cell.style) if isinstance(cell, Text) else cell
