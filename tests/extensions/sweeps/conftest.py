"""Small models that are trained for the sweeps of the tests, and the folder with a SPEC about them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

NAMES = ("age", "income", "debt", "children", "sex")
SPEC = """\
models = ["m*.json"]
features = "all"
pairs = "all"
margins = [0.25, 0.5, 1.0, 1.5, 2.0]
time_limit = 20
"""
QUESTIONS = 2 * (5 + 10) * 5


def train(path: Path, seed: int, classes: int = 2) -> None:
    xgboost = pytest.importorskip("xgboost", reason="the models of the tests are trained with xgboost")
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(18, 80, 400), rng.gamma(4, 9, 400), rng.gamma(2, 6, 400)])
    x = np.column_stack([x, rng.poisson(1.0, 400), rng.integers(0, 2, 400)]).astype(np.float64)
    score = 0.06 * x[:, 1] - 0.09 * x[:, 2] + 0.5 * x[:, 4] - 1.2 + 0.5 * rng.logistic(size=400)
    y = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    made = xgboost.XGBClassifier(n_estimators=12, max_depth=3, learning_rate=0.3, random_state=seed, n_jobs=1).fit(x, y)
    booster = made.get_booster()
    booster.feature_names = list(NAMES)
    booster.save_model(path)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two binary models and one of three classes."""
    folder = tmp_path_factory.mktemp("models")
    train(folder / "m1.json", 1)
    train(folder / "m2.json", 2)
    train(folder / "three.json", 3, classes=3)
    return folder


@pytest.fixture
def folder(tmp_path: Path, trained: Path) -> Path:
    """A folder of its own with the models and a SPEC."""
    for model in trained.iterdir():
        (tmp_path / model.name).write_bytes(model.read_bytes())
    (tmp_path / "sweep.toml").write_text(SPEC)
    return tmp_path
