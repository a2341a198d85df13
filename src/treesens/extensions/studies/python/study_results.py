"""The results that calls of studies return: records, and their numbers as a frame of the caller's library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from treesens.compiler.base.diagnostics import Suggesting, did_you_mean
from treesens.extensions.studies.columns import frame_of
from treesens.extensions.studies.python.study_options import in_library_of
from treesens.extensions.studies.study import Asking, Found, Study
from treesens.python.wording import in_python
from treesens.records.plain import plain

RESULTS = {
    "audit": "treesens.extensions.studies.python.studies:Audit",
    "count": "treesens.extensions.studies.python.studies:Count",
    "diff": "treesens.extensions.studies.python.studies:Diff",
    "gap": "treesens.extensions.studies.python.studies:Gap",
    "learn": "treesens.extensions.studies.python.studies:Rules",
    "repair": "treesens.extensions.studies.python.studies:Repair",
    "robust": "treesens.extensions.studies.python.rows:Robustness",
    "sets": "treesens.extensions.studies.python.rows:Sets",
    "why": "treesens.extensions.studies.python.rows:Reasons",
}
"""The result classes of studies that need more than records and columns."""


@dataclass(frozen=True)
class Called:
    """A finished call: `source` is the data as passed by the caller, and `inputs` are the files that were read."""

    study: Study[Any, Any]
    asked: Asking[Any]
    found: Found[Any]
    source: Any
    inputs: tuple[Path, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes, warnings and assumptions, with remedies in terms of the Python API."""
        return tuple(map(in_python, (*self.found.warnings, *(one.line() for one in self.found.assumed))))

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records, as the command prints them."""
        return [plain(record) for record in self.found.records]

    def text(self) -> str:
        """The output of the command, and the notes."""
        from treesens.extensions.studies.commands.study_outputs import outputs_of
        from treesens.report.show import printed

        outputs, document = outputs_of(self.study, self.asked), self.study.documented(self.asked, self.found)
        return "\n".join([printed(lambda: outputs.show(self.records, document, self.found)), *self.notes])


class Shown(Suggesting):
    """A result whose text is the output of its command."""

    called: Called
    """The call, which `study_call` sets."""

    def __str__(self) -> str:
        return self.called.text()


class Columns(Shown, ABC):
    """The numbers of a study as columns: a frame, and a table in a notebook."""

    source: Any
    """The data as passed; the frame uses the same library."""

    @property
    @abstractmethod
    def columns(self) -> dict[str, list[Any]]:
        """The numbers, as one list per column."""

    def __getitem__(self, column: str) -> list[Any]:
        if column not in self.columns:
            raise KeyError(f"no column `{column}`; {did_you_mean(column, self.columns)}")
        return self.columns[column]

    def frame(self) -> Any:
        """The numbers as a frame of the library of the data; as columns if the data came from a file or is missing."""
        return in_library_of(self.source, self.columns)

    def _repr_html_(self) -> str:
        from treesens.extensions.notebook import columns_html

        return columns_html(self.columns)


class Records(Columns):
    """A study whose columns have one line per record; `records` holds the records that the command prints with --json."""

    records: list[dict[str, Any]]

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The numbers, as one list per column."""
        from treesens.extensions.studies.report.study_tables import columns_of

        return frame_of(self.called.study.record, self.records) or columns_of(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records)


class Pictured(Records):
    """Records that can be drawn as a picture."""

    def plot(self, *, axes: Any = None) -> Any:
        """Draws the study with matplotlib. Returns the axes (new by default). Raises UsageError without matplotlib."""
        return self.called.study.drawn(self.records, self.called.found.result, axes)


@dataclass(frozen=True, eq=False)
class StudyResult(Records):
    """The result of a study; `records` holds the records that the command prints with --json."""

    records: list[dict[str, Any]]
    notes: tuple[str, ...]
    interrupted: bool
    source: Any = field(repr=False)

    @classmethod
    def of(cls, called: Called) -> Self:
        """The result of a call of the study."""
        return cls(called.records, called.notes, called.found.interrupted, called.source)

    def __repr__(self) -> str:
        return f"<{len(self.records)} records{', interrupted' if self.interrupted else ''}>"


class PicturedResult(Pictured, StudyResult):
    """The result of a study that can be drawn as a picture."""
