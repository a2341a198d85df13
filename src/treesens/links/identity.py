"""The identity: scores are predictions. With one output per class, scores are probabilities, which forests average."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from treesens.compiler.query.query import Summand
from treesens.links.link import Link, ScorePlace


@dataclass(frozen=True)
class Identity(Link):
    """Predictions are scores."""

    name = "identity"
    is_linear = True

    def summands(self, place: ScorePlace, output: int, factor: Fraction) -> tuple[Summand, ...]:
        return (place.linear(output if place.model.n_outputs > 1 else 0, factor),)
