"""What `treesens learn` prints or writes: the text of the language, or JSON."""

from __future__ import annotations

import json
from typing import Any

from treesens.commands.beside import write_beside
from treesens.compiler.base.files import write_atomically
from treesens.extensions.studies.commands.study_outputs import Outputs
from treesens.extensions.studies.study import Found
from treesens.report.terminal import say


class LearnOutputs(Outputs):
    """The outputs of one run."""

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
