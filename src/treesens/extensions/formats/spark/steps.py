"""What stages of Spark make of a number: functions that never fall, with the arithmetic of Spark (3 and 4).

Scalers multiply by a quotient that they have rounded before: `StandardScalerModel` (x - mean) * (1 / deviation),
`MaxAbsScalerModel` x * (1 / largest), `MinMaxScalerModel` (x - least) * (width / range) + min. Java fuses no operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.bisection import largest_true

Float64 = NDArray[np.float64]


class Operation(Enum):
    """What is done with a number and a constant."""

    SUBTRACT = "-"
    MULTIPLY = "*"
    ADD = "+"
    FILL = "if it is missing"
    ABOVE = ">"
    BUCKET = "the bucket"


@dataclass(frozen=True)
class Step:
    """One operation with its constant; of a bucket that is what a missing number becomes, and `edges` part the buckets."""

    operation: Operation
    constant: float
    edges: tuple[float, ...] = ()

    @property
    def rises(self) -> bool:
        """Whether the step never falls, and says something: a column that was constant in training is multiplied by 0."""
        if self.operation is Operation.BUCKET:
            return True
        return bool(np.isfinite(self.constant)) and (self.operation is not Operation.MULTIPLY or self.constant > 0)

    @property
    def levels(self) -> int:
        """How many whole numbers, from 0 on, the step makes of numbers; 0 if there is no end of them."""
        return {Operation.ABOVE: 2, Operation.BUCKET: len(self.edges) + 1}.get(self.operation, 0)

    def after(self, x: Float64) -> Float64:
        """The step of numbers float64[n]."""
        c = np.float64(self.constant)
        match self.operation:
            case Operation.SUBTRACT:
                return x - c
            case Operation.MULTIPLY:
                return x * c
            case Operation.ADD:
                return x + c
            case Operation.FILL:
                return np.where(np.isnan(x), c, x)
            case Operation.ABOVE:
                return np.where(x > c, 1.0, 0.0)
            case Operation.BUCKET:
                return np.where(np.isnan(x), c, np.searchsorted(self.edges, x, side="right").astype(np.float64))


def follow(steps: Sequence[Step], x: Float64) -> Float64:
    """All steps of numbers float64[n], one after the other."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for step in steps:
            x = step.after(x)
    return x


def thresholds_before(steps: Sequence[Step], thresholds: Float64) -> Float64:
    """The greatest number of which the steps are at most a threshold, for each of float64[n]; -infinity if there is none."""
    return largest_true(lambda x: np.asarray(follow(steps, x) <= thresholds), len(thresholds))
