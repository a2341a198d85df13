"""A tree that a reader makes node by node, the root first; children are filled in when they are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treesens.frontends.columns import Nodes


class Growing:
    """Columns of nodes (see `Nodes`) that grow; leaves hold `width` values."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.left: list[int] = []
        self.right: list[int] = []
        self.sets: dict[int, NDArray[np.bool_]] = {}
        self._feature: list[int] = []
        self._threshold: list[float] = []
        self._default_left: list[bool] = []
        self._value: list[Sequence[float] | NDArray[np.float64]] = []
        self._leaf_id: list[int] = []

    def __len__(self) -> int:
        return len(self.left)

    def inner(self, feature: int, threshold: float, *, missing_left: bool) -> int:
        """A node that asks a feature; who calls sets its children, and its set if it asks a category."""
        return self._add(feature, threshold, missing_left, np.zeros(self.width), -1)

    def leaf(self, values: Sequence[float] | NDArray[np.float64], leaf_id: int = -1) -> int:
        """A leaf; `leaf_id` is the number that the library gives it, if it gives any."""
        return self._add(-1, 0.0, False, values, leaf_id)

    def _add(
        self,
        feature: int,
        threshold: float,
        missing_left: bool,
        values: Sequence[float] | NDArray[np.float64],
        leaf_id: int,
    ) -> int:
        self.left.append(-1)
        self.right.append(-1)
        self._feature.append(feature)
        self._threshold.append(threshold)
        self._default_left.append(missing_left)
        self._value.append(values)
        self._leaf_id.append(leaf_id)
        return len(self.left) - 1

    def nodes(self) -> Nodes:
        """The tree as it is now."""
        feature, named = np.array(self._feature, dtype=np.int64), np.array(self._leaf_id, dtype=np.int64)
        return Nodes(
            tree_offset=np.array([0, len(feature)]),
            left=np.array(self.left, dtype=np.int64),
            right=np.array(self.right, dtype=np.int64),
            feature=feature,
            threshold=np.array(self._threshold, dtype=np.float64),
            default_left=np.array(self._default_left, dtype=np.bool_),
            leaf_value=np.array(self._value, dtype=np.float64).reshape(len(feature), self.width),
            leaf_id=named if (named[feature < 0] >= 0).all() else None,
            left_sets=self.sets,
        )
