"""Rich tables with single-line cells without control characters, fitted to the terminal without cutting words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from treesens.report.terminal import wrapped
from treesens.visible import visible


class Table(RichTable):
    """A table in which the cells are names from files."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        super().add_row(*map(_seen, cells), **options)

    def print_fitted(self, console: Console, spare: Sequence[str] = ()) -> None:
        """Prints the table. The columns `spare` are omitted in order until the table fits; a line names them. If the table
        still does not fit, cell text is wrapped at spaces; if single words are too long for this, every row becomes a block.
        """
        every, left_out = list(self.columns), []
        for name in spare:
            if self._fits(console):
                break
            column = next((c for c in self.columns if c.header == name), None)
            if column is not None:
                self._keep([c for c in self.columns if c is not column])
                left_out.append(name)
        widths = self._whole_widths() if self._fits(console) else self._broken_widths(console.width)
        if widths is None:
            self._keep(every)
            self._print_blocks(console)
            return
        for column, width in zip(self.columns, widths, strict=True):
            column.width = width  # spares rich from measuring every cell again
        console.print(self, soft_wrap=False)
        if left_out:
            for line in wrapped(f"left out at this width: {', '.join(left_out)} (--json has all)", console.width):
                console.print(line)

    def drop_empty(self, *names: str) -> None:
        """Omits the named columns that have no content."""
        self._keep([c for c in self.columns if c.header not in names or any(map(str, c.cells))])

    def _fits(self, console: Console) -> bool:
        return sum(self._whole_widths()) + self._between() <= console.width

    def _whole_widths(self) -> list[int]:
        """Widths of the columns with unwrapped cells."""
        cells = ((column.header, *column.cells) for column in self.columns)
        return [max((cell_len(str(cell)) for cell in column), default=0) for column in cells]

    def _between(self) -> int:
        """Total width between the columns and around them."""
        return self._extra_width + sum(self._get_padding_width(number) for number in range(len(self.columns)))

    def _broken_widths(self, room: int) -> list[int] | None:
        """Widths of the columns, none below its longest word, with as many columns unwrapped as possible; None if single words
        need more space.
        """
        cells = [[column.header, *column.cells] for column in self.columns]
        widths = [max(map(_longest_word, column), default=0) for column in cells]
        wanted = self._whole_widths()
        left = room - sum(widths) - self._between()
        if left < 0:
            return None
        for number in sorted(range(len(widths)), key=lambda n: wanted[n] - widths[n]):
            more = min(left, wanted[number] - widths[number])
            widths[number] += more
            left -= more
        return widths

    def _print_blocks(self, console: Console) -> None:
        """Prints every row as lines: its first cell, then the other cells, each with its column name."""
        first, *others = self.columns
        for number, cell in enumerate(first.cells):
            for line in wrapped(str(cell), console.width, 2):
                console.print(Text(line, style="bold"))
            for line in self._facts(others, number):
                for part in wrapped(line, console.width, 2):
                    console.print(part)

    def _facts(self, columns: Sequence[Column], number: int) -> Iterator[str]:
        for column in columns:
            cell = str(list(column.cells)[number])
            if cell:
                yield f"    {column.header}: {cell}" if str(column.header) else f"    {cell}"

    def _keep(self, columns: list[Column]) -> None:
        self.columns[:] = columns
        for number, column in enumerate(columns):
            column._index = number  # the padding of the last column depends on this


def value_text(value: Any) -> str:
    """An input value: the text `missing`, or the unchanged value; a category called `missing` is quoted, as in a question."""
    return "missing" if value is None else '"missing"' if value == "missing" else str(value)


def _longest_word(cell: Any) -> int:
    return max(map(cell_len, str(cell).split()), default=0)


def _seen(cell: Any) -> Any:
    if isinstance(cell, str):
        return _in_a_cell(cell)
    return Text(_in_a_cell(cell.plain), style=cell.style) if isinstance(cell, Text) else cell


def _in_a_cell(text: str) -> str:
    """Visible text without tabs, whose width is undefined in a cell."""
    return visible(text).replace("\t", "\\x09")
