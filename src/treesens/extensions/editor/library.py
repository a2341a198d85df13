"""Models and tables of open files, read once and again only when the file on disk changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar, cast

from treesens.compiler.base.folders import folder_stamp
from treesens.data.tables import Table, read_table
from treesens.errors import ModelError, TreesensError
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import load

T = TypeVar("T")
Stamp = tuple[int, int] | None
"""Time of the last change in nanoseconds and size in bytes; None for a file that is not there, and for no plain folder."""

_MOST: Final = 32
"""Models and tables that are kept; the one that was not used for longest goes first."""


def stamp(path: Path) -> Stamp:
    """What changes when a file does, or a file of a folder."""
    try:
        if path.is_dir():
            return folder_stamp(path)
        found = path.stat()
    except (OSError, ValueError, ModelError):
        return None
    return found.st_mtime_ns, found.st_size


class Library:
    """Loads for the binder. What cannot be read is remembered too, as the error that says why."""

    def __init__(self, *, trust_pickle: bool = False) -> None:
        self._trust_pickle = trust_pickle
        self._known: OrderedDict[tuple[object, ...], tuple[Stamp, object]] = OrderedDict()
        self._lock = threading.RLock()

    def model(self, path: Path, format: str | None) -> LoadedModel:
        key = ("model", path, format)
        return self._kept(key, path, lambda: load(path, format, trust_pickle=self._trust_pickle))

    def table(self, path: Path, label: str | None = None, rows: int | None = None) -> Table:
        return self._kept(("table", path, label, rows), path, lambda: read_table(path, label=label, rows=rows))

    def _kept(self, key: tuple[object, ...], path: Path, read: Callable[[], T]) -> T:
        with self._lock:
            now = stamp(path)
            if key not in self._known or self._known[key][0] != now:
                try:
                    self._known[key] = now, read()
                except TreesensError as error:
                    self._known[key] = now, error
            self._known.move_to_end(key)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
            found = self._known[key][1]
        if isinstance(found, TreesensError):
            raise found.with_traceback(None)
        return cast(T, found)
