"""Rules for the class at a tie, or at a lead that rounding hides: there, the predicted class is not a function of the scores.

The rule of a library is defined next to the reader for its files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar

import numpy as np

from treesens.compiler.base.arrays import FloatArray


class Ties(ABC):
    """A library's choice among classes that the scores do not separate."""

    drawn: ClassVar[bool] = False
    """True if the library picks the class at a tie by a hash of the input."""

    @property
    @abstractmethod
    def factors(self) -> tuple[Fraction, ...]:
        """The factors by which the classes' scores are multiplied before the comparison."""

    @property
    def coarse(self) -> Fraction:
        """The relative rounding error of the library's scores."""
        return Fraction(1)

    @abstractmethod
    def choose(self, scores: FloatArray, row: FloatArray) -> int:
        """Chooses the class of an input: the best of `scores` float64[classes], or a class drawn by `row` float64[features]."""

    def may_stray(self, wanted: int) -> bool:  # noqa: ARG002 - for rules that draw
        """True if the library may predict a class that is not among the best classes."""
        return False


def are_near(scores: FloatArray, distance: Fraction) -> bool:
    """True if the two best scores in float64[classes] differ by at most `distance`."""
    second, first = np.sort(np.asarray(scores, np.float64))[-2:].tolist()
    return Fraction(first) - Fraction(second) <= distance
