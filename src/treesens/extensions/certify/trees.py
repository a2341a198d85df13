"""The neutral trees file: any model as thresholds, categories and leaves, for readers that know no library's format.

`x < test` goes left, or if the test is a list: a category that is in it. All thresholds are strict cuts of the model's number
type, so that nothing is rounded; leaves hold their exact weighted values, as floats or as texts of fractions.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np

from treesens.compiler.model.ensemble import Ensemble
from treesens.compiler.model.kinds import LEARNT
from treesens.compiler.model.numbers import check_closed
from treesens.extensions.certify.zero_splits import nodes_by_zero


def trees_document(ensemble: Ensemble) -> dict[str, Any]:
    """The JSON object. ModelError if splits that treat zeros as missing make too many nodes of their cuts."""
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
    """The content of the file; the same bytes for the same model."""
    return json.dumps(trees_document(ensemble), separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _tree(ensemble: Ensemble, tree: int) -> dict[str, Any]:
    start, end = int(ensemble.tree_offset[tree]), int(ensemble.tree_offset[tree + 1])
    output = int(ensemble.tree_output[tree])
    outputs = [output] if output >= 0 else list(range(ensemble.n_outputs))
    if ensemble.zero_apart[start:end].any():
        return {"outputs": outputs, "nodes": nodes_by_zero(ensemble, start, lambda node: _node(ensemble, node, start))}
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
    # Codes that the feature does not list go left: those that go right are the set.
    return [feature, sorted(set(range(listed)) - set(codes)), not missing_left, right, left]


def _number(value: Fraction) -> float | str:
    near = float(value)
    return near if np.isfinite(near) and Fraction(near) == value else str(value)
