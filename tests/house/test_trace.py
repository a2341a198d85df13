"""A question goes through the room of solving once: no module of it is entered more than twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import xgboost

import treesens as ts
from tests.house.trace import entries


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    x = np.random.default_rng(5).uniform(0, 1, (400, 3))
    frame = xgboost.DMatrix(x, label=(x[:, 0] + x[:, 1] > 1), feature_names=["sex", "age", "income"])
    xgboost.train({"max_depth": 3, "objective": "binary:logistic"}, frame, 10).save_model(folder / "m.json")
    domains = "".join(f"feature {name}: real in [0, 1]\n" for name in ("sex", "age", "income"))
    (folder / "q.sens").write_text(f'model m from "m.json"\n{domains}query q: sensitive m to {{sex}} gap 0.3\n')
    return folder / "q.sens"


@pytest.mark.parametrize("backend", ["auto", "native", "highs"])
def test_no_module_of_solve_is_entered_more_than_twice(file: Path, backend: str) -> None:
    ts.check(file, backend=backend)  # imports
    found = entries("solve", lambda: ts.check(file, backend=backend))
    called: Counter[str] = Counter()
    for (module, function), count in found.items():
        if "__create_fn__" not in function and "__post_init__" not in function:  # records that are made, no way through
            called[module] += count
    assert called["question"] == 2, "one for the answer, one for why there is none"
    assert max(called.values()) <= 2, found
