"""A link: the probability of the second class is (1 + s / (1 + |s|)) / 2 of the score s, which any rational number inverts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble
from treesens.compiler.query.bounds import LogRational
from treesens.links import Link


@dataclass(frozen=True)
class Softsign(Link):
    name = "softsign"
    is_probability = True

    @property
    def rises(self) -> bool:
        return True

    def predict(self, ensemble: Ensemble, scores: NDArray[Any]) -> NDArray[Any]:
        """The probabilities as the library computes them, for the replay of answers."""
        return np.asarray((1 + scores / (1 + np.abs(scores))) / 2)

    def probability_of(self, ensemble: Ensemble, wanted: int) -> tuple[int, bool]:
        """Prediction 1 is the probability of the second class; that of the first one is 1 minus it."""
        return 1, wanted == 0

    def least_score(self, number: Fraction, *, strict: bool) -> LogRational | bool:
        """The score at which the probability is `number`: what makes `prob(P) >= c` one linear row."""
        share = 2 * number - 1
        return LogRational(share / (1 - abs(share))) if abs(share) < 1 else number <= 0

    def flatness(self, score: float) -> float:
        """1 / slope: how far the score has to move, at most, for the probability to move by one."""
        return 2 * (1 + abs(score)) ** 2
