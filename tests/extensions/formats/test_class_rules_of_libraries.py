"""Third set, faults 1, 2a to 2d, 3, 12 and 13: state beside the sums of trees decided a class or a value, and nobody read it.

CatBoost's probability threshold; onnxruntime's rules for one and two scores, and its transforms of regressors; CrossEntropy of
CatBoost; the class of a regressor of two targets.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.frontends import load

catboost = pytest.importorskip("catboost")
xgboost = pytest.importorskip("xgboost")
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.fault


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=60).round(2), rng.integers(0, 3, 60)]).astype(float)
    return x, (x[:, 0] + rng.normal(size=60) > 0).astype(int)


def fitted(**options: Any) -> Any:
    settings = {"iterations": 3, "depth": 2, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    x, y = data()
    return catboost.CatBoostClassifier(**settings, **options).fit(x, y)


def verdicts(path: Path, questions: Sequence[str], declarations: str = "") -> list[str]:
    asked = "\n".join(f"query q{i}: find a such that {q}" for i, q in enumerate(questions))
    file = path.with_suffix(".sens")
    file.write_text(f'model m from "{path.name}"\n{declarations}\n{asked}\n')
    found = []
    for replay in ("library", "emulated"):
        results = ts.check(file, replay=replay)
        found.append([str(results[f"q{i}"].verdict) for i in range(len(questions))])
    assert found[0] == found[1]
    return found[0]


# --- 1: CatBoost's threshold -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [0.3, 0.62])
def test_the_class_is_decided_at_the_threshold_of_the_file(cut: float, tmp_path: Path) -> None:
    model = fitted()
    model.set_probability_threshold(cut)
    path = tmp_path / "m.json"
    model.save_model(str(path), format="json")
    x, _ = data()
    own = model.predict(x)
    assert set(own[(model.predict_proba(x)[:, 1] - 0.5) * (cut - 0.5) > 0]) <= {0, 1}
    loaded = load(path)
    assert (loaded.ensemble.predicted_classes(loaded.ensemble.margins_emulated(x)) == own).all()
    conformance.check(loaded, rows=50).raise_if_wrong()
    between = f"prob(a) >= {min(cut, 0.5)}; prob(a) <= {max(cut, 0.5)}"
    expected = ["found", "none"] if cut < 0.5 else ["none", "found"]
    assert verdicts(path, [f"class(a) = 1; {between}", f"class(a) = 0; {between}"]) == expected


def test_at_the_threshold_itself_the_library_decides(tmp_path: Path) -> None:
    """CatBoost compares the raw score with -log(1 / p - 1): the bias is put there, and one float above."""
    fitted().save_model(str(tmp_path / "m.json"), format="json")
    document = json.loads((tmp_path / "m.json").read_text())
    for tree in document["oblivious_trees"]:
        tree["leaf_values"] = [0.0] * len(tree["leaf_values"])
    document["model_info"]["binclass_probability_threshold"] = "0.3"
    at = -np.log(1 / 0.3 - 1)
    for bias in (at, float(np.nextafter(at, 9)), float(np.nextafter(at, -9))):
        document["scale_and_bias"] = [1, [bias]]
        (tmp_path / "m.json").write_text(json.dumps(document))
        library = catboost.CatBoostClassifier().load_model(str(tmp_path / "m.json"), format="json")
        library.set_scale_and_bias(1.0, bias)  # the reader of JSON rounds it
        own = int(library.predict([[0.0, 0.0]])[0])
        expected = ["found", "none"] if own else ["none", "found"]
        assert verdicts(tmp_path / "m.json", ["class(a) = 1", "class(a) = 0"]) == expected


@pytest.mark.parametrize("cut", ["0", "1", "-1", "nan", "1_0", "x", None])
def test_a_threshold_that_is_none_is_refused(cut: str | None, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    fitted().save_model(str(path), format="json")
    document = json.loads(path.read_text())
    document["model_info"]["binclass_probability_threshold"] = cut
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match="threshold"):
        load(path)


def test_cross_entropy_is_read(tmp_path: Path) -> None:
    x, y = data()
    options = {"loss_function": "CrossEntropy", "iterations": 2, "depth": 1, "verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(**options).fit(x, y * 0.8 + 0.1)
    path = tmp_path / "m.json"
    model.save_model(str(path), format="json")
    loaded = load(path)
    conformance.check(loaded, rows=50).raise_if_wrong()
    assert (loaded.ensemble.predicted_classes(loaded.ensemble.margins_emulated(x)) == model.predict(x)).all()


# --- 2 and 3: ONNX -----------------------------------------------------------------------------------------------------------


def graph(
    path: Path,
    ids: Sequence[int],
    left: Sequence[float],
    right: Sequence[float],
    transform: str = "NONE",
    *,
    classes: int = 2,
) -> Path:
    """A stump on x <= 1/2 whose leaves have weights for these classes; of a regressor if there are no classes."""
    prefix, k = "class" if classes else "target", len(ids)
    given: dict[str, Any] = {
        "nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0] * 3,
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.5, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "post_transform": transform,
        f"{prefix}_treeids": [0] * (2 * k), f"{prefix}_nodeids": [1] * k + [2] * k, f"{prefix}_ids": [*ids, *ids],
        f"{prefix}_weights": [*left, *right],
    }  # fmt: skip
    given |= {"classlabels_int64s": list(range(classes))} if classes else {"n_targets": max(ids) + 1}
    outputs = [onnx.helper.make_tensor_value_info("y", 1, None)]
    outputs = [onnx.helper.make_tensor_value_info("l", 7, None), *outputs] if classes else outputs
    name = "TreeEnsembleClassifier" if classes else "TreeEnsembleRegressor"
    node = onnx.helper.make_node(name, ["x"], [o.name for o in outputs], domain="ai.onnx.ml", **given)
    made = onnx.helper.make_graph([node], "g", [onnx.helper.make_tensor_value_info("x", 1, [None, 1])], outputs)
    opsets = [onnx.helper.make_opsetid("", 15), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    path.write_bytes(onnx.helper.make_model(made, opset_imports=opsets, ir_version=8).SerializeToString())
    return path


def said(path: Path) -> list[np.ndarray]:
    """What onnxruntime says of 0 and 1."""
    session = onnxruntime.InferenceSession(str(path))
    return [np.asarray(o) for o in session.run(None, {"x": np.array([[0.0], [1.0]], np.float32)})]


@pytest.mark.parametrize(
    ("ids", "left", "right", "transform"),
    [
        ([0], [0.25], [0.4], "LOGISTIC"),  # 2a: no weight is negative, so the sum is compared with 1/2
        ([0], [0.25], [0.7], "LOGISTIC"),
        ([0], [-0.25], [0.4], "LOGISTIC"),
        ([0], [0.25], [0.7], "NONE"),
        ([0, 1], [0.75, 0.25], [0.6, 0.4], "NONE"),  # 2b: the second score above 0
        ([0, 1], [0.75, -0.25], [-0.6, -0.4], "LOGISTIC"),
        ([0, 1], [1.0, 0.5], [-0.5, -0.3], "SOFTMAX"),  # 2c
        ([1], [0.25], [0.7], "NONE"),  # 2d: only the second class has weights
        ([1], [-0.25], [0.2], "NONE"),
        ([1], [0.25], [0.7], "SOFTMAX"),
    ],
)
def test_the_label_is_that_of_onnxruntime(
    ids: list[int], left: list[float], right: list[float], transform: str, tmp_path: Path
) -> None:
    path = graph(tmp_path / "m.onnx", ids, left, right, transform)
    labels = said(path)[0].tolist()
    questions = [f"a.f0 = {x}; class(a) = {c}" for x in (0, 1) for c in (0, 1)]
    expected = ["found" if labels[x] == c else "none" for x in (0, 1) for c in (0, 1)]
    assert verdicts(path, questions, "feature f0: integer in [0, 1]") == expected
    conformance.check(load(path), rows=20).raise_if_wrong()


def test_labels_that_the_runtime_never_returns_are_refused(tmp_path: Path) -> None:
    path = graph(tmp_path / "m.onnx", [0, 1], [0.75, 0.25], [0.6, 0.4])
    model = onnx.load_model(str(path))
    next(a for a in model.graph.node[0].attribute if a.name == "classlabels_int64s").ints[:] = [5, 7]
    path.write_bytes(model.SerializeToString())
    assert set(said(path)[0].tolist()) <= {0, 1}
    with pytest.raises(ModelError, match="predicts 0 and 1 instead of 5 and 7"):
        load(path)


@pytest.mark.parametrize("transform", ["LOGISTIC", "SOFTMAX", "NONE"])
def test_a_regressor_of_one_target_has_no_transform(transform: str, tmp_path: Path) -> None:
    path = graph(tmp_path / "m.onnx", [0], [-2.0], [2.0], transform, classes=0)
    assert said(path)[0].ravel().tolist() == [-2.0, 2.0]
    assert verdicts(path, ["value(a) >= 1.99", "value(a) <= -1.99", "value(a) > 2"]) == ["found", "found", "none"]


# --- 13, and siblings ---------------------------------------------------------------------------------------------------------


def test_a_regressor_of_two_targets_has_no_class(tmp_path: Path) -> None:
    x, _ = data()
    path = tmp_path / "m.json"
    xgboost.XGBRegressor(n_estimators=2, max_depth=1).fit(x, np.stack([x[:, 0], -x[:, 0]], 1)).save_model(path)
    file = tmp_path / "q.sens"
    file.write_text('model m from "m.json"\nquery q: find a such that margin(a, 1) >= 0\n')
    record = ts.check(file)["q"].to_dict()
    assert "class" not in record["scores"]["a"]
    assert set(record["scores"]["a"]["margin"]) == {"0", "1"}


def test_the_wrapper_compares_raw_scores_with_one_half(tmp_path: Path) -> None:
    """XGBClassifier takes the raw score of `binary:logitraw` for a probability."""
    x, y = data()
    model = xgboost.XGBClassifier(objective="binary:logitraw", n_estimators=4, max_depth=3, base_score=0.3).fit(x, y)
    path = tmp_path / "m.json"
    model.save_model(path)
    raw = model.predict(x, output_margin=True)
    assert ((raw > 0) & (raw < 0.5)).any()
    loaded = load(path)
    assert (loaded.ensemble.predicted_classes(loaded.ensemble.margins_emulated(x)) == model.predict(x)).all()
    assert verdicts(path, ["class(a) = 1; margin(a) <= 0.4", "class(a) = 0; margin(a) >= 0.01"]) == ["none", "found"]


def test_a_reader_that_gets_the_rule_wrong_finds_nothing(tmp_path: Path) -> None:
    """Replay compares labels: with the threshold forgotten, the library does not confirm what is found, and the check fails."""
    from dataclasses import replace

    model = fitted()
    model.set_probability_threshold(0.3)
    right = load(model)
    wrong = replace(right, ensemble=replace(right.ensemble, decides_at=None, probability_cut=None))
    report = conformance.check(wrong, rows=50)
    assert not report.ok
    assert {m.what for m in report.mismatches} == {"class"}
