"""A solver that is stopped at once has proved nothing, or something that is true."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.extensions.studies.grids import GRID, NAMES, rows_of
from treesens.backends.base import Limits, get_backend
from treesens.backends.worker import solve_isolated
from treesens.binder.file import bind
from treesens.compiler.pipeline import compile_query
from treesens.frontends.registry import load
from treesens.grammar.parsing.parser import parse

ASKED = "\n".join(
    [
        'model m from "m"',
        *(f"feature {name}: integer in [0, 5]" for name in NAMES),
        "query q:",
        "  find a such that",
        "    value(a) >= 0",
        "  maximize value(a)",
    ]
)


@pytest.mark.parametrize("backend", ["cpsat", "highs"])
def test_a_bound_is_no_less_than_what_can_be_reached(backend: str) -> None:
    xgboost = pytest.importorskip("xgboost")
    rows = rows_of()
    target = np.random.default_rng(3).normal(5, 1, len(rows))
    made = xgboost.XGBRegressor(n_estimators=200, max_depth=5, learning_rate=0.3, base_score=0.0).fit(rows, target)
    made.get_booster().feature_names = NAMES
    truth = float(made.predict(GRID).max())
    query = bind(parse(ASKED + "\n", "<q>"), Path(), load_model=lambda _path, _format: load(made)).queries[0].query
    artifact = get_backend(backend).emit(compile_query(query, "independent").module)
    for seconds in (0.001, 0.01, 0.1, 0.3):
        outcome = solve_isolated(backend, artifact, Limits(seconds))
        assert outcome.bound is None or outcome.bound >= truth - 1e-4, outcome
