"""Small ONNX models that the tests convert from scikit-learn, and one written by hand with every mode of node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.frontends.trained_sklearn import BOOST, FOREST, TREES, ensemble, fitted, tree

pytest.importorskip("onnxruntime", reason="the tests compare with onnxruntime; pip install treesens[onnx]")
onnx = pytest.importorskip("onnx", reason="pip install treesens[onnx]")
skl2onnx = pytest.importorskip("skl2onnx", reason="the tests convert models with skl2onnx")


def converted(estimator: Any, label: str, **options: Any) -> Any:
    made = fitted(estimator, label, plain=True)
    kinds = [("x", skl2onnx.common.data_types.FloatTensorType([None, 5]))]
    return skl2onnx.to_onnx(made, initial_types=kinds, target_opset={"": 15, "ai.onnx.ml": 3}, options=options or None)


def by_hand() -> Any:
    """One tree with the four comparisons, values on both sides of a float, and missing values both ways."""
    modes = ["BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_LEQ", *["LEAF"] * 5]
    node = onnx.helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml",
        nodes_treeids=[0] * 9, nodes_nodeids=list(range(9)), nodes_featureids=[0, 1, 0, 1, *[0] * 5],
        nodes_modes=modes, nodes_values=[0.1, 0.0, 0.7, -2.5, *[0.0] * 5],
        nodes_truenodeids=[1, 3, 5, 7, *[0] * 5], nodes_falsenodeids=[2, 4, 6, 8, *[0] * 5],
        nodes_missing_value_tracks_true=[1, 0, 1, 0, *[0] * 5], nodes_hitrates=[1.0] * 9,
        target_treeids=[0] * 5, target_nodeids=[4, 5, 6, 7, 8], target_ids=[0] * 5,
        target_weights=[0.1, 0.2, 0.3, 0.4, 0.5], n_targets=1, base_values=[1.5], post_transform="NONE",
    )  # fmt: skip
    graph = onnx.helper.make_graph(
        [node], "g",
        [onnx.helper.make_tensor_value_info("x", 1, [None, 2])], [onnx.helper.make_tensor_value_info("y", 1, None)],
    )  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 15), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


MODELS: dict[str, Callable[[], Any]] = {
    "tree, two classes": lambda: converted(tree.DecisionTreeClassifier(**TREES), "two"),
    "tree, value": lambda: converted(tree.DecisionTreeRegressor(**TREES), "value"),
    "forest, two classes": lambda: converted(ensemble.RandomForestClassifier(**FOREST), "two"),
    "forest, four classes": lambda: converted(ensemble.RandomForestClassifier(**FOREST), "four"),
    "forest, value": lambda: converted(ensemble.RandomForestRegressor(**FOREST), "value"),
    "forest, values": lambda: converted(ensemble.RandomForestRegressor(**FOREST), "values"),
    "forest, many trees": lambda: converted(ensemble.RandomForestRegressor(**{**FOREST, "n_estimators": 120}), "value"),
    "boosting, two classes": lambda: converted(ensemble.GradientBoostingClassifier(**BOOST), "two"),
    "boosting, four classes": lambda: converted(ensemble.GradientBoostingClassifier(**BOOST), "four"),
    "boosting, value": lambda: converted(ensemble.GradientBoostingRegressor(**BOOST), "value"),
    "histogram, two classes": lambda: converted(ensemble.HistGradientBoostingClassifier(max_iter=6), "two"),
    "histogram, value": lambda: converted(ensemble.HistGradientBoostingRegressor(max_iter=6), "value"),
    "all modes": by_hand,
}
