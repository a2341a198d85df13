"""Calls as people write them: one name, arrays, labels of an index, other words, and what was meant by wrong ones."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.extensions.studies.whole_numbers import xgboost_of_whole_numbers


@pytest.fixture(scope="module")
def case() -> tuple[Any, pd.DataFrame]:
    return xgboost_of_whole_numbers()


def test_one_feature_is_a_set_by_itself(case: Any) -> None:
    model, frame = case
    for call in (ts.gap, ts.count, ts.audit):
        one, several = call(model, frame, vary="f0"), call(model, frame, vary=["f0"])
        assert [r["varied"] for r in one.records] == [r["varied"] for r in several.records] == [["f0"]] * len(one)
    with pytest.raises(ts.errors.UsageError, match="contains 4, which is not a name"):
        ts.gap(model, frame, vary=[4])
    with pytest.raises(ts.errors.UsageError, match="`by` contains None, which is not a name"):
        ts.groups(model, frame, by=None)


def test_arrays_have_the_names_of_the_model(case: Any) -> None:
    model, frame = case
    array = frame.to_numpy()
    same = [ts.gap(model, data, vary="f1").records[0]["largest_gap"] for data in (array, frame)]
    assert same[0] == same[1]
    pair = ts.sensitivity(model, vary="f1", gap=0.1, data=array).pair
    assert isinstance(pair, np.ndarray)
    high, low = model.predict_proba(pair)[:, 1]
    assert high >= 0.6
    assert low <= 0.4
    with pytest.raises(ts.errors.DataError, match="the array has 2 columns, but the model has 3 features"):
        ts.gap(model, array[:, :2])
    with pytest.raises(ts.errors.DataError, match="no column `y`"):
        ts.why(model, array, rows=0, label="y")


def test_rows_by_label_by_mask_and_by_number(case: Any) -> None:
    model, frame = case
    named = frame.set_axis([f"r{i}" for i in range(len(frame))])
    for rows in (["r3", "r5"], named.index[[3, 5]], [3, 5], np.isin(np.arange(len(frame)), [3, 5])):
        assert [record["row"] for record in ts.why(model, named, rows=rows).records] == [3, 5]
    with pytest.raises(ts.errors.UsageError, match="no row is called 'r999'"):
        ts.why(model, named, rows="r999")
    twice = frame.set_axis(["a"] * len(frame))
    with pytest.raises(ts.errors.UsageError, match="rows are called 'a'"):
        ts.why(model, twice, rows="a")


def test_other_words_for_arguments(case: Any) -> None:
    model, frame = case
    assert ts.gap(model, frame, features="f0", timeout=9).records[0]["varied"] == ["f0"]
    with pytest.raises(ts.errors.ArgumentsError, match="has `gap` twice"):
        ts.count(model, frame, gap=0.1, gaps=0.1)
    for call, named, words in (
        (ts.gap, {"threshhold": 0.4}, "did you mean `threshold`"),
        (ts.audit, {"vayr": "f0"}, "did you mean `vary`"),
        (ts.sensitivity, {"vayr": "f0", "gap": 0.1}, "has no argument `vayr`"),
    ):
        with pytest.raises(TypeError, match=words):
            call(model, data=frame, **named)


def test_texts_in_many_columns_are_one_message(case: Any) -> None:
    model, frame = case
    texts = frame.astype(int).astype(str).radd("A")
    with pytest.raises(ts.errors.TreesensError) as raised:
        ts.gap(model, texts)
    assert str(raised.value).count("error[") == 1
    assert "3 columns contain text" in str(raised.value)


def test_notes_are_on_the_answer_and_warn_nobody(case: Any) -> None:
    model, frame = case
    wide = frame.assign(f0=np.arange(len(frame)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = ts.sensitivity(model, vary="f1", gap=0.1, data=wide)
    assert "pass real=['f0'] if fractions can occur" in answer.notes[0]
