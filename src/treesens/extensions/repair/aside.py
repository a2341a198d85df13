"""Training rows that are set aside: what the best leaves of the other rows are worth on rows that they have not seen.

Few rows can be fitted by many leaves nearly exactly, and between these rows the scores are then worse than those of the blend.
So leaves are held near the blend, each as strongly as by so many rows (the ridge of Hoerl and Kennard, Technometrics 1970), and
rows that are set aside choose the strength.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.extensions.repair.program import Program
from treesens.extensions.studies.losses import losses

RIDGES = (3.0, 10.0, 30.0, 100.0, 300.0)
"""Strengths, in rows that reach one leaf alone."""
_KEPT = 0.5
"""Of what the best strength wins on rows set aside, the strength that is taken wins so much."""
_STEPS = 20


@dataclass(frozen=True, eq=False)
class Aside:
    """Rows set aside as a `program` that is only evaluated, and their labels float64[rows]."""

    program: Program
    labels: FloatArray

    def divergence(self, values: FloatArray) -> float:
        """What the leaves float64[variables] lose if labels are as the model expects them."""
        return self.program.expected(values)

    def losses(self, values: FloatArray) -> FloatArray:
        """The losses of the labels, float64[rows]."""
        return losses(self.program.name, self.program.margins(values), self.labels)

    def is_better(self, values: FloatArray, other: FloatArray) -> bool:
        """Whether leaves lose less than others by more than two standard errors of the difference."""
        won = self.losses(other) - self.losses(values)
        return bool(won.mean() > 2 * won.std() / np.sqrt(len(won)))


def strength(program: Program, aside: Aside, anchor: FloatArray, *, own: bool = True) -> FloatArray:
    """Sets the greatest ridge toward an anchor whose leaves keep half of what the best of the ridges wins on rows set aside;
    these leaves float64[variables]. Without `own` those of the copies alone move.

    A model that knows its training rows by heart is nearest to itself with a weak ridge even there; on new rows a strong one
    costs less.
    """
    before = aside.divergence(anchor)
    found, won = [anchor], [0.0]
    for ridge in RIDGES[::-1]:
        program.stay_near(anchor, ridge, own=own)
        found.append(program.solve(found[-1], _STEPS))
        won.append(before - aside.divergence(found[-1]))
    kept = next(i for i, gain in enumerate(won) if gain >= _KEPT * max(won))
    program.stay_near(anchor, RIDGES[::-1][max(0, kept - 1)], own=own)
    return found[kept]
