"""What `treesens robust` shows and writes: the rows and the curve, the inputs that were found, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from treesens.commands.beside import write_beside
from treesens.extensions.studies.commands.study_outputs import Outputs
from treesens.extensions.studies.report.csv_file import write_csv
from treesens.extensions.studies.report.robust_table import show_curve, show_rows
from treesens.extensions.studies.study import Asking, Found


class RobustOutputs(Outputs):
    """The outputs of one run."""

    def __init__(self, name: str, asked: Asking[Any]) -> None:
        from treesens.extensions.studies.report.plots import new_axes

        super().__init__(name, asked)
        self.out, self.plot = asked.options.out, asked.options.plot
        self.axes = None if self.plot is None else new_axes(self.plot)

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """The rows and the curve."""
        show_rows(records)
        curve = [(point["radius"], point["part"]) for point in document["certified"]]
        show_curve(curve, labelled=found.result.labelled)

    def write(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """The inputs, and the picture."""
        from treesens.extensions.studies.report.plots import certified_plot, save_plot

        del document
        result, place = found.result, self.plot
        if self.out is not None:
            write_beside(str(self.out), partial(_write_points, self.out, records))
        if place is not None:
            picture = partial(certified_plot, result.curve(), self.axes, labelled=result.labelled)
            write_beside(str(place), lambda: save_plot(picture(), place))


def _write_points(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """One line per input that was found: its row, the class that was asked for if there are several, distance and values."""
    targeted = any("targets" in record for record in records)
    found = [(record["row"], one) for record in records for one in record.get("targets", [record])]
    known = [(row, one) for row, one in found if one["point"] is not None]
    names = list(known[0][1]["point"]) if known else []
    header = ["row", *(["target"] if targeted else []), "distance", *names]
    lines = [
        [row, *([one["target"]] if targeted else []), _shown(one["distance"]), *(one["point"][name] for name in names)]
        for row, one in known
    ]
    write_csv(path, header, lines)


def _shown(distance: float | None) -> str:
    return "" if distance is None else repr(distance)
