"""Robustness, reasons and sets of features from Python: what the commands say, by the library's own predictions."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.extensions.methods.test_least_radius import NAMES, training_set, xgboost_model
from treesens.cli import group
from treesens.errors import UsageError

RANGE = (0.0, 10.0)


@pytest.fixture(scope="module")
def trained() -> tuple[Any, Any, Any]:
    """A model, its classes, and rows in a frame."""
    import pandas as pd

    model, classes, _ = xgboost_model(1)
    return model, classes, pd.DataFrame(training_set(201, 6)[0], columns=list(NAMES))


def test_distances_are_reached_by_inputs_of_another_class(trained: tuple[Any, Any, Any]) -> None:
    model, classes, frame = trained
    found = ts.robust(model, frame, range=RANGE)
    assert len(found) == len(frame)
    own = classes(frame.to_numpy(np.float32))
    for record in found.records:
        assert record["closed"]
        point = np.array([[record["point"][name] for name in NAMES]], np.float32)
        row = frame.to_numpy(np.float32)[record["row"]]
        assert classes(point)[0] != own[record["row"]]
        assert np.abs(point[0].astype(float) - row.astype(float)).max() / 10 == pytest.approx(record["distance"])
    assert found.certified(0.0) == np.mean([d > 0 for d in found["bound"]])
    assert list(found.frame()["row"]) == list(range(len(frame)))


def test_the_curve_falls_at_every_bound(trained: tuple[Any, Any, Any]) -> None:
    model, _, frame = trained
    found = ts.robust(model, frame, [0, 2, 4], range=RANGE)
    curve = found.curve()
    assert [radius for radius, _ in curve[1:]] == sorted(set(found["bound"]))
    for radius, part in curve:
        assert part == np.mean([bound > radius for bound in found["bound"]])


def test_protected_features_are_in_no_reason(trained: tuple[Any, Any, Any]) -> None:
    model, _, frame = trained
    free = ts.why(model, frame, most=20, range=RANGE)
    barred = ts.why(model, frame, most=20, without=["f2"], range=RANGE)
    for one, other in zip(free.records, barred.records, strict=True):
        assert one["complete"]
        kept = [set(reason) for reason in one["reasons"] if "f2" not in reason]
        if kept:
            assert sorted(map(sorted, kept)) == sorted(map(sorted, other["reasons"]))
        else:
            assert other["sufficient"] is None
            assert "left out" in other["reason"]
    assert any(record["sufficient"] for record in barred.records)


def test_sets_are_those_of_asking_about_each(trained: tuple[Any, Any, Any]) -> None:
    model, _, frame = trained
    found = ts.sets(model, frame, margin=0.1)
    assert found.complete
    flips = {
        frozenset(names)
        for size in range(1, 4)
        for names in itertools.combinations(NAMES, size)
        if ts.sensitivity(model, vary=list(names), margin=0.1, data=frame).verdict == "found"
    }
    assert {frozenset(one) for one in found.flip} == {s for s in flips if not any(t < s for t in flips)}
    assert not any(flips & {frozenset(one)} for one in found.hold)
    assert set(found["verdict"]) <= {"found", "none"}


def test_what_makes_no_sense_is_said(trained: tuple[Any, Any, Any]) -> None:
    model, _, frame = trained
    for call in (
        lambda: ts.robust(model, frame, [6]),
        lambda: ts.robust(model, frame, [-1]),
        lambda: ts.robust(model, frame, [0.5]),  # type: ignore[list-item]
        lambda: ts.robust(model, frame, norm="l3"),  # type: ignore[arg-type]
        lambda: ts.why(model, frame, without=["age"]),
        lambda: ts.sets(model, frame),
        lambda: ts.sets(model, frame, gap=0.1, margin=1),
    ):
        with pytest.raises(UsageError):
            call()


def test_pictures_show_the_numbers(trained: tuple[Any, Any, Any]) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    model, _, frame = trained
    found = ts.robust(model, frame, range=RANGE)
    line = found.plot().lines[0]
    assert list(zip(*line.get_data(), strict=True)) == found.curve()
    assert line.get_drawstyle() == "steps-post"
    why = ts.why(model, frame, range=RANGE)
    axes = why.plot()
    shown = {t.get_text(): p.get_width() for t, p in zip(axes.get_yticklabels(), axes.patches, strict=True)}
    needed = [name for record in why.records for name in record["sufficient"]]
    assert shown == pytest.approx({name: needed.count(name) / len(frame) for name in set(needed)})


def test_the_command_draws_the_curve(trained: tuple[Any, Any, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    model, _, frame = trained
    model.save_model(tmp_path / "m.json")
    frame.to_csv(tmp_path / "d.csv", index=False)

    def run(picture: str) -> Any:
        path = str(tmp_path / picture)
        common = ["robust", str(tmp_path / "m.json"), "--data", str(tmp_path / "d.csv"), "--json"]
        return CliRunner().invoke(group, [*common, "--plot", path], standalone_mode=False)

    first = run("curve.svg")
    assert len(json.loads(first.stdout)["rows"]) == len(frame)
    picture = (tmp_path / "curve.svg").read_bytes()
    assert picture.startswith(b"<?xml")
    run("again.svg")
    assert (tmp_path / "again.svg").read_bytes() == picture
    assert isinstance(run("curve.txt").exception, UsageError)


def test_a_sensitivity_is_about_one_decision_and_its_probability() -> None:
    from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier

    x = np.arange(60.0).reshape(20, 3) % 7
    several = RandomForestClassifier(3, random_state=0).fit(x, np.arange(20) % 3)
    with pytest.raises(UsageError, match="3 classes, and no single decision"):
        ts.sensitivity(several, vary=["f0"], gap=0.1)
    raw = AdaBoostClassifier(n_estimators=3, random_state=0).fit(x, np.arange(20) % 2)
    with pytest.raises(UsageError, match="raw scores but no probabilities"):
        ts.sensitivity(raw, vary=["f0"], gap=0.1)
    assert ts.sensitivity(raw, vary=["f0", "f1", "f2"], margin=0.01).verdict in ("found", "none")
