"""Splits that treat zeros as missing, as cuts alone: below zero, at zero, above zero.

What lies at zero goes the way of missing values, wherever the threshold is. Such a split sends no interval to the left, so
it is written as two cuts around zero, below which it stands once for each side. From the root to a leaf this happens once per
feature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from treesens.compiler.model.ensemble import Ensemble
from treesens.errors import ModelError

Node = list[Any]
Side = Literal["below", "zero", "above"]

MOST_NODES: Final = 100_000
"""Of one tree, with all its copies."""


def nodes_by_zero(ensemble: Ensemble, root: int, plain: Callable[[int], Node]) -> list[Node]:
    """The nodes of a tree, parents first. `plain` writes a node as it is, and numbers its children from the root."""
    return _Writer(ensemble, root, plain).tree()


class _Writer:
    """`found` are the nodes; children wait with the place where their parent names them, and the sides that are known."""

    def __init__(self, ensemble: Ensemble, root: int, plain: Callable[[int], Node]) -> None:
        self.ensemble, self.root, self.plain = ensemble, root, plain
        self.low, self.high = ensemble.zero_edges
        self.found: list[Node] = []
        self.waiting: list[tuple[int, dict[int, Side], Node | None, int]] = []

    def tree(self) -> list[Node]:
        self.waiting.append((self.root, {}, None, 0))
        while self.waiting:
            node, sides, parent, at = self.waiting.pop()
            if parent is not None:
                parent[at] = len(self.found)
            self._write(node, sides)
            if len(self.found) > MOST_NODES:
                raise ModelError(
                    "splits that treat zeros as missing make too many cuts",
                    place=self.ensemble.name,
                    remedy="train with zero_as_missing=false",
                )
        return self.found

    def _write(self, node: int, sides: dict[int, Side]) -> None:
        ensemble = self.ensemble
        while ensemble.node_leaf[node] < 0 and ensemble.zero_apart[node]:
            feature = int(ensemble.node_feature[node])
            if feature not in sides:
                self._apart(node, feature, sides)
                return
            left = self._goes_left(node, sides[feature])
            if left is None:
                break
            node = int(ensemble.left[node] if left else ensemble.right[node])
        written = self.plain(node)
        if len(written) > 1:
            self.waiting += [(self.root + written[at], sides, written, at) for at in (4, 3)]
        self.found.append(written)

    def _goes_left(self, node: int, side: Side) -> bool | None:
        """The way of all values on a side; None if the threshold parts them. Missing values are where zeros are."""
        cut = float(self.ensemble.node_cut[node])
        if side == "zero":
            return bool(self.ensemble.default_left[node])
        if side == "below":
            return None if cut < self.low else True
        return None if cut > self.high else False

    def _apart(self, node: int, feature: int, sides: dict[int, Side]) -> None:
        """A cut below the zeros, whose right side is a cut above them; each side is this node again, with its side known."""
        low: Node = [feature, self.low, False, 0, len(self.found) + 1]
        high: Node = [feature, self.high, True, 0, 0]
        self.found += [low, high]
        places: list[tuple[Side, Node, int]] = [("above", high, 4), ("zero", high, 3), ("below", low, 3)]
        self.waiting += [(node, {**sides, feature: side}, parent, at) for side, parent, at in places]
