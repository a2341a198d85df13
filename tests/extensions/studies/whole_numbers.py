"""A small model of XGBoost over whole numbers 0 to 5, trained on an array: its features are f0, f1 and f2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest


def xgboost_of_whole_numbers() -> tuple[Any, pd.DataFrame]:
    """The model, and its rows as a frame."""
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 6, (240, 3)).astype(float)
    labels = (rows[:, 0] + rows[:, 1] * rows[:, 2] / 3 + rng.normal(size=240) > 6).astype(int)
    model = xgboost.XGBClassifier(n_estimators=12, max_depth=3, random_state=0).fit(rows, labels)
    return model, pd.DataFrame(rows, columns=["f0", "f1", "f2"])
