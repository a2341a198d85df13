"""Answers of a study in a journal, so that the same command goes on where it was interrupted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treesens.commands.journal import open_journal

if TYPE_CHECKING:
    from treesens.records.journal import Entry, Journal


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
def remembered(path: Path | None, time_limit: float, *context: object) -> Iterator[JournalMemory | None]:
    """The memory of a journal that is open meanwhile; None without a path. `context` is what all answers depend on."""
    from treesens import __version__

    with open_journal(path) as journal:
        known = "\0".join(map(str, (__version__, *context)))
        yield None if journal is None else JournalMemory(journal, known, time_limit)
