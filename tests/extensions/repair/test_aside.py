"""What `leaves` and `auto` cost on rows that neither the model nor the repair has seen, by the stock library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.corpus import boosted
from tests.trials import at_night

pytest.importorskip("clarabel")

NAMES = list("fabcd")


def rows(seed: int, count: int, uses: float) -> tuple[Any, Any]:
    """Rows and labels that depend on the first feature so much."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 12, (count, 5)).astype(np.float64)
    score = uses * (x[:, 0] - 5.5) + 0.3 * (x[:, 1] - 5.5) + 0.15 * uses * (x[:, 0] - 5.5) * (x[:, 2] - 5.5)
    return x, (score + random.logistic(0, 1, count) > 0).astype(np.float64)


def train(folder: Path, x: Any, y: Any) -> Path:
    """A model that knows its few training rows by heart."""
    boosted(x, y, 60, 4, names=NAMES, path=folder / "m.json")
    return folder / "m.json"


def table(path: Path, x: Any, y: Any) -> Path:
    """Rows and labels as CSV."""
    np.savetxt(path, np.column_stack([x, y]), delimiter=",", header=",".join([*NAMES, "y"]), comments="")
    return path


def losses(path: Path, x: Any, y: Any) -> Any:
    """The log loss of every row by the library."""
    import xgboost

    found = xgboost.Booster(model_file=path).predict(xgboost.DMatrix(x, feature_names=NAMES)).astype(np.float64)
    return -np.log(np.where(y == 1, found, 1 - found))


def is_above(one: Any, two: Any) -> bool:
    """Whether losses are above others by more than two standard errors of the difference."""
    apart = one - two
    return bool(apart.mean() > 2 * apart.std() / np.sqrt(len(apart)))


@pytest.mark.parametrize("uses", [at_night(0.0), 0.25])
@pytest.mark.parametrize("seed", [0, at_night(1)])
def test_leaves_of_few_rows_cost_no_more_than_the_blend_on_others(seed: int, uses: float, tmp_path: Path) -> None:
    x, y = rows(seed, 240, uses)
    model, data, held_out = train(tmp_path, x, y), table(tmp_path / "d.csv", x, y), rows(1000 + seed, 4000, uses)
    found = {}
    for method in ("blend", "leaves"):
        output = tmp_path / f"{method}.json"
        ts.repair(
            model, data, vary=["f"], label="y", gap=0.1, method=method, output=output, time_limit=4.0, proof_time=20.0
        )
        found[method] = losses(output, *held_out)
    assert not is_above(found["leaves"], found["blend"])


def test_auto_leaves_out_what_only_looks_useful_on_the_rows_of_the_model(tmp_path: Path) -> None:
    """The labels do not depend on the feature, and the rows of the repair are others than those of the model."""
    model = train(tmp_path, *rows(2, 240, 0.0))
    data, held_out = table(tmp_path / "d.csv", *rows(3, 900, 0.0)), rows(4, 4000, 0.0)
    output = tmp_path / "o.json"
    ts.repair(model, data, vary=["f"], label="y", gap=0.1, output=output, time_limit=2.0)
    assert is_above(losses(model, *held_out), losses(output, *held_out))
