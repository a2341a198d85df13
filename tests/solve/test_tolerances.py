"""How closely optima are asked for, against the library's own predictions on all 216 inputs of a grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.extensions.studies.grids import GRID, NAMES, rows_of
from treesens.errors import UsageError
from treesens.extensions.methods import registered

DOMAIN = "\n".join(f"feature {name}: integer in [0, 5]" for name in NAMES)
FARTHEST = f"""model m from "m"
{DOMAIN}
query q:
  find a, b such that
    a = b except p
  maximize value(a) - value(b)
"""
HIGHEST = f"""model m from "m"
{DOMAIN}
query q:
  find a such that
    value(a) >= 0
  maximize value(a)
"""


def regressor(base: float = 0.0, seed: int = 0) -> tuple[Any, np.ndarray]:
    """A model that is hard to bound by single trees, and what it predicts on the grid [6, 6, 6]."""
    xgboost = pytest.importorskip("xgboost")
    x = rows_of(seed)
    noise = np.random.default_rng(seed).normal(0, 1, len(x))
    made = xgboost.XGBRegressor(n_estimators=40, max_depth=4, learning_rate=0.3, base_score=base).fit(x, base + noise)
    made.get_booster().feature_names = NAMES
    return made, made.predict(GRID).astype(float).reshape(6, 6, 6)


def asked(text: str, model: Any, **options: Any) -> dict[str, Any]:
    objective = ts.check_text(text, models={"m": model}, **options)["q"].to_dict()["objective"]
    assert isinstance(objective, dict)
    return objective


def test_the_last_unit_is_optimal() -> None:
    model, scores = regressor()
    truth = float((scores.max(axis=0) - scores.min(axis=0)).max())
    told = asked(FARTHEST, model, backend="native", tolerance=0.0)
    assert told["status"] == "optimal"
    assert told["value"] == told["bound"] == pytest.approx(truth, abs=1e-5)
    assert told["tolerance"] == {"relative": 0.0, "absolute": 0.0}


@pytest.mark.parametrize("backend", ["native", "cpsat", "highs", "auto"])
@pytest.mark.parametrize(("relative", "absolute"), [(1e-6, 0.0), (0.3, 0.0), (0.0, 0.7)])
@pytest.mark.sampled
def test_what_is_close_is_proved_and_says_so(backend: str, relative: float, absolute: float) -> None:
    model, scores = regressor()
    truth = float((scores.max(axis=0) - scores.min(axis=0)).max())
    told = asked(FARTHEST, model, backend=backend, tolerance=relative, absolute_tolerance=absolute)
    allowed = max(relative * told["value"], absolute)
    assert told["value"] <= truth + 1e-5
    assert told["bound"] >= truth - 1e-5
    if told["status"] == "optimal":
        assert told["bound"] == pytest.approx(told["value"], rel=1e-15)
    elif relative == 1e-6 and backend in {"cpsat", "highs"}:
        # Bounds are rounded up by what a solver's digits and tolerances may cost.
        assert told["bound"] - told["value"] <= 1e-4
    else:
        assert told["status"] == "within tolerance"
        assert 0 < told["bound"] - told["value"] <= allowed


def test_a_wide_tolerance_ends_the_search_early(monkeypatch: pytest.MonkeyPatch) -> None:
    # Otherwise all combinations of this small domain are tried where a busy machine cuts the brief search short.
    monkeypatch.setattr(registered, "MOST_COMBINATIONS", 0)
    model, _ = regressor()
    nodes = [
        ts.check_text(FARTHEST, models={"m": model}, backend="native", pipeline="kant", tolerance=t)["q"].to_dict()
        for t in (0.0, 0.3)
    ]
    exact, early = (max(a["statistics"].get("nodes", 0) for a in record["attempts"]) for record in nodes)
    assert early < exact


def test_the_relative_part_is_of_the_whole_value() -> None:
    # Trees add about 2 to a base of 10,000: 1e-4 of the value is 1, of the trees alone it is nothing.
    model, scores = regressor(base=1e4)
    told = asked(HIGHEST, model, backend="native", tolerance=1e-4)
    assert told["value"] <= scores.max() + 1
    assert scores.max() - 1 <= told["bound"] <= told["value"] * (1 + 1.1e-4)
    assert told["status"] in {"optimal", "within tolerance"}


@pytest.mark.parametrize("given", [{"tolerance": -1e-6}, {"tolerance": 2.0}, {"absolute_tolerance": float("inf")}])
def test_a_tolerance_that_makes_no_sense(given: dict[str, float]) -> None:
    model, _ = regressor()
    with pytest.raises(UsageError, match="tolerance"):
        ts.check_text(FARTHEST, models={"m": model}, **given)  # type: ignore[arg-type]
