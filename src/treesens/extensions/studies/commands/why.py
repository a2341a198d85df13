"""What `treesens why` shows and writes: the reasons in words, a line for each in a file, and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from treesens.commands.beside import write_beside
from treesens.extensions.studies.commands.study_outputs import Outputs
from treesens.extensions.studies.report.csv_file import write_csv
from treesens.extensions.studies.study import Asking, Found
from treesens.report.reason_words import reason_words
from treesens.report.terminal import say_wrapped

_COLUMNS = ("row", "class", "size", "features", "values", "contrast")


class WhyOutputs(Outputs):
    """The outputs of one run."""

    def __init__(self, name: str, asked: Asking[Any]) -> None:
        from treesens.extensions.studies.report.plots import new_axes

        super().__init__(name, asked)
        self.out, self.plot = asked.options.out, asked.options.plot
        self.axes = None if self.plot is None else new_axes(self.plot)

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Every reason in words."""
        del document, found
        for record in records:
            say_wrapped(reason_words(record))

    def write(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """The lines, and the picture."""
        from treesens.extensions.studies.report.plots import reasons_plot, save_plot

        del document, found
        place = self.plot
        if self.out is not None:
            write_beside(str(self.out), partial(write_csv, self.out, _COLUMNS, _lines(records)))
        if place is not None:
            write_beside(str(place), lambda: save_plot(reasons_plot(records, self.axes), place))


def _lines(records: Sequence[dict[str, Any]]) -> Iterator[list[Any]]:
    """A line per reason: the row, its class, the features and their values, and the change that reaches another class."""
    for record in records:
        known = [] if record["sufficient"] is None else [record["sufficient"]]
        for one in record.get("reasons", known):
            contrast = "; ".join(record["contrast"] or ())
            values = "; ".join(map(str, one.values()))
            yield [record["row"], record["class"], len(one), "; ".join(one), values, contrast]
