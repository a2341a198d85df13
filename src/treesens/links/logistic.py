"""The logistic link: p = 1 / (1 + e**-score), so that p >= c if and only if score >= ln(c / (1 - c))."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.query import Summand
from treesens.compiler.query.shares import Exponent, Probability
from treesens.links.link import Link, Refusal, ScorePlace, refused_probability


@dataclass(frozen=True)
class Logistic(Link):
    """A sigmoid of each score: the probability of the second of two classes, or, for more classes, of each against the rest."""

    name = "logistic"
    is_probability = True
    leads_by_factor = True
    has_log_loss = True

    @property
    def rises(self) -> bool:
        return True

    @property
    def varies_by_library(self) -> bool:
        return True

    def predict(self, ensemble: Ensemble, scores: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        one = scores.dtype.type(1)
        return np.asarray(one / (one + np.exp(np.negative(scores))))

    def score_at(self, prediction: float) -> float:
        return float(np.log(prediction) - np.log1p(-prediction))

    def probability_of(self, ensemble: Ensemble, wanted: int) -> tuple[int, bool] | None:
        return (1, wanted == 0) if ensemble.n_outputs == 1 else None

    def least_score(self, number: Fraction, *, strict: bool) -> LogRational:  # noqa: ARG002 - one score for both
        return LogRational.ln(number / (1 - number))

    def refuse_number(self, number: Fraction) -> Refusal | None:
        return None if 0 < number < 1 else refused_probability(number)

    def summands(self, place: ScorePlace, output: int, factor: Fraction) -> tuple[Summand, ...]:  # noqa: ARG002
        return (Probability(factor, (Exponent((place.term(0, Fraction(-1)),)),)),)
