"""Answers of a study in a journal, so that the same command goes on where it was interrupted."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treesens.commands.outputs import OutputFile
from treesens.report.terminal import say

if TYPE_CHECKING:
    from treesens.records.journal import Entry, Journal

journal_option = click.option(
    "--journal",
    type=OutputFile(),
    help="An SQLite file with every answer as it comes; the same command answers from it, and goes on.",
)


class JournalMemory:
    """Answers by the digest of what they depend on: a question, `context` (versions, contents of files) and a time limit."""

    def __init__(self, journal: Journal, context: str, time_limit: float) -> None:
        self._journal, self._context, self._limit = journal, context, time_limit

    def known(self, key: str) -> dict[str, Any] | None:
        """The record that was kept. A verdict holds for every time limit, an `unknown` for its own."""
        digest = self._digest(key)
        return None if self._journal.known(digest, self._limit) is None else self._journal.record(digest, self._limit)

    def keep(self, key: str, verdict: str, record: dict[str, Any]) -> None:
        """On the disk when this returns."""
        from treesens.records.journal import Entry

        question, document = key.replace("\0", "\n"), self._context.replace("\0", "\n")
        entry = Entry(self._digest(key), verdict, question, document, None, None, 1, 0.0, 0, str(os.getpid()))
        self._journal.write(entry, self._limit, record)

    def entries(self) -> Iterator[Entry]:
        """Every answer of the file."""
        return self._journal.entries()

    def _digest(self, key: str) -> str:
        return hashlib.sha256(f"{self._context}\0{key}".encode()).hexdigest()


@contextmanager
def open_journal(path: Path | None) -> Iterator[Journal | None]:
    """A journal that is open for writing meanwhile; None without a path."""
    if path is None:
        yield None
        return
    from treesens.records.journal import Journal

    with Journal(path, command=" ".join(sys.argv[1:]), tell=warn_of_journal) as journal:
        yield journal


def warn_of_journal(words: str) -> None:
    """Print a message about a journal on standard error."""
    say(words, err=True)


@contextmanager
def remembered(path: Path | None, time_limit: float, *context: object) -> Iterator[JournalMemory | None]:
    """The memory of a journal that is open meanwhile; None without a path. `context` is what all answers depend on."""
    from treesens import __version__

    with open_journal(path) as journal:
        known = "\0".join(map(str, (__version__, *context)))
        yield None if journal is None else JournalMemory(journal, known, time_limit)
