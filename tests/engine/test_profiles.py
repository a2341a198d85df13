"""flip_profiles: the extremes over one feature, row by row, against evaluating every cell."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from treesens._engine import CheckedTrees


def random_trees(rng: np.random.Generator, trees: int, counts: NDArray[np.int32]) -> CheckedTrees:
    """Complete trees of depth 3 with ordered, categorical and missing-aware questions."""
    nodes: dict[str, list[int]] = {k: [] for k in ("feature", "cut", "left", "right", "leaf", "default_left", "set")}
    roots: list[int] = []
    sets: list[NDArray[np.uint8]] = []
    leaves = 0
    for _ in range(trees):
        base = len(nodes["feature"])
        roots.append(base)
        for i in range(15):
            inner = i < 7
            f = int(rng.integers(0, len(counts)))
            categorical = inner and rng.random() < 0.3
            nodes["feature"].append(f if inner else -1)
            nodes["cut"].append(int(rng.integers(0, counts[f])))
            nodes["left"].append(base + 2 * i + 1 if inner else 0)
            nodes["right"].append(base + 2 * i + 2 if inner else 0)
            nodes["leaf"].append(-1 if inner else leaves)
            nodes["default_left"].append(int(rng.integers(0, 2)))
            nodes["set"].append(len(sets) if categorical else -1)
            if categorical:
                sets.append((rng.random(counts[f]) < 0.5).astype(np.uint8))
            leaves += not inner
    return CheckedTrees(
        root=np.array(roots, np.int32),
        feature=np.array(nodes["feature"], np.int32),
        cut=np.array(nodes["cut"], np.int32),
        left=np.array(nodes["left"], np.int32),
        right=np.array(nodes["right"], np.int32),
        leaf=np.array(nodes["leaf"], np.int32),
        default_left=np.array(nodes["default_left"], np.uint8),
        category_set=np.array(nodes["set"], np.int32),
        set_offset=np.cumsum([0, *(len(s) for s in sets)]).astype(np.int64),
        set_member=np.concatenate([*sets, np.zeros(0, np.uint8)]),
        missing_cell=(counts - 1).astype(np.int32),
        cell_count=counts,
    )


@pytest.mark.parametrize("seed", range(20))
def test_extremes_over_one_feature(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(2, 7, 4).astype(np.int32)
    trees = random_trees(rng, 9, counts)
    value = rng.integers(-1000, 1000, 8 * 9)
    cells = np.stack([rng.integers(0, n, 600) for n in counts], axis=1).astype(np.int32)
    flipped = int(rng.integers(0, 4))
    allowed = (rng.random(counts[flipped]) < 0.7).astype(np.uint8)
    allowed[0] = 1
    highest, lowest = np.empty(600, np.int64), np.empty(600, np.int64)
    highest_cell, lowest_cell = np.empty(600, np.int32), np.empty(600, np.int32)
    trees.flip_profiles(
        cells=cells,
        leaf_value=value,
        flipped=flipped,
        allowed=allowed,
        highest=highest,
        lowest=lowest,
        highest_cell=highest_cell,
        lowest_cell=lowest_cell,
    )
    scores = np.full((600, counts[flipped]), 0, np.int64)
    leaf = np.empty((600, 9), np.int32)
    for k in range(counts[flipped]):
        changed = cells.copy()
        changed[:, flipped] = k
        trees.reach_leaves(changed, leaf)
        scores[:, k] = value[leaf].sum(axis=1)
    masked = np.where(allowed != 0, scores, np.iinfo(np.int64).min)
    assert (highest == masked.max(axis=1)).all()
    assert (highest_cell == masked.argmax(axis=1)).all()
    masked = np.where(allowed != 0, scores, np.iinfo(np.int64).max)
    assert (lowest == masked.min(axis=1)).all()
    assert (lowest_cell == masked.argmin(axis=1)).all()
