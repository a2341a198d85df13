"""A MOJO as a zip archive: its index `model.ini`, and the files that the index names, within limits."""

from __future__ import annotations

import io
import zipfile
import zlib
from dataclasses import dataclass, field

from treesens.errors import ModelError
from treesens.frontends.columns import MAX_CATEGORIES, MAX_FEATURES

INDEX = "model.ini"
_STARTS = (b"model.ini", b"trees/", b"domains/", b"experimental/", b"calib/", b"_orig_", b"boosterBytes")
_MOST_BYTES = 1 << 30
_MOST_OF_INDEX = 1 << 26
_DAMAGED = "save the model again with h2o"


def is_mojo(head: bytes) -> bool:
    """Whether bytes may be the start of a MOJO: a zip archive whose first file is one of a MOJO."""
    length = int.from_bytes(head[26:28], "little")
    return head.startswith(b"PK\x03\x04") and head[30 : 30 + length].startswith(_STARTS)


@dataclass
class Mojo:
    """What the index says: texts by name, the columns, and per column the number of its categories with their file."""

    archive: Archive
    place: str
    info: dict[str, str] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    domains: dict[int, tuple[int, str]] = field(default_factory=dict)

    def error(self, message: str, remedy: str = _DAMAGED) -> ModelError:
        return ModelError(message, place=f"{self.place}: {INDEX}", remedy=remedy)

    def text(self, name: str) -> str:
        """A text of the index. ModelError if it is not there."""
        if name not in self.info:
            raise self.error(f"`{name}` is missing")
        return self.info[name]

    def flag(self, name: str) -> bool:
        """`true` or `false`; false if it is not there."""
        value = self.info.get(name, "false").lower()
        if value not in ("true", "false", "null"):
            raise self.error(f"`{name}` is neither true nor false: {value[:40]}")
        return value == "true"

    def count(self, name: str, most: int) -> int:
        """A whole number from 0 on."""
        text = self.text(name)
        if not (text.isascii() and text.isdigit()) or len(text) > 12 or int(text) > most:
            raise self.error(f"`{name}` is no number up to {most}: {text[:40]}")
        return int(text)

    def number(self, name: str) -> float:
        """A finite number, as Java reads it."""
        try:
            value = float(self.text(name))
        except ValueError:
            value = float("nan")
        if not abs(value) < float("inf"):
            raise self.error(f"`{name}` is no finite number: {self.text(name)[:40]}")
        return value

    def labels(self, column: int) -> tuple[str, ...]:
        """The categories of a column, in the order of their codes. ModelError if the file has more or fewer."""
        count, name = self.domains[column]
        lines = self.archive.text(f"domains/{name}").split("\n")
        lines = [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
        if len(lines) != count:
            raise ModelError(
                f"{len(lines)} categories where the index says {count}",
                place=f"{self.place}: domains/{name}",
                remedy=_DAMAGED,
            )
        return tuple(lines)


class Archive:
    """The files of a zip archive. ModelError for whatever a damaged or hostile one has."""

    def __init__(self, data: bytes, place: str) -> None:
        self.place = place
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            entries = self._zip.infolist()
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise ModelError(f"the zip archive is damaged: {error}", place=place, remedy=_DAMAGED) from None
        total = sum(entry.file_size for entry in entries)
        if total > _MOST_BYTES or total > 200 * len(data) + (1 << 20):
            raise ModelError(f"the archive unpacks to {total} bytes", place=place, remedy="this is not a model")
        self._entries = {entry.filename: entry for entry in entries}
        if len(self._entries) != len(entries):
            raise ModelError("the archive has a file twice", place=place, remedy=_DAMAGED)

    def blob(self, name: str) -> bytes:
        """A file of the archive."""
        entry = self._entries.get(name)
        if entry is None:
            raise ModelError(f"the archive has no file `{name[:60]}`", place=self.place, remedy=_DAMAGED)
        try:
            with self._zip.open(entry) as file:
                content = file.read(entry.file_size + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
            raise ModelError(f"`{name[:60]}` is damaged: {error}", place=self.place, remedy=_DAMAGED) from None
        if len(content) != entry.file_size:
            raise ModelError(f"`{name[:60]}` has another size than it says", place=self.place, remedy=_DAMAGED)
        return content

    def text(self, name: str) -> str:
        """A file of the archive as text."""
        try:
            return self.blob(name).decode("utf-8")
        except UnicodeDecodeError:
            raise ModelError(f"`{name[:60]}` is not UTF-8", place=self.place, remedy=_DAMAGED) from None


def open_mojo(data: bytes, place: str) -> Mojo:
    """The index of a MOJO; its other files are read when they are asked for."""
    archive = Archive(data, place)
    mojo = Mojo(archive, place)
    text = archive.text(INDEX)
    if len(text) > _MOST_OF_INDEX:
        raise mojo.error(f"an index of {len(text)} characters", "this is not a model")
    section = ""
    for line in (raw.strip() for raw in text.split("\n")):
        if line.startswith("#") or not line:
            continue
        if line in ("[info]", "[columns]", "[domains]"):
            section = line
        elif section == "[info]":
            name, equals, value = line.partition("=")
            if not equals or name.strip() in mojo.info:
                raise mojo.error(f"a line that says nothing, or says something twice: {line[:60]}")
            mojo.info[name.strip()] = value.strip()
        elif section == "[columns]":
            mojo.columns.append(line)
        elif section == "[domains]":
            _read_domain(mojo, line)
    if len(mojo.columns) != mojo.count("n_columns", MAX_FEATURES + 1):
        raise mojo.error(
            f"{len(mojo.columns)} columns where it says {mojo.text('n_columns')}; a name may begin with `#`"
        )
    if len(mojo.domains) != mojo.count("n_domains", MAX_FEATURES + 1):
        raise mojo.error(f"{len(mojo.domains)} domains where it says {mojo.text('n_domains')}")
    return mojo


def _read_domain(mojo: Mojo, line: str) -> None:
    """A line `COLUMN: COUNT FILE`."""
    column, colon, rest = line.partition(":")
    count, _, name = rest.strip().partition(" ")
    if not (colon and column.isdigit() and count.isdigit() and name and len(column) < 8 and len(count) < 8):
        raise mojo.error(f"a domain that says nothing: {line[:60]}")
    if int(column) in mojo.domains or int(column) >= len(mojo.columns) or int(count) > MAX_CATEGORIES:
        raise mojo.error(f"a domain twice, of no column, or with more than {MAX_CATEGORIES} categories: {line[:60]}")
    mojo.domains[int(column)] = int(count), name
