"""What `treesens reasons` shows and writes: a line per denial, how often its reasons do not suffice, a table for letters."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from treesens.commands.beside import write_beside
from treesens.commands.study_outputs import Outputs, say_favourable
from treesens.compiler.base.files import check_writable, write_atomically
from treesens.report.denial_table import show_denials
from treesens.studies.study import Asking, Found
from treesens.visible import spreadsheet, visible


class ReasonsOutputs(Outputs):
    """The outputs of one run."""

    def __init__(self, name: str, asked: Asking[Any]) -> None:
        super().__init__(name, asked)
        self.out = asked.options.out
        if self.out is not None:
            check_writable(self.out)

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """A line per denial."""
        del records, found
        say_favourable(document)
        show_denials(document)

    def write(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """The lines of letters."""
        del document, found
        if self.out is not None:
            write_beside(str(self.out), partial(_write_letters, self.out, records))


def _write_letters(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """One line per reason: the row, its rank, code, phrase, feature, value, and another one. No spreadsheet computes a text."""
    with io.StringIO(newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "decision", "suffice", "rank", "code", "phrase", "feature", "value", "instead"])
        for record in records:
            for rank, one in enumerate(record["reasons"], 1):
                about = [record["row"], record["decision"], record["suffice"], rank]
                cells = [*about, *(one[name] for name in ("code", "phrase", "feature", "value", "instead"))]
                writer.writerow([spreadsheet(visible(cell)) if isinstance(cell, str) else cell for cell in cells])
        write_atomically(path, file.getvalue())
