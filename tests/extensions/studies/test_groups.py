"""Favourable decisions by group: against the library's own decisions on rows, and on all inputs of a grid."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.extensions.studies.grids import GRID, NAMES, Trained, regressor, several_classes, two_classes
from treesens.cli import main
from treesens.errors import UsageError
from treesens.extensions.studies.groups_search import Counts, _ratio, _reaches


def with_groups(trained: Trained, seed: int = 1) -> pd.DataFrame:
    """The rows with two columns that are no features."""
    rng = np.random.default_rng(seed)
    frame = trained.frame.copy()
    frame["who"] = rng.choice(["u", "v", "w"], len(frame))
    frame["old"] = rng.integers(0, 2, len(frame))
    return frame


def favourable(trained: Trained, frame: pd.DataFrame, label: int) -> np.ndarray:
    """The rows to which the library gives a class."""
    return np.asarray(trained.classes[tuple(frame[NAMES].to_numpy(int).T)] == label)


@pytest.mark.parametrize("by", [["who"], ["p"], ["who", "old"], ["q", "who"]])
@pytest.mark.parametrize("make", [lambda: two_classes("xgboost"), lambda: several_classes("forest")])
def test_rows_are_counted_as_the_library_decides(by: list[str], make: Any) -> None:
    trained = make()
    frame = with_groups(trained)
    label = len(trained.names) - 1
    found = ts.groups(trained.estimator, frame, by=[by], favourable=trained.names[label], smallest=0.0)
    good = favourable(trained, frame, label)
    keys = list(zip(*(frame[name].tolist() for name in by), strict=True))
    shares = {}
    for key in dict.fromkeys(keys):
        here = good[[k == key for k in keys]]
        shares[key] = Fraction(int(here.sum()), len(here))
    assert [tuple(r["group"]) for r in found.records] == sorted(shares)
    for record in found.records:
        share = shares[tuple(record["group"])]
        assert record["favourable_rows"] == share * record["rows"]
        assert record["lower"] <= share <= record["upper"]
        assert record["upper"] - record["lower"] < 1e-15
        ratio = share / max(shares.values())
        assert record["ratio_lower"] <= ratio <= record["ratio_upper"]
        assert record["reaches"] == ("yes" if ratio >= Fraction(4, 5) else "no")


@pytest.mark.parametrize(("condition", "holds"), [("p<2", lambda p: p < 2), ("p >= 4", lambda p: p >= 4)])
def test_a_condition_makes_two_groups(condition: str, holds: Any) -> None:
    trained = two_classes("xgboost")
    found = ts.groups(trained.estimator, trained.frame, by=[condition], favourable=1, smallest=0.0)
    good, yes = favourable(trained, trained.frame, 1), holds(trained.frame.p.to_numpy())
    told = {record["group"][0]: (record["favourable_rows"], record["rows"]) for record in found.records}
    assert told == {"yes": (good[yes].sum(), yes.sum()), "no": (good[~yes].sum(), (~yes).sum())}


@pytest.mark.parametrize("condition", ["p<x", "who>1"])
def test_a_condition_compares_numbers(condition: str) -> None:
    trained = two_classes("xgboost")
    with pytest.raises(UsageError, match="does not compare numbers"):
        ts.groups(trained.estimator, with_groups(trained), by=[condition], favourable=1)


def test_a_measure_of_the_domain_is_the_share_of_all_inputs_of_a_group() -> None:
    trained = two_classes("xgboost")
    found = ts.groups(
        trained.estimator, trained.frame, by=["q"], favourable=1, measure="uniform", smallest=0.0, time_limit=20
    )
    good = trained.classes == 1
    for record in found.records:
        share = good[:, record["group"][0], :].mean()
        assert record["lower"] - 1e-9 <= share <= record["upper"] + 1e-9
        assert record["closed"]


def test_a_measure_that_is_learnt_from_the_rows_of_a_group() -> None:
    """By independent features with the shares of values that the rows of the group have: all 216 inputs are weighed."""
    trained = two_classes("xgboost")
    frame = with_groups(trained)
    found = ts.groups(
        trained.estimator, frame, by=["who"], favourable=1, measure="marginals", smallest=0.0, time_limit=20
    )
    for record in found.records:
        mine = frame[frame["who"] == record["group"][0]]
        chances = [np.bincount(mine[name], minlength=6) / len(mine) for name in NAMES]
        weights = np.prod([chances[i][GRID[:, i].astype(int)] for i in range(3)], axis=0)
        share = float(weights[(trained.classes == 1).ravel()].sum())
        assert record["lower"] - 1e-9 <= share <= record["upper"] + 1e-9
        assert record["upper"] - record["lower"] < 0.1
        assert record["rows"] == len(mine)


def test_a_cut_off_decides_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = two_classes("xgboost")
    frame = with_groups(trained)
    monkeypatch.chdir(tmp_path)
    trained.estimator.save_model("m.json")
    frame.to_csv("d.csv", index=False)
    good = trained.estimator.predict_proba(frame[NAMES])[:, 1] >= 0.3
    for words, code in (
        ([], 0),
        (["--ratio", "1", "--fail-on", "unproved"], 10),
        (["--ratio", "1", "--fail-on", "ratio"], 10),
    ):
        with pytest.raises(SystemExit) as ended:
            main(
                [
                    "groups",
                    "m.json",
                    "--data",
                    "d.csv",
                    "--by",
                    "who",
                    "--favourable",
                    "1",
                    "--threshold",
                    "0.3",
                    *words,
                    "--json",
                ]
            )
        assert ended.value.code == code
        document = json.loads(capsys.readouterr().out)
        assert document["favourable"] == "1"
        for record in document["results"]:
            here = good[(frame["who"] == record["group"][0]).to_numpy()]
            assert record["favourable_rows"] == int(here.sum())


def test_small_groups_are_shown_and_not_compared() -> None:
    trained = two_classes("xgboost")
    frame = trained.frame.assign(who=["rare"] + ["usual"] * (len(trained.frame) - 1), also=["x", "y"] * 45)
    records = {r["group"][0]: r for r in ts.groups(trained.estimator, frame, by=["who"], favourable=1).records}
    assert records["rare"]["reaches"] == "not compared"
    assert records["rare"]["ratio_lower"] is None
    both = ts.groups(trained.estimator, frame, by=["also", ["who", "also"]], favourable=1).records
    assert [r["by"] for r in both] == [["also"]] * 2 + [["who", "also"]] * 3


def test_the_interval_of_a_ratio_holds_every_ratio_and_no_more() -> None:
    levels = [Fraction(n, 4) for n in range(5)]
    spans = [(low, high) for low in levels for high in levels if low <= high]
    for (low, high), (one, two), (three, four) in itertools.product(spans, spans, spans[::3]):
        mine, *others = (Counts(*ends, None, True, "") for ends in ((low, high), (one, two), (three, four)))
        found = _ratio(mine, others)
        reached = [
            share / max(share, x, y)
            for share, x, y in itertools.product((low, high), (one, two), (three, four))
            if max(share, x, y)
        ]
        if found is None:
            assert max(low, one, three) == 0
        else:
            assert found == (min(reached), max(reached))


def test_what_makes_no_sense_has_a_remedy() -> None:
    trained = two_classes("xgboost")
    frame = with_groups(trained).assign(number=np.arange(90) / 7, many=[f"n{i}" for i in range(90)])
    with pytest.raises(UsageError, match="no column `whom`"):
        ts.groups(trained.estimator, frame, by=["whom"], favourable=1)
    with pytest.raises(UsageError, match="no class `5`"):
        ts.groups(trained.estimator, frame, by=["who"], favourable="5")
    with pytest.raises(UsageError, match="is not a feature"):
        ts.groups(trained.estimator, frame, by=["who"], favourable=1, measure="uniform")
    with pytest.raises(UsageError, match="makes 540 groups"):
        ts.groups(trained.estimator, pd.concat([frame] * 6).assign(many=range(540)), by=["many"], favourable=1)
    named = ts.load(trained.estimator, classes={0: "granted", 1: "refused"})
    for call in (lambda: ts.groups(named, frame, by=["who"]), lambda: ts.reasons(named, trained.frame)):
        with pytest.raises(UsageError, match="no favourable class is stated") as told:
            call()
        assert '0 (granted), 1 (refused), or write favourable = "CLASS"' in str(told.value.remedy)
    with pytest.raises(UsageError, match="no favourable class is stated"):
        ts.groups(several_classes("xgboost").estimator, trained.frame, by=["p"])
    with pytest.raises(UsageError, match="decides nothing"):
        ts.groups(regressor("xgboost").estimator, trained.frame, by=["p"])


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_decisions_of_votes_are_counted_over_rows(voting: str) -> None:
    """Neither has a score of its own; what a group gets is what `predict` says of its rows."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    trained = two_classes("xgboost")
    target = trained.estimator.predict(trained.frame)
    members = [
        ("a", ensemble.GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0)),
        ("b", ensemble.RandomForestClassifier(3, max_depth=2, random_state=0)),
    ]
    model = ensemble.VotingClassifier(members, voting=voting).fit(trained.frame, target)
    records = ts.groups(model, trained.frame, by="q", favourable=1).records
    said = model.predict(trained.frame)
    assert len(records) == trained.frame["q"].nunique()
    for record in records:
        mine = said[trained.frame["q"] == record["group"][0]]
        assert (record["rows"], record["favourable_rows"]) == (len(mine), (mine == 1).sum())
    if voting == "soft":
        with pytest.raises(UsageError, match="averages the probabilities of several"):
            ts.groups(model, trained.frame, by="q", favourable=1, measure="uniform")
        return
    # Of two votes class 1 needs both, which can be counted over all inputs, too.
    on_grid = model.predict(trained.grid)
    for record in ts.groups(model, trained.frame, by="q", favourable=1, measure="uniform").records:
        share = (on_grid[trained.grid["q"] == record["group"][0]] == 1).mean()
        assert record["lower"] - 1e-9 <= share <= record["upper"] + 1e-9


def test_a_group_of_just_the_smallest_size_is_compared() -> None:
    """A quarter of 88 rows is 22: groups of 22 are compared, one of 21 is not."""
    trained = two_classes("xgboost")
    frame = trained.frame.iloc[:88].assign(who=["a"] * 22 + ["b"] * 21 + ["c"] * 45)
    found = ts.groups(trained.estimator, frame, by=["who"], smallest=0.25, favourable="1")
    records = {r["group"][0]: r for r in found.records}
    assert {name: one["reaches"] == "not compared" for name, one in records.items()} == {
        "a": False,
        "b": True,
        "c": False,
    }


def test_a_ratio_that_is_just_met_is_reached() -> None:
    assert _reaches((Fraction(4, 5), Fraction(4, 5)), Fraction(4, 5)) == "yes"
    assert _reaches((Fraction(3, 5), Fraction(4, 5)), Fraction(4, 5)) == "open"
    assert _reaches((Fraction(3, 5), Fraction(4, 5) - Fraction(1, 10**30)), Fraction(4, 5)) == "no"


def test_a_missing_value_is_no_category_called_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's decisions, counted by pandas: groups of different values have different names."""
    lightgbm = pytest.importorskip("lightgbm")
    monkeypatch.setenv("COLUMNS", "200")
    rng = np.random.default_rng(0)
    values = pd.Series(np.array(["None", "missing", "b", None], object)[rng.integers(0, 4, 300)])
    frame = pd.DataFrame({"c": values.astype("category"), "z": rng.integers(0, 4, 300)})
    model = lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1)
    model.fit(frame, ((frame.z > 1) ^ (values == "b")).astype(int))
    model.booster_.save_model(tmp_path / "m.txt")
    frame.to_parquet(tmp_path / "d.parquet")
    shown = values.map({"None": "None", "missing": '"missing"', "b": "b"}).fillna("missing")
    decided = pd.Series(model.predict(frame)).groupby(shown)
    with pytest.raises(SystemExit, match="0"):
        main(["groups", f"{tmp_path}/m.txt", "--data", f"{tmp_path}/d.parquet", "-b", "c", "--favourable", "1"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    cells = {line[1]: (int(line[2]), int(line[3])) for line in lines if line[:1] == ["c"]}
    assert cells == {name: (int(own.count()), int(own.sum())) for name, own in decided}
