"""`--typical 95%`: only typical inputs count in a study, as a clause of its questions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from treesens.errors import UsageError
from treesens.grammar.constructs.typical import Typical
from treesens.grammar.printing.print_terms import decimal
from treesens.grammar.tree import ast
from treesens.grammar.tree.words import TYPICAL_WAYS


@dataclass(frozen=True)
class TypicalLevel:
    """A share of fresh inputs in percent, and the way to tell what is typical of the table `d`."""

    percent: Fraction
    way: str = TYPICAL_WAYS[0]

    def clause(self) -> ast.Formula:
        """Both points of a study's question are typical."""
        points = ast.Name("a"), ast.Name("b")
        return Typical(points, ast.Name("d"), ast.Number(self.percent), self.way)

    def record(self) -> dict[str, Any]:
        return {"percent": float(self.percent), "way": self.way}

    def __str__(self) -> str:
        return f"{decimal(self.percent)} % by {self.way}"


def typical_level(level: str | None, way: str | None, *, has_table: bool) -> TypicalLevel | None:
    """From the texts of the options; None if none is given. UsageError for what is no percentage, and without a table."""
    if level is None:
        if way is not None:
            raise UsageError("--typical-by says how, and --typical how much is missing", remedy="add --typical 95%")
        return None
    try:
        percent = Fraction(level.strip().removesuffix("%").strip())
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"`{level}` is no percentage", remedy="write --typical 95%") from None
    if not 0 < percent < 100:
        raise UsageError(f"`{level}` is no share of inputs", remedy="write a number between 0 and 100")
    if not _is_decimal(percent):
        raise UsageError(f"`{level}` has no finite decimals", remedy="write --typical 95%")
    if not has_table:
        raise UsageError("what is typical is learnt from rows", remedy="add --data FILE")
    return TypicalLevel(percent, way or TYPICAL_WAYS[0])


def _is_decimal(value: Fraction) -> bool:
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1
