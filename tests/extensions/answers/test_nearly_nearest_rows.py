"""Fault P14 of the third review: groups within 1e-6 of the nearest pair were dropped, and the bound was the pair itself.

Most rows of these tables are as near as the nearest one, up to parts of a millionth. The expected distances come from the
predictions of xgboost on every input, in Fractions but for the root.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.asking import ask
from tests.corpus import boosted, margins_of
from treesens.extensions.answers import nearest_pair

pytestmark = pytest.mark.fault

NAMES = ["f0", "f1", "f2"]
MOST = 6
EVERY = np.array(list(itertools.product(range(MOST + 1), repeat=len(NAMES))), float)
DECLARED = "".join(f"feature {n}: integer in [0, {MOST}]\n" for n in NAMES)


def trained(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    label = EVERY @ rng.normal(size=len(NAMES)) + rng.normal(0, 2, len(EVERY)) > 0
    return boosted(EVERY, label, 5, names=NAMES, eta=0.5)


def nearly_tied(others: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Twelve inputs that are refused, off the whole numbers by up to a millionth; float32 like all that the model reads."""
    rows = others[rng.choice(len(others), 12)]
    return np.asarray((rows + rng.uniform(-1e-6, 1e-6, rows.shape)).astype(np.float32), np.float64)


def distance(one: np.ndarray, row: np.ndarray, norm: str) -> Fraction:
    """The distance, squared for l2."""
    apart = [abs(Fraction(float(a)) - Fraction(float(b))) / MOST for a, b in zip(one, row, strict=True)]
    return {"l1": sum(apart, Fraction(0)), "l2": sum((a * a for a in apart), Fraction(0)), "linf": max(apart)}[norm]


@pytest.mark.parametrize("tolerance", [0.0, 1e-6, 1e-2])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled
def test_rows_that_are_nearly_as_near_keep_their_bounds(
    seed: int, norm: str, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without time for single rows, groups of rows decide.
    monkeypatch.setattr(nearest_pair, "_SINGLE_ROWS", 0.0)
    monkeypatch.setattr(nearest_pair, "_MOVED_ROWS", 0.0)
    booster, rng = trained(seed), np.random.default_rng(100 + seed)
    margins = margins_of(booster, EVERY)
    least = float(np.sort(margins)[-8]) - 1e-4
    wanted, others = EVERY[margins >= least], EVERY[margins < least]
    rows = nearly_tied(others, rng)
    truth = min(distance(one, row, norm) for one in wanted for row in rows)
    question = f"find a such that margin(a) >= {least!r}\n  minimize distance(a, nearest row of d, {norm})"
    table = pd.DataFrame(rows, columns=NAMES)
    goal = ask(
        booster, question, DECLARED, table, backend="native", time_limit=20, tolerance=tolerance
    ).result.objective
    true = math.sqrt(truth) if norm == "l2" else float(truth)
    assert goal.bound <= true * (1 + 1e-12)
    assert goal.value >= true * (1 - 1e-12)
    # Costs are whole numbers of small units.
    assert goal.value - goal.bound <= tolerance * goal.value + 1e-10
