"""Writes questions with names: `let` and `param` for numbers, `define` for constraints, `for each` over one number.

Its answers are judged as those of the text without names; `tests/grammar/test_expansion.py` compares the trees of the two.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

_APART = re.compile(r"(`[^`]*`|\"[^\"]*\"|#.*)")
_NUMBER = re.compile(r"(?<![\w.`])([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)(?![\w.])")
_TWO_NUMBERS = re.compile(r"\s*[-0-9.e]+ = ")
"""The start of a line that would be an equality of points, with names."""


@dataclass
class Naming:
    """The names of one text. `swept` are the new names of questions in loops, with the old ones."""

    rng: np.random.Generator
    share: float
    values: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    given: dict[str, str] = field(default_factory=dict)
    swept: dict[str, str] = field(default_factory=dict)

    def name(self, number: str) -> str:
        if number not in self.values:
            name = self.values[number] = f"number{len(self.values)}"
            kind = self.rng.integers(4)
            if kind == 0:
                self.lines.append(f"param {name} = 17")
                self.given[name] = number
            elif kind == 1:
                self.lines.append(f"let {name} = {number} / 4 + 3 * 0.25 * {number}")
            else:
                self.lines.append(f"let {name} = {number}")
        return self.values[number]

    def numbers(self, line: str) -> str:
        """The line with names in the place of some numbers."""
        if "category {" in line or _TWO_NUMBERS.match(line):
            return line

        def named(found: re.Match[str]) -> str:
            return self.name(found[1]) if self.rng.random() < self.share else found[1]

        parts = _APART.split(line)
        return "".join(part if _APART.fullmatch(part) else _NUMBER.sub(named, part) for part in parts)

    def constraint(self, line: str, points: list[str]) -> str:
        """A line of constraints as the call of a definition, where that is possible."""
        used = [p for p in points if re.search(rf"(?<![\w.`]){p}(?![\w`])", line)]
        elsewhere = any(re.search(rf"\.`?{p}\b|{{[^}}]*\b{p}\b", line) for p in points)
        if not used or elsewhere or self.rng.random() > self.share:
            return line
        name = f"holds{len(self.lines)}"
        self.lines.append(f"define {name}({', '.join(used)}) = {self.numbers(line).strip()}")
        return f"    {name}({', '.join(used)})"

    def block(self, block: str) -> str:
        """A declaration with names; a query may become a loop over one of its numbers."""
        head, *rest = block.split("\n")
        about = re.search(r"(?:find|as) (.*?)(?: such that|$)", "\n".join(rest), re.MULTILINE)
        points = [part.split(" in ")[0].strip() for part in about[1].split(",")] if about else []
        query = re.fullmatch(r"query (\w+):", head)
        lines = []
        for line in rest:
            called = self.constraint(line, points) if query and line.startswith("    ") else line
            lines.append(self.numbers(called) if called is line else called)
        text = "\n".join(lines)
        names = [name for name in self.values.values() if re.search(rf"\b{name}\b", text)]
        if query is None or not names or self.rng.random() > self.share:
            return "\n".join([self.numbers(head) if query is None else head, text])
        name = names[int(self.rng.integers(len(names)))]
        number = next(number for number, known in self.values.items() if known == name)
        written = f"{Decimal(number):f}"
        written = written.rstrip("0").rstrip(".") if "." in written else written
        self.swept[f"{query[1]}[{written}]"] = query[1]
        return f"{head}\n  for each swept in {{{name}}}:\n" + re.sub(rf"\b{name}\b", "swept", text)


def write_names(text: str) -> tuple[str, Naming]:
    """The text with names, and its names; the numbers of `param` are `given`."""
    rng = np.random.default_rng(zlib.crc32(text.encode()))
    naming = Naming(rng, float(rng.choice([0.0, 0.3, 0.8])))
    written = "\n".join(map(naming.block, re.split(r"\n(?=\S)", text)))
    return "\n".join([*naming.lines, written]), naming


def with_names(text: str) -> tuple[str, dict[str, str]]:
    """The text with names, and the names of its questions that became loops."""
    written, naming = write_names(text)
    for name, number in naming.given.items():
        written = written.replace(f"param {name} = 17\n", f"param {name} = {number}\n")
    return written, naming.swept
