"""The weighted mean of several models' probabilities, each with its own scores (`compiler/model/blend.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble
from treesens.compiler.query.query import Summand
from treesens.errors import InternalError
from treesens.links.link import (
    ClassRule,
    Link,
    Operator,
    Refusal,
    Require,
    ScorePlace,
    second_class_rules,
)


@dataclass(frozen=True)
class Mean(Link):
    """One probability per class (for two classes, of the second one) of `Ensemble.blend`."""

    name = "blended"
    advice = (
        "prob(P), class(P), `sensitive m to {f} gap g`, `gap`, `why`, `reasons`, `robust`: it averages the "
        "probabilities of several models. `repair` and shares of inputs need one score"
    )
    is_probability = True
    averages = True
    several = "averages the probabilities of several"
    prefers_gaps = True
    leads_by_margin, leads_by_factor = False, True

    def predict(self, ensemble: Ensemble, scores: NDArray[Any]) -> NDArray[Any]:
        assert ensemble.blend is not None
        return ensemble.blend.probabilities(scores.astype(np.float64), len(ensemble.classes))

    def validate(self, ensemble: Ensemble, require: Require) -> None:
        require_members(ensemble, require)

    def probability_of(self, ensemble: Ensemble, wanted: int) -> tuple[int, bool]:
        return (1, True) if len(ensemble.classes) == 2 and wanted == 0 else (wanted, False)

    def refuse_margin(self, point: str) -> Refusal:
        return "the model predicts the mean of what several models predict, and has no margin", f"write `prob({point})`"

    def summands(self, place: ScorePlace, output: int, factor: Fraction) -> tuple[Summand, ...]:
        blend, first = place.model.blend, place.first
        assert blend is not None
        result: list[Summand] = []
        for member, share in zip(blend.members, blend.shares, strict=True):
            own = member.link.summands(ScorePlace(place.point, place.whole, member, first), output, factor * share)
            if own is None:
                raise InternalError("a mean of models that predict no probabilities")
            result += own
            first += member.n_outputs
        return tuple(result)

    def class_rules(self, ensemble: Ensemble, wanted: int, factor: Fraction) -> tuple[ClassRule, ...]:
        if len(ensemble.classes) == 2:
            return second_class_rules(ensemble.cutoff, wanted, factor)
        rules = []
        for other in range(len(ensemble.classes)):
            if other != wanted:
                first: Operator = ">=" if wanted < other or factor > 1 else ">"
                rules.append(ClassRule({wanted: Fraction(1), other: -factor}, first, Fraction(0)))
        return tuple(rules)


def require_members(ensemble: Ensemble, require: Require) -> None:
    """Checks that an ensemble has the members that its link combines."""
    require(ensemble.blend is not None, "a link of several models needs them")
    require(not ensemble.ranks_scores, "the scores of several models are not compared")
