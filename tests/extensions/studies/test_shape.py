"""Shapes of scores: against the library's own predictions on all inputs of a grid, and models that training keeps monotone."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.extensions.studies.grids import NAMES, Trained, regressor, rows_of, several_classes, two_classes
from treesens.cli import main
from treesens.errors import ModelError, UsageError
from treesens.extensions.studies.shape_search import tree_shapes, widest_shapes
from treesens.frontends.columns import directions_of


def reversals(values: np.ndarray, axis: int) -> tuple[float, float]:
    """The largest fall and the largest rise of values [6, 6, 6] along one feature, by trying all pairs."""
    moved = np.moveaxis(values, axis, 0)
    falls = [moved[i] - moved[j] for i, j in itertools.combinations(range(len(moved)), 2)]
    return max(0.0, float(np.max(falls))), max(0.0, float(np.max(np.negative(falls))))


def check(records: list[dict[str, Any]], trained: Trained, outputs: list[int]) -> None:
    """Every record is what the library says on the grid, and every pair shows what it claims."""
    assert [r["feature"] for r in records] == [name for name in NAMES for _ in outputs]
    for number, record in enumerate(records):
        axis, output = number // len(outputs), outputs[number % len(outputs)]
        values = trained.scores[..., output]
        fall, rise = reversals(values, axis)
        assert record["closed"], record
        assert record["largest_fall"] == pytest.approx(fall, abs=2e-6)
        assert record["largest_rise"] == pytest.approx(rise, abs=2e-6)
        # The library's own sums are rounded: what falls by less than that may fall or not.
        if min(x for x in (fall, rise, 1.0) if x) > 1e-5:
            expected = {(0, 0): "constant", (0, 1): "increasing", (1, 0): "decreasing", (1, 1): "neither"}
            assert record["shape"] == expected[bool(fall), bool(rise)]
        for kind, most in (("fall", fall), ("rise", rise)):
            points = record[kind]
            if points is None:
                continue
            a, b = (tuple(int(points[p][name]) for name in NAMES) for p in "ab")
            assert [x != y for x, y in zip(a, b, strict=True)] == [i == axis for i in range(3)]
            assert a[axis] < b[axis]
            difference = values[a] - values[b] if kind == "fall" else values[b] - values[a]
            assert difference == pytest.approx(most, abs=2e-6)


@pytest.mark.parametrize("kind", ["xgboost", "histogram", "forest", "tree"])
def test_two_classes_as_the_library_scores_them(kind: str) -> None:
    trained = two_classes(kind)
    if kind == "xgboost":
        raw = trained.estimator.predict(trained.grid, output_margin=True)
        trained = replace(trained, scores=np.asarray(raw, float).reshape(6, 6, 6, 1))
    if kind == "histogram":
        trained = replace(trained, scores=trained.estimator.decision_function(trained.grid).reshape(6, 6, 6, 1))
    found = ts.shape(trained.estimator, trained.frame, time_limit=60)
    check(found.records, trained, [trained.scores.shape[-1] - 1])


def test_several_classes_have_a_record_each() -> None:
    trained = several_classes("xgboost")
    found = ts.shape(trained.estimator, trained.frame, time_limit=60)
    check(found.records, trained, [0, 1, 2])
    (one, *_), only = (
        found.records,
        ts.shape(trained.estimator, trained.frame, classes=[2], features=["q"], time_limit=60),
    )
    assert one["class"] == 0
    assert [(r["feature"], r["class"]) for r in only.records] == [("q", 2)]


def test_values_of_a_regressor() -> None:
    trained = regressor("xgboost")
    check(ts.shape(trained.estimator, trained.frame, time_limit=60).records, trained, [0])


def constrained(library: str, seed: int, rows: pd.DataFrame, target: np.ndarray) -> Any:
    """A model that is to be increasing in p and decreasing in q."""
    signs = [1, -1, 0]
    if library == "xgboost":
        kind = pytest.importorskip("xgboost").XGBClassifier
        return kind(n_estimators=8, max_depth=3, monotone_constraints=tuple(signs), random_state=seed).fit(rows, target)
    if library == "lightgbm":
        kind = pytest.importorskip("lightgbm").LGBMClassifier
        more = {"min_child_samples": 3, "verbose": -1, "n_jobs": 1}
        return kind(n_estimators=8, num_leaves=8, monotone_constraints=signs, random_state=seed, **more).fit(
            rows, target
        )
    if library == "catboost":
        kind = pytest.importorskip("catboost").CatBoostClassifier
        quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
        return kind(iterations=8, depth=3, monotone_constraints=signs, random_seed=seed, **quiet).fit(rows, target)
    kind = pytest.importorskip("sklearn.ensemble").HistGradientBoostingClassifier
    return kind(max_iter=8, max_leaf_nodes=8, min_samples_leaf=3, monotonic_cst=signs, random_state=seed).fit(
        rows, target
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "sklearn"])
def test_constraints_that_training_kept_are_proved_by_the_trees(library: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rows_of(seed).astype(float), columns=NAMES)
    target = (rows["p"] - rows["q"] + 2 * (rows["r"] % 2) + rng.normal(0, 1, len(rows)) > 0).to_numpy(int)
    found = ts.shape(constrained(library, seed, rows, target), time_limit=5)
    by_name = {record["feature"]: record for record in found.records}
    assert {name: one["declared"] for name, one in by_name.items()} == {
        name: sign for name, sign in zip(NAMES, ("increasing", "decreasing", None), strict=True) if name in by_name
    }
    for name, shape in (("p", "increasing"), ("q", "decreasing")):
        assert by_name[name]["holds"] is True
        assert by_name[name]["shape"] in (shape, "constant")
        assert by_name[name]["largest_fall" if shape == "increasing" else "largest_rise"] == 0


def test_files_declare_what_training_was_told(tmp_path: Path) -> None:
    rows = pd.DataFrame(rows_of(), columns=NAMES)
    target = (rows["p"] > rows["q"]).to_numpy(int)
    constrained("lightgbm", 0, rows, target).booster_.save_model(tmp_path / "m.txt")
    (tmp_path / "m.dump.json").write_text(json.dumps(constrained("lightgbm", 0, rows, target).booster_.dump_model()))
    constrained("catboost", 0, rows, target).save_model(str(tmp_path / "c.json"), format="json")
    for name in ("m.txt", "m.dump.json", "c.json"):
        assert ts.load(tmp_path / name).monotone == {"p": 1, "q": -1}, name
    constrained("xgboost", 0, rows, target).save_model(tmp_path / "x.json")
    assert ts.load(tmp_path / "x.json").monotone == {}  # XGBoost writes none of it
    assert [r["holds"] for r in ts.shape(tmp_path / "x.json", increasing=["p"], decreasing=["q"]).records[:2]] == [
        True,
        True,
    ]


def test_a_claim_is_refuted_by_a_pair_of_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = two_classes("xgboost")
    monkeypatch.chdir(tmp_path)
    trained.estimator.save_model("m.json")
    trained.frame.to_csv("d.csv", index=False)
    axis = next(i for i in range(3) if reversals(trained.scores[..., -1], i)[0] > 0.01)
    words = ["shape", "m.json", "--data", "d.csv", "--increasing", NAMES[axis], "--features", NAMES[axis]]
    for fail_on, code in (("refuted", 10), ("unproved", 10)):
        with pytest.raises(SystemExit) as ended:
            main([*words, "--fail-on", fail_on, "--replay", "library", "--json"])
        assert ended.value.code == code
        (record,) = json.loads(capsys.readouterr().out)["results"]
        assert (record["declared"], record["holds"]) == ("increasing", False)
        pair = pd.DataFrame([record["fall"]["a"], record["fall"]["b"]])
        high, low = trained.estimator.predict(pair[NAMES], output_margin=True)
        assert high > low
        assert pair.loc[0, NAMES[axis]] < pair.loc[1, NAMES[axis]]
        assert "library" in record["replay"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    assert "neither" in capsys.readouterr().out


def test_a_sum_can_be_increasing_although_a_tree_of_it_is_not() -> None:
    """Two trees over p: one falls by 1 at 2, the other rises by 3 there, and both are 0 before."""
    tree = pytest.importorskip("sklearn.tree")
    ensemble = pytest.importorskip("sklearn.ensemble")
    x = pd.DataFrame({"p": np.arange(6.0)})
    model = ensemble.RandomForestRegressor(2, bootstrap=False).fit(x, np.zeros(6))
    model.estimators_ = [tree.DecisionTreeRegressor().fit(x, y) for y in ([0, 0, -1, -1, -1, -1], [0, 0, 3, 3, 3, 5])]
    (record,) = ts.shape(model, x, time_limit=30).records
    assert record["shape"] == "increasing"
    assert record["largest_fall"] == record["largest_fall_bound"] == 0
    assert record["largest_rise"] == pytest.approx(2.0)


def test_categories_have_no_order_and_bad_claims_a_remedy() -> None:
    trained = two_classes("xgboost")
    with pytest.raises(UsageError, match="no feature `x`"):
        ts.shape(trained.estimator, increasing=["x"])
    with pytest.raises(UsageError, match="increasing and decreasing"):
        ts.shape(trained.estimator, increasing=["p"], decreasing=["p"])
    with pytest.raises(UsageError, match="no class"):
        ts.shape(trained.estimator, classes=["7"])
    lightgbm = pytest.importorskip("lightgbm")
    x = pd.DataFrame({"p": np.arange(60.0), "c": pd.Categorical(["u", "v", "w"] * 20)})
    y = ((x["p"] > 20) ^ (x["c"] == "v")).astype(int)
    more = {"min_child_samples": 3, "verbose": -1, "cat_smooth": 1, "min_data_per_group": 2}
    model = lightgbm.LGBMClassifier(n_estimators=3, **more).fit(x, y)
    shapes = {r["feature"]: r["shape"] for r in ts.shape(model).records}
    assert shapes["c"] == "unordered"


@pytest.mark.parametrize(
    ("given", "expected"), [("1 0 -1", {"a": 1, "c": -1}), ("(1,-1)", {"a": 1, "b": -1}), ("()", {})]
)
def test_directions_are_read(given: str, expected: dict[str, int]) -> None:
    assert directions_of(given, ["a", "b", "c"], "m") == expected


@pytest.mark.parametrize("given", ["1 2", [1, 0, 0, 1], {"d": 1}, {"9": 1}, [0.5]])
def test_directions_that_make_no_sense_are_refused(given: Any) -> None:
    with pytest.raises(ModelError, match="monotone constraints"):
        directions_of(given, ["a", "b", "c"], "m")


def test_an_audit_has_a_column_of_shapes() -> None:
    trained = two_classes("xgboost")
    found = ts.audit(trained.estimator, trained.frame, gap=0.05, vary=["p", "q", ["p", "q"]], shape=True, jobs=1)
    alone = {record["feature"]: record for record in ts.shape(trained.estimator, trained.frame).records}
    for record in found.records:
        if len(record["varied"]) > 1:
            assert "shape" not in record
            continue
        known = alone[record["varied"][0]]
        assert record["shape"]["shape"] == known["shape"]
        assert record["shape"]["largest_fall"] == pytest.approx(known["largest_fall"], abs=1e-5)
    several = several_classes("xgboost")
    with pytest.raises(UsageError, match="shape of one score"):
        ts.audit(several.estimator, several.frame, margin=0.1, shape=True)


@pytest.mark.parametrize("kind", ["xgboost", "forest"])
def test_bounds_of_trees_hold_whatever_there_is_time_for(kind: str) -> None:
    trained = two_classes(kind)
    output = trained.scores.shape[-1] - 1 if kind == "xgboost" else 1
    ensemble = ts.load(trained.estimator).ensemble
    model = ensemble.on(ensemble.grid(True))
    values = trained.scores[..., 0]
    if kind == "xgboost":
        values = np.asarray(trained.estimator.predict(trained.grid, output_margin=True), float).reshape(6, 6, 6)
    legal = [np.ones(grid.n_cells, dtype=bool) for grid in model.grid]
    for bounds in (tree_shapes(model, output, legal), widest_shapes(model, output)):
        for axis in range(3):
            fall, rise = reversals(values, axis)
            assert float(bounds.falls[axis]) >= fall - 1e-6
            assert float(bounds.rises[axis]) >= rise - 1e-6


def of_a_large_grid() -> tuple[Any, list[np.ndarray], np.ndarray]:
    """Three classes, three features, the second of them increasing; the values that represent all cells, and the library's
    scores of every class [n0, n1, n2, 3].
    """
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(5)
    rows = np.round(rng.random((500, 3)), 2).astype(np.float32)
    noise = rng.normal(scale=0.4, size=len(rows))
    target = np.digitize(np.sin(5 * rows[:, 0]) + rows[:, 1] - np.cos(4 * rows[:, 2]) + noise, [0.3, 1.0])
    estimator = xgboost.XGBClassifier(
        n_estimators=10, max_depth=3, learning_rate=0.3, monotone_constraints=(0, 1, 0), n_jobs=1
    ).fit(rows, target)
    dump = [json.loads(tree) for tree in estimator.get_booster().get_dump(dump_format="json")]
    cuts: list[set[float]] = [set(), set(), set()]
    while dump:
        node = dump.pop()
        if "split" in node:
            cuts[int(node["split"][1:])].add(float(np.float32(node["split_condition"])))
            dump += node["children"]
    values = [np.array([0.0, *sorted(c for c in own if 0 < c <= 1)], np.float32) for own in cuts]
    grid = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1)
    scores = estimator.predict(grid.reshape(-1, 3), output_margin=True)
    return estimator, values, scores.reshape(*grid.shape[:3], 3)


def test_a_grid_of_many_pairs_is_closed_whatever_time_there_is() -> None:
    estimator, values, scores = of_a_large_grid()
    cells = int(np.prod([len(own) for own in values]))
    assert cells * min(map(len, values)) > 100_000
    table = pd.DataFrame(np.array([[0.0] * 3, [1.0] * 3], np.float32), columns=["f0", "f1", "f2"])
    estimator.get_booster().feature_names = list(table)
    records = ts.shape(estimator, table, real=list(table), time_limit=1e-3).records
    assert len(records) == 9
    for number, record in enumerate(records):
        moved = np.moveaxis(scores[..., number % 3].astype(float), number // 3, 0)
        fall = float((np.maximum.accumulate(moved) - moved).max())
        rise = float((moved - np.minimum.accumulate(moved)).max())
        assert record["closed"], record
        assert record["shape"] != "unknown"
        assert record["largest_fall_bound"] == pytest.approx(fall, abs=1e-5)
        assert record["largest_rise_bound"] == pytest.approx(rise, abs=1e-5)
