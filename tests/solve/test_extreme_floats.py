"""Fault 36: a comparison with the least finite float, or a row that holds it, left out all inputs of its cell.

The cell below the first threshold was taken to start at minus infinity. Every input is at least the least float; the values of
rows are those of scikit-learn's trees, which read float32.

A domain from -1.7e308 to 1.7e308 has a width that no double holds: distances say so, and end in no OverflowError.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

import treesens as ts
from tests.asking import ask, verdict
from treesens.errors import TreesensError

pytestmark = pytest.mark.fault

LEAST = float(np.finfo(np.float32).min)
ROWS = pd.DataFrame({"x": [LEAST, 0.25, 0.75], "y": [0.0, 1.0, 0.5]})


@pytest.fixture(scope="module")
def model() -> Any:
    tree = pytest.importorskip("sklearn.tree")
    return tree.DecisionTreeRegressor(max_depth=2).fit(ROWS, [0.0, 1.0, 2.0])


@pytest.mark.parametrize("where", [f"a.x >= {int(LEAST)}", f"not a.x < {int(LEAST)}", f"a.x in [{int(LEAST)}, 0.1]"])
def test_every_input_is_at_least_the_least_float(model: Any, where: str) -> None:
    assert verdict(model, f"find a such that\n {where}\n a.x <= 0\n value(a) <= 0", backend="native") == "found"


def test_a_row_with_the_least_float_can_be_pinned_and_counts(model: Any) -> None:
    question = "find a such that\n a = row 0 of d"
    assert ask(model, question, data=ROWS, backend="native").to_dict()["points"]["a"]["x"] == pytest.approx(LEAST)
    grid = pd.DataFrame([(x, y) for x in ROWS.x for y in np.linspace(-1, 2, 25)], columns=["x", "y"])
    reached = grid.x[model.predict(grid) <= 0].nunique()
    question = "count rows of d as a, b such that\n a = b except y\n value(b) <= 0"
    count = ask(model, question, data=ROWS, backend="z3").to_dict()["count"]
    assert count["at_least"] == count["at_most"] == reached


@pytest.mark.parametrize("other", ["row 0 of d", "nearest row of d"])
def test_a_distance_in_a_domain_that_is_too_wide_is_refused(other: str) -> None:
    x = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0]})
    model = HistGradientBoostingRegressor(min_samples_leaf=1, max_iter=3).fit(x, [0.0, 1.0, 2.0, 3.0])
    text = "model m from 'm'\ndata d from 'd'\nfeature x: real in [-1.7e308, 1.7e308]\n".replace("'", '"')
    text += f"query q: find a in m such that value(a) >= 2 minimize distance(a, {other}, l2)"
    table = pd.DataFrame({"x": np.array([0.0, 1.0])})
    with pytest.raises(TreesensError, match="E312"):
        ts.check_text(text, models={"m": model}, data={"d": table})
