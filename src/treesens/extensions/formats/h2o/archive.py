"""Reads a MOJO, which is a zip archive, within limits: the index `model.ini`, and the files that the index lists."""

from __future__ import annotations

from dataclasses import dataclass, field

from treesens.errors import ModelError
from treesens.frontends.archives import Archive
from treesens.frontends.columns import MAX_CATEGORIES, MAX_FEATURES

INDEX = "model.ini"
_MOST_OF_INDEX = 1 << 26
_DAMAGED = "save the model again with h2o"


@dataclass
class Mojo:
    """The content of the index: texts by name, columns, and a category count and label file per categorical column."""

    archive: Archive
    place: str
    info: dict[str, str] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    domains: dict[int, tuple[int, str]] = field(default_factory=dict)

    def error(self, message: str, remedy: str = _DAMAGED) -> ModelError:
        return ModelError(message, place=f"{self.place}: {INDEX}", remedy=remedy)

    def text(self, name: str) -> str:
        """A text of the index. Raises ModelError if the text is missing."""
        if name not in self.info:
            raise self.error(f"`{name}` is missing")
        return self.info[name]

    def flag(self, name: str) -> bool:
        """True for `true`, False for `false`. Raises ModelError for any other text, or if the text is missing."""
        value = self.text(name).lower()
        if value not in ("true", "false", "null"):
            raise self.error(f"`{name}` is neither true nor false: {value[:40]}")
        return value == "true"

    def count(self, name: str, most: int) -> int:
        """An integer from 0 to `most`."""
        text = self.text(name)
        if not (text.isascii() and text.isdigit()) or len(text) > 12 or int(text) > most:
            raise self.error(f"`{name}` is not a number up to {most}: {text[:40]}")
        return int(text)

    def number(self, name: str) -> float:
        """A finite number, as Java parses it."""
        try:
            value = float(self.text(name))
        except ValueError:
            value = float("nan")
        if not abs(value) < float("inf"):
            raise self.error(f"`{name}` is not a finite number: {self.text(name)[:40]}")
        return value

    def numbers(self, name: str, count: int) -> list[float]:
        """A list of `count` finite numbers in brackets."""
        text = self.text(name)
        parts = text[1:-1].split(",") if text[:1] == "[" and text[-1:] == "]" and len(text) <= 40 * count + 2 else []
        try:
            values = [float(part) for part in parts]
        except ValueError:
            values = []
        if len(values) != count or not all(abs(value) < float("inf") for value in values):
            raise self.error(f"`{name}` is not a list of {count} finite numbers: {text[:40]}")
        return values

    def labels(self, column: int) -> tuple[str, ...]:
        """The categories of a column, in code order. Raises ModelError if the number of categories differs from the index."""
        count, name = self.domains[column]
        lines = self.archive.text(f"domains/{name}").split("\n")
        lines = [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
        if len(lines) != count:
            raise ModelError(
                f"the file has {len(lines)} categories, but the index says {count}",
                place=f"{self.place}: domains/{name}",
                remedy=_DAMAGED,
            )
        return tuple(lines)


def open_mojo(data: bytes, place: str) -> Mojo:
    """The index of a MOJO; its other files are read on demand."""
    archive = Archive(data, place, _DAMAGED)
    mojo = Mojo(archive, place)
    text = archive.text(INDEX)
    if len(text) > _MOST_OF_INDEX:
        raise mojo.error(f"the index has {len(text)} characters", "this is not a model")
    section = ""
    for line in (raw.strip() for raw in text.split("\n")):
        if line.startswith("#") or not line:
            continue
        if line in ("[info]", "[columns]", "[domains]"):
            section = line
        elif section == "[info]":
            name, equals, value = line.partition("=")
            if not equals or name.strip() in mojo.info:
                raise mojo.error(f"the line has no value, or repeats a name: {line[:60]}")
            mojo.info[name.strip()] = value.strip()
        elif section == "[columns]":
            mojo.columns.append(line)
        elif section == "[domains]":
            _read_domain(mojo, line)
    if len(mojo.columns) != mojo.count("n_columns", MAX_FEATURES + 1):
        raise mojo.error(
            f"there are {len(mojo.columns)} columns, but `n_columns` is {mojo.text('n_columns')}; a name may begin with `#`"
        )
    if len(mojo.domains) != mojo.count("n_domains", MAX_FEATURES + 1):
        raise mojo.error(f"there are {len(mojo.domains)} domains, but `n_domains` is {mojo.text('n_domains')}")
    return mojo


def _read_domain(mojo: Mojo, line: str) -> None:
    """Reads a line `COLUMN: COUNT FILE`."""
    column, colon, rest = line.partition(":")
    count, _, name = rest.strip().partition(" ")
    if not (colon and column.isdigit() and count.isdigit() and name and len(column) < 8 and len(count) < 8):
        raise mojo.error(f"the line does not describe a domain: {line[:60]}")
    if int(column) in mojo.domains or int(column) >= len(mojo.columns) or int(count) > MAX_CATEGORIES:
        raise mojo.error(f"a domain is repeated, has no column, or exceeds {MAX_CATEGORIES} categories: {line[:60]}")
    mojo.domains[int(column)] = int(count), name
