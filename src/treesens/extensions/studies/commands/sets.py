"""What `treesens sets` shows and writes: the sets of every decision, and a picture of those of the first."""

from __future__ import annotations

from typing import Any

from treesens.commands.beside import write_beside
from treesens.extensions.studies.commands.study_outputs import Outputs
from treesens.extensions.studies.report.sets_plot import sets_plot
from treesens.extensions.studies.report.sets_table import show_sets
from treesens.extensions.studies.study import Asking, Found


class SetsOutputs(Outputs):
    """The outputs of one run."""

    def __init__(self, name: str, asked: Asking[Any]) -> None:
        from treesens.extensions.studies.report.plots import new_axes

        super().__init__(name, asked)
        self.plot = asked.options.plot
        self.axes = None if self.plot is None else new_axes(self.plot)

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """A table per decision."""
        del document, found
        for record in records:
            show_sets(record)

    def write(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """The picture."""
        from treesens.extensions.studies.report.plots import save_plot

        del document, found
        place = self.plot
        if place is not None and records:
            write_beside(str(place), lambda: save_plot(sets_plot(records[0], self.axes), place))
