"""Reasons against every set of features and every combination of values, by the library's own predictions."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest

from tests.extensions.methods.test_least_radius import NAMES, forest_model, training_set, xgboost_model
from treesens.data.tables import Table, read_table
from treesens.errors import UsageError
from treesens.extensions.methods.fewest_changes import hitting_set
from treesens.extensions.studies.robust import RobustOptions
from treesens.extensions.studies.robust_search import ask as robustness
from treesens.extensions.studies.study import Asking
from treesens.extensions.studies.why import WhyOptions
from treesens.extensions.studies.why_search import ask as reasons
from treesens.frontends.registry import load

OPTIONS = WhyOptions(time_limit=30.0, range=(Fraction(0), Fraction(10)))


def table_of(x: np.ndarray, folder: Path) -> Table:
    path = folder / "rows.csv"
    lines = [",".join(NAMES), *(",".join(repr(float(v)) for v in row) for row in x)]
    path.write_text("\n".join(lines) + "\n")
    return read_table(path)


def values_of(cuts: dict[str, list[float]], row: np.ndarray) -> list[np.ndarray]:
    """A value in every cell of every feature, and the row's own."""
    columns = []
    for i, name in enumerate(NAMES):
        at = np.array(sorted(set(cuts[name])), np.float32)
        floats = np.concatenate(
            [at, np.nextafter(at, np.float32(-9)), np.nextafter(at, np.float32(99)), row[i : i + 1]]
        )
        columns.append(np.unique(floats[(floats >= 0) & (floats <= 10)]))
    return columns


def decides(classes: Any, cuts: dict[str, list[float]], row: np.ndarray, features: set[int]) -> bool:
    """Whether all inputs that agree with the row on some features have its class."""
    columns = [row[i : i + 1] if i in features else values for i, values in enumerate(values_of(cuts, row))]
    points = np.array(list(itertools.product(*columns)), np.float32)
    return bool((classes(points) == classes(row[None])[0]).all())


def sets_of_features() -> list[set[int]]:
    return [set(c) for size in range(4) for c in itertools.combinations(range(3), size)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("smallest", [False, True])
@pytest.mark.sampled
def test_reasons_are_those_of_trying_every_set(seed: int, smallest: bool, tmp_path: Path) -> None:
    booster, classes, cuts = xgboost_model(seed)
    x = training_set(200 + seed, 12)[0]
    found = reasons(Asking((load(booster),), table_of(x, tmp_path), replace(OPTIONS, smallest=smallest))).result
    assert len(found) == len(x)
    for one, row in zip(found, x, strict=True):
        assert one.features is not None
        used = {NAMES.index(name) for name in one.features}
        sufficient = [s for s in sets_of_features() if decides(classes, cuts, row, s)]
        assert used in sufficient
        assert not any(s < used for s in sufficient)
        if smallest:
            assert len(used) == min(map(len, sufficient))
        assert one.predicted == str(int(classes(row[None])[0]))
        for name, value in one.features.items():
            assert np.float32(value) == row[NAMES.index(name)]
        check_contrast(classes, cuts, row, one)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("smallest", [False, True])
@pytest.mark.sampled
def test_reasons_of_forests_are_those_of_trying_every_set(seed: int, smallest: bool, tmp_path: Path) -> None:
    """Leaf values of a forest are too long for the engine's whole numbers. Where votes tie but for the library's rounding,
    either class may count.
    """
    forest, classes, cuts = forest_model(seed)
    x = training_set(200 + seed, 12)[0]

    def decided(points: Any, tie: int) -> Any:
        return np.where(np.abs(forest.predict_proba(points)[:, 0] - 0.5) < 1e-12, tie, classes(points))

    found = reasons(Asking((load(forest),), table_of(x, tmp_path), replace(OPTIONS, smallest=smallest))).result
    for one, row in zip(found, x, strict=True):
        assert one.features is not None
        own = int(classes(row[None])[0])
        assert decided(row[None], -1)[0] == own
        used = {NAMES.index(name) for name in one.features}
        surely = [s for s in sets_of_features() if decides(partial(decided, tie=-1), cuts, row, s)]
        assert decides(partial(decided, tie=own), cuts, row, used)
        assert not any(s < used for s in surely)
        if smallest:
            assert all(len(used) <= len(s) for s in surely)


def check_contrast(classes: Any, cuts: dict[str, list[float]], row: np.ndarray, one: Any) -> None:
    """Changes of these features give another class, those of a part of them do not."""
    if one.contrast is None:
        assert decides(classes, cuts, row, set())
        return
    changed = {NAMES.index(name) for name in one.contrast}
    assert not decides(classes, cuts, row, set(range(3)) - changed)
    for f in changed:
        assert decides(classes, cuts, row, (set(range(3)) - changed) | {f})
    point = np.array([[one.point[name] for name in NAMES]], np.float32)
    assert classes(point)[0] != classes(row[None])[0]
    assert {i for i in range(3) if point[0, i] != row[i]} == changed


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sampled
def test_all_reasons_are_the_minimal_sets_that_decide(seed: int, tmp_path: Path) -> None:
    booster, classes, cuts = xgboost_model(seed)
    x = training_set(400 + seed, 12)[0]
    table, model = table_of(x, tmp_path), load(booster)
    all_of_them, two = (reasons(Asking((model,), table, replace(OPTIONS, most=k))).result for k in (9, 2))
    several = 0
    for one, few, row in zip(all_of_them, two, x, strict=True):
        sufficient = [s for s in sets_of_features() if decides(classes, cuts, row, s)]
        minimal = [s for s in sufficient if not any(other < s for other in sufficient)]
        assert one.several is not None
        assert few.several is not None
        found = [{NAMES.index(name) for name in reason} for reason in one.several]
        assert one.complete
        assert sorted(map(sorted, found)) == sorted(map(sorted, minimal))
        assert [len(s) for s in found] == sorted(len(s) for s in minimal)
        assert [len(s) for s in few.several] == sorted(len(s) for s in minimal)[:2]
        assert few.complete == (len(minimal) <= 2)
        assert one.features == one.several[0]
        assert one.smallest
        assert one.minimal
        several += len(minimal) > 1
    assert several >= 1


def test_reasons_are_unknown_without_time(tmp_path: Path) -> None:
    booster, _, _ = xgboost_model(1)
    options = replace(OPTIONS, rows=[0], most=5, time_limit=0.0)
    (found,) = reasons(Asking((load(booster),), table_of(training_set(5, 1)[0], tmp_path), options)).result
    assert not found.several
    assert not found.complete
    assert found.reason


@pytest.mark.parametrize("seed", range(3))
def test_features_that_are_left_out_are_in_no_reason(seed: int, tmp_path: Path) -> None:
    booster, classes, cuts = xgboost_model(seed)
    x = training_set(300 + seed, 10)[0]
    for smallest in (False, True):
        options = replace(OPTIONS, smallest=smallest, without=["f1"])
        found = reasons(Asking((load(booster),), table_of(x, tmp_path), options)).result
        for one, row in zip(found, x, strict=True):
            if one.features is None:
                assert not decides(classes, cuts, row, {0, 2})
                continue
            used = {NAMES.index(name) for name in one.features}
            assert 1 not in used
            sufficient = [s for s in sets_of_features() if 1 not in s and decides(classes, cuts, row, s)]
            assert used in sufficient
            assert not any(s < used for s in sufficient)


def test_smallest_hitting_sets_are_those_of_trying_all() -> None:
    rng = np.random.default_rng(4)
    for _ in range(60):
        sets = [frozenset(rng.choice(7, int(rng.integers(1, 4)), replace=False).tolist()) for _ in range(6)]
        found = hitting_set(sets, lambda: False)
        assert found is not None
        assert all(found & one for one in sets)
        sizes = [
            len(c) for n in range(8) for c in itertools.combinations(range(7), n) if all(set(c) & one for one in sets)
        ]
        assert len(found) == min(sizes)


def test_hitting_sets_hold_no_barred_set() -> None:
    rng = np.random.default_rng(6)
    none = 0
    for _ in range(80):
        sets, barred = (
            [frozenset(rng.choice(6, int(rng.integers(1, 4)), replace=False).tolist()) for _ in range(count)]
            for count in (4, 3)
        )
        found = hitting_set(sets, lambda: False, barred)
        possible = [
            len(c)
            for n in range(7)
            for c in itertools.combinations(range(6), n)
            if all(set(c) & one for one in sets) and not any(one <= set(c) for one in barred)
        ]
        assert (found is None) == (not possible)
        none += found is None
        if found is not None:
            assert all(found & one for one in sets)
            assert not any(one <= found for one in barred)
            assert len(found) == min(possible)
    assert none >= 3


def test_rows_and_features_that_there_are_not_are_refused(tmp_path: Path) -> None:
    booster, _, _ = xgboost_model(0)
    table = table_of(training_set(1, 3)[0], tmp_path)
    with pytest.raises(UsageError, match="no row 3"):
        reasons(Asking((load(booster),), table, replace(OPTIONS, rows=[3])))
    with pytest.raises(UsageError, match="no feature `age`"):
        reasons(Asking((load(booster),), table, replace(OPTIONS, without=["age"])))


def box_holds(classes: Any, columns: list[np.ndarray], own: int) -> bool:
    """Whether all inputs of a product of values have a class."""
    return bool((classes(np.array(list(itertools.product(*columns)))) == own).all())


@pytest.mark.parametrize("seed", range(5))
def test_no_side_of_a_box_can_be_moved(seed: int, tmp_path: Path) -> None:
    booster, classes, cuts = xgboost_model(seed)
    x = training_set(500 + seed, 10)[0]
    options = replace(OPTIONS, also=["box"])
    moved = 0
    for one, row in zip(reasons(Asking((load(booster),), table_of(x, tmp_path), options)).result, x, strict=True):
        assert one.also is not None
        box = one.also["box"]
        assert box.keys() == one.features.keys()
        values = values_of(cuts, row)
        sides = {NAMES.index(name): tuple(map(np.float32, runs[0])) for name, runs in box.items()}
        assert all(len(runs) == 1 for runs in box.values())
        inside = [v if f not in sides else v[(v >= sides[f][0]) & (v <= sides[f][1])] for f, v in enumerate(values)]
        own = int(classes(row[None])[0])
        assert box_holds(classes, inside, own)
        for f, (low, high) in sides.items():
            assert low <= row[f] <= high
            for further in (values[f][values[f] < low][-1:], values[f][values[f] > high][:1]):
                if len(further):
                    assert not box_holds(classes, [*inside[:f], further, *inside[f + 1 :]], own)
                    moved += 1
    assert moved


def test_categories_and_missing_values_are_in_a_box_if_the_class_stands(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    x = np.stack([rng.integers(0, 5, 400), rng.integers(0, 4, 400), rng.integers(0, 3, 400)], axis=1).astype(float)
    x[rng.random(400) < 0.2, 1] = np.nan
    y = (x[:, 0] % 2 == 0) ^ (np.nan_to_num(x[:, 1], nan=2.0) > 1) ^ ((x[:, 2] > 1) & (x[:, 0] == 3))
    options = {"objective": "binary", "num_leaves": 8, "verbosity": -1, "min_data_in_leaf": 1, "min_data_per_group": 1}
    data = lightgbm.Dataset(x, y, feature_name=NAMES, categorical_feature=[0])
    booster = lightgbm.train(options | {"cat_smooth": 0, "cat_l2": 0}, data, num_boost_round=12)
    rows = np.array([[c, v, w] for c in range(5) for v in (0, 3, np.nan) for w in (0, 2)], float)
    path = tmp_path / "rows.csv"
    lines = [",".join("" if np.isnan(v) else str(int(v)) for v in row) for row in np.concatenate([rows, x])]
    path.write_text("\n".join([",".join(NAMES), *lines]) + "\n")
    columns = [np.arange(5.0), np.array([0, 1, 2, 3, np.nan]), np.arange(3.0)]

    def classes(points: Any) -> Any:
        return (booster.predict(points) > 0.5).astype(int)

    def allowed(value: float, runs: list[Any]) -> bool:
        """Whether a value is among labels and [low, high] runs, in which None is a missing value."""
        if np.isnan(value):
            return None in runs
        return any(r[0] <= value <= r[1] if isinstance(r, list) else r is not None and float(r) == value for r in runs)

    found = reasons(Asking((load(booster),), read_table(path), WhyOptions(rows=range(len(rows)), also=["box"]))).result
    missing = several = 0
    for one, row in zip(found, rows, strict=True):
        assert one.also is not None
        box, own = one.also["box"], int(classes(row[None])[0])
        assert one.predicted == str(own)
        runs = {NAMES.index(name): runs for name, runs in box.items()}
        inside = [v[[f not in runs or allowed(u, runs[f]) for u in v]] for f, v in enumerate(columns)]
        assert box_holds(classes, inside, own)
        for f, kept in runs.items():
            assert allowed(row[f], kept)
            beyond = columns[f][[not allowed(u, kept) for u in columns[f]]]
            for u in beyond if f != 1 else beyond[np.isnan(beyond)]:
                assert not box_holds(classes, [*inside[:f], np.array([u]), *inside[f + 1 :]], own)
        missing += 1 in runs and None in runs[1]
        several += 0 in runs and len(runs[0]) > 1
    assert missing
    assert several


def test_what_stands_beside_a_reason_is_what_other_commands_say(tmp_path: Path) -> None:
    booster, classes, _ = xgboost_model(2)
    x = training_set(600, 4)[0]
    table, model = table_of(x, tmp_path), load(booster)
    found = reasons(Asking((model,), table, replace(OPTIONS, also=["radius", "recourse"]))).result
    for norm, word in (("linf", "radius"), ("l1", "recourse")):
        options = RobustOptions(norm=norm, time_limit=30.0, range=OPTIONS.range)
        for one, near, row in zip(found, robustness(Asking((model,), table, options)).result.rows, x, strict=True):
            assert one.also is not None
            told = one.also[word]
            assert told.distance == near.distance
            assert told.closed
            point = np.array([[told.point[name] for name in NAMES]], np.float32)
            assert classes(point)[0] != classes(row[None])[0]
            assert told.changes == [name for i, name in enumerate(NAMES) if point[0, i] != row[i]]
            assert told.distance == pytest.approx(
                (np.abs(point[0] - row) / 10).max() if norm == "linf" else (np.abs(point[0] - row) / 10).sum(), abs=1e-6
            )


def test_shares_of_treeshap_add_up_to_the_score_of_the_library(tmp_path: Path) -> None:
    pytest.importorskip("shap")
    booster, _, _ = xgboost_model(3)
    x = training_set(700, 30)[0]
    model = load(booster)
    found = reasons(Asking((model,), table_of(x, tmp_path), replace(OPTIONS, rows=[0, 7], also=["shap"]))).result
    scores = model.margins(x.astype(float))[:, 0]
    for one in found:
        assert one.also is not None
        shares = one.also["shap"].values
        assert sum(shares.values()) == pytest.approx(scores[one.row] - scores.mean(), abs=1e-4)
        first = set(list(shares)[: len(one.features)])
        assert one.also["shap"].agreement == len(first & set(one.features)) / len(one.features)


def test_what_cannot_stand_beside_a_reason_is_refused(tmp_path: Path) -> None:
    booster, _, _ = xgboost_model(0)
    with pytest.raises(UsageError, match="`anchors` cannot be shown with a reason"):
        reasons(Asking((load(booster),), table_of(training_set(1, 3)[0], tmp_path), WhyOptions(also=["anchors"])))
