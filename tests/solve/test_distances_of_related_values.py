"""Found by the oracle: a false bound. The least linf distance was taken for the best distance of some pair of cells, although a
relation kept values of one cell apart."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd
import pytest

from tests.asking import ask

pytestmark = pytest.mark.fault

DECLARED = "feature y: integer in [0, 4]\nfeature z: integer in [1, 3]\nfeature w: integer in [-2, 3]"
WIDTHS = (4, 2, 5)


@pytest.fixture(scope="module")
def stump() -> Any:
    """Splits y alone, so that all values of z and w share a cell."""
    tree = pytest.importorskip("sklearn.tree")
    return tree.DecisionTreeClassifier(max_depth=1).fit(pd.DataFrame({"y": [0, 4], "z": [1, 1], "w": [0, 0]}), [0, 1])


@pytest.mark.parametrize("backend", ["native", "auto", "cpsat"])
@pytest.mark.parametrize("sense", ["minimize", "maximize"])
def test_the_least_distance_of_related_values(stump: Any, sense: str, backend: str) -> None:
    inputs = list(itertools.product(range(5), range(1, 4), range(-2, 4)))
    apart = [
        max(abs(p - q) / n for p, q, n in zip(a, b, WIDTHS, strict=True))
        for a in inputs
        for b in inputs
        if -b[2] == a[2] + 1
    ]
    expected = min(apart) if sense == "minimize" else max(apart)
    told = ask(stump, f"find a, b such that -b.w = a.w + 1\n  {sense} distance(a, b, linf)", DECLARED, backend=backend)
    objective = told.to_dict()["objective"]
    assert objective["value"] == pytest.approx(expected, abs=1e-4)
    slack = 1e-9
    assert objective["bound"] is not None
    assert objective["bound"] <= expected + slack if sense == "minimize" else objective["bound"] >= expected - slack
