"""Fault 37: a score that has to be one value was `none`, exactly, where inputs have it.

The two rows of an equation have weights that cancel. The last step of the multipliers took cells away, the point at hand
stayed in one of them, and decided the node as if it lay in it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import treesens as ts

pytestmark = pytest.mark.fault

NAMES = ["w", "age", "second", "income"]
TEXT = """
model m from "m"
data D from "D"
feature w: integer in [0, 1]
feature age: integer in [0, 1]
feature second: integer in [0, 1]
feature income: category {none = 0, Red = 1, low = 2} or missing
onehot {w, age, second}
query q: find a in m such that value(a) = -1.875; a avoid cavities(D, width = 3)
"""
SEEN = [(1, 0, 0, "low"), (0, 1, 0, "low"), (1, 0, 0, "Red"), (0, 1, 0, "none"), (0, 0, 1, "low")]


def test_a_score_that_is_reached_is_found_whatever_the_seed() -> None:
    tree = pytest.importorskip("sklearn.tree")
    rows = np.array([[w, a, s, i] for w in (0, 1) for a in (0, 1) for s in (0, 1) for i in (0, 1, 2)], float)
    leaves = {(0, 0): -0.625, (0, 1): -1.875, (0, 2): -1.875, (1, 0): 1.0, (1, 1): 1.0, (1, 2): -1.0}
    target = np.array([leaves[int(s), int(i)] for _, _, s, i in rows])
    model = tree.DecisionTreeRegressor(random_state=0).fit(pd.DataFrame(rows, columns=NAMES), target)
    # Red with a `second` of 0 is in the table; so is nothing that would forbid it.
    assert model.predict(pd.DataFrame([[0, 1, 0, 1]], columns=NAMES)) == -1.875
    table = pd.DataFrame(SEEN, columns=NAMES)
    for seed in range(12):
        answer = ts.check_text(TEXT, models={"m": model}, data={"D": table}, backend="native", seed=seed)["q"]
        assert answer.verdict == "found", seed
