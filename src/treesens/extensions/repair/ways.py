"""How leaves keep a pair of inputs from breaking a promise: one of several linear limits, each of which suffices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.model import Ensemble
from treesens.extensions.repair.pairs import Climber, Pairs
from treesens.extensions.repair.program import ROOM, Variables


class Ways:
    """Limits form @ values <= limit of the leaves for pairs of one question.

    A pair on both sides of a decision breaks the promise. It does not if the higher score stays below the one side, or if the
    lower score stays above the other side: the way that is less broken is taken, among those that the leaves which do not ask
    for the features keep. So all limits have these leaves in common, and what lies between two points that keep them keeps
    them too. If only differences count (a swing), the difference of the two scores is limited.
    """

    def __init__(self, variables: Variables, climber: Climber, ensemble: Ensemble) -> None:
        self.variables, self.climber, self.ensemble = variables, climber, ensemble

    def of(self, pairs: Pairs, values: FloatArray, mean: FloatArray) -> Iterator[tuple[FloatArray, float]]:
        """The limit of each pair, for leaves float64[variables] that are to change, and `mean` that ask for no feature."""
        asking = self.climber.asking
        room = ROOM * asking.limit
        highs, lows = self._forms(pairs.high), self._forms(pairs.low)
        for (high, up), (low, down) in zip(highs, lows, strict=True):
            found: list[tuple[float, FloatArray, float]] = []
            if asking.sides is not None:
                top, bottom = asking.sides[0] - room - up, asking.sides[1] + room - down
                if high @ mean <= top:
                    found.append((float(high @ values - top), high, top))
                if low @ mean >= bottom:
                    found.append((float(bottom - low @ values), -low, -bottom))
            if found:
                _, form, limit = min(found, key=lambda one: one[0])
                yield form, limit
            else:
                yield high - low, asking.limit - room - (up - down)

    def _forms(self, rows: FloatArray) -> Iterator[tuple[FloatArray, float]]:
        """The scores of rows float64[rows, features] as linear forms in the variables, each with its constant."""
        variables, weights = self.variables, self.climber.weights
        scores, original = self.climber.scores(self.ensemble, rows), variables.original
        columns = variables.columns(variables.forest.rows(rows))
        for reached, score in zip(columns.variable, scores, strict=True):
            form = np.zeros(variables.count)
            np.add.at(form, reached, weights[columns.output])
            yield form, float(score - form @ original)
