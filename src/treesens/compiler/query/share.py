"""A request for a question's share of a measure, and the share's expected bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from operator import ge, gt, le, lt

from treesens.compiler.base.arrays import ArrayRecord, FloatArray

_COMPARE: dict[str, Callable[[Fraction, Fraction], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, eq=False)
class ShareAsked(ArrayRecord):
    """A request for the question's share of a measure. `kind` is the measure's kind; `data` names the table used to learn the
    measure; `rows`, float64[rows, features], are the table's rows as the model stores them. `expected` is the required bound.
    """

    measure: str
    kind: str
    data: str | None = None
    rows: FloatArray | None = None
    expected: tuple[str, Fraction] | None = None

    def decided(self, lower: float, upper: float) -> bool | None:
        """True if every share in [lower, upper] satisfies the expected bound, False if no share does, otherwise None."""
        if self.expected is None:
            return None
        operator, bound = self.expected
        holds = _COMPARE[operator]
        both = {holds(Fraction(lower), bound), holds(Fraction(upper), bound)}
        return both.pop() if len(both) == 1 else None
