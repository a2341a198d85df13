"""Outputs of the commands that explain single rows and decisions: `why`, `reasons`, `robust` and `sets`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from treesens.commands.common import write_output
from treesens.errors import UsageError
from treesens.extensions.answers.reason_words import reason_words
from treesens.extensions.studies.commands.study_outputs import Outputs, say_favourable
from treesens.extensions.studies.report.study_tables import show_curve, show_denials, show_rows, show_sets, write_csv
from treesens.extensions.studies.study import Asking, Found, Study
from treesens.report.terminal import say, say_wrapped

_WHY_COLUMNS = ("row", "class", "size", "features", "values", "contrast")


class WhyOutputs(Outputs):
    """Outputs of `treesens why`: the reasons as text, a file with one line per reason, and a picture."""

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Prints every reason in words."""
        del document, found
        for record in records:
            say_wrapped(reason_words(record))

    def write(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Writes the lines and the picture."""
        if (out := self.asked.options.out) is not None:
            write_output(str(out), partial(write_csv, out, _WHY_COLUMNS, _why_lines(records)))
        super().write(records, document, found)


def _why_lines(records: Sequence[dict[str, Any]]) -> Iterator[list[Any]]:
    """The lines of a reasons file: the row, its class, the features and values, and the change that reaches another class."""
    for record in records:
        known = [] if record["sufficient"] is None else [record["sufficient"]]
        for one in record.get("reasons", known):
            contrast = "; ".join(record["contrast"] or ())
            values = "; ".join(map(str, one.values()))
            yield [record["row"], record["class"], len(one), "; ".join(one), values, contrast]


_REASON_COLUMNS = ("row", "decision", "suffice", "rank", "code", "phrase", "feature", "value", "instead")


class ReasonsOutputs(Outputs):
    """Outputs of `treesens reasons`: a line per denial, how many denials have insufficient reasons, a file of all reasons, and
    letters.
    """

    def __init__(self, study: Study[Any, Any], asked: Asking[Any]) -> None:
        super().__init__(study, asked)
        self.letters, options = None, asked.options
        if options.letters is not None:
            from treesens.extensions.studies.report.letters import Letters

            self.letters = Letters(options, asked.table)
        elif lonely := next((name for name in ("letter", "reference", "date", "pdf") if getattr(options, name)), None):
            raise UsageError(f"--{lonely} needs letters", remedy="add --letters FOLDER")

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Prints a line per denial."""
        del records, found
        say_favourable(document)
        show_denials(document)

    def write(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Writes the lines, and the letters."""
        del found
        if (letters := self.letters) is not None:
            favourable = document.get("favourable_name", document["favourable"])
            missing: list[str] = []
            write_output(str(letters.folder), lambda: missing.extend(letters.write(records, favourable)))
            for words in missing:
                say(words, err=True)
        if (out := self.asked.options.out) is not None:
            write_output(str(out), partial(write_csv, out, _REASON_COLUMNS, _reason_lines(records)))


def _reason_lines(records: Sequence[dict[str, Any]]) -> Iterator[list[Any]]:
    """The lines of the file for letters: the row, its rank, code, phrase, feature, value, and a value to have `instead`."""
    for record in records:
        for rank, one in enumerate(record["reasons"], 1):
            about = [record["row"], record.get("decision_name", record["decision"]), record["suffice"], rank]
            yield [*about, *(one[name] for name in ("code", "phrase", "feature", "value", "instead"))]


class RobustOutputs(Outputs):
    """Outputs of `treesens robust`: the rows and the curve, the inputs found, and a picture."""

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Prints the rows and the curve."""
        show_rows(records)
        curve = [(point["radius"], point["part"]) for point in document["certified"]]
        show_curve(curve, labelled=found.result.labelled)

    def write(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Writes the inputs and the picture."""
        if (out := self.asked.options.out) is not None:
            write_output(str(out), partial(_write_points, out, records))
        super().write(records, document, found)


def _write_points(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """Writes a line per input found: its row, the target class if there are several, the distance and the values."""
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


class SetsOutputs(Outputs):
    """Outputs of `treesens sets`: a table per decision, and a plot of the sets of the first decision."""

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Prints a table per decision."""
        del document, found
        for record in records:
            show_sets(record)
