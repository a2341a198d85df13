"""Audits and largest gaps of every kind of decision, against brute force over the predictions of the libraries."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.extensions.studies.asked import found as found_by
from tests.extensions.studies.grids import NAMES, Trained, regressor, several_classes, two_classes
from treesens.cli import main
from treesens.data.tables import read_table
from treesens.errors import UsageError
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.audit_search import audit
from treesens.extensions.studies.decisions import Asked, decisions_of
from treesens.extensions.studies.events import gaps_of
from treesens.extensions.studies.questions import sizes_of
from treesens.extensions.studies.report.audit_table import show_audit
from treesens.extensions.studies.sens_file import read_domain
from treesens.records.plain import plain
from treesens.report.terminal import console

SEVERAL = ["forest", "tree", "histogram", "xgboost", "lightgbm"]
CLOSE = 1e-6
"""No score of these models comes so close to a bound that is asked about, but for rounding."""


def records_of(trained: Trained, *, gap: list[str] | None = None, margin: list[str] | None = None, **more: Any) -> Any:
    loaded = ts.load(trained.estimator)
    sizes = sizes_of(loaded, gap or [], margin or [], more.get("threshold"), more.get("classes", ()))
    options = AuditOptions(time_limit=5.0, jobs=1, replay="library", **more)
    return audit(loaded, read_table(trained.frame), gaps=sizes, options=options).records


def judged(record: dict[str, Any], trained: Trained, flips: np.ndarray, swing: float | None) -> None:
    """A record against which inputs flip by brute force, bool[6, 6, 6], and the largest swing."""
    assert record["rows"] == len(trained.frame)
    assert record["rows_flipped"] == int(flips[trained.at_rows].sum()), record
    assert record["verdict"] == ("found" if flips.any() else "none"), record
    if swing is not None:
        assert record["max_swing"] == pytest.approx(swing, abs=1e-5)
        assert record["max_swing_bound"] == pytest.approx(swing, abs=1e-4)


def leads(scores: np.ndarray, wanted: int) -> np.ndarray:
    """By how much a class is ahead of every other one, [6, 6, 6]."""
    others = np.delete(scores, wanted, axis=-1).max(axis=-1)
    return np.asarray(scores[..., wanted] - others)


def number_of(trained: Trained, name: Any) -> int:
    return trained.names.index(str(name))


@pytest.mark.parametrize("kind", SEVERAL)
def test_changes_between_classes(kind: str) -> None:
    trained = several_classes(kind)
    some = 0
    for record in records_of(trained, margin=["0", "0.21"]):
        first, second = (number_of(trained, name) for name in record["classes"])
        axis = NAMES.index(record["varied"][0])
        if record["margin"] == 0:
            one, two = ((trained.classes == c).any(axis=axis, keepdims=True) for c in (first, second))
        else:
            one, two = (
                leads(trained.scores, c).max(axis=axis, keepdims=True) >= record["margin"] - CLOSE
                for c in (first, second)
            )
        flips = np.broadcast_to(one & two, (6, 6, 6))
        difference = trained.scores[..., first] - trained.scores[..., second]
        high, low = trained.extremes(difference, axis)
        judged(record, trained, flips, float((high - low).max()))
        some += record["rows_flipped"]
        if record["points"]:
            spots = [tuple(int(point[name]) for name in NAMES) for point in record["points"].values()]
            if record["margin"] == 0:
                assert [int(trained.classes[spot]) for spot in spots] == [first, second]
    assert some > 0


@pytest.mark.parametrize("kind", ["forest", "tree"])
@pytest.mark.parametrize("threshold", [None, "0.2"])
def test_one_chosen_class_of_a_forest(kind: str, threshold: str | None) -> None:
    trained = several_classes(kind)
    cut = None if threshold is None else Fraction(threshold)
    for record in records_of(trained, gap=["0.15"] if cut else ["0.15", "0.6"], classes=["mid"], threshold=cut):
        chance = trained.scores[..., number_of(trained, "mid")]
        high, low = trained.extremes(chance, NAMES.index(record["varied"][0]))
        if cut is None:
            flips = high - low >= record["gap"] - CLOSE
        else:
            flips = (high >= 0.2 + record["gap"] - CLOSE) & (low <= 0.2 - record["gap"] + CLOSE)
        judged(record, trained, flips, float((high - low).max()))


def test_one_chosen_class_of_a_booster_moves_its_raw_score() -> None:
    trained = several_classes("xgboost")
    for record in records_of(trained, margin=["0.4"], classes=["1"]):
        high, low = trained.extremes(trained.scores[..., 1], NAMES.index(record["varied"][0]))
        judged(record, trained, high - low >= 0.4 - CLOSE, float((high - low).max()))


@pytest.mark.parametrize("kind", ["forest", "tree", "histogram", "xgboost"])
@pytest.mark.parametrize("threshold", ["0.2", "0.7"])
def test_a_cut_off_of_the_users_own(kind: str, threshold: str) -> None:
    trained = two_classes(kind)
    cut = float(threshold)
    chance = trained.scores[..., 0]
    some = 0
    for record in records_of(trained, gap=["0", "0.11"], threshold=Fraction(threshold)):
        high, low = trained.extremes(chance, NAMES.index(record["varied"][0]))
        size = record["gap"]
        flips = (high >= cut + size - CLOSE) & ((low < cut - CLOSE) if size == 0 else (low <= cut - size + CLOSE))
        judged(record, trained, flips, None)
        some += record["rows_flipped"]
        down = flips & (chance >= cut + size - CLOSE)
        assert record["rows_flipped_down"] == int(down[trained.at_rows].sum())
    assert some > 0


def test_any_change_of_the_decision_of_a_booster() -> None:
    trained = two_classes("xgboost")
    for record in records_of(trained, margin=["0"]):
        axis = NAMES.index(record["varied"][0])
        classes = trained.classes
        flips = np.broadcast_to(
            classes.max(axis=axis, keepdims=True) != classes.min(axis=axis, keepdims=True), (6,) * 3
        )
        judged(record, trained, flips, None)


@pytest.mark.parametrize("kind", ["forest", "tree", "gradient", "xgboost"])
def test_values_of_regressors(kind: str) -> None:
    trained = regressor(kind)
    for record in records_of(trained, gap=["1", "4"]):
        high, low = trained.extremes(trained.scores[..., 0], NAMES.index(record["varied"][0]))
        judged(record, trained, high - low >= record["gap"] - CLOSE, float((high - low).max()))


@pytest.mark.parametrize("kind", SEVERAL)
def test_largest_leads_between_classes(kind: str) -> None:
    trained = several_classes(kind)
    found = found_by("gap", ts.load(trained.estimator), table=read_table(trained.frame), time_limit=20, threads=1)
    assert len(found.result) == 9
    for result in found.result:
        record = plain(result.record())
        first, second = (number_of(trained, name) for name in record["classes"])
        axis = NAMES.index(record["varied"][0])
        one, two = (leads(trained.scores, c).max(axis=axis) for c in (first, second))
        enclosed(record, float(np.minimum(one, two).max()))


@pytest.mark.parametrize("kind", ["forest", "histogram", "xgboost"])
def test_largest_gaps_around_a_cut_off(kind: str) -> None:
    trained = two_classes(kind)
    options = {"time_limit": 20, "threads": 1, "threshold": Fraction("0.3")}
    scores, centre = trained.scores[..., 0], 0.3
    if kind != "forest":
        scores, centre = np.log(scores / (1 - scores)), float(np.log(0.3 / 0.7))
    for result in found_by("gap", ts.load(trained.estimator), table=read_table(trained.frame), **options).result:
        axis = NAMES.index(result.varied[0])
        best = np.minimum(scores.max(axis=axis) - centre, centre - scores.min(axis=axis)).max()
        enclosed(plain(result.record()), float(best))


@pytest.mark.parametrize("threshold", ["0.5", "0.37"])
def test_cut_offs_between_the_votes_of_pure_trees(threshold: str) -> None:
    """Seven trees with pure leaves have votes of 0 and 1: the unit of their sum is a whole vote."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    trained = two_classes("forest")
    forest = ensemble.RandomForestClassifier(7, random_state=2).fit(
        trained.frame, trained.estimator.predict(trained.frame)
    )
    chance = forest.predict_proba(trained.grid)[:, 1].reshape(6, 6, 6)
    options, centre = {"time_limit": 20, "threads": 1, "threshold": Fraction(threshold)}, float(threshold)
    for result in found_by("gap", ts.load(forest), table=read_table(trained.frame), **options).result:
        axis = NAMES.index(result.varied[0])
        best = np.minimum(chance.max(axis=axis) - centre, centre - chance.min(axis=axis)).max()
        enclosed(plain(result.record()), float(best))


@pytest.mark.parametrize("kind", ["forest", "xgboost"])
def test_largest_differences_of_regressors(kind: str) -> None:
    trained = regressor(kind)
    for result in found_by("gap", ts.load(trained.estimator), table=read_table(trained.frame)).result:
        high, low = trained.extremes(trained.scores[..., 0], NAMES.index(result.varied[0]))
        enclosed(plain(result.record()), float((high - low).max()))


def enclosed(record: dict[str, Any], best: float) -> None:
    """The value is reached and the bound holds, as close to each other as was asked for."""
    assert record["closed"], record
    if best < -CLOSE:
        assert record["verdict"] == "none"
        return
    assert record["largest_gap"] <= best + 1e-5
    assert record["largest_gap_bound"] >= best - 1e-5
    assert record["largest_gap_bound"] <= record["largest_gap"] * 1.021 + 1e-5


def test_a_set_of_features_is_varied_as_one() -> None:
    trained = several_classes("forest")
    loaded = ts.load(trained.estimator)
    options = AuditOptions(time_limit=10.0, jobs=1, classes=["low", "top"])
    (record,) = audit(
        loaded, read_table(trained.frame), varied=[["p", "r"]], gaps=gaps_of([], ["0.3"]), options=options
    ).records
    one, two = (
        leads(trained.scores, number_of(trained, c)).max(axis=(0, 2), keepdims=True) >= 0.3 for c in ("low", "top")
    )
    judged(record, trained, np.broadcast_to(one & two, (6, 6, 6)), None)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Asked("gap"), "one class: --classes C"),
        (Asked("gap", classes=("mid",)), "pass --margin"),
        (Asked("margin", Fraction(1, 5), ("mid",)), "pass --gap"),
        (Asked("margin", Fraction(1, 5)), "name the class"),
        (Asked("margin", classes=("middle",)), "did you mean `mid`"),
        (Asked("margin", classes=("mid", "mid")), "name each class once"),
    ],
)
def test_what_has_no_meaning_is_refused_with_a_remedy(asked: Asked, words: str) -> None:
    ensemble = ts.load(several_classes("histogram").estimator).ensemble
    with pytest.raises(UsageError, match=words):
        decisions_of(ensemble, asked)


def test_one_hot_features_move_together(tmp_path: Path) -> None:
    """With `onehot` a row counts if a legal change of its group flips it; a single feature of the group can not change."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(5)
    kind = rng.integers(0, 3, 120)
    frame = pd.DataFrame({"x": rng.integers(0, 4, 120), **{f"k{i}": (kind == i).astype(int) for i in range(3)}})
    target = (frame["x"] + 2 * (kind == 1) - (kind == 2) > 2).astype(int)
    forest = ensemble.RandomForestClassifier(9, max_depth=4, random_state=1).fit(frame, target)
    (tmp_path / "d.sens").write_text("onehot {k0, k1, k2}\nfeature x: integer in [0, 3]\n")
    loaded, domain = ts.load(forest), read_domain(tmp_path / "d.sens")
    every = [(x, *np.eye(3, dtype=int)[k]) for x in range(4) for k in range(3)]
    chance = forest.predict_proba(pd.DataFrame(every, columns=frame.columns))[:, 1].reshape(4, 3)
    for varied, over in ((["k0", "k1", "k2"], 1), (["k1"], None), (["x"], 0)):
        found = audit(
            loaded,
            read_table(frame),
            varied=[varied],
            gaps=gaps_of(["0.2"], []),
            options=AuditOptions(time_limit=9.0, jobs=1, domain=domain),
        )
        (record,) = found.records
        high = chance if over is None else chance.max(axis=over, keepdims=True)
        low = chance if over is None else chance.min(axis=over, keepdims=True)
        flips = np.broadcast_to((high >= 0.7) & (low <= 0.3), chance.shape)
        assert record["rows_flipped"] == int(flips[frame["x"].to_numpy(), kind].sum())
        assert record["verdict"] == ("found" if flips.any() else "none")
        assert record["max_swing"] == pytest.approx(float((high - low).max()), abs=1e-6)


def test_from_python_and_in_ci(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained = two_classes("xgboost")
    found = ts.audit(trained.estimator, trained.frame, threshold=0.2, gap=0.0, vary=["p"])
    trained.estimator.save_model(tmp_path / "m.json")
    trained.frame.to_csv(tmp_path / "d.csv", index=False)
    command = ["audit", str(tmp_path / "m.json"), "--data", str(tmp_path / "d.csv"), "--threshold", "0.2", "-v", "p"]
    for more, code in ((["--json"], 0), (["--fail-on", "rows"], 10), (["--fail-on", "found"], 10)):
        with pytest.raises(SystemExit) as ended:
            main([*command, "--gap", "0", *more])
        assert ended.value.code == code
        if more == ["--json"]:
            (record,) = json.loads(capsys.readouterr().out)["results"]
            assert record["rows_flipped"] == found["rows_flipped"][0] > 0
            assert record["question"] == "P(1) >= 0.2 for one input, < 0.2 for the other"
    capsys.readouterr()
    for study in (command, ["gap", *command[1:]]):
        with pytest.raises(SystemExit) as ended:
            main([*study, "--quiet", "--fail-on", "found"])
        assert (ended.value.code, capsys.readouterr().out) == (10, "")
    with pytest.raises(UsageError, match="between 0 and 1"):
        ts.audit(trained.estimator, trained.frame, threshold=20)


def test_tables_fit_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    trained = several_classes("tree")
    long = {name: f"number_of_{name}_within_the_last_year" for name in NAMES}
    records = [{**r, "varied": [long[r["varied"][0]]]} for r in records_of(trained, margin=["0"])]
    facts = {"model": {"file": "m", "trees": 1, "leaves": 9}, "data": {"file": "d", "rows": 90}, "seconds": 1.0}
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("treesens.extensions.studies.report.audit_table.out", lambda: console(width=80))
    show_audit(records, {**facts, "interrupted": False})
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert all(name in text for name in long.values())
    assert "left out at this width: of, nearest row, distance" in text


def test_a_swing_that_is_not_searched_is_that_of_a_row() -> None:
    """No time for a search: the largest swing among the rows, and a bound from the leaves, instead of nothing."""
    trained = two_classes("xgboost")
    loaded = ts.load(trained.estimator)
    options = AuditOptions(time_limit=1e-6, jobs=1)
    raw = np.asarray(trained.estimator.predict(trained.grid, output_margin=True), float).reshape(6, 6, 6)
    for record in audit(loaded, read_table(trained.frame), gaps=gaps_of([], ["0.5"]), options=options).records:
        high, low = trained.extremes(raw, NAMES.index(record["varied"][0]))
        assert record["max_swing"] is not None
        assert record["max_swing"] >= float((high - low)[trained.at_rows].max()) - 1e-5
        assert record["max_swing_bound"] >= float((high - low).max()) - 1e-5
