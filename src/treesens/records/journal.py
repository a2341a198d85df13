"""The journal: one SQLite file that stores every answer under a digest of all inputs of the answer.

A question that is solved in parts has a line for every closed or split part. Each answer is committed when it arrives, so that
killing a run loses only the unfinished question. One process writes at a time; other processes may read (write-ahead log). If
the disk is full and the file can no longer be written, later answers are kept in memory, for this run only.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import treesens
from treesens.backends.base import packages_of
from treesens.compiler.base.files import will_write
from treesens.compiler.base.option_kinds import Door, declared
from treesens.compiler.base.plugins import plugin_versions
from treesens.errors import DataError, UsageError
from treesens.records.installation import package_version
from treesens.records.questions import sha256
from treesens.solve.methods.portfolio import RACERS
from treesens.solve.options import Options

SCHEMA = 1

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
  key TEXT NOT NULL, time_limit REAL NOT NULL, verdict TEXT NOT NULL, question TEXT NOT NULL, document TEXT NOT NULL,
  record TEXT NOT NULL, implied_by TEXT, failure TEXT, attempts INTEGER NOT NULL, cpu REAL NOT NULL,
  rss INTEGER NOT NULL, worker TEXT NOT NULL, writer_rss INTEGER NOT NULL, run INTEGER NOT NULL, answered REAL NOT NULL,
  PRIMARY KEY (key, time_limit)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (
  run INTEGER PRIMARY KEY, began REAL NOT NULL, ended REAL, command TEXT NOT NULL, settings TEXT NOT NULL, peak_rss INTEGER
);
CREATE TABLE IF NOT EXISTS parts (number INTEGER PRIMARY KEY, key TEXT NOT NULL, line TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS parts_of_a_question ON parts (key);
"""

NO_PART_OF_A_KEY = frozenset({"time_limit", "optimal", "confirm", "core", "regions", "reproducer"})
"""Options that do not change the content of an answer, and `optimal`, which other options imply. The journal compares time
limits itself; `check` adds the other options to its keys.
"""


def key_of(digest: str, options: Options) -> str:
    """The key of an answer: the question, its options except the time limit, and the versions of the solving software."""
    known = (one.field for one in declared(Options, ~Door(0)) if one.field not in NO_PART_OF_A_KEY)
    asked = {name: getattr(options, name) for name in known}
    parts = {"question": digest, "asked": asked, "versions": versions(options.backend)}
    return sha256(json.dumps(parts, sort_keys=True, default=str))


@functools.cache
def versions(backend: str) -> dict[str, str]:
    """The versions that affect a backend's answers, including plug-ins; for the engine, also a digest of its content."""
    from treesens._engine import __file__ as engine_file

    with Path(engine_file).open("rb") as file:
        engine = hashlib.file_digest(file, "sha256").hexdigest()
    found = {"treesens": treesens.__version__, "engine": engine}
    for name in RACERS if backend == "auto" else (backend,):
        for package in packages_of(name):
            found[package] = package_version(package) or "absent"
    return found | plugin_versions()


@dataclass(frozen=True)
class Entry:
    """An answer without its full record."""

    key: str
    verdict: str
    question: str
    document: str
    implied_by: str | None = None
    failure: str | None = None
    attempts: int = 1
    cpu: float = 0.0
    rss: int = 0
    worker: str = field(default_factory=lambda: str(os.getpid()))


class Journal:
    """A journal open for writing. Raises DataError if the file is not a journal, and UsageError if another run is writing the
    journal or the disk is full.

    `tell` is called once if the file can no longer be written.
    """

    def __init__(
        self, path: Path, *, command: str = "", settings: str = "", tell: Callable[[str], None] | None = None
    ) -> None:
        self.path = path
        self._tell = tell
        self._late: sqlite3.Connection | None = None
        """The entries in memory, made after the file could no longer be written."""
        self.peak_rss: int | None = None
        """Peak memory of this process in bytes, recorded with the run when the run ends."""
        if path.exists() and not path.is_file():
            raise UsageError("this is not a regular file", place=str(path), remedy="name another file with --journal")
        will_write(path)
        self._lock = _writers_lock(path)
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version not in {0, SCHEMA}:
                raise DataError(
                    f"the journal has format {version}, and this treesens writes {SCHEMA}",
                    place=str(path),
                    remedy="name another file with --journal",
                )
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_TABLES)
            self._db.execute(f"PRAGMA user_version={SCHEMA}")
            row = (time.time(), command, settings)
            self.run = self._db.execute("INSERT INTO runs (began, command, settings) VALUES (?, ?, ?)", row).lastrowid
        except (sqlite3.Error, UnicodeDecodeError, DataError) as error:
            self._lock.close()
            if isinstance(error, DataError):
                raise
            if isinstance(error, sqlite3.OperationalError):
                raise _not_begun(path, error) from None
            raise DataError(
                f"this is not a journal: {error}", place=str(path), remedy="name another file with --journal"
            ) from None

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the run."""
        row = (time.time(), self.peak_rss, self.run)
        try:
            self._write("UPDATE runs SET ended = ?, peak_rss = ? WHERE run = ?", row)
        finally:
            for one in (self._late, self._db, self._lock):
                if one is not None:
                    one.close()

    def _write(self, statement: str, values: Sequence[Any]) -> None:
        """Applies a change to the file or, with a warning, to this run's memory if the file can no longer be written."""
        values = [v.encode(errors="backslashreplace").decode() if isinstance(v, str) else v for v in values]  # any name
        try:
            (self._late or self._db).execute(statement, values)
            return
        except OverflowError as error:
            raise DataError(f"the journal cannot store an answer: {error}", place=str(self.path)) from None
        except sqlite3.Error as error:
            if self._late is not None:
                raise
            why = str(error)
        self._late = sqlite3.connect(":memory:", isolation_level=None)
        self._late.executescript(_TABLES)
        self._late.execute(statement, values)
        if self._tell is not None:
            self._tell(
                f"warning: {self.path}: the journal can no longer be written: {why}. The run continues without it; "
                "answers that were stored before remain in it"
            )

    def _found(self, statement: str, values: Sequence[Any] = ()) -> tuple[list[Any], list[Any]]:
        """The rows of a statement in the file, and the rows kept in memory. Raises DataError if the file is damaged."""
        try:
            rows = self._db.execute(statement, values).fetchall()
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            raise DataError(
                f"the journal cannot be used: {error}",
                place=str(self.path),
                remedy="name another file with --journal; answers stored before remain in this file",
            ) from None
        return rows, [] if self._late is None else self._late.execute(statement, values).fetchall()

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a statement, the latest rows first."""
        kept, late = self._found(statement, values)
        return late + kept

    def known(self, key: str, time_limit: float) -> Entry | None:
        """The known answer: a verdict is valid for every time limit, and an `unknown` only for its own limit."""
        rows = self._rows(
            f"SELECT {_ENTRY} FROM answers WHERE key = ? AND (time_limit = ? OR verdict != 'unknown') "
            "ORDER BY verdict = 'unknown' LIMIT 1",
            (key, time_limit),
        )
        return Entry(*rows[0]) if rows else None

    def record(self, key: str, time_limit: float) -> dict[str, Any] | None:
        """The full record of the known answer, as for `known`; None if no answer is known."""
        rows = self._rows(
            "SELECT record FROM answers WHERE key = ? AND (time_limit = ? OR verdict != 'unknown') "
            "ORDER BY verdict = 'unknown' LIMIT 1",
            (key, time_limit),
        )
        if not rows:
            return None
        try:
            record: dict[str, Any] = dict(json.loads(rows[0][0]))
        except (TypeError, ValueError, RecursionError):
            raise self.damaged("an answer in the journal is damaged") from None
        return record

    def keep(self, entry: Entry, time_limit: float, record: dict[str, Any], rss: int = 0) -> Entry:
        """Stores an answer; as soon as this method returns, the answer survives a kill of the process.

        `rss` is this process's memory in bytes.
        """
        self._write(
            f"INSERT OR REPLACE INTO answers ({_ENTRY}, time_limit, record, writer_rss, run, answered) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(entry.key, entry.verdict, entry.question, entry.document, entry.implied_by, entry.failure),
                *(entry.attempts, entry.cpu, entry.rss, entry.worker),
                *(time_limit, json.dumps(record, allow_nan=False), rss, self.run, time.time()),
            ),
        )
        return entry

    def entries(self) -> Iterator[Entry]:
        """Every answer of the file, including all earlier runs."""
        for row in self._rows(f"SELECT {_ENTRY} FROM answers"):
            yield Entry(*row)

    def keep_part(self, key: str, line: dict[str, Any]) -> None:
        """Stores a line about a part of a question; the line is on the disk when this method returns."""
        self._write("INSERT INTO parts (key, line) VALUES (?, ?)", (key, json.dumps(line, allow_nan=False)))

    def parts(self, key: str, checked: Callable[[dict[str, Any]], dict[str, Any]]) -> list[dict[str, Any]]:
        """The lines about the parts of a question in the order of writing, as returned by `checked`.

        Raises DataError for a line that is not JSON, or that `checked` rejects (ValueError, KeyError or TypeError).
        """
        kept, late = self._found("SELECT line FROM parts WHERE key = ? ORDER BY number", (key,))
        try:
            return [checked(json.loads(str(row[0]))) for row in kept + late]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self.damaged("a line about a part of a question is damaged") from None

    def damaged(self, why: str) -> DataError:
        """The error for a journal with unusable content."""
        return DataError(why, place=str(self.path), remedy="name another file with --journal")


@dataclass(frozen=True)
class KeptAnswers:
    """One command's answers in a journal, by question; `context` describes the inputs that all answers share."""

    journal: Journal
    context: str
    time_limit: float

    def known(self, question: str) -> dict[str, Any] | None:
        """The stored record. A verdict is valid for every time limit, and an `unknown` only for its own limit."""
        return self.journal.record(self._key(question), self.time_limit)

    def keep(self, question: str, verdict: str, record: dict[str, Any]) -> None:
        """Stores a record, which is on the disk when this method returns."""
        asked, context = question.replace("\0", "\n"), self.context.replace("\0", "\n")
        self.journal.keep(Entry(self._key(question), verdict, asked, context), self.time_limit, record)

    def _key(self, question: str) -> str:
        return sha256(f"{self.context}\0{question}")


_ENTRY = "key, verdict, question, document, implied_by, failure, attempts, cpu, rss, worker"


def _writers_lock(path: Path) -> sqlite3.Connection:
    """A lock held by the process that writes; the system releases the lock when the process ends for any reason."""
    try:
        lock = sqlite3.connect(f"{path}.lock", isolation_level=None, timeout=0)
    except sqlite3.OperationalError as error:
        raise _not_begun(path, error) from None
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise _not_begun(path, error) from None
        raise UsageError(
            "another run is writing this journal",
            place=str(path),
            remedy="wait until that run ends, or pass another file with --journal",
        ) from None
    return lock


_ROOM = 1 << 17
"""Bytes for an empty journal and its log, with a margin."""


def _not_begun(path: Path, error: sqlite3.OperationalError) -> UsageError:
    """The error for a journal that cannot be created; a full disk causes various errors."""
    try:
        full = shutil.disk_usage(path.parent).free < _ROOM
    except OSError:
        full = False
    why = "the disk is full" if full else str(error)
    return UsageError(
        f"the journal cannot be opened: {why}", place=str(path), remedy="pass another --journal file, or free up space"
    )
