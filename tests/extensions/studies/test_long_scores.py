"""Fault 13: exact scores longer than 64 bits: `gap` was `unknown` on LightGBM models of five trees, and `native` refused some.

The expected values come from LightGBM's own raw scores of every value of the domain.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.asking import ask
from tests.extensions.studies.asked import found as found_by
from treesens.frontends.registry import load

pytestmark = pytest.mark.fault

NAMES = list("pqr")
DECLARED = "\n".join(f"feature {f}: integer in [0, 3]" for f in NAMES)
EVERY = pd.DataFrame(list(itertools.product(range(4), repeat=3)), columns=NAMES, dtype=float)


def trained(seed: int, scale: float = 1.0) -> Any:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(seed)
    noisy = EVERY.to_numpy().sum(axis=1) + rng.normal(0, 1, len(EVERY))
    model = lightgbm.LGBMClassifier(n_estimators=6, num_leaves=5, min_child_samples=2, learning_rate=scale, verbose=-1)
    return model.fit(EVERY, (noisy > 4).astype(int))


def pairs(model: Any) -> list[float]:
    """The lesser margin of every pair that differs in `p` alone."""
    raw = np.asarray(model.predict(EVERY, raw_score=True)).reshape(4, 4, 4)
    return [float(min(raw[i, j, k], -raw[m, j, k])) for i, m, j, k in itertools.product(range(4), repeat=4)]


@pytest.mark.parametrize("seed", range(4))
def test_the_largest_gap_of_long_scores_is_closed(seed: int) -> None:
    from treesens.data.tables import Table, align_table

    model = trained(seed)
    table = Table("d", {f: EVERY[f].to_numpy() for f in NAMES}, len(EVERY))
    loaded = load(model)
    (gap,) = found_by("gap", loaded, table=align_table(loaded, table), vary=[("p",)], time_limit=20).result
    best = max(pairs(model))
    assert gap.closed
    if best < 0:
        assert str(gap.verdict) == "none"
        return
    assert gap.value == pytest.approx(best, rel=0.021)
    assert gap.value is not None
    assert gap.bound is not None
    assert gap.value <= best + 1e-12
    assert best <= gap.bound + 1e-12


@pytest.mark.parametrize("scale", [1e-6, 0.1, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_gaps_just_below_and_above_the_largest_are_told_apart(seed: int, scale: float) -> None:
    model = trained(seed, scale)
    best = max(pairs(model))
    for gap, expected in ((best - 1e-9, "found"), (best + 1e-9, "none")):
        question = f"find a, b such that a = b except p; margin(a) >= {gap!r}; margin(b) <= {-gap!r}"
        assert str(ask(model, question, DECLARED, backend="native").verdict) == expected
