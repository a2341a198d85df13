"""Parts of one question: boxes of cells, made by repeated splitting in two.

This is cube and conquer (Heule, Kullmann, Wieringa and Biere, HVC 2011).

A part is cut in the feature whose splits in the box change leaf values the most, at the weighted middle of these splits.

`Conquest` is the state of a question in parts: the tree of cuts with open and closed parts, and the best answer. A journal has
one line for every closed or split part, under the key of the question.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, frozen
from treesens.compiler.model import CellEnsemble
from treesens.compiler.query.query import CellSet, Query, SameExcept
from treesens.compiler.result import Proof
from treesens.values.verify import Witness

AT_ONCE = 16
"""Maximum number of parts that replace an undecided part; a large number reduces the time lost on undecided parts."""

PROOFS = frozenset(str(proof) for proof in Proof)


@dataclass(frozen=True)
class Cut:
    """Constrains a feature's cell at a point: at least `cell` if `upper`, otherwise below it. Missing is an upper cell."""

    point: int
    feature: int
    cell: int
    upper: bool

    def mask(self, n_cells: int) -> BoolArray:
        """The cells of the cut, bool[n_cells]."""
        return frozen((np.arange(n_cells) >= self.cell) == self.upper, bool)


@dataclass(frozen=True)
class Part:
    """A box: the inputs that satisfy all cuts."""

    cuts: tuple[Cut, ...] = ()

    def halves(self, point: int, feature: int, cell: int) -> tuple[Part, Part]:
        """The two halves of the part: the cells below `cell`, and the cells from `cell` on."""
        low, high = (Part((*self.cuts, Cut(point, feature, cell, upper))) for upper in (False, True))
        return low, high

    def plain(self) -> list[list[int]]:
        """The part in the journal's form."""
        return [[cut.point, cut.feature, cut.cell, int(cut.upper)] for cut in self.cuts]

    @staticmethod
    def of_plain(cuts: list[list[int]]) -> Part:
        """The part from its form in the journal."""
        return Part(tuple(Cut(p, f, cell, bool(upper)) for p, f, cell, upper in cuts))


def within(query: Query, part: Part) -> Query:
    """The question restricted to the inputs of a part."""
    grid = query.space.grid
    sets = [CellSet(cut.point, cut.feature, cut.mask(grid[cut.feature].n_cells)) for cut in part.cuts]
    return replace(query, constraints=(*query.constraints, *sets))


class Splitter:
    """Splits parts of one question."""

    def __init__(self, query: Query) -> None:
        links = [c for c in query.constraints if isinstance(c, SameExcept)]
        every = frozenset(range(len(query.space.names)))
        varied = frozenset[int](every).intersection(*(link.varied for link in links))
        self.shared = every - varied if links and len(query.points) == 2 else frozenset[int]()
        legal = [np.flatnonzero(mask) for mask in query.space.legal]
        points = len(query.points)
        low = np.array([cells[0] if len(cells) else 0 for cells in legal], np.int32)
        high = np.array([cells[-1] if len(cells) else 0 for cells in legal], np.int32)
        self.low, self.high = np.tile(low, (points, 1)), np.tile(high, (points, 1))
        self.trees = [_Splits(query.models[point.model]) for point in query.points]

    def split(self, part: Part) -> tuple[Any, list[Part]]:
        """The tree of cuts that splits the part, [point, feature, cell, left, right] with parts as leaves, and its leaves.

        If the part cannot be split, the tree is the part itself.
        """
        return self._split(part, AT_ONCE)

    def _split(self, part: Part, count: int) -> tuple[Any, list[Part]]:
        place = self._place(part) if count > 1 else None
        if place is None:
            return part, [part]
        sides = [self._split(side, count // 2) for side in part.halves(*place)]
        return [*place, *(tree for tree, _ in sides)], [leaf for _, leaves in sides for leaf in leaves]

    def _place(self, part: Part) -> tuple[int, int, int] | None:
        """The best cut: a point, a feature, and the first cell of the upper side. None if no split cuts the part."""
        low, high = self.low.copy(), self.high.copy()
        for cut in part.cuts:
            for p in range(len(low)) if cut.feature in self.shared else (cut.point,):
                side, choose = (low, max) if cut.upper else (high, min)
                side[p, cut.feature] = choose(int(side[p, cut.feature]), cut.cell if cut.upper else cut.cell - 1)
        found: dict[tuple[int, int], tuple[Int32Array, FloatArray]] = {}
        for p, trees in enumerate(self.trees):
            feature, cell, weight = trees.left(low[p], high[p])
            for f in np.unique(feature).tolist():
                at = 0 if f in self.shared else p
                cells, weights = cell[feature == f], weight[feature == f]
                if (at, f) in found:
                    before = found[at, f]
                    cells, weights = np.concatenate((before[0], cells)), np.concatenate((before[1], weights))
                found[at, f] = cells, weights
        if not found:
            return None
        (point, feature_number), (cells, weights) = max(found.items(), key=lambda one: (float(one[1][1].sum()), one[0]))
        order = np.argsort(cells, kind="stable")
        total = np.cumsum(weights[order])
        middle = int(np.searchsorted(total, total[-1] / 2))
        return point, feature_number, int(cells[order[min(middle, len(order) - 1)]])


class _Splits:
    """The ordered splits of a model, with the spread of the leaf values below each split."""

    def __init__(self, model: CellEnsemble) -> None:
        ensemble = model.ensemble
        self.feature, self.cut, self.left_of, self.right_of = model.feature, model.cut, model.left, model.right
        self.inner = np.flatnonzero(model.leaf < 0)
        self.ordered = (model.leaf < 0) & (model.category_set < 0)
        self.roots = model.root
        leaves = np.asarray(ensemble.leaf_value * ensemble.tree_weight[ensemble.leaf_tree][:, None], np.float64)
        least, most = np.zeros((len(model.leaf), leaves.shape[1])), np.zeros((len(model.leaf), leaves.shape[1]))
        at_leaf = model.leaf >= 0
        least[at_leaf] = most[at_leaf] = leaves[model.leaf[at_leaf]]
        self.levels = self._levels()
        for nodes in reversed(self.levels):
            inner = nodes[model.leaf[nodes] < 0]
            left, right = model.left[inner], model.right[inner]
            least[inner] = np.minimum(least[left], least[right])
            most[inner] = np.maximum(most[left], most[right])
        self.weight = (most - least).sum(axis=1)

    def _levels(self) -> list[Int32Array]:
        """The nodes by depth."""
        found, nodes = [], np.asarray(self.roots, np.int32)
        inner = np.zeros(len(self.feature), bool)
        inner[self.inner] = True
        while len(nodes):
            found.append(nodes)
            below = nodes[inner[nodes]]
            nodes = np.concatenate((self.left_of[below], self.right_of[below])).astype(np.int32)
        return found

    def left(self, low: Int32Array, high: Int32Array) -> tuple[Int32Array, Int32Array, FloatArray]:
        """The splits that a box reaches and that divide the box, as three arrays: feature, first cell on the right, weight."""
        reached = np.zeros(len(self.feature), bool)
        reached[self.roots] = True
        found = []
        for nodes in self.levels:
            mine = nodes[reached[nodes]]
            ordered = mine[self.ordered[mine]]
            f, cut = self.feature[ordered], self.cut[ordered]
            goes_left, goes_right = low[f] <= cut, high[f] > cut
            reached[self.left_of[ordered[goes_left]]] = True
            reached[self.right_of[ordered[goes_right]]] = True
            inner = mine[~self.ordered[mine]]
            inner = inner[np.isin(inner, self.inner)]
            reached[self.left_of[inner]] = reached[self.right_of[inner]] = True
            found.append(ordered[goes_left & goes_right])
        nodes = np.concatenate(found) if found else np.zeros(0, np.int32)
        return self.feature[nodes], (self.cut[nodes] + 1).astype(np.int32), self.weight[nodes]


@dataclass
class Conquest:
    """The state of a question in parts."""

    tree: Any = field(default_factory=Part)
    open: deque[Part] = field(default_factory=deque)
    closed: dict[Part, Proof] = field(default_factory=dict)
    best: Witness | None = None
    again: list[Part] = field(default_factory=list)
    """Parts whose workers were lost in the current round."""
    losses: dict[Part, int] = field(default_factory=dict)
    lost: str = ""
    asked: int = 0
    cpu: float = 0.0

    def leaves(self) -> list[Part]:
        """All parts, from left to right."""
        found, stack = [], [self.tree]
        while stack:
            node = stack.pop()
            if isinstance(node, Part):
                found.append(node)
            else:
                stack += [node[4], node[3]]
        return found


def with_part_cut(tree: Any, part: Part, by: Any) -> Any:
    """Replaces a part of the tree by the tree `by`, in place; returns the tree."""
    if isinstance(tree, Part):
        return by
    node = tree
    for cut in part.cuts[:-1]:
        node = node[4 if cut.upper else 3]
    node[4 if part.cuts[-1].upper else 3] = by
    return tree


def checked_line(line: dict[str, Any]) -> dict[str, Any]:
    """The line of a journal, unchanged. Raises ValueError if a part in the line is not valid."""
    cuts = line["part"]
    whole = isinstance(cuts, list) and all(
        isinstance(cut, list) and len(cut) == 4 and all(type(x) is int and x >= 0 for x in cut) for cut in cuts
    )
    if (
        not whole
        or line["did"] not in ("none", "cut", "found")
        or (line["did"] == "none" and line["proof"] not in PROOFS)
        or (line["did"] == "found" and not _are_points(line["values"]))
    ):
        raise ValueError("not a line of a journal")
    return line


def _are_points(values: Any) -> bool:
    """True for a list that holds, for each point, a list of numbers (None for missing values), all of one length."""
    if not isinstance(values, list) or not all(isinstance(point, list) for point in values):
        return False
    numbers = all(x is None or type(x) in (int, float) for point in values for x in point)
    return numbers and len({len(point) for point in values}) == 1
