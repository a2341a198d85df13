"""Changes that people can make, against every combination of values, by the library's own predictions."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import treesens as ts
from tests.command import run_command
from tests.extensions.studies.whole_numbers import xgboost_of_whole_numbers


@pytest.fixture(scope="module")
def case() -> tuple[Any, pd.DataFrame]:
    return xgboost_of_whole_numbers()


def inputs(row: pd.Series, allowed: dict[str, Any]) -> Iterator[pd.DataFrame]:
    """All inputs that a change of the row may end at."""
    yield pd.DataFrame(
        list(itertools.product(*(allowed.get(name, [row[name]]) for name in row.index))), columns=row.index
    )


def reachable(model: Any, row: pd.Series, allowed: dict[str, Any]) -> pd.DataFrame:
    """Those of them that the library gives another class."""
    (every,) = inputs(row, allowed)
    return every[model.predict(every) != model.predict(row.to_frame().T)[0]]


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        ({"without": ["f0"]}, lambda row: {f: range(6) for f in ("f1", "f2")}),
        ({"fixed": ["f0", "f1"]}, lambda row: {"f2": range(6)}),
        (
            {"direction": {"f0": "up", "f1": "down"}},
            lambda row: {"f0": range(int(row.f0), 6), "f1": range(int(row.f1) + 1), "f2": range(6)},
        ),
        (
            {"permitted": {"f0": (1, 4), "f1": {0, 3}}, "fixed": "f2"},
            lambda row: {"f0": {1, 2, 3, 4, int(row.f0)}, "f1": {0, 3, int(row.f1)}},
        ),
        (
            {"permitted": {"f0": (2, 2), "f1": [5], "f2": (0.5, 4.5)}},
            lambda row: {"f0": {2, int(row.f0)}, "f1": {5, int(row.f1)}, "f2": {1, 2, 3, 4, int(row.f2)}},
        ),
    ],
)
def test_changes_are_those_that_are_allowed(case: Any, limits: dict[str, Any], allowed: Any) -> None:
    model, frame = case
    found = ts.why(model, frame, rows=list(range(12)), also=["recourse"], **limits)
    verdicts = set()
    for record in found.records:
        row = frame.iloc[record["row"]]
        ends = reachable(model, row, allowed(row))
        verdicts.add(record["changeable"])
        assert record["changeable"] is bool(len(ends))
        assert (record["contrast"] is None) is ends.empty
        recourse = record["recourse"]
        if ends.empty:
            assert recourse["verdict"] == "none"
            continue
        for point in (record["point"], recourse["point"]):
            assert any((end == pd.Series(point)).all() for _, end in ends.iterrows())
        assert set(record["contrast"]) >= {name for name in row.index if record["point"][name] != row[name]}
        width = frame.max() - frame.min()
        cost = ((ends - row).abs() / width).sum(axis=1).min()
        assert recourse["distance"] == pytest.approx(cost)
    assert True in verdicts


def test_no_change_is_one_of_left_out_features_in_the_language(case: Any) -> None:
    model, frame = case
    text = 'model m from "m"\ndata d from "d"\ndomain from d\nquery q: explain row 3 of d without f0'
    told = ts.check_text(text, models={"m": model}, data={"d": frame})["q"].to_dict()["explanation"]
    assert "f0" not in (told["contrast"] or [])


def test_limits_that_make_no_sense_are_refused(case: Any) -> None:
    model, frame = case
    for wrong, words in (
        ({"fixed": ["f9"]}, "no feature `f9`"),
        ({"direction": {"f0": "left"}}, "`left` is not a direction"),
        ({"direction": "f0"}, "names no features"),
        ({"permitted": {"f0": ()}}, "no value of `f0`"),
        ({"permitted": {"f0": [1, 4]}}, "may mean two ends or two values"),
        ({"permitted": {"f0": (4, 1)}}, "permitted range of `f0` is empty"),
        ({"permitted": {"f0": (0, float("inf"))}}, "inf is not finite"),
    ):
        with pytest.raises(ts.errors.UsageError, match=words):
            ts.why(model, frame, rows=0, **wrong)


@pytest.mark.parametrize(
    ("words", "allowed"),
    [("f0=1..4", {"f0": (1, 4)}), ("f0=1|4", {"f0": {1, 4}}), ("f0=1|2|4,f1=0..5", {"f0": {1, 2, 4}, "f1": (0, 5)})],
)
def test_the_command_reads_ranges_and_values_as_python_does(
    case: Any, words: str, allowed: dict[str, Any], tmp_path: Any
) -> None:
    model, frame = case
    model.save_model(tmp_path / "m.json")
    frame.to_csv(tmp_path / "d.csv", index=False)
    asked = ("why", "m.json", "--data", "d.csv", "--row", "0-9", "--permitted", words, "--json")
    told = run_command(tmp_path, *asked)
    records = json.loads(told.stdout)["rows"]
    found = ts.why(model, frame, rows=list(range(10)), permitted=allowed)
    assert [one["changeable"] for one in records] == [one["changeable"] for one in found.records]


def test_a_category_has_values_and_no_range() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    frame = pd.DataFrame({"c": pd.Categorical([1, 2, 5] * 40), "n": [float(i % 4) for i in range(120)]})
    label = (frame.c.cat.codes == 1) | (frame.n == 3)
    model = lightgbm.LGBMClassifier(n_estimators=5, min_child_samples=2, n_jobs=1, verbose=-1).fit(frame, label)
    with pytest.raises(ts.errors.UsageError, match="categories have no ends"):
        ts.why(model, frame, rows=0, permitted={"c": (1, 5)})
    # Row 0 has c = 1: its class changes at the category 2 alone.
    for allowed, changes in (({1, 5}, False), ({2, 5}, True), (["2"], True)):
        (record,) = ts.why(model, frame, rows=0, permitted={"c": allowed}, fixed="n").records
        assert record["changeable"] is changes, allowed
