"""What a journal keeps of a question in parts: a line for every part that was closed or cut, under the key of the question."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from treesens.compiler.result import Proof
from treesens.errors import DataError
from treesens.records.journal import Journal

PROOFS = frozenset(str(proof) for proof in Proof)


class PartJournal:
    """The lines of one question in a journal. Each is kept once it is written."""

    def __init__(self, journal: Journal, key: str) -> None:
        self.journal, self.key = journal, hashlib.sha256(key.encode()).hexdigest()

    def lines(self) -> list[dict[str, Any]]:
        """What is known, in the order in which it was written. DataError if a line cannot be used."""
        found = []
        for text in self.journal.parts(self.key):
            try:
                found.append(_checked(json.loads(text)))
            except (ValueError, KeyError, TypeError, RecursionError):
                raise self.damaged("a line about a part of a question is damaged") from None
        return found

    def write(self, line: dict[str, Any]) -> None:
        """Keeps a line."""
        self.journal.write_part(self.key, line)

    def damaged(self, why: str) -> DataError:
        """The error of a journal that cannot be used."""
        return DataError(why, place=str(self.journal.path), remedy="name another file with --journal")


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
