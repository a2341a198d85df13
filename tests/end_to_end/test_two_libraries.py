"""Two models that read numbers of different types, asked together: judged by both libraries on every cell of both models.

XGBoost rounds inputs to float32 first, LightGBM compares them as they are, so that one float64 beside a cut matters.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens
from tests.corpus import boosted, margins_of
from treesens.frontends import load

lightgbm = pytest.importorskip("lightgbm")

NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module", params=[0, 1, 2])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    """The folder of both files, and both boosters; columns of few decimals, which float32 does not hold."""
    folder = tmp_path_factory.mktemp("pair")
    rng = np.random.default_rng(request.param)
    x = np.round(rng.normal(size=(300, 3)), 1)
    y = (x[:, 0] + x[:, 1] * x[:, 2] > rng.normal(0, 0.3, 300)).astype(int)
    one = boosted(x, y, 3, 2, names=NAMES)
    options = {"objective": "binary", "num_leaves": 4, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    other = lightgbm.train(options, lightgbm.Dataset(x, y, feature_name=NAMES), 3)
    one.save_model(folder / "x.json")
    other.save_model(folder / "l.txt")
    return folder, one, other


def every_cell(folder: Path) -> np.ndarray:
    """Rows with all combinations of the cuts of both models, of float64 and float32 beside them, and of ties of the cast."""
    columns = []
    for feature in range(len(NAMES)):
        values = {-3.0, 3.0}
        for name in ("x.json", "l.txt"):
            e = load(folder / name).ensemble
            for cut in e.threshold[(e.node_feature == feature)].tolist():
                below = float(np.nextafter(np.float32(cut), np.float32(-np.inf)))
                half = (float(np.float32(cut)) + below) / 2
                for at in (cut, half):
                    values |= {at, float(np.nextafter(at, -np.inf)), float(np.nextafter(at, np.inf))}
        columns.append(sorted(v for v in values if -3 <= v <= 3))
    return np.array(list(itertools.product(*columns)))


def test_the_largest_difference_is_that_of_the_libraries(pair: tuple[Path, Any, Any]) -> None:
    folder, one, other = pair
    rows = every_cell(folder)
    first = margins_of(one, rows)
    difference = first - other.predict(rows, raw_score=True)
    domains = "".join(f"feature {name}: real in [-3, 3]\n" for name in NAMES)
    file = folder / "q.sens"
    head = f'model x from "x.json"\nmodel l from "l.txt"\n{domains}'
    for sign, ends in ((1, "margin(p) - margin(q)"), (-1, "margin(q) - margin(p)")):
        most = float((sign * difference).max())
        for least, verdict in ((most - 1e-5, "found"), (most + 1e-5, "none")):
            file.write_text(f"{head}query q: find p in x, q in l such that p = q; {ends} >= {least!r}\n")
            answer = treesens.check(file, replay="library", time_limit=20)["q"]
            assert answer.verdict == verdict
        file.write_text(f"{head}query q: find p in x, q in l such that p = q maximize {ends}\n")
        record = treesens.check(file, replay="library", time_limit=20)["q"].to_dict()
        assert record["objective"]["value"] == pytest.approx(most, abs=1e-5)
