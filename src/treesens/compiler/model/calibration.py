"""Calibrations: from a model's score to a probability fitted afterwards, by Platt's sigmoid, an isotonic function, or odds.

Sigmoid (Platt, *Probabilistic outputs for support vector machines*, 1999): p = 1 / (1 + exp(slope * f + intercept)) with a
negative slope. Isotonic: the piecewise linear function through the knots, constant beyond the first and the last one. Odds: a
model trained on other class shares has its odds multiplied by a number (Elkan, *The foundations of cost-sensitive learning*,
2001). All of them are non-decreasing in f, the model's margin or its uncalibrated probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray


@dataclass(frozen=True)
class Sigmoid:
    """p = 1 / (1 + exp(slope * f + intercept)), slope below 0; if `of_probability`, f is 1 / (1 + exp(-margin))."""

    slope: float
    intercept: float
    of_probability: bool = False

    def after(self, scores: NDArray[Any]) -> FloatArray:
        """The probabilities of f, in float64 like the library's."""
        with np.errstate(over="ignore"):
            return np.asarray(1 / (1 + np.exp(self.slope * scores.astype(np.float64) + self.intercept)))


@dataclass(frozen=True)
class Isotonic:
    """p is linear between knots: `scores` ascend, `values` never fall; `single` if the library stores float32."""

    scores: tuple[float, ...]
    values: tuple[float, ...]
    of_probability: bool = False
    single: bool = False

    @cached_property
    def exact(self) -> tuple[list[Fraction], list[Fraction]]:
        """Scores and values of the knots as exact numbers; values as written, 0.3 and not the double below it."""
        return [Fraction(s) for s in self.scores], [Fraction(repr(v)) for v in self.values]

    def after(self, scores: NDArray[Any]) -> FloatArray:
        """The library's probabilities of f: numpy's interpolation, rounded to the type of the knots."""
        kind = np.float32 if self.single else np.float64
        found = np.interp(scores.astype(kind), self.scores, self.values)
        return np.asarray(found.astype(kind), np.float64)


@dataclass(frozen=True)
class Odds:
    """p = second * f / (first * (1 - f) + second * f) of a probability f of the second class from 0 to 1; factors above 0."""

    first: float
    second: float
    of_probability: bool = False

    @cached_property
    def ratio(self) -> Fraction:
        """The factor of the odds of the second class."""
        return Fraction(self.second) / Fraction(self.first)

    def after(self, scores: NDArray[Any]) -> FloatArray:
        """The probabilities of f: products, a sum and a quotient in float64."""
        f = scores.astype(np.float64)
        one, two = (1 - f) * self.first, f * self.second
        return np.asarray(two / (one + two))


Learnt: TypeAlias = Sigmoid | Isotonic
Calibration: TypeAlias = Learnt | Odds
