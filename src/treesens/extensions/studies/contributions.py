"""TreeSHAP values for the features of a row, shown next to a proof.

The package `shap` computes the values (interventional TreeSHAP: Lundberg et al., Nature Machine Intelligence 2, 2020), with
rows of the table as the background. TreeSHAP divides among the features the difference between the score of a row and the mean
score of the background, but proves nothing about other inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.floats import next_down_array
from treesens.compiler.base.packages import imported
from treesens.compiler.model import Ensemble
from treesens.errors import ModelError, UsageError

MOST_BACKGROUND = 100
"""Number of evenly spread rows that represent the table: shap uses no more background rows."""


class Contributions:
    """TreeSHAP for one ensemble, with background rows float64[rows, features] as stored by the model."""

    def __init__(self, ensemble: Ensemble, background: FloatArray) -> None:
        if any(feature.categories for feature in ensemble.features):
            raise ModelError("shap does not support features with categories", remedy="leave `shap` out")
        if ensemble.zero_missing.any():
            raise ModelError("shap does not support zeros that mean missing values", remedy="leave `shap` out")
        known = background[~np.isnan(background).any(axis=1)]
        if not len(known):
            raise UsageError("the table has no row without a missing value", remedy="leave `shap` out")
        spread = np.linspace(0, len(known) - 1, min(len(known), MOST_BACKGROUND)).astype(int)
        self._ensemble = ensemble
        self._background = self._read(known[np.unique(spread)])
        self._explainers: dict[int, Any] = {}

    def of(self, row: FloatArray, output: int) -> FloatArray:
        """The contribution of every feature to the raw score `output` of a row, float64[features]."""
        if output not in self._explainers:
            self._explainers[output] = self._explainer(output)
        values = self._explainers[output].shap_values(self._read(row[None]), check_additivity=False)
        return np.asarray(values, np.float64).reshape(-1)

    def _explainer(self, output: int) -> Any:
        shap = imported("shap", "TreeSHAP needs shap")
        trees = {
            "trees": [self._tree(t, output) for t in range(self._ensemble.n_trees) if self._has(t, output)],
            "base_offset": float(self._ensemble.base[output]),
            "internal_dtype": np.float64,
            "input_dtype": np.float64,
        }
        return shap.TreeExplainer(trees, data=self._background, feature_perturbation="interventional")

    def _has(self, tree: int, output: int) -> bool:
        return int(self._ensemble.tree_output[tree]) in (-1, output)

    def _tree(self, tree: int, output: int) -> dict[str, Any]:
        """A tree in the format of shap, where an input goes left if its value is at most the threshold."""
        e = self._ensemble
        start, end = int(e.tree_offset[tree]), int(e.tree_offset[tree + 1])
        leaf = e.node_leaf[start:end] >= 0
        left, right = (np.where(leaf, -1, side[start:end] - start) for side in (e.left, e.right))
        cut = np.where(leaf, 0.0, e.node_cut[start:end])
        column = output if int(e.tree_output[tree]) < 0 else 0
        value = np.where(leaf, e.leaf_value[np.maximum(e.node_leaf[start:end], 0), column], 0.0)
        return {
            "children_left": left.astype(np.int32),
            "children_right": right.astype(np.int32),
            "children_default": np.where(e.default_left[start:end], left, right).astype(np.int32),
            "features": np.where(leaf, -1, e.node_feature[start:end]).astype(np.int32),
            "thresholds": next_down_array(cut, e.number_type),
            "values": (value * (e.tree_weight[tree] / e.average)).reshape(-1, 1),
            "node_sample_weight": np.ones(end - start),
        }

    def _read(self, rows: FloatArray) -> FloatArray:
        return self._ensemble.number_type.cast(rows).astype(np.float64)
