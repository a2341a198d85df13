"""How much of a measure a question is about: what it asks for, and the bound that it expects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from operator import ge, gt, le, lt

from treesens.compiler.base.arrays import ArrayRecord, FloatArray

_COMPARE: dict[str, Callable[[Fraction, Fraction], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, eq=False)
class ShareAsked(ArrayRecord):
    """How much of a measure a question is about: `kind` of the measure, and the table that it is learnt from (`data`, and its
    rows float64[rows, features] as the model stores them). `expected` is the bound that the share has to keep.
    """

    measure: str
    kind: str
    data: str | None = None
    rows: FloatArray | None = None
    expected: tuple[str, Fraction] | None = None

    def decided(self, lower: float, upper: float) -> bool | None:
        """Whether a share that lies in [lower, upper] keeps the bound; None if some of these would and others would not."""
        if self.expected is None:
            return None
        operator, bound = self.expected
        holds = _COMPARE[operator]
        both = {holds(Fraction(lower), bound), holds(Fraction(upper), bound)}
        return both.pop() if len(both) == 1 else None
