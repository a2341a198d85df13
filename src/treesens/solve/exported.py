"""Answers of solvers to a file that `emit` wrote, or another: the solver's own reader reads it, and nothing can be replayed."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from treesens.backends.base import BACKENDS, Artifact, RawOutcome, Termination, get_backend
from treesens.backends.text.value import GUIDES, ValueLine, read_value_line
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.files import read_text
from treesens.compiler.base.tolerance import Tolerance
from treesens.compiler.ir.module import ModuleSize
from treesens.compiler.result import Attempt, Proof, Result
from treesens.errors import DataError, UsageError
from treesens.solve.conclude import conclude_exported
from treesens.solve.driver import limits_of, solve_outcome
from treesens.solve.options import Options

FORMATS: Final = ("lp", "mps", "smt2")
_ENDS: Final = {"lp": "end", "mps": "endata"}
_HEAD = 100_000
"""Characters that contain the comments at the top of a file."""


class _Text(Artifact):
    """A text of which only the solver knows the variables; its objective has no other unit."""

    def value_of(self, told: float) -> float:
        return told


@dataclass(frozen=True)
class ExportedFile:
    """A file in place of a question."""

    name: str
    format: str
    text: str
    tolerance: Tolerance
    """The tolerance within which the solvers prove optima."""

    @cached_property
    def line(self) -> ValueLine | None:
        """The comment that derives the question's value from the objective, if `emit` wrote one."""
        return read_value_line(self.text[:_HEAD])

    @property
    def artifact(self) -> Artifact:
        return _Text(self.format, self.text, 0, has_objective=True, surrogate=GUIDES in self.text[:_HEAD])


def is_exported(path: Path) -> bool:
    """True if the name of a file ends like that of an exported file."""
    return path.suffix.lower()[1:] in FORMATS


def read_exported(path: Path, tolerance: Tolerance) -> ExportedFile:
    """The text of a file. Raises DataError if it cannot be read; only the solver checks the content."""
    text = read_text(path, "file", "pass a text of `emit`")
    end = _ENDS.get(path.suffix.lower()[1:], "")
    if text.rstrip().rpartition("\n")[2].strip().lower() != end and end:  # some readers accept a part of a file
        raise DataError(f"the last line is not `{end.upper()}`", place=str(path), remedy="pass the whole file")
    return ExportedFile(path.name, path.suffix.lower()[1:], text, tolerance)


def readers_of(path: Path) -> list[str]:
    """The backends that read the format of an exported file."""
    return [name for name in BACKENDS.names() if path.suffix.lower()[1:] in get_backend(name).reads]


def check_readers(path: Path, backends: Iterable[str]) -> None:
    """Raises UsageError for a backend that does not read the file."""
    readers = readers_of(path)
    for name in backends:
        if name.partition("{")[0] not in readers:
            raise UsageError(f"{name} does not read {path.name}", remedy=f"its readers are {', '.join(readers)}")


def answer_exported(file: ExportedFile, options: Options, budget: Budget) -> Result:
    """The solver's answer. The last moment of its trajectory contains the file's own objective, in its own units."""
    backend, start = get_backend(options.backend), time.perf_counter()
    if (reason := backend.available()) is not None:
        outcome = RawOutcome(Termination.UNSUPPORTED, detail=reason)
    else:
        outcome = solve_outcome(backend, file.artifact, limits_of(None, options, budget.left()), budget.stop)
    seconds = {"solve": time.perf_counter() - start}
    # Numbers of the other formats are floats.
    proof = Proof.EXACT if file.format == "smt2" else Proof.TOLERANCE
    result = conclude_exported(file.name, backend, outcome, proof)
    ended, facts = outcome.termination.value, (outcome.statistics, outcome.trajectory)
    attempt = Attempt(backend.name, "", ended, result.verdict, outcome.detail, seconds, ModuleSize(), *facts)
    return replace(result, backend=backend.name, seconds=seconds, attempts=(attempt,))
