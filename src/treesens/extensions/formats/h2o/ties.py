"""The class that H2O predicts at a tie, or from the second class's share of the sum of two scores.

If classes tie, h2o-genmodel 3.46 picks a class by a hash of the input (`GenModel.getPredictionMultinomial`). The function
iterates over the classes and keeps the best class so far. A class with an equal score is appended to a list that initially
contains the first class and is never cleared. If several classes share the best score, a Java generator, seeded with a hash of
the row, draws a class of the list; the weights are class shares in the data. So for the scores 0, 1/2 and 1/2 the first class
may be predicted, and the second may not. The class depends on every digit of the row, even in columns on which no tree splits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.model.ties import Ties

_MASK = (1 << 48) - 1
_MULTIPLIER, _ADDED = 0x5DEECE66D, 0xB
"""Constants of the linear congruential generator in the documentation of `java.util.Random`."""


@dataclass(frozen=True)
class HashedTies(Ties):
    """`shares` holds the class shares in the data. `ones` maps each column of the library, if columns and features differ, to
    the feature, the category for which the column is 1 (-1 for a number), and the number of categories.
    """

    drawn: ClassVar[bool] = True
    shares: tuple[float, ...]
    ones: tuple[tuple[int, int, int], ...] = ()

    @cached_property
    def factors(self) -> tuple[Fraction, ...]:
        """Scores are not scaled before the comparison."""
        return (Fraction(1),) * len(self.shares)

    def choose(self, scores: FloatArray, row: FloatArray) -> int:
        """The best class by `scores`, float64[classes]; ties are broken by a hash of `row`, float64[features]."""
        best, tied, listed = 0, 0, [0]
        for number in range(1, len(scores)):
            if scores[best] < scores[number]:
                best, tied = number, 0
            elif scores[best] == scores[number]:
                tied += 1
                listed.append(number)
        if not tied:
            return best
        seed = 0
        for bits in np.ascontiguousarray(self._made(row), np.float64).view(np.int64).tolist():
            seed ^= bits >> 6
        total = 0.0
        for number in listed:
            total += self.shares[number]
        drawn, reached = _draw(seed), 0.0
        for number in listed:
            reached += self.shares[number] / total if total else float("nan")
            if drawn <= reached:
                return number
        # The shares were rounded down, or are 0: the last 32 bits of the hash choose one of the best classes.
        low = (seed + (1 << 31)) % (1 << 32) - (1 << 31)
        left = abs(low) % (tied + 1) * (1 if low >= 0 else -1)
        equal = np.flatnonzero(scores == scores[best])
        return int(equal[max(left, 0)])

    def _made(self, row: FloatArray) -> FloatArray:
        """The library's columns for a row, float64[features]. An unlisted category is treated as missing."""
        if not self.ones:
            return row
        made = []
        for feature, code, count in self.ones:
            x = float(row[feature])
            made.append(x if code < 0 else float((math.floor(x) if 0 <= x < count else count) == code))
        return np.array(made)

    def may_stray(self, wanted: int) -> bool:
        """True if the class `wanted` may be predicted although it is not among the best classes."""
        return wanted == 0 or wanted < len(self.shares) - 2


@dataclass(frozen=True)
class CutShares(Ties):
    """Predicts the second of two classes if the second score's share of the sum of both scores reaches a cut-off t.

    An equivalent condition: That is, (1 - t) * the second score >= t * the first score. `corrections` holds the factors that
    correct these scores for balanced classes. The share is rounded, so if its last digits decide, the class is undecided.
    """

    cut: Fraction
    corrections: tuple[Fraction, Fraction] = (Fraction(1), Fraction(1))

    @property
    def coarse(self) -> Fraction:
        """The relative rounding error of the share, as one score's lead over another; it grows as the cut-off approaches 1."""
        return 1 + 1 / (1 - self.cut)

    @property
    def factors(self) -> tuple[Fraction, ...]:
        """The factor by which each class's score is multiplied before the comparison."""
        one, two = self.corrections
        return self.cut * one, (1 - self.cut) * two

    def choose(self, scores: FloatArray, row: FloatArray) -> int:  # noqa: ARG002 - as `Ties.choose`
        """The class for `scores`, float64[2], which does not depend on the row; the first class if both scores are 0."""
        one, two = (Fraction(float(score)) * weight for score, weight in zip(scores, self.factors, strict=True))
        return int(two >= one and two > 0)


def _draw(seed: int) -> float:
    """`new Random(seed).nextDouble()`."""
    steps = _steps((seed ^ _MULTIPLIER) & _MASK)
    return float(((next(steps) >> 22) << 27) + (next(steps) >> 21)) * 2.0**-53


def _steps(state: int) -> Iterator[int]:
    while True:
        state = (state * _MULTIPLIER + _ADDED) & _MASK
        yield state
