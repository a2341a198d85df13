"""Converts terms of additive models to trees: a term is a table of scores over the bins of one or a few features.

An inner node splits on one feature. The first node separates missing values; the nodes below it halve the remaining bins, so
that a term over f features with b bins each has depth f (1 + log2 b). Generalised additive models with pairs: Lou, Caruana,
Gehrke and Hooker (KDD 2013).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treesens.frontends.columns import Growing, Nodes

MAX_LEAVES = 1 << 22
"""Maximum number of leaves of all terms; larger models are not explainable anyway."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """The bins of a numeric feature: bin k + 1 contains x if k cuts are at most x; bin 0 is for missing values."""

    feature: int
    cuts: NDArray[np.float64]

    @property
    def bins(self) -> Sequence[int]:
        """The bins of the values that are present, in ascending order."""
        return range(1, len(self.cuts) + 2)


@dataclass(frozen=True, eq=False)
class Categories:
    """The bins of a feature with codes 0..n-1 are `bin_of[code]`; the last entry is the bin of all other codes.

    Bin 0 is for missing values.
    """

    feature: int
    bin_of: NDArray[np.int64]

    @property
    def bins(self) -> Sequence[int]:
        """The bins of the values that are present."""
        return sorted(set(self.bin_of.tolist()))


Axis = Numbers | Categories


def leaves_of(axes: Sequence[Axis]) -> int:
    """The number of leaves of a term's tree."""
    return math.prod(len(axis.bins) + 1 for axis in axes)


def term_tree(axes: Sequence[Axis], scores: NDArray[np.float64]) -> Nodes:
    """The tree of a term with `scores`, [bins of the first axis, .., W], including the bins of missing and other values."""
    return _Growing(axes, scores).nodes()


class _Growing(Growing):
    """Builds the tree of one term."""

    def __init__(self, axes: Sequence[Axis], scores: NDArray[np.float64]) -> None:
        super().__init__(scores.shape[-1])
        self.axes, self.scores = axes, scores
        self._grow(())

    def _grow(self, place: tuple[int, ...]) -> int:
        """Grows the subtree below the bins in `place`: a split on the next axis, or a leaf."""
        if len(place) == len(self.axes):
            return self.leaf(self.scores[place])
        axis = self.axes[len(place)]
        # No number lies below -infinity, and no code is in the empty set: only missing values go left.
        root = self.inner(axis.feature, 0.0 if isinstance(axis, Categories) else -math.inf, missing_left=True)
        if isinstance(axis, Categories):
            self.sets[root] = np.zeros(len(axis.bin_of), dtype=np.bool_)
        self.left[root] = self._grow((*place, 0))
        self.right[root] = self._halve(place, axis.bins)
        return root

    def _halve(self, place: tuple[int, ...], bins: Sequence[int]) -> int:
        if len(bins) == 1:
            return self._grow((*place, bins[0]))
        axis, half = self.axes[len(place)], len(bins) // 2
        cut = 0.0 if isinstance(axis, Categories) else float(axis.cuts[bins[half] - 2])
        node = self.inner(axis.feature, cut, missing_left=False)
        if isinstance(axis, Categories):
            self.sets[node] = np.isin(axis.bin_of, bins[:half])
        self.left[node] = self._halve(place, bins[:half])
        self.right[node] = self._halve(place, bins[half:])
        return node


def labels_of_codes(categories: Mapping[str, int]) -> tuple[list[str], NDArray[np.int64]]:
    """The names of categories in the order of their bins, and the bin of each category."""
    names = sorted(categories, key=lambda name: (categories[name], name))
    return names, np.array([categories[name] for name in names], dtype=np.int64)
