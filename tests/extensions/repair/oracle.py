"""Repairs of drawn tiny models against the whole domain, by the stock library's own predictions of the written file.

python -m tests.extensions.repair.oracle --count 500
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import treesens as ts
from tests.extensions.repair.models import GRID, predict, train, write_table

KINDS = (
    "xgboost",
    "lightgbm",
    "sklearn-forest-label-joblib",
    "sklearn-boosting-label-skops",
    "sklearn-histogram-label-pkl",
    "xgboost-ubj",
    "sklearn-extra-label-gz",
    "xgboost-categories",
    "lightgbm-categories",
    "sklearn-piped-label-z",
    "xgboost-dart",
)
METHODS = ("average", "blend", "leaves", "auto")


def crosses(low: Any, high: Any, gap: float) -> bool:
    """Whether one of two predictions lies `gap` above one half and the other `gap` below it."""
    return bool(((high >= 0.5 + gap) & (low <= 0.5 - gap)).any())


def extremes(values: Any, varied: list[int]) -> tuple[Any, Any]:
    """The least and the greatest prediction of every group of inputs that differ in the varied features alone."""
    rest = [f for f in range(GRID.shape[1]) if f not in varied]
    _, group = np.unique(GRID[:, rest], axis=0, return_inverse=True)
    low, high = np.full(group.max() + 1, np.inf), np.full(group.max() + 1, -np.inf)
    np.minimum.at(low, group, values)
    np.maximum.at(high, group, values)
    return low, high


def check(seed: int, folder: Path, seconds: float) -> None:
    """Repairs one model, and raises AssertionError if a pair of the domain breaks the promise."""
    kind, method, gap = (
        KINDS[seed % len(KINDS)],
        METHODS[seed // len(KINDS) % len(METHODS)],
        (0.05, 0.1, 0.2)[seed // 4 % 3],
    )
    varied = [0] if seed % 5 else [0, 2]
    if method == "leaves" and ("forest" in kind or "extra" in kind):
        method = "blend"  # leaves of probabilities are only mixed
    path, x, y = train(kind, folder, seed)
    data = write_table(folder / "d.csv", x, y)
    before = predict(path, GRID)
    output = folder / f"out{path.suffix}"
    names = [["f", "b"]] if len(varied) == 2 else ["f"]
    model = ts.load(path, trust_pickle=True)
    found = ts.repair(
        model, data, vary=names, label="y", gap=gap, output=output, method=method, time_limit=seconds, seed=seed,
        certificates=folder / "proofs",
    )  # fmt: skip
    (record,) = found.records
    assert record["proved"]
    assert output.is_file()
    assert all(claim["file"] for proof in record["proofs"] for claim in proof["certificates"])
    after = predict(output, GRID)
    assert not crosses(*extremes(after, varied), gap)
    low, high = extremes(after, varied)
    if record["method"] == "average" and crosses(*extremes(before, varied), gap):
        assert np.array_equal(low, high)
    loaded = ts.load(output, trust_pickle=True)
    assert np.array_equal(loaded.ensemble.margins_emulated(GRID), loaded.margins(GRID))


def main() -> None:
    """Checks as many as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=0.5, help="for the search for the best leaves")
    given = parser.parse_args()
    for seed in range(given.count):
        with tempfile.TemporaryDirectory() as folder:
            check(seed, Path(folder), given.seconds)
        print(f"{seed + 1} repaired, none breaks its promise", flush=True)


if __name__ == "__main__":
    main()
