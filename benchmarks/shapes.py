"""Shapes of models that were trained with monotone constraints: are they proved, and how long does a feature take?

    python -m benchmarks.shapes TABLE.csv --label label --increasing age,education-num,hours-per-week

Trains XGBoost, LightGBM and scikit-learn's histogram boosting with the constraint on random rows of the table, ten times
each, and asks `shape` about the constrained features. Wall seconds a feature, the reading of the model and binding with them.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import treesens as ts


def trained(x: pd.DataFrame, y: pd.Series, signs: list[int], seed: int, trees: int) -> Iterator[tuple[str, Any]]:
    """A model of each library."""
    import lightgbm
    import xgboost
    from sklearn.ensemble import HistGradientBoostingClassifier

    common = {"n_estimators": trees, "random_state": seed, "n_jobs": 1}
    yield "XGBoost", xgboost.XGBClassifier(max_depth=4, monotone_constraints=tuple(signs), **common).fit(x, y)
    yield (
        "LightGBM",
        lightgbm.LGBMClassifier(num_leaves=15, monotone_constraints=signs, verbose=-1, **common).fit(x, y),
    )
    boosting = HistGradientBoostingClassifier(max_iter=trees, max_leaf_nodes=15, monotonic_cst=signs, random_state=seed)
    yield "scikit-learn", boosting.fit(x, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--label", default="label")
    parser.add_argument("--increasing", required=True, help="features, as a,b")
    parser.add_argument("--models", type=int, default=10, help="of each library")
    parser.add_argument("--rows", type=int, default=6000, help="rows that a model is trained on")
    parser.add_argument("--trees", type=int, default=100)
    given = parser.parse_args()
    warnings.simplefilter("ignore", ts.errors.TreesensWarning)
    table, features = pd.read_csv(given.table), given.increasing.split(",")
    signs = [int(name in features) for name in table.columns if name != given.label]
    seconds: dict[str, list[float]] = {}
    proved: dict[str, int] = {}
    for seed in range(given.models):
        rows = table.sample(min(given.rows, len(table)), random_state=seed)
        x, y = rows.drop(columns=given.label).astype("float64"), rows[given.label]
        for library, model in trained(x, y, signs, seed, given.trees):
            start = time.perf_counter()
            records = ts.shape(model, x, features=features, time_limit=10).records
            seconds.setdefault(library, []).append((time.perf_counter() - start) / len(features))
            held = sum(record["shape"] in {"increasing", "constant"} for record in records)
            proved[library] = proved.get(library, 0) + held
    print("| library | features proved | of | median s a feature | worst |\n| --- | ---: | ---: | ---: | ---: |")
    for library, taken in seconds.items():
        asked = given.models * len(features)
        print(f"| {library} | {proved[library]} | {asked} | {statistics.median(taken):.2f} | {max(taken):.2f} |")


if __name__ == "__main__":
    main()
