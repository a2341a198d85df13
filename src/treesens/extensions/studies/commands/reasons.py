"""What `treesens reasons` shows and writes: a line per denial, how often its reasons do not suffice, a table for letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from treesens.commands.beside import write_beside
from treesens.extensions.studies.commands.study_outputs import Outputs, say_favourable
from treesens.extensions.studies.report.csv_file import write_csv
from treesens.extensions.studies.report.denial_table import show_denials
from treesens.extensions.studies.study import Asking, Found

_COLUMNS = ("row", "decision", "suffice", "rank", "code", "phrase", "feature", "value", "instead")


class ReasonsOutputs(Outputs):
    """The outputs of one run."""

    def __init__(self, name: str, asked: Asking[Any]) -> None:
        super().__init__(name, asked)
        self.out = asked.options.out

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """A line per denial."""
        del records, found
        say_favourable(document)
        show_denials(document)

    def write(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """The lines of letters."""
        del document, found
        if self.out is not None:
            write_beside(str(self.out), partial(write_csv, self.out, _COLUMNS, _lines(records)))


def _lines(records: Sequence[dict[str, Any]]) -> Iterator[list[Any]]:
    """A line per reason: the row, its rank, code, phrase, feature, value, and another one."""
    for record in records:
        for rank, one in enumerate(record["reasons"], 1):
            about = [record["row"], record["decision"], record["suffice"], rank]
            yield [*about, *(one[name] for name in ("code", "phrase", "feature", "value", "instead"))]
