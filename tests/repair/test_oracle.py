"""No pair of the whole domain breaks the promise, by the stock library's own predictions of the written file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.repair.models import GRID, predict, train, write_table

pytest.importorskip("clarabel")
KINDS = ("xgboost", "xgboost-ubj", "xgboost-dart", "lightgbm")
METHODS = ("average", "blend", "leaves", "auto")


def crosses(low: Any, high: Any, gap: float) -> bool:
    """Whether one of two predictions lies `gap` above one half and the other `gap` below it."""
    return bool(((high >= 0.5 + gap) & (low <= 0.5 - gap)).any())


def extremes(values: Any, varied: list[int]) -> tuple[Any, Any]:
    """The least and the greatest prediction of every group of inputs that differ in the varied features alone."""
    rest = [f for f in range(GRID.shape[1]) if f not in varied]
    _, group = np.unique(GRID[:, rest], axis=0, return_inverse=True)
    low, high = np.full(group.max() + 1, np.inf), np.full(group.max() + 1, -np.inf)
    np.minimum.at(low, group, values)
    np.maximum.at(high, group, values)
    return low, high


@pytest.mark.parametrize("seed", range(30))
def test_no_pair_of_the_domain_breaks_the_promise(seed: int, tmp_path: Path) -> None:
    kind, method, gap = KINDS[seed % len(KINDS)], METHODS[seed // 4 % len(METHODS)], (0.05, 0.1, 0.2)[seed % 3]
    varied = [0] if seed % 5 else [0, 2]
    path, x, y = train(kind, tmp_path, seed)
    data = write_table(tmp_path / "d.csv", x, y)
    before = predict(path, GRID)
    output = tmp_path / f"out{path.suffix}"
    names = [["f", "b"]] if len(varied) == 2 else ["f"]
    found = ts.repair(
        path, data, vary=names, label="y", gap=gap, output=output, method=method, time_limit=1.0, seed=seed,
        certificates=tmp_path / "proofs",
    )  # fmt: skip
    (record,) = found.records
    assert record["proved"]
    assert output.is_file()
    assert all(claim["file"] for proof in record["proofs"] for claim in proof["certificates"])
    after = predict(output, GRID)
    assert not crosses(*extremes(after, varied), gap)
    low, high = extremes(after, varied)
    if record["method"] == "average" and crosses(*extremes(before, varied), gap):
        assert np.array_equal(low, high)
    loaded = ts.load(output)
    assert np.array_equal(loaded.ensemble.margins_emulated(GRID), loaded.margins(GRID))


@pytest.mark.parametrize("kind", ["xgboost-value", "lightgbm-value"])
@pytest.mark.parametrize("method", METHODS)
def test_values_of_a_regressor_move_by_less(kind: str, method: Any, tmp_path: Path) -> None:
    path, x, y = train(kind, tmp_path, 1)
    data, output = write_table(tmp_path / "d.csv", x, y), tmp_path / f"out{path.suffix}"
    ts.repair(path, data, vary=["f"], label="y", gap=0.3, output=output, method=method, time_limit=1.0)
    low, high = extremes(predict(path, GRID), [0])
    assert (high - low).max() > 0.3
    low, high = extremes(predict(output, GRID), [0])
    assert (high - low).max() < 0.3


@pytest.mark.parametrize("method", METHODS)
def test_classes_do_not_change_places_with_a_lead(method: Any, tmp_path: Path) -> None:
    path, x, y = train("xgboost-classes", tmp_path, 1)
    data, output = write_table(tmp_path / "d.csv", x, y), tmp_path / "out.json"
    found = ts.repair(path, data, vary=["f"], label="y", margin=0.2, output=output, method=method, time_limit=1.0)
    assert len(found.records[0]["proofs"]) == 3
    scores = np.log(predict(output, GRID).astype(np.float64))
    ranked = np.sort(scores, axis=1)
    first, lead = scores.argmax(axis=1), ranked[:, -1] - ranked[:, -2]
    sure = lead >= 0.2
    _, group = np.unique(GRID[:, 1:], axis=0, return_inverse=True)
    assert all(len(set(first[sure & (group == g)])) <= 1 for g in range(group.max() + 1))
