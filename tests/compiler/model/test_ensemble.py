"""Cells, boxes, sums and bands of random ensembles against one-node-at-a-time references."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.model.build import random_ensemble, random_rows
from treesens.compiler.base.floats import NumberType, next_up
from treesens.compiler.model import Ensemble, FeatureGrid, strict_cut
from treesens.compiler.model.assemble import MAX_DEPTH, order_nodes
from treesens.errors import DataError, ModelError

F32, F64 = NumberType.FLOAT32, NumberType.FLOAT64
SEEDS = range(24)


def slow_leaf(e: Ensemble, row: np.ndarray, tree: int) -> int:
    node = int(e.tree_offset[tree])
    while e.node_feature[node] >= 0:
        f = int(e.node_feature[node])
        x = e.number_type.dtype.type(row[f])
        if np.isnan(x):
            goes = bool(e.default_left[node])
        elif e.category_set[node] >= 0:
            n, s = e.features[f].categories, e.category_set[node]
            code = int(x) if 0 <= x < n else n
            goes = code in e.set_codes[e.set_offset[s] : e.set_offset[s + 1]].tolist()
        else:
            # Python compares a float32 widened to float64 with the threshold as it is stored.
            t = float(e.threshold[node])
            goes = float(x) < t if e.comparison == "<" else float(x) <= t
        node = int(e.left[node] if goes else e.right[node])
    return int(e.node_leaf[node])


@pytest.mark.parametrize("seed", SEEDS)
def test_floats_cells_and_a_slow_walk_reach_the_same_leaves(seed: int) -> None:
    e = random_ensemble(seed)
    x = random_rows(e, 60, seed)
    leaves = e.leaves(x)
    assert leaves.tolist() == [[slow_leaf(e, row, t) for t in range(e.n_trees)] for row in x]
    grid = e.grid(missing=True)
    assert np.array_equal(e.on(grid).leaves(grid.cells(x)), leaves)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_finer_grid_changes_nothing(seed: int) -> None:
    e = random_ensemble(seed)
    x = random_rows(e, 60, seed, missing=False)
    coarse = e.grid()
    fine = type(coarse)(
        tuple(f if f.categories else f.refined([0.25, -7.5, np.inf, e.number_type.max]) for f in coarse)
    )
    assert (fine.n_cells >= coarse.n_cells).all()
    assert np.array_equal(e.on(fine).leaves(fine.cells(x)), e.leaves(x))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("missing", [False, True])
def test_leaf_boxes_hold_exactly_the_cells_that_reach_the_leaf(seed: int, missing: bool) -> None:
    e = random_ensemble(seed, trees=2, depth=3)
    grid = e.grid(missing=missing)
    cells = e.on(grid)
    every = np.array(list(itertools.product(*(range(n) for n in grid.n_cells))), dtype=np.int32)[:20_000]
    reached = cells.leaves(every)
    boxes = cells.leaf_boxes()
    inside = np.ones((e.n_leaves, len(every)), dtype=bool)
    for leaf in range(e.n_leaves):
        literals = range(int(boxes.offset[leaf]), int(boxes.offset[leaf + 1]))
        assert len({int(boxes.feature[k]) for k in literals}) == len(literals)
        for k in literals:
            inside[leaf] &= boxes.allowed(k)[every[:, boxes.feature[k]]]
        assert np.array_equal(inside[leaf], reached[:, e.leaf_tree[leaf]] == leaf)
        assert boxes.reachable[leaf] or not inside[leaf].any()


def test_left_cells_agree_with_the_engine() -> None:
    e = random_ensemble(3)
    cells = e.on(e.grid(missing=[True] * e.n_features))
    for node in np.flatnonzero(cells.feature >= 0).tolist():
        f = int(cells.feature[node])
        assert len(cells.left_cells(node)) == cells.grid[f].n_cells
        assert cells.left_cells(node)[cells.grid[f].missing_cell] == bool(e.default_left[node])


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_exact_and_emulated_stay_within_the_band(seed: int) -> None:
    e = random_ensemble(seed)
    x = random_rows(e, 20, seed)
    leaves, exact, emulated = e.leaves(x), e.margins_exact(x), e.margins_emulated(x)
    for r in range(len(x)):
        assert exact[r, 0] == Fraction(0.125) + sum(e.contribution(int(leaf))[0] for leaf in leaves[r])
        assert abs(Fraction(float(emulated[r, 0])) - exact[r, 0]) <= e.band()
    assert emulated.dtype == e.accumulation.number_type.dtype


def slow_band(e: Ensemble) -> Fraction:
    """The bound of `bands` by exact fractions alone, for one output whose base is added first."""
    kind = e.accumulation.number_type
    unit, tiny = Fraction(1, 1 << kind.precision), Fraction(kind.tiny) / 2
    low = high = Fraction(e.base[0].item())
    error = Fraction(0)
    for tree in range(e.n_trees):
        mine = [e.contribution(int(leaf))[0] for leaf in np.flatnonzero(e.leaf_tree == tree)]
        if e.tree_weight[tree] != 1.0:
            error += unit * max(map(abs, mine)) + tiny
        low, high = low + min(mine), high + max(mine)
        error += unit * (max(abs(low), abs(high)) + error)
    return error


@pytest.mark.parametrize("seed", SEEDS)
def test_the_band_is_the_exact_bound_rounded_up(seed: int) -> None:
    e = random_ensemble(seed, trees=40)
    if e.accumulation.base_first:
        exact = slow_band(e)
        assert exact <= e.band() <= exact * (1 + Fraction(1, 1 << 30)) + Fraction(1, 1 << 119)


def test_the_band_of_many_trees_stays_short() -> None:
    e = random_ensemble(2, trees=3_000)
    assert e.band().denominator <= 1 << 120
    assert 0 < e.band() < 1


def test_an_average_divides_the_sum_and_not_the_base() -> None:
    e = replace(random_ensemble(0), average=3).validate()
    x = random_rows(e, 5, 0)
    exact = e.margins_exact(x)
    total = sum(e.contribution(int(leaf))[0] for leaf in e.leaves(x)[0])
    assert exact[0, 0] == Fraction(0.125) + total / 3
    assert abs(Fraction(float(e.margins_emulated(x)[0, 0])) - exact[0, 0]) <= e.band()


def test_products_that_do_not_fit_a_float64_stay_exact() -> None:
    e = replace(random_ensemble(0), leaf_value=np.full((random_ensemble(0).n_leaves, 1), 0.1), tree_weight=[0.3] * 5)
    with pytest.raises(ModelError, match="not a float64"):
        _ = e.leaf_contribution
    assert e.scaled_contributions.fraction(0, 0) == Fraction(0.1) * Fraction(0.3) == e.contribution(0)[0]


@given(
    t=st.floats(allow_nan=False),
    x=st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, 1e-45, -1e-45])),
    kind=st.sampled_from([F32, F64]),
    near=st.integers(-2, 2),
)
def test_strict_cuts_decide_as_the_threshold_does(t: float, x: float, kind: NumberType, near: int) -> None:
    if near and np.isfinite(t) and abs(t) < kind.max:
        x = float(np.nextafter(kind.dtype.type(t), kind.dtype.type(near * np.inf)))
    x = float(kind.cast(x))
    if np.isfinite(x):
        assert (x < t) == (x < strict_cut(t, kind, "<"))
        assert (x <= t) == (x < strict_cut(t, kind, "<="))


@given(
    cuts=st.sets(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=8),
    kind=st.sampled_from([F32, F64]),
)
@settings(max_examples=60)
def test_intervals_tile_the_finite_values(cuts: set[float], kind: NumberType) -> None:
    grid = FeatureGrid("x", kind, np.zeros(0), missing=True).refined(sorted(cuts))
    low = -kind.max
    for cell in range(grid.present_cells):
        lo, hi = grid.interval(cell)
        assert lo == low <= hi
        assert grid.cell_of([lo, hi]).tolist() == [cell, cell]
        low = next_up(hi, kind)
    assert low == np.inf
    assert grid.cell_of([np.nan]).tolist() == [grid.missing_cell] == [grid.n_cells - 1]
    assert grid.with_missing(False).missing_cell == -1


def test_values_are_cast_before_they_are_compared() -> None:
    grid = FeatureGrid("x", F32, np.array([float(np.float32(0.1))]))
    assert grid.cell_of([0.1, 0.0999999999, 0.09]).tolist() == [1, 1, 0]
    assert FeatureGrid("x", F64, grid.cuts).cell_of([0.1, 0.0999999999]).tolist() == [0, 0]


def test_categories_have_a_cell_for_all_others() -> None:
    grid = FeatureGrid("c", F32, np.zeros(0), categories=3, missing=True)
    assert grid.cell_of([0, 1.9, 2, 3, -1, 1e30, -0.5, np.nan]).tolist() == [0, 1, 2, 3, 3, 3, 3, 4]
    assert (grid.interval(1), grid.interval(3)) == ((1.0, 1.0), (3.0, F32.max))
    with pytest.raises(ModelError, match="no order"):
        grid.refined([1.0])


def test_unexpected_missing_values_and_shapes_are_data_errors() -> None:
    e = random_ensemble(1)
    with pytest.raises(DataError, match="is missing"):
        e.grid().cells(np.full((1, e.n_features), np.nan))
    for call in (e.leaves, e.grid().cells):
        with pytest.raises(DataError, match="columns"):
            call(np.zeros((2, e.n_features + 1)))
    with pytest.raises(DataError, match="outside the grid"):
        e.on(e.grid()).leaves(np.full((1, e.n_features), 10**6, np.int32))


def test_a_grid_without_the_models_cuts_is_refused() -> None:
    e = random_ensemble(1)
    bare = type(e.grid())(tuple(f if f.categories else replace(f, cuts=np.zeros(0)) for f in e.grid()))
    with pytest.raises(ModelError, match="lacks a cut"):
        e.on(bare)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ([1, -1, -1], [1, -1, -1], "two parents"),
        ([0, -1, -1], [2, -1, -1], "reached twice"),
        ([1, 0, -1], [2, 2, -1], "reached twice|two parents"),
        ([1, -1, -1], [3, -1, -1], "does not exist"),
        ([1, -1, -1], [-1, -1, -1], "does not exist"),
        ([-2, -1, -1], [1, -1, -1], "does not exist"),
    ],
)
def test_damaged_children_are_refused(left: list[int], right: list[int], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        order_nodes(np.array([0, 3]), np.array(left), np.array(right))


def test_chains_have_a_limit_and_unreached_nodes_are_dropped() -> None:
    n = 2 * MAX_DEPTH + 11
    left = np.full(n, -1)
    left[0 : n - 2 : 2] = np.arange(1, n - 1, 2)
    right = np.where(left == -1, -1, left + 1)
    left[1::2] = -1
    with pytest.raises(ModelError, match="deeper"):
        order_nodes(np.array([0, n]), left, right)
    order = order_nodes(np.array([0, 5]), np.array([3, -1, -1, -1, -1]), np.array([4, -1, -1, -1, -1]))
    assert order.node.tolist() == [0, 3, 4]
    assert order.leaf_id.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base": [np.nan]}, "base is not finite"),
        ({"base": [0.1]}, "type of the library's sums"),
        ({"average": 0}, "average"),
        ({"tree_output": [1] * 5}, "tree_output"),
        ({"tree_weight": [1.0]}, "tree arrays differ"),
        ({"node_feature": [9]}, "span the nodes"),
        ({"threshold": [9.0]}, "one entry per node"),
        ({"set_codes": [99] * 99}, "set_offset"),
        ({"features": ()}, "feature"),
    ],
)
def test_broken_columns_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        replace(random_ensemble(1), **change).validate()  # type: ignore[arg-type]
