"""Offsets of characters and positions of the Language Server Protocol: a line, and a column in units of an encoding.

The protocol counts UTF-16 code units unless client and server agree on another encoding; Python counts characters, and a
character beyond U+FFFF is two units of UTF-16. Lines end with `\\n`, `\\r\\n` or `\\r`, and with nothing else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

_BREAK: Final = re.compile(r"\r\n|\n|\r")


class Lines:
    """The lines of a text; `encoding` is `utf-8`, `utf-16` or `utf-32`."""

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text = text
        self.encoding = encoding
        breaks = list(_BREAK.finditer(text))
        self.starts = [0, *(found.end() for found in breaks)]
        self.ends = [*(found.start() for found in breaks), len(text)]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 0, of a character."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self.starts, offset) - 1
        return line, self._units(self.text[self.starts[line] : min(offset, self.ends[line])])

    def offset(self, line: int, column: int) -> int:
        """The character at a position; one past the end of its line is the end of that line."""
        if line >= len(self.starts):
            return len(self.text)
        start, end = self.starts[line], self.ends[line]
        units = 0
        for offset in range(start, end):
            units += self._units(self.text[offset])
            if units > column:
                return offset
        return end

    def _units(self, text: str) -> int:
        if self.encoding == "utf-32":
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
