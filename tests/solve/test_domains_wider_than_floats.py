"""A domain from -1.7e308 to 1.7e308 has a width that no double holds: distances say so, and end in no OverflowError."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

import treesens as ts
from treesens.errors import TreesensError

pytestmark = pytest.mark.fault


@pytest.mark.parametrize("other", ["row 0 of d", "nearest row of d"])
def test_a_distance_in_a_domain_that_is_too_wide_is_refused(other: str) -> None:
    x = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0]})
    model = HistGradientBoostingRegressor(min_samples_leaf=1, max_iter=3).fit(x, [0.0, 1.0, 2.0, 3.0])
    text = "model m from 'm'\ndata d from 'd'\nfeature x: real in [-1.7e308, 1.7e308]\n".replace("'", '"')
    text += f"query q: find a in m such that value(a) >= 2 minimize distance(a, {other}, l2)"
    table = pd.DataFrame({"x": np.array([0.0, 1.0])})
    with pytest.raises(TreesensError, match="E312"):
        ts.check_text(text, models={"m": model}, data={"d": table})
