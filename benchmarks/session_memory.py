"""Memory over many questions in one session: distances of rows by three norms, decisions with a new bound each, gaps.

    python -m benchmarks.session_memory --questions 100000

Prints the resident memory in MB after the first thousand questions and after every tenth of all. Without the published models
one is trained on scikit-learn's breast cancer data.
"""

from __future__ import annotations

import argparse
import csv
import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import treesens as ts

WARM = 1000
"""Questions after which every cache is as large as it gets."""


def resident() -> float:
    """MB of this process that lie in memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise OSError("no VmRSS in /proc/self/status")


def trained(folder: Path) -> tuple[Path, Path]:
    """A model of 20 trees and rows in [0, 1]."""
    import numpy as np
    import xgboost as xgb
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    x = ((x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0))).astype(np.float32)[:, :9]
    names = [f"f{i}" for i in range(x.shape[1])]
    booster = xgb.train({"max_depth": 4, "objective": "binary:logistic"}, xgb.DMatrix(x, y, feature_names=names), 20)
    booster.save_model(folder / "model.json")
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([repr(float(v)) for v in row] for row in x)
    return folder / "model.json", folder / "rows.csv"


def questions(rows: int, names: list[str]) -> list[Callable[[int], str]]:
    """Kinds of questions, by number."""

    def distance(norm: str) -> Callable[[int], str]:
        return lambda i: f"find a such that class(a) = {i % 2}  minimize distance(a, row {i % rows} of d, {norm})"

    def decision(i: int) -> str:
        return f"find a such that margin(a) >= {i % 997 / 1000} and margin(a) <= {1 + i % 991 / 1000}"

    def near(i: int) -> str:
        return (
            f"find a such that class(a) = {i % 2} and distance(a, row {i % rows} of d, linf) <= {(1 + i % 499) / 1000}"
        )

    def gap(i: int) -> str:
        return f"sensitive m to {names[i % len(names)]} margin {(1 + i % 983) / 1000}"

    return [distance("linf"), decision, distance("l1"), gap, near, distance("l2")]


def run(model: Path, table: Path, count: int) -> None:
    """Asks, and prints a line after the first questions and after every tenth of all."""
    with table.open(newline="") as file:
        names = next(csv.reader(file))
        rows = sum(1 for _ in file)
    declarations = "\n".join(f"feature {name}: real in [0, 1]" for name in names)
    verdicts: dict[str, int] = {}
    options: dict[str, Any] = {"declarations": declarations, "time_limit": 10}
    start = time.process_time()
    with ts.session(model, table, **options) as session:
        kinds = questions(rows, names)
        for i in range(count):
            verdict = str(session.ask(kinds[i % len(kinds)](i // len(kinds))).verdict)
            verdicts[verdict] = verdicts.get(verdict, 0) + 1
            if i + 1 == WARM or (i + 1) % (count // 10) == 0:
                gc.collect()
                spent = time.process_time() - start
                print(f"{i + 1} questions: {resident():.1f} MB, {spent:.0f} s of CPU, {verdicts}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, help="the folder of published models; without it a model is trained")
    parser.add_argument("--questions", type=int, default=100_000)
    args = parser.parse_args()
    if args.bench is not None:
        model = args.bench / "models" / "breast_cancer_robust.json"
        run(model, args.bench / "local" / "rows_breast_cancer.csv", args.questions)
        return
    with tempfile.TemporaryDirectory() as folder:
        run(*trained(Path(folder)), args.questions)


if __name__ == "__main__":
    main()
