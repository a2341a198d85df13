"""Fault 33: a row of the table that lies outside the domain, in a cell that holds legal values, was itself an answer.

`minimize distance(a, nearest row of d)` tried the rows as they stand, and the replay judged constraints alone. The expected
values come from xgboost's own predictions on the complete domain.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.asking import ask
from tests.corpus import regressed

pytestmark = pytest.mark.fault

DECLARED = "feature f0: integer in [0, 3]\nfeature f1: integer in [0, 3]"
EVERY = np.array(list(itertools.product(range(4), repeat=2)), float)


@pytest.fixture(scope="module")
def booster() -> Any:
    rows = np.array(list(itertools.product(range(6), repeat=2)), float)
    return regressed(rows, rows[:, 0] * (rows[:, 1] > 1), 2, 2, names=["f0", "f1"], eta=1.0, base_score=0.0)


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_a_row_outside_the_domain_is_no_answer(booster: Any, norm: str) -> None:
    import xgboost as xgb

    scores = booster.predict(xgb.DMatrix(EVERY, feature_names=["f0", "f1"])).reshape(4, 4)
    flips = [f1 for f1 in range(4) if scores[:, f1].max() - scores[:, f1].min() >= 0.5]
    assert 3 in flips
    table = pd.DataFrame({"f0": [1, 2], "f1": [5, 4]})
    where = "a = b except f0\n value(a) - value(b) >= 0.5"
    question = f"find a, b such that\n {where}\n minimize distance(a, nearest row of d, {norm})"
    answer = ask(booster, question, DECLARED, table, backend="native", time_limit=20)
    points = answer.to_dict()["points"]
    assert all(0 <= value <= 3 for point in points.values() for value in point.values()), points
    # Only f1 counts: f0 is sensitive. The rows have 5 and 4, one third of the width beyond the domain.
    expected = 1.0 if norm == "l0" else 1 / 3
    assert answer.result.objective.value == pytest.approx(expected, abs=1e-9)
