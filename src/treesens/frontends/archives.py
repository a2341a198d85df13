"""Model files in a zip archive or a folder: detects the format, and reads the files within limits."""

from __future__ import annotations

import io
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

from treesens.errors import ModelError

_LOCAL = b"PK\x03\x04"
_MOJO = ("model.ini", "trees/", "domains/", "experimental/", "calib/", "_orig_", "boosterBytes")
"""Prefixes of file names in a MOJO."""
_SPARK = ("metadata", "treesMetadata")
"""Folders of a Spark model."""
_MOST_BYTES = 1 << 30


def zip_of(head: bytes) -> str | None:
    """The format (`spark`, `h2o` or `sklearn`) of a zip archive that starts with these bytes; None for other files."""
    names = list(_names(head))
    if not names:
        return None
    for name in names:
        if name.endswith(".parquet") or any(folder in _SPARK for folder in name.split("/")[:-1]):
            return "spark"
    return "h2o" if names[0].startswith(_MOJO) else "sklearn"


def _names(head: bytes) -> Iterator[str]:
    """The file names in the headers within the first bytes of an archive."""
    at = 0 if head.startswith(_LOCAL) else -1
    while at >= 0:
        length = int.from_bytes(head[at + 26 : at + 28], "little")
        yield head[at + 30 : at + 30 + length].decode("utf-8", errors="replace")
        at = head.find(_LOCAL, at + 30)


class Files(ABC):
    """The files of a model by name. Raises ModelError if an archive is damaged or hostile; `remedy` is the error's remedy."""

    what: str
    """The kind of container, for error messages."""

    def __init__(self, place: str, remedy: str) -> None:
        self.place, self.remedy = place, remedy

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The names of all files, with `/` between folders."""

    @abstractmethod
    def blob(self, name: str) -> bytes:
        """The content of a file. Raises ModelError if the name is unknown."""

    def text(self, name: str) -> str:
        """The content of a file as text."""
        try:
            return self.blob(name).decode("utf-8")
        except UnicodeDecodeError:
            raise ModelError(f"`{name[:60]}` is not UTF-8", place=self.place, remedy=self.remedy) from None

    def _lacks(self, name: str) -> ModelError:
        return ModelError(f"the {self.what} has no file `{name[:60]}`", place=self.place, remedy=self.remedy)


class FolderFiles(Files):
    """The files of a folder, as read by `treesens.compiler.base.folders`."""

    what = "folder"

    def __init__(self, files: Mapping[str, bytes], place: str, remedy: str) -> None:
        super().__init__(place, remedy)
        self._files = files

    @property
    def names(self) -> list[str]:
        return list(self._files)

    def blob(self, name: str) -> bytes:
        if name not in self._files:
            raise self._lacks(name)
        return self._files[name]


class Archive(Files):
    """The files of a zip archive."""

    what = "archive"

    def __init__(self, data: bytes, place: str, remedy: str) -> None:
        super().__init__(place, remedy)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            entries = self._zip.infolist()
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise ModelError(f"the zip archive is damaged: {error}", place=place, remedy=remedy) from None
        total = sum(entry.file_size for entry in entries)
        if total > _MOST_BYTES or total > 200 * len(data) + (1 << 20):
            raise ModelError(f"the archive unpacks to {total} bytes", place=place, remedy="this is not a model")
        self._entries = {entry.filename: entry for entry in entries}
        if len(self._entries) != len(entries):
            raise ModelError("the archive contains a file twice", place=place, remedy=remedy)

    @property
    def names(self) -> list[str]:
        return [name for name in self._entries if not name.endswith("/")]

    def blob(self, name: str) -> bytes:
        entry = self._entries.get(name)
        if entry is None:
            raise self._lacks(name)
        try:
            with self._zip.open(entry) as file:
                content = file.read(entry.file_size + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
            raise ModelError(f"`{name[:60]}` is damaged: {error}", place=self.place, remedy=self.remedy) from None
        if len(content) != entry.file_size:
            raise ModelError(f"the archive states a wrong size for `{name[:60]}`", place=self.place, remedy=self.remedy)
        return content
