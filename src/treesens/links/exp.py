"""The exponential link of counts and positive amounts: value = e**score, so that value >= c if and only if score >= ln c."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble
from treesens.compiler.query.bounds import LogRational
from treesens.links.link import Link, Refusal, decimal


@dataclass(frozen=True)
class Exp(Link):
    """The exponential of the score (Poisson, gamma and Tweedie regression)."""

    name = "exp"
    grows = True
    ratios_are_exponential = True

    @property
    def rises(self) -> bool:
        return True

    def predict(self, ensemble: Ensemble, scores: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        return np.asarray(np.exp(scores))

    def least_score(self, number: Fraction, *, strict: bool) -> LogRational:  # noqa: ARG002 - one score for both
        return LogRational.ln(number)

    def refuse_number(self, number: Fraction) -> Refusal | None:
        if number > 0:
            return None
        return f"the model predicts positive values only, never {decimal(number)}", "use a positive number"
