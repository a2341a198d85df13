"""`treesens diff` as a command; what it finds is compared with the library in tests/extensions/studies/test_difference.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.corpus import regressed
from tests.extensions.studies.grids import two_classes

xgboost = pytest.importorskip("xgboost")


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with two versions of a booster and their table, and both models."""
    folder = tmp_path_factory.mktemp("diff")
    frame = two_classes("xgboost").frame
    target = (frame["p"] + frame["q"] > 5).astype(int)
    frame.to_csv(folder / "d.csv", index=False)
    models = []
    for name, trees in (("old", 5), ("new", 7)):
        models.append(xgboost.XGBClassifier(n_estimators=trees, max_depth=3).fit(frame, target))
        models[-1].save_model(folder / f"{name}.json")
    return folder, frame, *models


def test_the_command(versions: Any, treesens: Callable[..., Any]) -> None:
    folder, frame, old, new = versions
    changed = int((old.predict(frame) != new.predict(frame)).sum())
    about = [folder / "old.json", folder / "new.json", "--data", folder / "d.csv", "-t", "20"]
    done = treesens("diff", *about, "--json")
    assert done.code == 0
    assert done.record["data"]["changed"] == changed
    shown = treesens("diff", *about, "--fail-on", "different")
    assert shown.code == 10
    assert f"{changed} of 90 rows change" in shown.out
    same = treesens("diff", folder / "old.json", folder / "old.json", "--fail-on", "different")
    assert same.code == 0
    assert "equal: proved" in same.out
    extra = treesens("diff", folder / "old.json", folder / "new.json", folder / "d.csv")
    assert extra.code == 1
    assert f"help: name a table with --data {folder / 'd.csv'}" in extra.err


def test_rows_that_rounding_alone_tells_apart(
    tmp_path_factory: pytest.TempPathFactory, treesens: Callable[..., Any]
) -> None:
    """XGBoost adds the base margin first, ONNX last: the two files are one model, and the two libraries print other floats."""
    helper = pytest.importorskip("onnx").helper
    runtime = pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp("export")
    rng = np.random.default_rng(1)
    rows = rng.random((200, 2)).astype(np.float32)
    made = regressed(rows, rows.sum(axis=1) ** 3, 40, 1, path=folder / "m.json", base_score=0.3)
    trees = json.loads(made.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    cells: dict[str, list[Any]] = {name: [] for name in ("tree", "node", "feature", "mode", "value", "yes", "no")}
    leaves: list[tuple[int, int, float]] = []
    for t, tree in enumerate(trees):
        for n, left in enumerate(tree["left_children"]):
            inner, right = left >= 0, tree["right_children"][n]
            line = (t, n, tree["split_indices"][n] if inner else 0, "BRANCH_LT" if inner else "LEAF")
            ends = (tree["split_conditions"][n] if inner else 0.0, left if inner else 0, right if inner else 0)
            for name, cell in zip(cells, (*line, *ends), strict=True):
                cells[name].append(cell)
            if not inner:
                leaves.append((t, n, tree["split_conditions"][n]))
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, base_values=[float(np.float32(0.3))],
        nodes_treeids=cells["tree"], nodes_nodeids=cells["node"], nodes_featureids=cells["feature"],
        nodes_modes=cells["mode"], nodes_values=cells["value"], nodes_truenodeids=cells["yes"],
        nodes_falsenodeids=cells["no"], target_treeids=[t for t, _, _ in leaves], target_ids=[0] * len(leaves),
        target_nodeids=[n for _, n, _ in leaves], target_weights=[w for _, _, w in leaves],
    )  # fmt: skip
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, [None, 2])], [helper.make_tensor_value_info("y", 1, None)]
    )
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
    (folder / "m.onnx").write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    frame = pd.DataFrame(rows, columns=["f0", "f1"])
    frame.to_csv(folder / "d.csv", index=False)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # several threads add partial sums
    session = runtime.InferenceSession(folder / "m.onnx", options)
    apart = np.abs(made.predict(xgboost.DMatrix(rows)) - session.run(None, {"x": rows})[0][:, 0])
    assert 0 < np.count_nonzero(apart) < 200
    about = [folder / "m.json", folder / "m.onnx", "--data", folder / "d.csv"]
    data = treesens("diff", *about, "--json").record["data"]
    assert (data["changed"], data["rounded"]) == (0, np.count_nonzero(apart))
    assert data["largest_rounding"] == pytest.approx(apart.max(), rel=1e-6)
    assert data["largest_difference"] == 0
    done = treesens("diff", *about, "--fail-on", "rows")
    assert done.code == 0
    assert "0 of 200 rows change" in done.out
    assert "differ only by rounding" in " ".join(done.out.split())
