"""Answers in Python: the verdict with the mapping back to names and frames. Dictionaries (models, meanings of questions) are
shown as tables in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.result import Core, Ranked, Result, RowCount, ShareFound, Verdict
from treesens.errors import TreesensError
from treesens.records.answers import points_of, record
from treesens.report.explain import Explanation, InNotebook

_SHOWN = 6
"""Maximum number of answers in a short representation."""


@dataclass(frozen=True, eq=False)
class Answer(InNotebook):
    """The answer to one question, with the names and frames of the caller.

    `notes` lists assumptions about the features, each with the argument that changes the assumption.
    """

    question: ResolvedQuestion
    result: Result
    frame: Any = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.result.query

    @property
    def verdict(self) -> Verdict:
        return self.result.verdict

    @property
    def reason(self) -> str:
        return self.result.reason

    @property
    def proof(self) -> str | None:
        return self.result.proof

    @property
    def bound(self) -> float | None:
        """The proven bound of the objective."""
        return None if self.result.objective is None else self.result.objective.bound

    @property
    def ranked(self) -> Ranked | None:
        """All answers of a question with `top N`, the best first."""
        return self.result.ranked

    @property
    def count(self) -> RowCount | None:
        """The count of rows for a counting question, None for other questions."""
        return self.result.count

    @property
    def share(self) -> ShareFound | None:
        """The share of a measure, for a question with `share of`."""
        return self.result.share

    @property
    def core(self) -> Core | None:
        """The clashing constraints of a `none` answer; known with `core=True`, or if the compiler finds them."""
        return self.result.core

    @property
    def points(self) -> dict[str, dict[str, Any]] | None:
        """Labels by point and feature; None without a witness."""
        return None if self.result.witness is None else points_of(self.question.query, self.result.witness)

    @property
    def pair(self) -> Any:
        """The witness as a frame with one row per point, in the library of the caller's frame (otherwise a dictionary of
        columns), indexed by the points' names if the library has an index; None without a witness.
        """
        points = self.points
        if points is None:
            return None
        columns = {name: [point[name] for point in points.values()] for name in self.question.query.space.names}
        if self.frame is None:
            return columns
        if isinstance(self.frame, np.ndarray):
            return _array_of(list(columns.values()))
        import narwhals as nw

        namespace = nw.get_native_namespace(nw.from_native(self.frame, eager_only=True))
        frame = nw.from_dict(columns, backend=namespace)
        return nw.maybe_set_index(frame, index=nw.new_series("point", list(points), backend=namespace)).to_native()

    def to_dict(self) -> dict[str, Any]:
        """The record that `treesens check --json` prints for this question."""
        return record(self.question.query, self.result, data=self.question.known_tables())

    def __repr__(self) -> str:
        return f"<{self.name}: {self.verdict} ({self.reason})>"

    def __str__(self) -> str:
        """The text that `treesens check` prints for the answer and its notes."""
        from treesens.report.show import result_text

        return "\n".join([result_text(self.question, self.result), *(f"  {note}" for note in self.notes)])


def _array_of(columns: Sequence[Sequence[Any]]) -> np.ndarray[Any, Any]:
    """Columns as an array [points, features]: float64 with NaN for missing if all values are numbers, otherwise objects."""
    if all(v is None or isinstance(v, int | float) for column in columns for v in column):
        return np.array([[np.nan if v is None else float(v) for v in column] for column in columns], np.float64).T
    return np.array([list(column) for column in columns], dtype=object).T


class Answers(InNotebook, Mapping[str, Answer]):
    """Answers by the name of their question. `errors` holds the errors of the other queries by name; access to such a query
    raises the query's error.
    """

    def __init__(self, answers: Sequence[Answer], errors: Mapping[str, TreesensError] | None = None) -> None:
        self._answers = {answer.name: answer for answer in answers}
        self.errors = dict(errors or {})

    def __getitem__(self, name: str) -> Answer:
        if name in self._answers:
            return self._answers[name]
        if error := self.errors.get(name) or self.errors.get(str(name).partition("[")[0]):
            raise error
        raise KeyError(f"no question is called {name!r}; the names are {', '.join(self._answers) or 'none'}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{name}: {answer.verdict}" for name, answer in list(self._answers.items())[:_SHOWN])
        more = ", …" if len(self) > _SHOWN else ""
        failed = f"; {len(self.errors)} with errors" if self.errors else ""
        return f"<{len(self)} answers: {verdicts}{more}{failed}>"


class Info(InNotebook, dict[str, Any]):
    """The record of `treesens info --json` for a model; in a notebook, a table of the model and a table of its features."""

    def __repr__(self) -> str:
        return f"<model: {self['format']}, {self['trees']} trees, {len(self['features'])} features, {self['task']}>"


class Explanations(InNotebook, dict[str, Explanation]):
    """The meanings of questions by name; a notebook shows them one below the other."""
