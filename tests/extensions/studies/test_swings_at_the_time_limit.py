"""A search for the largest swing that time ends: the row that swings most is shown in the units of the score.

Scores of forests are means over trees. The sum over trees was shown in their place, as a proved largest swing of a score
that is a probability.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts

pytestmark = pytest.mark.fault

NAMES = [f"f{i}" for i in range(8)]


def fitted() -> tuple[Any, pd.DataFrame]:
    ensemble = pytest.importorskip("sklearn.ensemble")
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.integers(0, 6, (400, 8)), columns=NAMES)
    label = (table.f0 * table.f1 + table.f2 * table.f3 + random.normal(0, 4, 400) > 12).astype(int)
    return ensemble.RandomForestClassifier(60, max_depth=7, random_state=0, n_jobs=1).fit(table, label), table


def swings(forest: Any, table: pd.DataFrame, feature: str) -> float:
    """The largest change of the library's probability over the rows and all values of the feature."""
    shown = [forest.predict_proba(table.assign(**{feature: value}))[:, 1] for value in range(6)]
    return float((np.max(shown, axis=0) - np.min(shown, axis=0)).max())


def test_the_swing_of_a_row_is_one_of_the_library() -> None:
    forest, table = fitted()
    told = ts.audit(forest, table, vary=["f0", "f1"], gap=0.1, time_limit=0.001).records
    assert {tuple(record["varied"]) for record in told} == {("f0",), ("f1",)}
    for record in told:
        value, bound = record["max_swing"], record["max_swing_bound"]
        assert swings(forest, table, record["varied"][0]) - 1e-9 <= value <= bound <= 1.0 + 1e-12
