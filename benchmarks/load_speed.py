"""Loading a 1,000-tree XGBoost model: treesens beside xgboost.Booster.load_model, in one run.

    python -m benchmarks.load_speed [--trees 1000] [--depth 6] [--repeat 5]

Trains the model, saves it as JSON and UBJSON, and prints the best of several loads. The column `ready` adds the grid,
the ensemble on its cells and the boxes of its leaves, which is what a compilation starts from.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from treesens.frontends import load


def best(action: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def ready(path: Path) -> object:
    ensemble = load(path).ensemble
    return ensemble.on(ensemble.grid()).leaf_boxes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()

    import xgboost

    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 20))
    y = (x[:, 0] * x[:, 1] + np.sin(x[:, 2]) + rng.normal(size=4000) > 0).astype(int)
    parameters = {"objective": "binary:logistic", "max_depth": options.depth, "eta": 0.1, "nthread": 2}
    booster = xgboost.train(parameters, xgboost.DMatrix(x, y), options.trees)
    print(f"xgboost {xgboost.__version__}, {options.trees} trees of depth {options.depth}, best of {options.repeat}")
    print("| file | MB | leaves | treesens s | ready s | xgboost s |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for form in ("json", "ubj"):
            path = Path(folder) / f"model.{form}"
            booster.save_model(path)
            leaves = load(path).ensemble.n_leaves
            ours = best(lambda p=path: load(p), options.repeat)
            prepared = best(lambda p=path: ready(p), options.repeat)
            theirs = best(lambda p=path: xgboost.Booster(model_file=p), options.repeat)
            size = path.stat().st_size / 1e6
            print(f"| {form} | {size:.1f} | {leaves} | {ours:.3f} | {prepared:.3f} | {theirs:.3f} |")


if __name__ == "__main__":
    main()
