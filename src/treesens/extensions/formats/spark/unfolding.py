"""Splits by buckets of a number, of which some go left and some right, as several splits of the number one after the other.

What stands below such a split is there once for each run of buckets that goes to it, because nodes of a tree have one parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treesens.errors import ModelError
from treesens.frontends.columns import Nodes

_MOST_NODES = 4_000_000


@dataclass(frozen=True, eq=False)
class Runs:
    """Numbers up to `cuts` float64[n], ascending, go left if `left` bool[n + 1] says so, numbers beyond as its last entry says.

    `missing_left`: so does a missing number.
    """

    cuts: NDArray[np.float64]
    left: NDArray[np.bool_]
    missing_left: bool


def unfold(nodes: Nodes, runs: Mapping[int, Runs], place: str) -> Nodes:
    """The nodes, with several thresholds in place of each node in `runs`. ModelError if there are too many of them."""
    source: list[int] = []  # the old node of each new one
    left: list[int] = []
    right: list[int] = []
    threshold: list[float] = []
    default_left: list[bool] = []
    offset = [0]
    for start in nodes.tree_offset[:-1].tolist():
        first = offset[-1]
        # An old node, which of its cuts is next, and whose side it is.
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
                    f"splits by buckets become more than {_MOST_NODES} nodes", place=place, remedy="use fewer buckets"
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
