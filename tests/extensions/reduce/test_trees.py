"""Reduced models are read by XGBoost, which gives the predictions that the trees left over must give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import boosted, margins_of
from treesens.errors import ModelError
from treesens.extensions.reduce.ddmin import Level
from treesens.extensions.reduce.trees import Part, XGBoostModel, read_trees
from treesens.frontends.registry import load

xgboost = pytest.importorskip("xgboost")


def trained(path: Path, seed: int, trees: int = 8, **options: Any) -> tuple[Any, XGBoostModel]:
    rng = np.random.default_rng(seed)
    table = rng.random((300, 4)).round(2)
    label = (table[:, 0] + table[:, 1] * table[:, 2] > 0.7).astype(int)
    if "num_class" in options:
        label = label + (table[:, 3] > 0.5)
    booster = boosted(table, label, trees, 3, names="abcd", path=path, **options)
    return booster, read_trees(load(path), path)


def loaded(model: XGBoostModel) -> Any:
    booster = xgboost.Booster()
    booster.load_model(bytearray(model.content))
    return booster


ROWS = np.random.default_rng(9).random((200, 4)).round(2)


@pytest.mark.parametrize("options", [{}, {"num_class": 3}, {"booster": "dart"}, {"num_parallel_tree": 2}])
def test_an_unchanged_model_predicts_the_same(options: dict[str, Any], tmp_path: Path) -> None:
    booster, model = trained(tmp_path / "m.json", 0, **options)
    np.testing.assert_array_equal(margins_of(loaded(model), ROWS), margins_of(booster, ROWS))


@pytest.mark.parametrize("seed", range(4))
def test_the_trees_left_over_add_up(seed: int, tmp_path: Path) -> None:
    booster, model = trained(tmp_path / "m.json", seed)
    gone = np.random.default_rng(seed).choice(8, 4, replace=False).tolist()
    data = xgboost.DMatrix(ROWS, feature_names=list("abcd"))
    single = [booster.predict(data, output_margin=True, iteration_range=(t, t + 1)).astype(float) for t in range(8)]
    mean = float(json.loads(model.content)["learner"]["learner_model_param"]["base_score"].strip("[]"))
    base = np.log(mean / (1 - mean))
    expected = base + sum(single[t] - base for t in range(8) if t not in gone)
    small = model.without_trees(gone)
    np.testing.assert_allclose(margins_of(loaded(small), ROWS), expected, atol=1e-5)
    assert load_again(small, tmp_path).n_trees == 4


def load_again(model: XGBoostModel, folder: Path) -> Any:
    (folder / "again.json").write_bytes(model.content)
    return load(folder / "again.json").ensemble


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_child_in_place_of_the_root_keeps_its_rows(side: str, tmp_path: Path) -> None:
    booster, model = trained(tmp_path / "m.json", 1)
    model = model.without_trees(range(1, 8))
    (_, root), (ensemble, level) = model.trees[0], (model.ensemble, levels(model, "subtrees")[side == "right"])
    small = level.applied(model, [root.node])
    goes_left = ROWS.astype(np.float32)[:, ensemble.node_feature[root.node]] < np.float32(root.value)
    rows = ROWS[goes_left == (side == "left")]
    assert len(rows)
    assert small.sizes()["leaves"] < model.sizes()["leaves"]
    booster = loaded(model)
    np.testing.assert_array_equal(margins_of(loaded(small), rows), margins_of(booster, rows))


def levels(model: XGBoostModel, name: str) -> list[Level]:
    return [level for level in (*model.coarse(), *model.fine()) if level.name == name]


@pytest.mark.parametrize("seed", range(6))
def test_every_edit_is_read_as_the_library_reads_it(seed: int, tmp_path: Path) -> None:
    """Random edits of every level: treesens and XGBoost give the same margins for random rows, and each edit simplifies."""
    rng = np.random.default_rng(seed)
    _, model = trained(tmp_path / "m.json", seed, num_parallel_tree=1 + seed % 2)
    for level in (*model.coarse(), *model.fine()):
        edits = list(level.edits(model))
        if not edits or (level.name == "trees" and len(model.trees) < 4):
            continue
        chosen = [edits[i] for i in rng.choice(len(edits), int(rng.integers(1, len(edits) // 2 + 2)), replace=False)]
        smaller = level.applied(model, chosen)
        assert smaller.content != model.content
        assert weight(smaller) < weight(model), level.name
        model = smaller
        ensemble, rows = load_again(model, tmp_path), ROWS[:, list(model.features)]
        data = xgboost.DMatrix(rows, feature_names=list(ensemble.feature_names))
        library = loaded(model).predict(data, output_margin=True)
        np.testing.assert_array_equal(library, ensemble.margins_emulated(rows)[:, 0])


def weight(model: XGBoostModel) -> tuple[int, ...]:
    """Trees, leaves, features, and the digits of all numbers."""
    numbers = [part.value for part in model.parts]
    digits = sum(
        0 if v == 0 else 1 if abs(v) == 1 else 1 + len(f"{v:.7g}".strip("-0.").replace(".", "")) for v in numbers
    )
    return (*model.sizes().values(), digits, not model.plain_base)


def test_models_that_stay_as_they_are(tmp_path: Path) -> None:
    table, label = np.random.default_rng(0).random((100, 3)), np.arange(100) % 3
    boosted(table, label, 2, path=tmp_path / "m.ubj", num_class=3)
    boosted(
        table, label, 2, path=tmp_path / "v.json", num_class=3, multi_strategy="multi_output_tree", tree_method="hist"
    )
    for name in ("m.ubj", "v.json"):
        with pytest.raises(ModelError, match="stay as they are"):
            read_trees(load(tmp_path / name), tmp_path / name)


def test_parts_by_depth() -> None:
    leaf = Part(2, 1.0)
    root = Part(0, 0.5, Part(1, 0.25, leaf, Part(3, 2.0)), Part(4, 3.0))
    assert [[part.node for part in level] for level in root.levels] == [[0], [1, 4], [2, 3]]
