"""What `treesens repair` shows: what is being done, the prices, and why a size has no file."""

from __future__ import annotations

from functools import partial
from typing import Any

from treesens.commands.beside import end_with, write_beside
from treesens.errors import UsageError
from treesens.extensions.repair.repair_table import show_repairs
from treesens.extensions.studies.commands.study_outputs import Outputs
from treesens.extensions.studies.study import Asking, Found
from treesens.report.terminal import say


class RepairOutputs(Outputs):
    """The outputs of one run."""

    def __init__(self, name: str, asked: Asking[Any]) -> None:
        from treesens.extensions.studies.report.plots import new_axes

        super().__init__(name, asked)
        self.plot = asked.options.plot
        self.axes = None if self.plot is None else new_axes(self.plot)

    def say(self, words: str) -> None:
        """A repair takes minutes: what it does is told line by line."""
        say(words, err=True)

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """A line per size."""
        del found
        show_repairs(records, document["kind"])

    def write(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """The picture; what was not proved is told."""
        del found
        if (place := self.plot) is not None:
            from treesens.extensions.studies.report.plots import prices_plot, save_plot

            picture = partial(prices_plot, records, document["kind"], self.axes)
            write_beside(str(place), lambda: save_plot(picture(), place))
        for record in records:
            if "unwritten" in record:
                end_with(UsageError.exit_code)
            if not record["proved"]:
                say(f"{document['kind']} {record['size']:g}: no file, {record['reason']}", err=True)
