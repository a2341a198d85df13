"""Models and instances of the experiments: those published with the paper where they are there, otherwise trained here.

Training follows the paper (XGBoost, binary:logistic, label-encoded columns, rows without missing values); trained models are
kept in the folder of results under a name that says data, trees, depth and seed.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.published import VERDICTS

from treesens.extensions.sweeps.instances import Instance, Level, class_of

MARGINS = (0.5, 1.0, 1.5)
LEARNING_RATE = 0.3
LIBRARY_DATA = {
    "breast_cancer": "load_breast_cancer",
    "diabetes": "load_diabetes",
    "iris": "load_iris",
    "wine": "load_wine",
}
"""Data that comes with scikit-learn; the target of `diabetes` is a number, cut at its median."""


@dataclass(frozen=True)
class Plan:
    """What the experiments are made for. `limit` in seconds per question, `out` is the folder of everything written."""

    size: str
    limit: float
    seed: int
    bench: Path
    out: Path

    @property
    def published(self) -> bool:
        """Whether the paper's models are used; the tiny size is about the machinery alone."""
        return self.size != "tiny" and (self.bench / "models").is_dir()

    @property
    def folder(self) -> Path:
        """Where the models of the single-feature and multi-feature experiments are."""
        return self.bench / "models" if self.published else self.out / "models"


def dataset(plan: Plan, name: str) -> tuple[Any, Any]:
    """Features (rows × columns) and labels 0, 1, …: of the paper's data, or of scikit-learn."""
    import numpy as np
    import pandas as pd

    path = plan.bench / "data" / name / "train.csv"
    if path.is_file():
        frame = pd.read_csv(path).dropna()
        x, y = frame.drop(columns="label").to_numpy(np.float32), frame["label"].to_numpy()
    else:
        import sklearn.datasets

        x, y = getattr(sklearn.datasets, LIBRARY_DATA[name])(return_X_y=True)
        y = y > np.median(y) if name == "diabetes" else y
    return x, np.unique(y, return_inverse=True)[1]


def available(plan: Plan, *names: str) -> list[str]:
    """Those data sets of `names` that are there."""
    return [n for n in names if n in LIBRARY_DATA or (plan.bench / "data" / n / "train.csv").is_file()]


def trained(plan: Plan, data: str, trees: int, depth: int) -> str:
    """The name of a model in `plan.out / "models"`, trained unless it is there already."""
    name = f"{data}_t{trees}_d{depth}_s{plan.seed}"
    path = plan.out / "models" / f"{name}.json"
    if path.is_file():
        return name
    import xgboost

    x, y = dataset(plan, data)
    classes = int(y.max()) + 1
    goal = {"objective": "binary:logistic"} if classes == 2 else {"objective": "multi:softprob", "num_class": classes}
    parameters = {
        **goal,
        "max_depth": depth,
        "eta": LEARNING_RATE,
        "seed": plan.seed,
        "nthread": 1,
        "tree_method": "hist",
    }
    booster = xgboost.train(parameters, xgboost.DMatrix(x, y), num_boost_round=trees)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{name}.partial.json")
    booster.save_model(partial)
    partial.rename(path)  # a model that is there is whole
    return name


def has_one_score(path: Path) -> bool:
    """Whether a model is no model of several classes."""
    from treesens.frontends.registry import load

    return load(path).ensemble.n_outputs == 1


def used_features(path: Path) -> list[int]:
    """Indices of the features that a model asks about."""
    from treesens.frontends.registry import load

    ensemble = load(path).ensemble
    return [ensemble.feature_names.index(name) for name in ensemble.used_features]


def single_features(plan: Plan, models: list[str], per_model: int | None) -> list[Instance]:
    """Single-feature instances at raw gaps 0.5, 1, 1.5: all, or of every model `per_model` of the shuffled list, the first
    two with different verdicts where both are known. Models take turns, and so do the verdicts that they begin with: a run cut
    short has something of each.
    """
    rng = random.Random(plan.seed)
    verdicts: dict[tuple[str, int, float], str] = {}
    if plan.published:
        for line in VERDICTS.read_text().splitlines():
            row = json.loads(line)
            verdicts[row["model"], row["feature"], float(row["margin"])] = row["verdict"]
    turns: list[list[Instance]] = []
    for model in models:
        known = [f for m, f, _ in verdicts if m == model] or used_features(plan.folder / f"{model}.json")
        mine = [
            Instance(model, (f,), Level("margin", str(margin)), verdicts.get((model, f, margin)))
            for f in sorted(set(known))
            for margin in MARGINS
        ]
        rng.shuffle(mine)
        other = next((x for x in mine if x.known != mine[0].known), mine[1])
        both = sorted((mine[0], other), key=lambda x: x.known or "", reverse=len(turns) % 2 == 1)
        turns.append([*both, *(x for x in mine[1:] if x is not other)][:per_model])
    return [mine[i] for i in range(max(map(len, turns))) for mine in turns if i < len(mine)]


def class_pairs(plan: Plan, models: list[str], per_model: int | None) -> list[Instance]:
    """Multiclass instances: one feature, the likeliest class goes from one to another by factor 1 or 1.5; models take turns."""
    from treesens.frontends.registry import load

    rng = random.Random(plan.seed)
    turns = []
    for model in models:
        path = plan.folder / f"{model}.json"
        classes = range(load(path).ensemble.n_outputs)
        mine = [
            Instance(model, (f,), Level("factor", str(factor), (class_of(a), class_of(b))))
            for f in used_features(path)
            for a in classes
            for b in classes
            if a != b
            for factor in (1, 1.5)
        ]
        rng.shuffle(mine)
        turns.append(mine[:per_model])
    return [mine[i] for i in range(max(map(len, turns))) for mine in turns if i < len(mine)]
