"""Terms of additive models as trees: a table of scores over the bins of one feature, or of a few, is a tree of that table.

An inner node asks one feature. The first one sends missing values away, those below it halve the bins that are left, so that a
term over f features of b bins has depth f (1 + log2 b). Generalised additive models with pairs: Lou, Caruana, Gehrke and Hooker
(KDD 2013).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treesens.frontends.columns import Nodes

MAX_LEAVES = 1 << 22
"""Of all terms together; more is no model that anybody explains."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """The bins of a numeric feature: x is in bin k + 1 if k cuts are at most x; bin 0 holds missing values."""

    feature: int
    cuts: NDArray[np.float64]

    @property
    def bins(self) -> Sequence[int]:
        """The bins of the values that are present, in ascending order."""
        return range(1, len(self.cuts) + 2)


@dataclass(frozen=True, eq=False)
class Categories:
    """The bins of a feature with codes 0..n-1 are `bin_of[code]`, the last entry is for all other codes.

    Bin 0 holds missing values.
    """

    feature: int
    bin_of: NDArray[np.int64]

    @property
    def bins(self) -> Sequence[int]:
        """The bins of the values that are present."""
        return sorted(set(self.bin_of.tolist()))


Axis = Numbers | Categories


def leaves_of(axes: Sequence[Axis]) -> int:
    """How many leaves the tree of a term has."""
    return math.prod(len(axis.bins) + 1 for axis in axes)


def term_tree(axes: Sequence[Axis], scores: NDArray[np.float64]) -> Nodes:
    """The tree of a term; `scores` [bins of the first axis, .., W] with the last bin of numbers and categories as in `axes`."""
    return _Growing(axes, scores).nodes()


class _Growing:
    """One tree while it grows; nodes are numbered in the order in which they are made, the root first."""

    def __init__(self, axes: Sequence[Axis], scores: NDArray[np.float64]) -> None:
        self.axes, self.scores = axes, scores
        self.left: list[int] = []
        self.right: list[int] = []
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.default_left: list[bool] = []
        self.value: list[NDArray[np.float64]] = []
        self.sets: dict[int, NDArray[np.bool_]] = {}

    def nodes(self) -> Nodes:
        self._grow(())
        return Nodes(
            tree_offset=np.array([0, len(self.left)]),
            left=np.array(self.left, dtype=np.int64),
            right=np.array(self.right, dtype=np.int64),
            feature=np.array(self.feature, dtype=np.int64),
            threshold=np.array(self.threshold, dtype=np.float64),
            default_left=np.array(self.default_left, dtype=np.bool_),
            leaf_value=np.array(self.value, dtype=np.float64).reshape(len(self.left), -1),
            left_sets=self.sets,
        )

    def _node(self, feature: int, threshold: float, missing_left: bool) -> int:
        self.left.append(-1)
        self.right.append(-1)
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.default_left.append(missing_left)
        self.value.append(np.zeros(self.scores.shape[-1]))
        return len(self.left) - 1

    def _grow(self, place: tuple[int, ...]) -> int:
        """What is below the bins that are fixed: the next axis, or the leaf."""
        if len(place) == len(self.axes):
            leaf = self._node(-1, 0.0, False)
            self.value[leaf] = self.scores[place]
            return leaf
        axis = self.axes[len(place)]
        # No number lies below -infinity, and no code is in the empty set: missing values alone go left.
        root = self._node(axis.feature, -math.inf, True)
        if isinstance(axis, Categories):
            self.threshold[root] = 0.0
            self.sets[root] = np.zeros(len(axis.bin_of), dtype=np.bool_)
        self.left[root] = self._grow((*place, 0))
        self.right[root] = self._halve(place, axis.bins)
        return root

    def _halve(self, place: tuple[int, ...], bins: Sequence[int]) -> int:
        if len(bins) == 1:
            return self._grow((*place, bins[0]))
        axis, half = self.axes[len(place)], len(bins) // 2
        node = self._node(axis.feature, 0.0, False)
        if isinstance(axis, Categories):
            self.sets[node] = np.isin(axis.bin_of, bins[:half])
        else:
            self.threshold[node] = float(axis.cuts[bins[half] - 2])
        self.left[node] = self._halve(place, bins[:half])
        self.right[node] = self._halve(place, bins[half:])
        return node


def labels_of_codes(categories: Mapping[str, int]) -> tuple[list[str], NDArray[np.int64]]:
    """The names of categories in the order of their bins, and the bin of each."""
    names = sorted(categories, key=lambda name: (categories[name], name))
    return names, np.array([categories[name] for name in names], dtype=np.int64)
