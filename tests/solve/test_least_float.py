"""Fault 36: a comparison with the least finite float, or a row that holds it, left out all inputs of its cell.

The cell below the first threshold was taken to start at minus infinity. Every input is at least the least float; the values of
rows are those of scikit-learn's trees, which read float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.asking import ask, verdict

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
