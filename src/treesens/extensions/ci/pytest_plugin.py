"""A pytest plug-in: `.sens` files are tests, and `expect` is the assertion. The plug-in collects nothing unless it is enabled.

pytest --sens                     # on the command line, or
[tool.pytest.ini_options]         # in pyproject.toml
sens_files = true
sens_time_limit = "10"            # seconds for each question
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class SensFailure(Exception):
    """Raised for a question whose answer is undecided or not as expected."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--sens`, `sens_files` and `sens_time_limit`."""
    group = parser.getgroup("treesens")
    group.addoption("--sens", action="store_true", help="run the questions of .sens files; `expect` is the assertion")
    parser.addini("sens_files", "run the questions of .sens files", type="bool", default=False)
    parser.addini("sens_time_limit", "seconds for each question of a .sens file", default="60")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The collector of a `.sens` file, if the plug-in is enabled."""
    wanted = parent.config.getoption("--sens") or parent.config.getini("sens_files")
    return SensFile.from_parent(parent, path=file_path) if wanted and file_path.suffix == ".sens" else None


class SensFile(pytest.File):
    """A file of questions."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yields an item per question; the item of an invalid question fails when it is run."""
        from treesens.binder.file import bind
        from treesens.errors import TreesensError
        from treesens.grammar.parsing.parser import read

        try:
            bound = bind(read(self.path), self.path.parent, keep_going=True)
        except TreesensError as error:
            raise self.CollectError(str(error)) from None
        for query in bound.queries:
            yield SensItem.from_parent(self, name=query.name, query=query)
        for name, mistake in bound.broken.items():
            yield SensItem.from_parent(self, name=name, error=mistake)


class SensItem(pytest.Item):
    """A question as a test, which passes if the answer is as expected."""

    def __init__(self, *, query: Any = None, error: Exception | None = None, **given: Any) -> None:
        super().__init__(**given)
        self.query, self.error = query, error

    def runtest(self) -> None:
        """Answers the question. Raises SensFailure unless the answer is as expected."""
        from treesens.errors import TreesensError
        from treesens.extensions.ci.cases import case_of
        from treesens.python.settings import checked_options
        from treesens.solve.question import answer_question

        if self.error is not None:
            raise SensFailure(str(self.error))
        try:
            seconds = float(self.config.getini("sens_time_limit"))
            result = answer_question(self.query, checked_options({"time_limit": seconds}))
        except (TreesensError, ValueError) as error:
            raise SensFailure(str(error)) from None
        case = case_of(str(self.path), self.query, result)
        if case.problem is not None:
            raise SensFailure(f"{case.problem}: {case.message}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any, **__: Any) -> Any:
        """The error message without a traceback, because a traceback through the solver does not explain the question."""
        if isinstance(excinfo.value, SensFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The file, line and name of the question."""
        span = None if self.query is None else self.query.node.name.span
        line = None if span is None else span.source.position(span.start)[0] - 1
        return self.path, line, self.name
