"""The range of a mean of several models, against the library's own probabilities on every input of a grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import treesens as ts
from tests.extensions.studies.asked import found as found_by
from tests.frontends.test_sklearn_blends import GRID, NAMES, fitted
from treesens.data.tables import read_table
from treesens.extensions.studies.range import RangeRecord
from treesens.extensions.studies.study import Found


def ranges(case: str, **options: object) -> Found[RangeRecord]:
    return found_by("range", ts.load(fitted(case)), table=read_table(GRID), time_limit=60, **options)


@pytest.mark.parametrize("case", ["folds X sigmoid", "folds L isotonic", "bag of boosted", "three classes"])
def test_both_ends_are_those_of_the_library(case: str) -> None:
    shown = fitted(case).predict_proba(GRID)
    classes = ("2",) if shown.shape[1] > 2 else ()
    found = ranges(case, classes=classes)
    assert [end.sense for end in found.result] == ["minimize", "maximize"]
    for end in found.result:
        record = end.record()
        column = shown[:, -1]
        expected = column.min() if end.sense == "minimize" else column.max()
        assert record.closed, record.reason
        assert record.score == "probability"
        assert record.value == pytest.approx(expected, abs=1e-7)
        beyond = record.bound - expected if end.sense == "maximize" else expected - record.bound  # type: ignore[operator]
        assert -1e-7 <= beyond <= 1e-6
        assert record.points is not None
        place = np.flatnonzero((GRID[NAMES] == [record.points["a"][name] for name in NAMES]).all(axis=1))
        assert column[place] == pytest.approx(record.value, abs=1e-7)  # XGBoost has float32


def test_a_bound_has_no_certificate_and_says_why(tmp_path: Path) -> None:
    for end in ranges("folds X sigmoid", certificates=tmp_path).result:
        record = end.record()
        assert record.bound is not None
        assert "many questions about a mean of several models" in str(record.certificates)
