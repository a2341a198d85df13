"""A tie that the library breaks the other way is in one class for it, in another one exactly: no `none` of both says neither.

The oracle met it with `explain row`: one class was ruled out by exact arithmetic, the other one by that of the library, and
together they said that every input has the class of the row. XGBoost itself says which class an input has.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.corpus import boosted
from treesens.compiler.result import Proof
from treesens.solve.combine import proof_of_parts

xgboost = pytest.importorskip("xgboost")
pytestmark = pytest.mark.fault

LEAVES = {0: (-1.0, 1.0), 1: (-1.0, 1.0), 2: (1.0, -1.0), 3: (0.0, 0.0), 4: (0.0, 2.0**-25), 5: (0.0, 0.0)}
"""Per tree: two rounds of three classes, below and above 1/2. Above it 1 + 2^-25 is 1 in float32, and the first class wins."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    x = np.array([[0.0], [1.0]] * 30)
    y = np.array([2, 0, 2, 1] * 15)
    booster = boosted(x, y, 2, 1, names=["x"], num_class=3, min_child_weight=0, base_score=0.0)
    document = json.loads(booster.save_raw("json").decode())
    trees = document["learner"]["gradient_booster"]["model"]["trees"]
    for number, tree in enumerate(trees):
        below, above = LEAVES[number]
        tree.update(
            split_conditions=[0.5, below, above], split_indices=[0, 0, 0], left_children=[1, -1, -1],
            right_children=[2, -1, -1], parents=[2147483647, 0, 0],
            base_weights=[0.0, below, above], default_left=[0, 0, 0], loss_changes=[1.0, 0.0, 0.0],
            sum_hessian=[1.0] * 3, split_type=[0] * 3, categories=[], categories_nodes=[], categories_segments=[],
            categories_sizes=[],
        )  # fmt: skip
        tree["tree_param"]["num_nodes"] = "3"
    path = tmp_path_factory.mktemp("tie") / "m.json"
    path.write_text(json.dumps(document))
    return path


def test_xgboost_says_the_first_class_above_the_cut(model: Path) -> None:
    booster = xgboost.Booster(model_file=str(model))
    found = booster.predict(xgboost.DMatrix(np.array([[0.0], [1.0]]), feature_names=["x"]))
    assert found.argmax(axis=1).tolist() == [2, 0]
    assert float(found[1, 0]) == float(found[1, 1])


@pytest.mark.parametrize("confirm", [None, "library"])
def test_no_reason_says_that_every_input_has_the_class(model: Path, confirm: str | None) -> None:
    text = (
        'model m from "m"\ndata d from "d"\nfeature x: integer in [0, 1]\nquery why:\n  explain row 0 of d in m\n'
        "query other:\n  find a in m such that class(a) != 2\n"
    )
    rows = pd.DataFrame({"x": [0, 1]})
    answers = ts.check_text(text, models={"m": str(model)}, data={"d": rows}, confirm=confirm)
    why = answers["why"].to_dict()
    assert why["verdict"] == "unknown" or why["explanation"]["sufficient"], why
    assert answers["other"].verdict == "found"


def test_parts_are_about_one_arithmetic() -> None:
    assert proof_of_parts([Proof.EXACT, Proof.EXACT]) is Proof.EXACT
    assert proof_of_parts([Proof.EXACT, Proof.BOUND]) is Proof.BOUND
    assert proof_of_parts([Proof.LIBRARY, Proof.LIBRARY]) is Proof.LIBRARY
    assert proof_of_parts([Proof.LIBRARY, Proof.EXACT]) is None
    assert proof_of_parts([Proof.TOLERANCE, Proof.LIBRARY]) is None


def test_the_nearest_input_of_any_class_is_not_ruled_out(model: Path) -> None:
    found = ts.robust(str(model), pd.DataFrame({"x": [0, 1]}), rows=[0], targeted=True)
    assert found.records[0]["verdict"] != "none"
