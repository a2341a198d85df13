"""Outputs of the command of a study: a table, and the files, pictures and pages that some studies add."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

from treesens.commands.beside import write_beside
from treesens.compiler.base.files import write_atomically
from treesens.extensions.studies.columns import shown_fields
from treesens.extensions.studies.study import Asking, Found, Study
from treesens.report.terminal import say, say_json, say_wrapped

TABLES = {
    "diff": "treesens.extensions.studies.report.diff_table:show_difference",
    "count": "treesens.extensions.studies.report.study_tables:show_shares",
}
"""What shows the records of a study; others are tables of their columns."""
BESIDE = {
    "audit": "treesens.extensions.studies.commands.audit:AuditOutputs",
    "learn": "treesens.extensions.studies.commands.study_outputs:LearnOutputs",
    "reasons": "treesens.extensions.studies.commands.row_outputs:ReasonsOutputs",
    "repair": "treesens.extensions.repair.command:RepairOutputs",
    "robust": "treesens.extensions.studies.commands.row_outputs:RobustOutputs",
    "sets": "treesens.extensions.studies.commands.row_outputs:SetsOutputs",
    "why": "treesens.extensions.studies.commands.row_outputs:WhyOutputs",
}
"""Studies whose commands write more than a table, with the class that does."""


class Outputs:
    """The outputs of one run. What would stop one of them is said before the work, when it is made."""

    kind: type[Any]
    """The class of the records."""

    def __init__(self, name: str, asked: Asking[Any]) -> None:
        self.name, self.asked = name, asked

    def say(self, words: str) -> None:
        """What is being done."""

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """The records as people read them."""
        del found
        say_favourable(document)
        if self.name in TABLES:
            module, _, function = TABLES[self.name].partition(":")
            getattr(import_module(module), function)(records)
            return
        from treesens.extensions.studies.report.study_tables import show_records, table_of

        if shown_fields(self.kind):
            table_of(self.kind, records)
        else:
            show_records(records)

    def print_document(self, document: dict[str, Any]) -> None:
        """One JSON object instead."""
        say_json(document)

    def write(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Files beside the answers."""


class PictureOutputs(Outputs):
    """Outputs with a picture if `--plot` is given."""

    def __init__(self, name: str, asked: Asking[Any]) -> None:
        from treesens.extensions.studies.report.plots import new_axes

        super().__init__(name, asked)
        self.plot = asked.options.plot
        self.axes = None if self.plot is None else new_axes(self.plot)

    def write_picture(self, draw: Callable[[Any], Any]) -> None:
        """Saves what `draw` draws on the axes."""
        if (place := self.plot) is not None:
            from treesens.extensions.studies.report.plots import save_plot

            write_beside(str(place), lambda: save_plot(draw(self.axes), place))


def say_favourable(document: dict[str, Any]) -> None:
    """The first line of studies about people who get a decision or not: it names the favourable class."""
    if "favourable" in document:
        say_wrapped(f"favourable: class {document['favourable']}")


def outputs_of(study: Study[Any, Any], asked: Asking[Any]) -> Outputs:
    """The outputs of the command of a study."""
    module, _, kind = BESIDE.get(study.name, f"{__name__}:Outputs").partition(":")
    made: Outputs = getattr(import_module(module), kind)(study.name, asked)
    made.kind = study.record
    return made


class LearnOutputs(Outputs):
    """What `treesens learn` prints or writes: the text of the language, or JSON."""

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """The text."""
        del records, found
        self._put(document["text"])

    def print_document(self, document: dict[str, Any]) -> None:
        """The JSON in the place of the text."""
        self._put(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def _put(self, text: str) -> None:
        output = self.asked.options.output
        if output is None or not write_beside(str(output), lambda: write_atomically(output, text)):
            say(text, nl=False)
