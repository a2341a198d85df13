"""Binds the questions of a file one at a time, for files with thousands of questions; declarations are loaded once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from treesens.binder.declarations import LoadModel, LoadTable, Unbound, read_declarations
from treesens.binder.file import Asked, Binder, ResolvedQuestion, load_model_file, load_table_file
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.grammar.tree import ast

_SPACES = 32
"""Number of cached refined grids for questions outside the file; every new constant creates a grid."""


class Session:
    """The questions of a file, bound on demand. Arguments and errors are those of `bind`; the first error is raised.

    Warnings about single questions are discarded to bound memory; `warnings` holds the warnings about the file.
    """

    def __init__(
        self, file: ast.File, base: Path, *, load_model: LoadModel | None = None, load_table: LoadTable | None = None
    ) -> None:
        self.file = file
        self._messages = Diagnostics()
        found = read_declarations(
            file, base, load_model or load_model_file, load_table or load_table_file, self._messages
        )
        self._messages.raise_if_errors()
        self._binder = Binder(found)
        self.warnings = tuple(self._messages)
        self.models = {name: model for name, model in found.models.items() if model is not None}
        self.tables = {name: table for name, table in found.tables.items() if table is not None}

    def asked(self) -> Iterator[Asked]:
        """Yields every question of the file in order, unbound."""
        for node in self.file.queries:
            try:
                yield from self._binder.asked(node)
            except Unbound:
                self._messages.raise_if_errors()
                raise

    def askable(self) -> Iterator[Asked]:
        """Yields the valid questions, for callers that have already reported the errors of all others."""
        for node in self.file.queries:
            try:
                yield from self._binder.asked(node)
            except Unbound:
                self._messages.items.clear()

    def question(self, asked: Asked) -> ResolvedQuestion:
        """Binds a question."""
        try:
            return self._binder.question(asked)
        except Unbound:
            self._messages.raise_if_errors()
            raise
        finally:
            self._forget()

    def bind(self, node: ast.Query) -> ResolvedQuestion:
        """Binds a query from outside the file with the file's declarations; only the first of its questions is bound."""
        for inputs in self._binder.inputs.values():
            if inputs is not None:
                inputs.forget_spaces(_SPACES)
        try:
            return next(iter(self._binder.query(node)))
        except Unbound:
            self._messages.raise_if_errors()
            raise
        finally:
            self._forget()

    def _forget(self) -> None:
        """Discards messages about a question, except the note on whole numbers (E403), which concerns the file."""
        found = [item for item in self._messages if item.code == "E403" and item not in self.warnings]
        self.warnings = (*self.warnings, *found)
        self._messages.items.clear()
