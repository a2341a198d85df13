"""Tables of rich in which a cell is one line that steers nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from treesens.visible import visible

_WIDE = 10_000


class Table(RichTable):
    """A table whose cells are names from files."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        super().add_row(*map(_seen, cells), **options)

    def print_fitted(self, console: Console, spare: Sequence[str]) -> None:
        """Prints the table; columns of `spare` are left out, the first ones first, until it fits, and a line names them. Words
        that still do not fit are broken, never cut.
        """
        left_out = []
        for name in spare:
            if console.measure(self, options=console.options.update(width=_WIDE)).maximum <= console.width:
                break
            column = next((c for c in self.columns if c.header == name), None)
            if column is not None:
                self._keep([c for c in self.columns if c is not column])
                left_out.append(name)
        for column in self.columns:
            column.overflow = "fold"
        console.print(self)
        if left_out:
            console.print(f"left out at this width: {', '.join(left_out)} (--json has all)")

    def drop_empty(self, *names: str) -> None:
        """Leaves out columns of these names that say nothing."""
        self._keep([c for c in self.columns if c.header not in names or any(map(str, c.cells))])

    def _keep(self, columns: list[Column]) -> None:
        self.columns[:] = columns
        for number, column in enumerate(columns):
            column._index = number  # the padding of the last column depends on it


def _seen(cell: Any) -> Any:
    if isinstance(cell, str):
        return visible(cell)
    return Text(visible(cell.plain), style=cell.style) if isinstance(cell, Text) else cell
