"""Writes the neutral trees file: any model as thresholds, categories and leaves, independent of library formats.

x goes left if `x < test`, or if `test` is a list that contains the category x. All thresholds are strict cuts of the model's
number type, so that nothing is rounded; leaves contain their exact weighted values, as floats or as fractions in text form.

If splits treat zeros as missing, a zero takes the branch of missing values, wherever the threshold is. The values that go left
at such a split do not form an interval, so the split is written as two cuts around zero, with a copy of the split on each side.
On a path from the root to a leaf, each feature needs these cuts only once.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np

from treesens.compiler.model.ensemble import Ensemble
from treesens.compiler.model.kinds import LEARNT
from treesens.compiler.model.numbers import check_closed
from treesens.errors import ModelError

Node = list[Any]

Side = Literal["below", "zero", "above"]

MOST_NODES: Final = 100_000
"""Maximum number of nodes of one tree, with all copies."""


def trees_document(ensemble: Ensemble) -> dict[str, Any]:
    """The JSON object. Raises ModelError if splits that treat zeros as missing need too many nodes."""
    check_closed(ensemble)
    return {
        "format": "treesens-trees",
        "version": 1,
        "made_from": _origin(ensemble),
        "number": ensemble.number_type.value,
        "features": list(ensemble.feature_names),
        "base": [str(Fraction(float(b))) for b in ensemble.base],
        "average": ensemble.average,
        "trees": [_tree(ensemble, t) for t in range(ensemble.n_trees)],
    }


def _origin(ensemble: Ensemble) -> dict[str, str]:
    source = ensemble.source
    return {"format": "rows"} if source.format == LEARNT else {"format": source.format, "sha256": source.sha256}


def trees_file(ensemble: Ensemble) -> bytes:
    """The content of the file; always the same bytes for the same model."""
    return json.dumps(trees_document(ensemble), separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _tree(ensemble: Ensemble, tree: int) -> dict[str, Any]:
    start, end = int(ensemble.tree_offset[tree]), int(ensemble.tree_offset[tree + 1])
    output = int(ensemble.tree_output[tree])
    outputs = [output] if output >= 0 else list(range(ensemble.n_outputs))
    if ensemble.zero_apart[start:end].any():
        return {"outputs": outputs, "nodes": _ZeroWriter(ensemble, start).tree()}
    return {"outputs": outputs, "nodes": [_node(ensemble, n, start) for n in range(start, end)]}


def _node(ensemble: Ensemble, node: int, start: int) -> list[Any]:
    leaf = int(ensemble.node_leaf[node])
    if leaf >= 0:
        return [[_number(x) for x in ensemble.contribution(leaf)]]
    feature, missing_left = int(ensemble.node_feature[node]), bool(ensemble.default_left[node])
    left, right = int(ensemble.left[node]) - start, int(ensemble.right[node]) - start
    row = int(ensemble.category_set[node])
    if row < 0:
        cut = float(ensemble.node_cut[node])
        return [feature, cut + 0.0 if math.isfinite(cut) else str(cut), missing_left, left, right]
    codes = ensemble.set_codes[ensemble.set_offset[row] : ensemble.set_offset[row + 1]].tolist()
    listed = ensemble.features[feature].categories
    if listed not in codes:
        return [feature, codes, missing_left, left, right]
    # Unlisted codes go left, so the written set has the codes that go right.
    return [feature, sorted(set(range(listed)) - set(codes)), not missing_left, right, left]


def _number(value: Fraction) -> float | str:
    near = float(value)
    return near if np.isfinite(near) and Fraction(near) == value else str(value)


class _ZeroWriter:
    """Writes into `found` the nodes of a tree whose splits treat zeros as missing, parents first.

    Children are queued with their position in the parent, and with the known side of zero of each feature.
    """

    def __init__(self, ensemble: Ensemble, root: int) -> None:
        self.ensemble, self.root = ensemble, root
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
        written = _node(ensemble, node, self.root)
        if len(written) > 1:
            self.waiting += [(self.root + written[at], sides, written, at) for at in (4, 3)]
        self.found.append(written)

    def _goes_left(self, node: int, side: Side) -> bool | None:
        """True if all values on a side go left; None if the threshold separates these values. Missing values count as zeros."""
        cut = float(self.ensemble.node_cut[node])
        if side == "zero":
            return bool(self.ensemble.default_left[node])
        if side == "below":
            return None if cut < self.low else True
        return None if cut > self.high else False

    def _apart(self, node: int, feature: int, sides: dict[int, Side]) -> None:
        """Adds a cut below zero whose right child is a cut above zero; below both, the node is repeated with known sides."""
        low: Node = [feature, self.low, False, 0, len(self.found) + 1]
        high: Node = [feature, self.high, True, 0, 0]
        self.found += [low, high]
        places: list[tuple[Side, Node, int]] = [("above", high, 4), ("zero", high, 3), ("below", low, 3)]
        self.waiting += [(node, {**sides, feature: side}, parent, at) for side, parent, at in places]
