"""Which columns carry another one, against the mutual information of scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from treesens.data.tables import read_table
from treesens.extensions.studies.report.audit_facts import proxies, uncertainty_coefficient


def test_the_coefficient_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    for values in (2, 5):
        target = rng.integers(0, values, 4000)
        column = np.where(rng.random(4000) < 0.6, target, rng.integers(0, values, 4000))
        entropy = -sum(p * math.log(p) for p in np.bincount(target) / 4000)
        wanted = (metrics.mutual_info_score(target, column) - (values - 1) ** 2 / 8000) / entropy
        assert uncertainty_coefficient(target, column) == pytest.approx(wanted, abs=1e-9)


def test_copies_tell_all_noise_tells_nothing_and_the_label_is_left_out() -> None:
    rng = np.random.default_rng(1)
    sex = rng.integers(0, 2, 3000)
    frame = pd.DataFrame(
        {
            "sex": np.where(sex == 1, "M", "F"),
            "job": np.where(sex == 1, "a", "b"),
            "height": sex * 10 + rng.normal(170, 8, 3000),
            "noise": rng.normal(size=3000),
            "code": rng.integers(0, 400, 3000),
            "one": 1,
            "y": sex,
        }
    )
    frame.loc[::7, "height"] = np.nan
    found = proxies(read_table(frame, label="y"), "sex")
    assert [one.feature for one in found] == ["job", "height"]
    assert found[0].told == pytest.approx(1.0, abs=1e-3)
    assert 0.02 < found[1].told < 0.6
    assert proxies(read_table(frame), "one") == []


def test_columns_of_many_texts_and_of_infinities_need_no_table_of_all_pairs() -> None:
    """100,000 names beside 100,000 others: a table of all pairs would take 80 GB."""
    rows = 100_000
    names = [f"n{i}" for i in range(rows)]
    beyond = np.arange(rows, dtype=float)
    beyond[:60_000:2], beyond[1:60_000:2] = np.inf, -np.inf
    frame = pd.DataFrame({"name": names, "other": names[::-1], "beyond": beyond, "sex": np.arange(rows) % 2})
    table = read_table(frame)
    assert [one.feature for one in proxies(table, "name")] == []  # all of it could be chance
    assert [(one.feature, round(one.told, 3)) for one in proxies(table, "sex")] == [("beyond", 0.6)]
