"""Differences of two models against brute force over the library's own scores, and as a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.extensions.studies.asked import found as found_by
from tests.extensions.studies.grids import GRID, NAMES, several_classes, two_classes
from treesens.cli import main as cli
from treesens.data.tables import read_table
from treesens.errors import TreesensError, UsageError

xgboost = pytest.importorskip("xgboost")


def boosted(folder: Path, trees: int, target: np.ndarray, frame: Any, name: str, **more: Any) -> Any:
    model = xgboost.XGBClassifier(n_estimators=trees, max_depth=3, **more).fit(frame, target)
    model.save_model(folder / f"{name}.json")
    return model


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with two versions of a booster and their table, and both models."""
    folder = tmp_path_factory.mktemp("diff")
    frame = two_classes("xgboost").frame
    target = (frame["p"] + frame["q"] > 5).astype(int)
    frame.to_csv(folder / "d.csv", index=False)
    old = boosted(folder, 5, target, frame, "old")
    new = boosted(folder, 7, target, frame, "new")
    return folder, frame, old, new


def test_the_largest_difference_is_reached_and_bounded(versions: Any) -> None:
    _, frame, old, new = versions
    found = found_by("diff", ts.load(old), ts.load(new), table=read_table(frame), time_limit=20).result
    one, two = (np.asarray(m.predict(GRID, output_margin=True), float) for m in (old, new))
    assert found.verdict == "different"
    for largest in found.largest:
        best = float((largest.sign * (one - two)).max())
        assert largest.value == pytest.approx(best, abs=1e-5)
        assert largest.bound is not None
        assert best - 1e-5 <= largest.bound <= best + 1e-3
        record = largest.record()
        spot = [[record["input"][name] for name in NAMES]]
        both = [float(m.predict(np.array(spot, float), output_margin=True)[0]) for m in (old, new)]
        assert largest.sign * (both[0] - both[1]) == pytest.approx(best, abs=1e-5)
    changed = np.flatnonzero(old.predict(frame) != new.predict(frame))
    assert sorted(found.changed or []) == changed.tolist()
    rows = (np.asarray(m.predict(frame, output_margin=True), float) for m in (old, new))
    assert found.largest_on_rows == pytest.approx(float(np.abs(np.subtract(*rows)).max()), abs=1e-6)


@pytest.mark.parametrize("names", [["f0", "f1", "f2"], ["Column_0", "Column_1", "Column_2"]])
def test_generated_names_match_by_position(names: list[str]) -> None:
    rng = np.random.default_rng(2)
    table = rng.integers(0, 9, (200, 3)).astype(float)
    named = xgboost.DMatrix(table, label=table[:, 0] - table[:, 2], feature_names=["age", "debt", "income"])
    made_up = xgboost.DMatrix(table, label=table[:, 0] - table[:, 2], feature_names=names)
    old, new = (xgboost.train({"max_depth": 3}, one, 3) for one in (named, made_up))
    for one, other in ((old, new), (new, old)):
        found = ts.diff(one, other, table)
        assert found.verdict == "equal"
    other = xgboost.DMatrix(table, label=table[:, 0], feature_names=["f1", "f0", "f2"])
    with pytest.raises(TreesensError, match="no feature in common"):
        ts.diff(old, xgboost.train({"max_depth": 3}, other, 3))


def test_equal_models_are_proved_equal(versions: Any) -> None:
    _, frame, old, _ = versions
    found = found_by("diff", ts.load(old), ts.load(old), table=read_table(frame), time_limit=20).result
    assert found.verdict == "equal"
    assert found.bound == 0.0
    assert found.changed == []


def test_every_score_of_several_classes_is_compared() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    trained = several_classes("forest")
    y = trained.estimator.predict(trained.frame)
    other = ensemble.RandomForestClassifier(5, max_depth=3, random_state=9).fit(trained.frame, y)
    found = found_by(
        "diff", ts.load(trained.estimator), ts.load(other), table=read_table(trained.frame), time_limit=20
    ).result
    apart = trained.scores - other.predict_proba(trained.grid).reshape(trained.scores.shape)
    for largest in found.largest:
        best = float((largest.sign * apart[..., trained.names.index(largest.score)]).max())
        assert largest.value == pytest.approx(best, abs=1e-9)
    changed = trained.estimator.predict(trained.frame) != other.predict(trained.frame)
    assert sorted(found.changed or []) == np.flatnonzero(changed).tolist()


@pytest.fixture(scope="module")
def retrained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder, the table, and two models: the first one leans on `p`, the second one on `q` and `r`."""
    folder = tmp_path_factory.mktemp("retrained")
    frame = two_classes("xgboost").frame
    frame.to_csv(folder / "d.csv", index=False)
    old = boosted(folder, 12, (frame["p"] > 2).astype(int), frame, "old", base_score=0.5)
    new = boosted(folder, 12, (frame["q"] + frame["r"] > 5).astype(int), frame, "new", base_score=0.5)
    return folder, frame, old, new


def flips(model: Any, feature: str, gap: float) -> bool:
    """Whether two inputs of the grid that differ in this feature alone lie on both sides of 0.5 by the gap."""
    chance = np.asarray(model.predict_proba(GRID), float)[:, 1].reshape(6, 6, 6)
    axis = NAMES.index(feature)
    return bool(((chance.max(axis) >= 0.5 + gap) & (chance.min(axis) <= 0.5 - gap)).any())


@pytest.mark.parametrize("gap", [0.05, 0.25, 0.4])
def test_sensitivities_appear_and_go_as_the_library_says(retrained: Any, gap: float) -> None:
    _, frame, old, new = retrained
    found = ts.diff(old, new, frame, gap=gap, time_limit=5).sensitivities
    assert found is not None
    words = {(False, True): "appears", (True, False): "goes", (True, True): "stays", (False, False): "never"}
    expected = {name: words[flips(old, name, gap), flips(new, name, gap)] for name in NAMES}
    assert {one["varied"][0]: one["change"] for one in found} == expected
    assert {"appears", "goes"} <= set(expected.values())
    for one in found:
        for side, model in (("old", old), ("new", new)):
            if one[side]["verdict"] == "found":
                pair = [[one[side]["points"][point][name] for name in NAMES] for point in ("a", "b")]
                chances = np.asarray(model.predict_proba(np.array(pair, float)), float)[:, 1]
                assert chances.max() >= 0.5 + gap - 1e-6
                assert chances.min() <= 0.5 - gap + 1e-6


def test_a_sensitivity_that_appears_fails_the_command(retrained: Any, capsys: pytest.CaptureFixture[str]) -> None:
    folder, *_ = retrained
    old, new = (str(folder / name) for name in ("old.json", "new.json"))
    more = ["--data", str(folder / "d.csv"), "--gap", "0.25", "--fail-on", "sensitivities"]

    def ends_with(*arguments: str) -> Any:
        with pytest.raises(SystemExit) as ended:
            cli(["diff", *arguments])
        return ended.value.code

    assert ends_with(old, new, *more) == 10
    shown = capsys.readouterr().out
    assert "appears" in shown
    assert "goes" in shown
    assert ends_with(old, old, *more) == 0
    assert ends_with(old, new, "--gap", "0.25") == 1
    assert ends_with(old, new, "--vary", "p") == 1


def test_models_of_different_kinds_are_refused() -> None:
    several, two = ts.load(several_classes("forest").estimator), ts.load(two_classes("xgboost").estimator)
    with pytest.raises(UsageError, match="versions of one model"):
        found_by("diff", several, two)
    assert json.dumps(found_by("diff", two, two, time_limit=5).result.record())


def test_from_python_over_live_objects(versions: Any) -> None:
    folder, frame, old, new = versions
    found = ts.diff(old, folder / "new.json", frame, time_limit=20)
    assert found.verdict == "different"
    assert sorted(found.changed_rows or []) == np.flatnonzero(old.predict(frame) != new.predict(frame)).tolist()
    shown = found.frame()
    assert type(shown) is type(frame)
    apart = np.subtract(*(np.asarray(m.predict(GRID, output_margin=True), float) for m in (old, new)))
    assert shown["largest"].tolist() == pytest.approx([apart.max(), -apart.min()], abs=1e-5)
    assert found.bound is not None
    assert found.bound >= np.abs(apart).max() - 1e-5
    assert f"{len(found.changed_rows or [])} of 90 rows change" in repr(found)
    assert found._repr_html_().count("<tr>") == 3
    assert json.dumps(found.record)
    assert ts.diff(old, old).verdict == "equal"
    with pytest.raises(UsageError, match="`time_limit` is 0"):
        ts.diff(old, new, time_limit=0)
