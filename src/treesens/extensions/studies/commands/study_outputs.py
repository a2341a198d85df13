"""Outputs of the command of a study: a table, and the files, pictures and pages that some studies add."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from treesens.commands.common import write_output
from treesens.compiler.base.files import write_atomically
from treesens.extensions.studies.columns import shown_fields
from treesens.extensions.studies.study import Asking, Found, Study
from treesens.report.terminal import say, say_json, say_wrapped

TABLES = {
    "diff": "treesens.extensions.studies.report.diff_table:show_difference",
    "count": "treesens.extensions.studies.report.study_tables:show_shares",
}
"""Functions that show the records of a study; other studies show a table of the columns of their records."""
BESIDE = {
    "audit": "treesens.extensions.studies.commands.audit:AuditOutputs",
    "learn": "treesens.extensions.studies.commands.study_outputs:LearnOutputs",
    "reasons": "treesens.extensions.studies.commands.row_outputs:ReasonsOutputs",
    "repair": "treesens.extensions.repair.command:RepairOutputs",
    "robust": "treesens.extensions.studies.commands.row_outputs:RobustOutputs",
    "sets": "treesens.extensions.studies.commands.row_outputs:SetsOutputs",
    "why": "treesens.extensions.studies.commands.row_outputs:WhyOutputs",
}
"""The class for the outputs of each study whose command writes more than a table."""


class Outputs:
    """The outputs of one run. The constructor, called before the work starts, raises an error if an output is impossible."""

    def __init__(self, study: Study[Any, Any], asked: Asking[Any]) -> None:
        from treesens.extensions.studies.report.plots import new_axes

        self.study, self.asked = study, asked
        self.plot: Path | None = getattr(asked.options, "plot", None)
        self.axes = None if self.plot is None else new_axes(self.plot)

    def say(self, words: str) -> None:
        """Reports the current step; does nothing by default."""

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Shows the records in a readable form."""
        del found
        say_favourable(document)
        if self.study.name in TABLES:
            module, _, function = TABLES[self.study.name].partition(":")
            getattr(import_module(module), function)(records)
            return
        from treesens.extensions.studies.report.study_tables import show_records, table_of

        if shown_fields(self.study.record):
            table_of(self.study.record, records)
        else:
            show_records(records)

    def print_document(self, document: dict[str, Any]) -> None:
        """Prints one JSON object instead."""
        say_json(document)

    def write(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Writes files in addition to the answers: a picture, if `--plot` names its file."""
        del document
        if (place := self.plot) is not None and records:
            from treesens.extensions.studies.report.plots import save_plot

            write_output(str(place), lambda: save_plot(self.study.drawn(records, found.result, self.axes), place))


def say_favourable(document: dict[str, Any]) -> None:
    """Prints the first line of studies about a favourable decision; the line names the favourable class."""
    if "favourable" in document:
        name = document.get("favourable_name")
        say_wrapped(f"favourable: class {document['favourable']}" + (f" ({name})" if name else ""))


def outputs_of(study: Study[Any, Any], asked: Asking[Any]) -> Outputs:
    """The outputs of the command of a study."""
    module, _, kind = BESIDE.get(study.name, f"{__name__}:Outputs").partition(":")
    made: Outputs = getattr(import_module(module), kind)(study, asked)
    return made


class LearnOutputs(Outputs):
    """The outputs of `treesens learn`: the text of the language, or JSON."""

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Writes the text."""
        del records, found
        self._put(document["text"])

    def print_document(self, document: dict[str, Any]) -> None:
        """Writes the JSON instead of the text."""
        self._put(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def _put(self, text: str) -> None:
        output = self.asked.options.output
        if output is None or not write_output(str(output), lambda: write_atomically(output, text)):
            say(text, nl=False)
