"""The softmax: p_k = e**score_k / (the sum of e**score_j), so that p_k >= g p_j if and only if score_k - score_j >= ln g."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble
from treesens.compiler.query.query import Summand
from treesens.compiler.query.shares import Exponent, Probability
from treesens.links.link import Link, Refusal, ScorePlace, refused_probability


@dataclass(frozen=True)
class Softmax(Link):
    """The share of each class in a sum of exponentials."""

    name = "softmax"
    is_probability = True
    is_share = True
    ratios_are_exponential = True
    leads_by_factor = True
    has_log_loss = True

    def predict(self, ensemble: Ensemble, scores: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))

    def score_of(self, output: int) -> int:
        return output

    def probability_of(self, ensemble: Ensemble, wanted: int) -> tuple[int, bool]:  # noqa: ARG002
        return wanted, False

    def refuse_number(self, number: Fraction) -> Refusal | None:
        return None if 0 < number < 1 else refused_probability(number)

    def summands(self, place: ScorePlace, output: int, factor: Fraction) -> tuple[Summand, ...]:
        mine = place.term(output, Fraction(-1))
        others = (i for i in range(place.model.n_outputs) if i != output)
        return (Probability(factor, tuple(Exponent((place.term(i, Fraction(1)), mine)) for i in others)),)
