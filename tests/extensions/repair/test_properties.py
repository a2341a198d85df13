"""Several promises at once: directions, swings beside gaps, rows that stay; by predictions of the whole domain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.extensions.repair.models import GRID, VALUES, predict, train, write_table
from tests.extensions.repair.oracle import crosses, extremes
from treesens.errors import UsageError

pytest.importorskip("clarabel")

KINDS = ("xgboost", "lightgbm", "sklearn-boosting-label-skops", "sklearn-forest-label-joblib", "xgboost-value")


def ready(kind: str, folder: Path, seed: int) -> tuple[Any, Path, Any]:
    """A model that was read, its table, and the rows."""
    path, x, y = train(kind, folder, seed)
    return ts.load(path, trust_pickle=True), write_table(folder / "d.csv", x, y), x


def falls(values: Any, feature: int) -> float:
    """The most by which predictions of the whole domain fall while one feature rises by a step."""
    shaped = np.asarray(values, dtype=np.float64).reshape([len(v) for v in VALUES])
    return float(-np.diff(shaped, axis=feature).min())


@pytest.mark.parametrize("method", ["average", "blend", "leaves", "auto"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled
def test_a_direction_holds_in_the_library_on_the_whole_domain(kind: str, method: Any, tmp_path: Path) -> None:
    if method == "leaves" and "forest" in kind:
        pytest.skip("leaves of probabilities are only mixed")
    model, data, _ = ready(kind, tmp_path, 3)
    output = tmp_path / f"o{Path(model.ensemble.source.path).suffix}"
    found = ts.repair(
        model, data, increasing=["b"], decreasing=["a"], label="y", output=output, method=method, time_limit=20.0,
        certificates=tmp_path / "proofs",
    )  # fmt: skip
    (record,) = found.records
    before, after = predict(Path(model.ensemble.source.path), GRID), predict(output, GRID)
    assert falls(-before, 1) > 1e-3
    assert max(falls(after, 2), falls(-after, 1)) <= 1e-6
    proofs = {proof["varied"][0]: proof for proof in record["proofs"]}
    assert proofs["b"]["kind"] == "increasing"
    assert proofs["a"]["largest_swing"]["after_bound"] <= 1e-9
    assert all(claim["file"] for proof in record["proofs"] for claim in proof["certificates"])
    shapes = {r["feature"]: r for r in ts.shape(ts.load(output, trust_pickle=True)).records}
    assert "b" not in shapes or shapes["b"]["largest_fall_bound"] <= 1e-9
    assert "a" not in shapes or shapes["a"]["largest_rise_bound"] <= 1e-9


@pytest.mark.parametrize("method", ["average", "blend", "leaves"])
@pytest.mark.parametrize("seed", [1, 5])
@pytest.mark.sampled
def test_a_gap_a_swing_and_a_direction_hold_together(method: Any, seed: int, tmp_path: Path) -> None:
    model, data, _ = ready("xgboost", tmp_path, seed)
    output = tmp_path / "o.json"
    found = ts.repair(
        model, data, vary=["f"], gap=0.05, swing=0.6, increasing=["b"], label="y", output=output, method=method,
        time_limit=20.0,
    )  # fmt: skip
    after = predict(output, GRID)
    assert not crosses(*extremes(after, [0]), 0.05)
    margins = ts.load(output).margins(GRID)[:, 0]
    low, high = extremes(margins, [0])
    assert (high - low).max() <= 0.6 + 1e-5
    assert falls(margins, 2) <= 1e-6
    assert [proof["kind"] for proof in found.records[0]["proofs"]] == ["gap", "swing", "increasing"]


def test_the_leaves_in_order_cost_less_than_their_first_projection(tmp_path: Path) -> None:
    """The program goes on from the projection of every tree: what it minimises is the distance from the model's own scores."""
    model, data, x = ready("xgboost-value", tmp_path, 4)
    apart = {}
    for method in ("average", "blend", "leaves"):
        output = tmp_path / f"{method}.json"
        ts.repair(
            model, data, increasing=["b"], decreasing=["a"], label="y", output=output, method=method, time_limit=20.0
        )
        apart[method] = float(((predict(output, x) - predict(tmp_path / "m.json", x)) ** 2).mean())
    assert apart["leaves"] < apart["blend"] < apart["average"]


@pytest.mark.parametrize("method", ["average", "blend", "leaves"])
@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "sklearn-forest-label-joblib", "xgboost-classes"])
@pytest.mark.sampled
def test_rows_that_are_kept_keep_their_scores(kind: str, method: Any, tmp_path: Path) -> None:
    if method == "leaves" and "forest" in kind:
        pytest.skip("leaves of probabilities are only mixed")
    model, data, x = ready(kind, tmp_path, 2)
    rows = np.unique(x, axis=0)
    _, first = np.unique(rows[:, 1:], axis=0, return_index=True)
    rows = rows[first[:6]]
    table = write_table(tmp_path / "k.csv", rows, np.zeros(len(rows)))
    output = tmp_path / f"o{Path(model.ensemble.source.path).suffix}"
    promise = {"margin": 0.1} if kind == "xgboost-classes" else {"gap": 0.05}
    found = ts.repair(
        model, data, vary=["f"], label="y", output=output, method=method, keep_rows=table, time_limit=1.0, **promise
    )  # type: ignore[arg-type]
    before, after = predict(Path(model.ensemble.source.path), rows), predict(output, rows)
    assert np.abs(before - after).max() <= 1e-4
    assert found.records[0]["kept_rows"]["rows"] == len(rows)
    assert found.records[0]["kept_rows"]["largest_change_of_a_score"] <= 1e-4
    values = predict(output, GRID)
    if kind == "xgboost-classes":
        first = values.argmax(axis=1).reshape(3, -1)
        lead = np.sort(np.log(values), axis=1)
        clear = ((lead[:, -1] - lead[:, -2]) > 0.1).reshape(3, -1)
        for i in range(3):
            for j in range(3):
                assert not ((first[i] != first[j]) & clear[i] & clear[j]).any()
    else:
        assert not crosses(*extremes(values, [0]), 0.05)
    assert np.abs(predict(Path(model.ensemble.source.path), GRID) - values).max() > 1e-3


def test_what_cannot_hold_together_is_refused(tmp_path: Path) -> None:
    model, data, x = ready("xgboost", tmp_path, 2)
    both = np.repeat(x[:1], 2, axis=0)
    both[:, 0] = [0, 2]
    twins = write_table(tmp_path / "k.csv", both, [0, 0])

    def refused(words: str, **options: Any) -> None:
        with pytest.raises(UsageError, match=words):
            ts.repair(model, data, label="y", time_limit=20.0, output=tmp_path / "o.json", **options)
        assert not (tmp_path / "o.json").exists()

    refused("cannot be kept with the others", vary=["f"], gap=0.05, keep_rows=twins)
    refused("not both", increasing=["a"], keep_rows=twins)
    refused("increasing and decreasing", increasing=["a"], decreasing=["a"])
    refused("no feature `z`", increasing=["z"])
    refused("two units", vary=["f"], gap=0.1, margin=0.1)
    refused("must be a single number", vary=["f"], gap=0.1, swing=[1.0, 2.0])
    refused("needs features that vary", gap=0.1, increasing=["a"])
    refused("needs one of")
    refused("both varied and kept|with a kept|cannot be reached", increasing=["a"], keep=["a"])


def test_a_category_has_no_direction(tmp_path: Path) -> None:
    model, data, _ = ready("xgboost-categories", tmp_path, 2)
    with pytest.raises(UsageError, match="no order"):
        ts.repair(model, data, increasing=["f"], label="y", time_limit=20.0)
