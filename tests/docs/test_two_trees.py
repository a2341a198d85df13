"""The linear program of the gallery: HiGHS finds the largest gap that the trees have on all cells, evaluated by XGBoost."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pytest
import xgboost as xgb
from website.two_trees import FIRST, NAMES, SECOND, program


def value(tree: Any, point: dict[str, float]) -> float:
    while isinstance(tree, tuple):
        tree = tree[2] if point[tree[0]] < tree[1] else tree[3]
    return float(tree)


def test_the_program_has_the_largest_gap_of_all_inputs(tmp_path: Path) -> None:
    text = program(tmp_path)
    booster = xgb.Booster(model_file=str(tmp_path / "two_trees.json"))
    inputs = np.array(list(itertools.product((0.1, 0.4, 0.6, 0.9), repeat=3)), np.float32)
    margins = booster.predict(xgb.DMatrix(inputs, feature_names=list(NAMES)), output_margin=True)
    expected = [sum(value(t, dict(zip(NAMES, row, strict=True))) for t in (FIRST, SECOND)) for row in inputs.tolist()]
    assert margins.tolist() == pytest.approx(expected, abs=1e-6)
    same = (inputs[:, None, 1:] == inputs[None, :, 1:]).all(axis=2)
    asked = same & (margins >= 0.25)[:, None] & (margins <= -0.25)[None, :]
    best = (margins[:, None] - margins[None, :])[asked].max()
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    (tmp_path / "again.lp").write_text(text)
    assert solver.readModel(str(tmp_path / "again.lp")) == highspy.HighsStatus.kOk
    solver.run()
    assert solver.getInfo().objective_function_value == pytest.approx(float(best), abs=1e-6)
    named = [line for line in text.splitlines() if line.startswith(" obj:")]
    assert len(named[0].split("x")) == 5, "the objective names the leaves that f4 can change, twice"
