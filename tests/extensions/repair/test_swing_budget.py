"""Training within a budget: the swing of every prefix of the trained model, by the stock library on the whole domain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.corpus import margins_of
from tests.extensions.repair.models import GRID, NAMES, rows, write_table
from tests.extensions.repair.oracle import extremes
from treesens.errors import UsageError

pytest.importorskip("clarabel")
ROUNDS = 12


def train_xgboost(budget: ts.SwingBudget | None, seed: int, **options: Any) -> tuple[Any, Any]:
    """A booster, and its raw scores of the domain after so many rounds."""
    import xgboost

    x, score = rows(seed)
    matrix = xgboost.DMatrix(x, score > 0, feature_names=list(NAMES))
    given = {"objective": "binary:logistic", "max_depth": 3, "nthread": 1, "seed": seed, **options}
    callbacks = [] if budget is None else [budget.xgboost(matrix)]
    booster = xgboost.train(given, matrix, ROUNDS, callbacks=callbacks)
    grid = xgboost.DMatrix(GRID, feature_names=list(NAMES))
    return booster, lambda n: booster.predict(grid, output_margin=True, iteration_range=(0, n)).astype(np.float64)


def train_lightgbm(budget: ts.SwingBudget | None, seed: int, **options: Any) -> tuple[Any, Any]:
    """A booster, and its raw scores of the domain after so many rounds."""
    import lightgbm

    x, score = rows(seed)
    given = {"objective": "binary", "max_depth": 3, "verbose": -1, "min_data_in_leaf": 5, "num_threads": 1, **options}
    callbacks = [] if budget is None else [budget.lightgbm()]
    table = lightgbm.Dataset(x, score > 0, feature_name=list(NAMES))
    booster = lightgbm.train(given, table, ROUNDS, callbacks=callbacks)
    return booster, lambda n: booster.predict(GRID, raw_score=True, num_iteration=n)


TRAINERS = {"xgboost": train_xgboost, "lightgbm": train_lightgbm}


def swing(scores: Any, varied: list[int]) -> float:
    """The largest difference of scores of inputs that differ in the varied features alone."""
    low, high = extremes(scores, varied)
    return float((high - low).max())


@pytest.mark.parametrize("library", sorted(TRAINERS))
@pytest.mark.parametrize(("limit", "varied"), [(0.3, ["f"]), (1.0, ["f"]), (0.7, ["f", "b"])])
@pytest.mark.sampled
def test_no_round_leaves_the_budget(library: str, limit: float, varied: list[str], tmp_path: Path) -> None:
    train, columns = TRAINERS[library], [NAMES.index(name) for name in varied]
    _, scores = train(None, 1)
    assert swing(scores(ROUNDS), columns) > 1.5 * limit
    budget = ts.SwingBudget([varied], limit)
    booster, scores = train(budget, 1)
    swings = [swing(scores(n), columns) for n in range(1, ROUNDS + 1)]
    assert max(swings) <= limit
    assert swings[-1] > limit / 4, "some of the budget is used"
    assert sum(budget.rounds.values()) == ROUNDS
    assert budget.rounds["without"] > 0
    # The file is the library's own, and a repair has nothing to do but to prove it.
    path = tmp_path / ("m.json" if library == "xgboost" else "m.txt")
    booster.save_model(path)
    x, score = rows(1)
    found = ts.repair(
        path, write_table(tmp_path / "d.csv", x, score > 0), vary=[varied], label="y", swing=limit, method="blend",
        certificates=tmp_path / "proofs",
    )  # fmt: skip
    (record,) = found.records
    assert record["changes"]["leaves_changed"] == 0
    assert all(claim["file"] for proof in record["proofs"] for claim in proof["certificates"])


@pytest.mark.parametrize("library", sorted(TRAINERS))
def test_a_wide_budget_changes_nothing(library: str) -> None:
    _, scores = TRAINERS[library](None, 2)
    _, others = TRAINERS[library](ts.SwingBudget("f", 50.0), 2)
    assert np.array_equal(scores(ROUNDS), others(ROUNDS))


@pytest.mark.parametrize("library", sorted(TRAINERS))
def test_a_round_that_is_made_again_is_one_that_the_library_would_make(library: str) -> None:
    """With a budget of nearly nothing the model is the one that is trained without the feature."""
    budget = ts.SwingBudget("f", 1e-6)
    _, scores = TRAINERS[library](budget, 3)
    x, score = rows(3)
    x[:, 0] = 0.0
    if library == "xgboost":
        import xgboost

        matrix = xgboost.DMatrix(x, score > 0, feature_names=list(NAMES))
        given = {"objective": "binary:logistic", "max_depth": 3, "nthread": 1, "seed": 3}
        alone = xgboost.train(given, matrix, ROUNDS)
        wanted = margins_of(alone, GRID)
    else:
        import lightgbm

        given = {"objective": "binary", "max_depth": 3, "verbose": -1, "min_data_in_leaf": 5, "num_threads": 1}
        alone = lightgbm.train(given, lightgbm.Dataset(x, score > 0, feature_name=list(NAMES)), ROUNDS)
        wanted = alone.predict(GRID, raw_score=True)
    assert np.allclose(scores(ROUNDS), wanted, atol=1e-5)


def test_classes_columns_and_an_earlier_model(tmp_path: Path) -> None:
    import xgboost

    x, score = rows(4)
    matrix = xgboost.DMatrix(x, np.digitize(score, [-0.7, 0.7]), feature_names=list(NAMES))
    budget = ts.SwingBudget("f", 0.5)
    given = {"objective": "multi:softprob", "num_class": 3, "max_depth": 3, "nthread": 1, "colsample_bytree": 0.8}
    booster = xgboost.train(given, matrix, 6, callbacks=[budget.xgboost(matrix)])
    scores = margins_of(booster, GRID)
    leads = [scores[:, i] - scores[:, j] for i in range(3) for j in range(i)]
    assert max(swing(lead, [0]) for lead in leads) <= 0.5
    assert float(_parameter(booster, "colsample_bytree")) == pytest.approx(0.8)
    more = xgboost.train(given, matrix, 3, xgb_model=booster, callbacks=[budget.xgboost(matrix)])
    assert more.num_boosted_rounds() == 9
    narrow = ts.SwingBudget("f", 0.01)
    with pytest.raises(UsageError, match="training continues"):
        xgboost.train(given, matrix, 3, xgb_model=booster, callbacks=[narrow.xgboost(matrix)])


def _parameter(booster: Any, name: str) -> str:
    text = booster.save_config()
    found: list[str] = []

    def look(part: Any) -> None:
        if isinstance(part, dict):
            found.extend(value for key, value in part.items() if key == name)
            for value in part.values():
                look(value)

    look(json.loads(text))
    return found[0]


@pytest.mark.parametrize("library", sorted(TRAINERS))
def test_what_cannot_be_kept_is_refused(library: str) -> None:
    train = TRAINERS[library]
    with pytest.raises(UsageError, match="no feature `z`"):
        train(ts.SwingBudget("z", 1.0), 1)
    with pytest.raises(UsageError, match="every feature"):
        train(ts.SwingBudget([list(NAMES)], 1.0), 1)
    dart = {"booster": "dart"} if library == "xgboost" else {"boosting": "dart"}
    with pytest.raises(UsageError, match="dart"):
        train(ts.SwingBudget("f", 1.0), 1, **dart)
    for size in (0, -1, "much"):
        with pytest.raises(UsageError, match="swing"):
            ts.SwingBudget("f", size)  # type: ignore[arg-type]
