"""A folder like that of the published models: their names and features, three trees in each."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import xgboost
from benchmarks.published import files

ROWS = 80
CLASSES = {"iris": 3, "winequality_red": 6}
FEATURES = {
    "adult": 14,
    "breast_cancer": 11,
    "churn": 20,
    "diabetes": 9,
    "german_credit": 20,
    "ijcnn": 23,
    "iris": 4,
    "pimadiabetes": 8,
    "winequality_red": 11,
}


def make(folder: Path) -> Path:
    """Writes models, tables, and the rows that local robustness asks about; the folder."""
    for number, (data, count) in enumerate(FEATURES.items()):
        rng = np.random.default_rng(number)
        values = (rng.integers(0, 17, (ROWS, count)) / 16).astype(np.float32)
        score = values @ rng.normal(size=count)
        classes = CLASSES.get(data, 2)
        labels = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
        for _, place, _ in files():
            if place.parts[0] == "models" and place.stem.startswith(
                (f"{data}_t", f"{data}_robust", f"{data}_unrobust")
            ):
                train(folder / place, values, labels, classes)
        names = [f"f{i}" for i in range(count)]
        write(folder / "data" / data / "train.csv", [*names, "label"], np.column_stack([values, labels]))
        write(folder / "local" / f"rows_{data}.csv", names, values)
    (folder / "local" / "distances.jsonl").write_text(
        json.dumps({"model": "diabetes_robust", "norm": "l1", "row": 0, "source": "LT-attack", "upper": 1.0}) + "\n"
    )
    return folder


def train(path: Path, values: np.ndarray, labels: np.ndarray, classes: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    goal = {"objective": "binary:logistic"} if classes == 2 else {"objective": "multi:softprob", "num_class": classes}
    booster = xgboost.train({**goal, "max_depth": 2, "nthread": 1}, xgboost.DMatrix(values, labels), 3)
    booster.save_model(path)


def write(path: Path, names: list[str], values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(path, values, delimiter=",", header=",".join(names), comments="", fmt="%.9g")
