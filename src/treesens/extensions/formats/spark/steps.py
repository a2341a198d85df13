"""Steps before trees: monotone functions of a number, in Spark's arithmetic (3 and 4); splits are moved before these steps.

Scalers multiply by a rounded quotient: `StandardScalerModel` (x - mean) * (1 / deviation), `MaxAbsScalerModel` x * (1 /
largest), `MinMaxScalerModel` (x - least) * (width / range) + min. Java fuses no operations.

A split after such steps is equivalent to a split on the number. A split on buckets, some of which go left and some right,
becomes several successive splits. The subtrees are copied for each run of buckets, because every node of a tree has one parent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import largest_true
from treesens.errors import ModelError
from treesens.frontends.columns import Nodes

Float64 = NDArray[np.float64]

_MOST_NODES = 4_000_000


class Operation(Enum):
    """Operations on a number and a constant."""

    SUBTRACT = "-"
    MULTIPLY = "*"
    ADD = "+"
    FILL = "if it is missing"
    ABOVE = ">"
    BUCKET = "the bucket"


@dataclass(frozen=True)
class Step:
    """An operation with its constant; `edges` separate buckets. For buckets, the constant is the bucket of missing numbers."""

    operation: Operation
    constant: float
    edges: tuple[float, ...] = ()

    @property
    def rises(self) -> bool:
        """True if the step never decreases and is not constant; a column that was constant in training is multiplied by 0."""
        if self.operation is Operation.BUCKET:
            return True
        return bool(np.isfinite(self.constant)) and (self.operation is not Operation.MULTIPLY or self.constant > 0)

    @property
    def levels(self) -> int:
        """The number of different results, which are the integers from 0 on; 0 if the step may return any number."""
        return {Operation.ABOVE: 2, Operation.BUCKET: len(self.edges) + 1}.get(self.operation, 0)

    def after(self, x: Float64) -> Float64:
        """The results of the step for numbers `x`, float64[n]."""
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
    """The results of all steps, in order, for numbers `x`, float64[n]."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for step in steps:
            x = step.after(x)
    return x


def thresholds_before(steps: Sequence[Step], thresholds: Float64) -> Float64:
    """For each of `thresholds`, float64[n], the greatest number whose image is at most the threshold, or -infinity."""
    return largest_true(lambda x: np.asarray(follow(steps, x) <= thresholds), len(thresholds))


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of numbers that go left or right: `left[k]` is True if numbers above all earlier cuts and up to `cuts[k]` go left.

    `cuts`, float64[n], ascends; the last entry of `left`, bool[n + 1], is for larger numbers, and `missing_left` for NaN.
    """

    cuts: NDArray[np.float64]
    left: NDArray[np.bool_]
    missing_left: bool


def unfold(nodes: Nodes, runs: Mapping[int, Runs], place: str) -> Nodes:
    """The nodes, with each node in `runs` replaced by several thresholds. Raises ModelError if there are too many nodes."""
    source: list[int] = []  # for each new node, the old node
    left: list[int] = []
    right: list[int] = []
    threshold: list[float] = []
    default_left: list[bool] = []
    offset = [0]
    for start in nodes.tree_offset[:-1].tolist():
        first = offset[-1]
        # The stack has an old node, its next cut, and the parent's side.
        waiting = [(start, 0, -1, False)]
        while waiting:
            node, number, parent, is_right = waiting.pop()
            own = runs.get(node)
            sides = start + int(nodes.left[node]), start + int(nodes.right[node])
            if own is not None and number == len(own.cuts):
                waiting.append((sides[0 if own.left[number] else 1], 0, parent, is_right))
                continue
            new = len(source)
            if new > _MOST_NODES:
                raise ModelError(
                    f"splits on buckets need more than {_MOST_NODES} nodes", place=place, remedy="use fewer buckets"
                )
            if parent >= 0:
                (right if is_right else left)[parent] = new - first
            source.append(node)
            left.append(-1)
            right.append(-1)
            threshold.append(float(nodes.threshold[node]) if own is None else float(own.cuts[number]))
            default_left.append(bool(nodes.default_left[node]))
            if own is not None:
                default_left[-1] = own.missing_left == bool(own.left[number])
                waiting += [(node, number + 1, new, True), (sides[0 if own.left[number] else 1], 0, new, False)]
            elif nodes.feature[node] >= 0:
                waiting += [(sides[1], 0, new, True), (sides[0], 0, new, False)]
        offset.append(len(source))
    old = np.array(source, np.int64)
    return Nodes(
        tree_offset=np.array(offset, np.int64),
        left=np.array(left, np.int64),
        right=np.array(right, np.int64),
        feature=nodes.feature[old],
        threshold=np.array(threshold),
        default_left=np.array(default_left),
        leaf_value=nodes.leaf_value[old],
        leaf_id=None if nodes.leaf_id is None else nodes.leaf_id[old],
        left_sets={new: nodes.left_sets[node] for new, node in enumerate(source) if node in nodes.left_sets},
    )
