"""What a rule is, and what it takes to be one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from treesens.compiler.base.arrays import Int64Array

DEVIATIONS = 4.0


def surprising(expected: float, observed: int) -> bool:
    """Whether chance would break a rule more often: the exceptions that independent columns would have are at least four
    standard deviations more than those that there are.
    """
    return expected > 0 and expected - observed >= DEVIATIONS * expected**0.5


@dataclass(frozen=True)
class RuleOptions:
    """`rows` and `share`: the least support of a rule; `exceptions`: the share of its support that may break it."""

    exceptions: float = 0.0
    rows: int = 30
    share: float = 0.01

    def least(self, rows: int) -> float:
        """The least support in a table of so many rows."""
        return max(self.rows, self.share * rows)


@dataclass(frozen=True)
class ValueSet:
    """A column has one of these values."""

    column: str
    values: tuple[float | str, ...]


@dataclass(frozen=True, eq=False)
class Rule:
    """What holds of every row but the exceptions.

    `left` and `right` are sets of values; those of "order" (left <= right) and "equal" have none and stand for the columns.
    `support`: rows to which the premise applies (of an equivalence: either side), `exceptions` int64[..]: those that break
    the rule, by number.
    """

    kind: Literal["implication", "equivalence", "order", "equal"]
    left: ValueSet
    right: ValueSet
    support: int
    exceptions: Int64Array
    dependency: bool = False
