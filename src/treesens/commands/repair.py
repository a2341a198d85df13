"""What `treesens repair` shows: what is being done, the prices, and why a size has no file."""

from __future__ import annotations

from typing import Any

from treesens.commands.study_outputs import Outputs
from treesens.report.repair_table import show_repairs
from treesens.report.terminal import say
from treesens.studies.study import Found


class RepairOutputs(Outputs):
    """The outputs of one run."""

    def say(self, words: str) -> None:
        """A repair takes minutes: what it does is told line by line."""
        say(words, err=True)

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """A line per size."""
        del found
        show_repairs(records, document["kind"])

    def write(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Nothing more is written; what was not proved is told."""
        del found
        for record in records:
            if not record["proved"]:
                say(f"{document['kind']} {record['size']:g}: no file, {record['reason']}", err=True)
