"""The journal of a question in parts: a line of JSON for every part that was closed or cut, under the key of the question."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from treesens.compiler.base.files import MOST_TEXT_BYTES, read_regular, will_write, write_atomically
from treesens.compiler.result import Proof
from treesens.errors import DataError

PROOFS = frozenset(str(proof) for proof in Proof)


class PartJournal:
    """Lines of one question in a file, which may hold those of others. Each line is there once it is written."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, hashlib.sha256(key.encode()).hexdigest()
        will_write(path)

    def lines(self) -> list[dict[str, Any]]:
        """What is known, in the order in which it was written. DataError for a file of something else."""
        try:
            text = read_regular(self.path, MOST_TEXT_BYTES, own=True).decode("utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise self.damaged(str(error)) from None
        # A run that was killed may have left half a line at the end, which says nothing.
        kept = text[: text.rfind("\n") + 1]
        if text and not kept:
            raise self.damaged("it holds no line")
        found = []
        for number, line in enumerate(kept.splitlines(), 1):
            try:
                read = json.loads(line)
                if read["key"] == self.key:
                    found.append(_checked(read))
            except (ValueError, KeyError, TypeError, RecursionError):
                raise self.damaged(f"line {number} is none of a journal of parts") from None
        if kept != text:
            write_atomically(self.path, kept.encode())
        return found

    def write(self, line: dict[str, Any]) -> None:
        """Appends a line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": self.key, **line}) + "\n")

    def damaged(self, why: str) -> DataError:
        """The error of a journal that cannot be used."""
        return DataError(why, place=str(self.path), remedy="name another file with --journal")


def _checked(line: dict[str, Any]) -> dict[str, Any]:
    """A line whose parts can be used. ValueError otherwise."""
    cuts = line["part"]
    whole = isinstance(cuts, list) and all(
        isinstance(cut, list) and len(cut) == 4 and all(type(x) is int and x >= 0 for x in cut) for cut in cuts
    )
    if (
        not whole
        or line["did"] not in ("none", "cut", "found")
        or (line["did"] == "none" and line["proof"] not in PROOFS)
        or (line["did"] == "found" and not _are_points(line["values"]))
    ):
        raise ValueError("no line of a journal")
    return line


def _are_points(values: Any) -> bool:
    """Whether there is a list of numbers (None for a missing value) for each point, all of one length."""
    if not isinstance(values, list) or not all(isinstance(point, list) for point in values):
        return False
    numbers = all(x is None or type(x) in (int, float) for point in values for x in point)
    return numbers and len({len(point) for point in values}) == 1
