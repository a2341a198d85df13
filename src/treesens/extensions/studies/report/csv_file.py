"""Tables as CSV that people open: the one place that writes such files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from treesens.compiler.base.files import write_atomically
from treesens.visible import spreadsheet, visible


def write_csv(path: Path, header: Sequence[str], lines: Iterable[Sequence[Any]]) -> None:
    """A header and a line per row. No spreadsheet computes a text of either."""
    with io.StringIO(newline="") as file:
        writer = csv.writer(file)
        for line in (header, *lines):
            writer.writerow([spreadsheet(visible(cell)) if isinstance(cell, str) else cell for cell in line])
        write_atomically(path, file.getvalue())
