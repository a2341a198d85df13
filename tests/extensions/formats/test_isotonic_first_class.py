"""A bound at a value that `predict_proba` prints of the first class is that value, though it is 1 - p rounded once more."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier

import treesens as ts

pytestmark = pytest.mark.fault


@pytest.mark.parametrize("seed", range(6))
def test_printed_values_of_the_first_class_are_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = pd.DataFrame({"x": rng.integers(0, 7, 60).astype(float)})
    y = (x["x"].to_numpy() + rng.normal(size=60) * 3 > 3).astype(int)
    tree = DecisionTreeClassifier(max_depth=3).fit(x, y)
    held_out = pd.DataFrame({"x": rng.integers(0, 7, 67).astype(float)})
    label = (held_out["x"].to_numpy() + rng.normal(size=67) * 3 > 3).astype(int)
    model = CalibratedClassifierCV(FrozenEstimator(tree), method="isotonic").fit(held_out, label)
    inputs = pd.DataFrame({"x": np.arange(7.0)})
    printed = model.predict_proba(inputs)[:, 0]
    for value in sorted(set(printed.tolist())):
        for operator, truth in (("<", printed < value), ("<=", printed <= value), ("!=", printed != value)):
            text = "model m from 'm'\nfeature x: integer in [0, 6]\n".replace("'", '"')
            text += f"query q:\n  find a in m such that prob(a, 0) {operator} {value!r}\n"
            answer = ts.check_text(text, models={"m": model})["q"]
            assert answer.verdict == ("found" if truth.any() else "none"), (operator, value)
