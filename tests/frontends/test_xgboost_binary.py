"""XGBoost's old binary files, written here from the JSON of a trained booster, compared with predictions of the library."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost

from treesens.errors import ModelError
from treesens.frontends.registry import UnforeseenError, load

_RNG = np.random.default_rng(3)
X = _RNG.random((120, 3)).round(2)
X[::7, 1] = np.nan
Y = (X[:, 0] * 2.9).astype(int)
KINDS: dict[str, dict[str, Any]] = {
    "regression": {"objective": "reg:squarederror", "base_score": 0.25},
    "logistic": {"objective": "binary:logistic", "base_score": 0.5},
    "poisson": {"objective": "count:poisson", "base_score": 2.0},
    "classes": {"objective": "multi:softprob", "num_class": 3, "base_score": 0.5},
    "dart": {"objective": "reg:squarederror", "booster": "dart", "rate_drop": 0.5, "base_score": 0.5},
}


def trained(kind: str) -> xgboost.Booster:
    label = Y > 0 if kind == "logistic" else Y
    return xgboost.train({"max_depth": 3, "seed": 1, **KINDS[kind]}, xgboost.DMatrix(X, label=label), 4)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def binary(booster: xgboost.Booster, version: tuple[int, int], base: float, head: bytes = b"binf") -> bytes:
    """The file that a version up to 2.1 would write for a booster with scalar leaves."""
    learner = json.loads(booster.save_raw("json"))["learner"]
    given = learner["gradient_booster"]
    model = given.get("gbtree", given)["model"]
    param, trees = learner["learner_model_param"], model["trees"]
    classes, features = int(param["num_class"]), int(param["num_feature"])
    late = version >= (1, 7)
    data = head + struct.pack("<fI7i100x", base, features, classes, 1, 0, *version, int(late), int(late))
    data += text(learner["objective"]["name"]) + text(given["name"])
    data += struct.pack("<2i8xq2i128x", len(trees), 1, 0, max(classes, 1), 0)
    for tree in trees:
        size = len(tree["left_children"])
        data += struct.pack("<6i124x", 1, size, 0, 0, features, 0)
        for n in range(size):
            up, split = tree["parents"][n], tree["split_indices"][n] | tree["default_left"][n] << 31
            parent = -1 if up == 2**31 - 1 else up - (2**31 if tree["left_children"][up] == n else 0)
            left, right = tree["left_children"][n], tree["right_children"][n]
            data += struct.pack("<3iIf", parent, left, right, split, tree["split_conditions"][n])
        for n in range(size):
            facts = (tree[key][n] for key in ("loss_changes", "sum_hessian", "base_weights"))
            data += struct.pack("<3fi", *facts, 0)
    data += struct.pack(f"<{len(trees)}i", *model["tree_info"])
    if given["name"] == "dart":
        data += struct.pack(f"<Q{len(trees)}f", len(trees), *given["weight_drop"])
    return data + struct.pack("<Q", 1) + text("best_iteration") + text("1")


@pytest.mark.filterwarnings("ignore:.*before XGBoost 1.6")
@pytest.mark.parametrize("version", [(0, 0), (1, 0), (1, 7), (2, 1)])
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_those_of_the_library(kind: str, version: tuple[int, int], tmp_path: Path) -> None:
    booster, path = trained(kind), tmp_path / "old.model"
    # Before 1.0, the margin was stored, which is the logarithm for Poisson, and 0 for a probability of 1/2.
    base = KINDS[kind]["base_score"]
    early = {"logistic": 0.0, "poisson": float(np.log(np.float32(2)))}
    stored = early.get(kind, base) if version[0] == 0 else base
    path.write_bytes(binary(booster, version, stored, b"" if version < (1, 3) else b"binf"))
    model = load(path)
    want = booster.predict(xgboost.DMatrix(X), output_margin=True).reshape(len(X), -1)
    assert np.array_equal(model.ensemble.margins_emulated(X), want)
    assert np.array_equal(model.margins(X), want)
    assert model.ensemble.source.format == "xgboost-binary"
    if version >= (1, 7):
        first = booster.predict(xgboost.DMatrix(X), output_margin=True, iteration_range=(0, 2)).reshape(len(X), -1)
        assert np.array_equal(load(path, "xgboost:best").margins(X), first)


def test_files_that_are_cut_off_or_damaged_are_refused_or_read(tmp_path: Path) -> None:
    whole, path = binary(trained("dart"), (1, 7), 0.5), tmp_path / "old.model"
    for end in range(150, len(whole) - 1, 41):
        path.write_bytes(whole[:end])
        with pytest.raises(ModelError):
            load(path)
    rng = np.random.default_rng(1)
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[int(rng.integers(4, len(whole)))] = int(rng.integers(256))
        path.write_bytes(damaged)
        try:
            load(path)
        except UnforeseenError:
            raise
        except ModelError:
            continue


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"gbtree", b"linear", "booster `linear` is not supported"),
        (b"reg:squarederror", b"reg:squarederrox", "objective `reg:squarederrox` is not supported"),
        (struct.pack("<2i", 1, 7), struct.pack("<2i", 3, 7), "version 3.7 is not known"),
    ],
)
def test_other_models_are_refused_by_name(old: bytes, new: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "old.model").write_bytes(binary(trained("regression"), (1, 7), 0.25).replace(old, new, 1))
    with pytest.raises(ModelError, match=message):
        load(tmp_path / "old.model")


@pytest.mark.filterwarnings("ignore:.*before XGBoost 1.6")
def test_json_of_the_first_versions(tmp_path: Path) -> None:
    booster, path = trained("regression"), tmp_path / "model.json"
    document = json.loads(booster.save_raw("json"))
    document["version"] = [1, 0, 2]
    document["learner"]["learner_model_param"]["base_score"] = "2.5E-1"
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        for key in ("categories", "categories_nodes", "categories_segments", "categories_sizes", "split_type"):
            del tree[key]
        tree["leaf_child_counts"] = [0] * len(tree["left_children"])
    path.write_text(json.dumps(document))
    want = booster.predict(xgboost.DMatrix(X), output_margin=True).reshape(len(X), -1)
    assert np.array_equal(load(path).margins(X), want)
    assert np.array_equal(load(path).ensemble.margins_emulated(X), want)
