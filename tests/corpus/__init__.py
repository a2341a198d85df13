"""Small models that tests train. A model is a function of its table, its labels and its options."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray


def boosted(
    table: Any,
    label: Any,
    trees: int,
    depth: int = 3,
    *,
    names: Sequence[str] | None = None,
    path: Path | str | None = None,
    **options: Any,
) -> Any:
    """A booster of XGBoost, written to `path` if one is given: two classes, or `num_class` of them, or an `objective`."""
    xgboost = pytest.importorskip(
        "xgboost", reason="this test trains models with xgboost; pip install treesens[xgboost]"
    )
    objective = "multi:softprob" if "num_class" in options else "binary:logistic"
    data = xgboost.DMatrix(table, label, feature_names=None if names is None else list(names))
    booster = xgboost.train({"objective": objective, "max_depth": depth, "nthread": 1, **options}, data, trees)
    if path is not None:
        booster.save_model(path)
    return booster


def regressed(table: Any, label: Any, trees: int, depth: int = 3, **options: Any) -> Any:
    """A booster as `boosted` makes it, of values, by their squared errors."""
    return boosted(table, label, trees, depth, **{"objective": "reg:squarederror", **options})


def margins_of(booster: Any, rows: Any) -> NDArray[np.float64]:
    """The raw scores of rows that a booster of `boosted` gives, without categories."""
    import xgboost

    return np.asarray(
        booster.predict(xgboost.DMatrix(rows, feature_names=booster.feature_names), output_margin=True), float
    )
