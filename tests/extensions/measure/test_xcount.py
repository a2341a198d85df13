"""Sensitive cells as XCount counts them, cell by cell, by trying all of them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.extensions.measure.xcount import ensemble_of, searches

WIDTH, FEATURE, DIGITS = 4, 2, 3


def drawn(dice: np.random.Generator, depth: int) -> Any:
    """A tree [feature, threshold, low, high] or a number; thresholds repeat, so that trees share cells."""
    if depth == 0:
        return float(f"{dice.normal():.6f}")
    return [int(dice.integers(WIDTH)), float(dice.integers(1, 8)), drawn(dice, depth - 1), drawn(dice, depth - 1)]


def cuts(tree: Any) -> set[tuple[int, float]]:
    return {(tree[0], tree[1]), *cuts(tree[2]), *cuts(tree[3])} if isinstance(tree, list) else set()


def leaf(tree: Any, x: tuple[float, ...]) -> float:
    while isinstance(tree, list):
        tree = tree[2] if x[tree[0]] < tree[1] else tree[3]
    return float(tree)


def counted(trees: list[Any], gap: int) -> int:
    """Cells that differ by the gap from a neighbour in the feature: leaves are rounded up in one, down in the other."""
    ends = [sorted({at for tree in trees for f, at in cuts(tree) if f == feature}) for feature in range(WIDTH)]
    rounded = {}
    for cell in itertools.product(*(range(len(e) + 1) for e in ends)):
        x = tuple(e[c] - 0.5 if c < len(e) else (e[-1] if e else 0.0) for e, c in zip(ends, cell, strict=True))
        leaves = [Fraction(repr(leaf(tree, x))) * 10**DIGITS for tree in trees]
        rounded[cell] = sum(map(math.ceil, leaves)), sum(map(math.floor, leaves))
    count = 0
    for cell, (high, low) in rounded.items():
        near = (tuple(c + step * (f == FEATURE) for f, c in enumerate(cell)) for step in (-1, 1))
        apart = [max(high - rounded[n][1], rounded[n][0] - low) for n in near if n in rounded]
        count += max(apart, default=-1) >= gap * 10**DIGITS
    return count


@pytest.mark.parametrize("seed", range(8))
def test_counts_are_those_of_trying_every_cell(seed: int) -> None:
    dice = np.random.default_rng(seed)
    trees = [drawn(dice, 3) for _ in range(1 + seed % 4)]
    ensemble = ensemble_of(trees)
    expected, low, high = counted(trees, 1), 0, 0
    for search, cells in searches(ensemble.on(ensemble.grid()), FEATURE, 1, DIGITS):
        search.run(60.0)
        masses = search.masses()
        low += round(masses.lower * cells)
        high += round(masses.upper * cells)
    assert low == high == expected
    assert expected > 0
