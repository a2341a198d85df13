"""Marginals, cavities and distances to rows against the definitions, by brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.binder.setting import NAMES, one, values, world
from tests.data.distances import distances_to_row
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model.grid import FeatureGrid
from treesens.compiler.query.domain import RealDomain, ValueDomain, cell_range, legal_cells
from treesens.compiler.query.evaluate import form_value, holds, inputs_of
from treesens.compiler.query.query import AvoidBoxes
from treesens.compiler.query.values import ValueSum, least_sum, reach_of_cell
from treesens.data.cavities import Boxes, maximal_empty_boxes
from treesens.data.rows import SHIFT, changes_from_value, coarse_cells, fine_runs, marginals


def every_maximal_empty_box(cells: np.ndarray, sizes: list[int], width: int) -> set[tuple[tuple[int, int, int], ...]]:
    """All boxes that bound at most `width` features, hold no row, and are part of no other such box."""
    empty = []
    for count in range(1, width + 1):
        for chosen in itertools.combinations(range(len(sizes)), count):
            runs = [
                [(a, b) for a in range(sizes[f]) for b in range(a, sizes[f]) if b - a + 1 < sizes[f]] for f in chosen
            ]
            for box in itertools.product(*runs):
                inside = np.ones(len(cells), bool)
                for f, (a, b) in zip(chosen, box, strict=True):
                    inside &= (cells[:, f] >= a) & (cells[:, f] <= b)
                if not inside.any():
                    empty.append(dict(zip(chosen, box, strict=True)))

    def part_of(small: dict[int, tuple[int, int]], large: dict[int, tuple[int, int]]) -> bool:
        return all(f in small and a <= small[f][0] and small[f][1] <= b for f, (a, b) in large.items())

    maximal = [box for box in empty if not any(box != other and part_of(box, other) for other in empty)]
    return {tuple((f, a, b) for f, (a, b) in sorted(box.items())) for box in maximal}


def listed(boxes: Boxes) -> list[tuple[tuple[int, int, int], ...]]:
    columns = list(zip(boxes.feature.tolist(), boxes.low.tolist(), boxes.high.tolist(), strict=True))
    return [tuple(columns[a:b]) for a, b in itertools.pairwise(boxes.indptr.tolist())]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.sampled
def test_cavities_are_all_maximal_empty_boxes(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [int(n) for n in rng.integers(1, 6, size=4)]
    cells = np.stack([rng.integers(0, n, size=9) for n in sizes], axis=1).astype(np.int32)
    found = listed(maximal_empty_boxes(cells, np.array(sizes, np.int32), width, 10_000))
    assert len(found) == len(set(found))
    assert set(found) == every_maximal_empty_box(cells, sizes, width)
    sizes_of_boxes = [(len(box), -sum(b - a + 1 for _, a, b in box)) for box in found]
    assert sizes_of_boxes == sorted(sizes_of_boxes), "fewest features first, then the largest"
    assert listed(maximal_empty_boxes(cells, np.array(sizes, np.int32), width, 5)) == found[:5]


def test_wide_features_still_give_boxes_that_are_empty_and_maximal() -> None:
    rng = np.random.default_rng(1)
    sizes = np.array([40, 30, 25], np.int32)
    cells = np.stack([rng.integers(0, n, size=2000) for n in sizes], axis=1).astype(np.int32)
    boxes = [box for box in listed(maximal_empty_boxes(cells, sizes, 3, 100_000)) if len(box) == 3]
    assert boxes
    for box in boxes[::50]:
        assert count(cells, box) == 0
        for i, (f, a, b) in enumerate(box):
            for wider in ((f, a - 1, b), (f, a, b + 1)):
                if wider[1] >= 0 and wider[2] < sizes[f]:
                    assert count(cells, (*box[:i], wider, *box[i + 1 :])) > 0


def count(cells: np.ndarray, box: tuple[tuple[int, int, int], ...]) -> int:
    return int(np.logical_and.reduce([(cells[:, f] >= a) & (cells[:, f] <= b) for f, a, b in box]).sum())


def test_a_missing_value_lies_in_no_cavity_of_its_feature() -> None:
    cells = np.array([[0, 1], [1, -1], [1, 1]], np.int32)
    found = listed(maximal_empty_boxes(cells, np.array([2, 2], np.int32), 2, 100))
    assert ((1, 0, 0),) in found


def test_marginals_are_shares_of_rows_and_an_empty_cell_counts_half_a_row() -> None:
    cells = np.array([[0], [0], [1], [0], [-1]], np.int32)
    found = marginals(cells, np.array([3], np.int32))
    assert [found.probability(0, c) for c in range(3)] == [Fraction(3, 5), Fraction(1, 5), Fraction(1, 10)]
    for rounding, sign in (("down", -1), ("up", 1)):
        costs = found.log_costs(0, rounding)  # type: ignore[arg-type]
        exact = [math.log(p) * 2**SHIFT for p in (0.6, 0.2, 0.1)]
        assert all(0 <= sign * (c - e) + 0.01 <= 1.02 for c, e in zip(costs, exact, strict=True))


def test_likelihood_is_the_product_of_the_marginals_of_the_models_own_cells() -> None:
    question = one("a.x >= 0.7\n maximize likelihood(a, rows) * likelihood(b, rows)")
    refined = one("a.x >= 0.7123\n a.y in [0.2, 0.9]\n maximize likelihood(a, rows) * likelihood(b, rows)")
    rng = np.random.default_rng(0)
    for _ in range(20):
        inputs = np.array([[p[f] for f in NAMES] for p in (values(rng), values(rng))])
        one_value, other = (form_value(q.query.objective.form, inputs_of(q.query, inputs)) for q in (question, refined))  # type: ignore[union-attr]
        assert one_value == other, "constants of the question do not change a likelihood"
        assert one_value < 0


def test_a_likelihood_constraint_agrees_with_the_product() -> None:
    goal = one("a.x >= -2\n maximize likelihood(a, rows)")
    question = one("likelihood(a, rows) >= 0.0001")
    opposite = one("not likelihood(a, rows) >= 0.0001")
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        inputs = np.array([[p[f] for f in NAMES] for p in (values(rng), values(rng))])
        assert goal.query.objective is not None
        expected = form_value(goal.query.objective.form, inputs_of(goal.query, inputs)) >= Fraction(math.log(0.0001))
        (row,), (negated,) = question.query.constraints, opposite.query.constraints
        assert holds(row, inputs_of(question.query, inputs)) == expected
        assert holds(negated, inputs_of(opposite.query, inputs)) != expected
        seen.add(expected)
    assert seen == {True, False}


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_bound_on_the_distance_to_a_row_is_one_on_the_nearest_value_of_each_cell(norm: str) -> None:
    question = one(f"distance(a, row 2 of rows, {norm}) <= 1.25", points="a")
    (row,) = question.query.constraints
    assert isinstance(row, ValueSum)
    setting = world({"a": "binary"}, {})
    target, widths = setting.rows["rows"][2], setting.widths
    rng = np.random.default_rng(2)
    seen = set()
    for _ in range(100):
        a = values(rng)
        x = inputs_of(question.query, np.array([[a[f] for f in NAMES]]))
        total = Fraction(0)
        for f, name in enumerate(NAMES):
            grid, cell, value = question.query.space.grid[f], int(x.cells[0, f]), target[name]
            if cell == int(grid.cell_of(value)):
                continue
            width = widths[name]
            part = Fraction(1)
            if width is not None and cell != grid.missing_cell:
                domain = question.query.space.domains[f]
                if isinstance(domain, ValueDomain):
                    near = min(domain.values[grid.cell_of(domain.values) == cell], key=lambda v: abs(v - value))
                else:
                    low, high = grid.interval(cell)
                    near = min(max(value, low, domain.low), high, domain.high)
                part = abs(Fraction(float(near)) - Fraction(value)) / width
            total += part * part if norm == "l2" else part
        limit = Fraction(25, 16) if norm == "l2" else Fraction(5, 4)
        space = question.query.space
        reach = [reach_of_cell(d, g, int(c)) for d, g, c in zip(space.domains, space.grid, x.cells[0], strict=True)]
        assert least_sum(row, lambda place: reach[place[1]]) == total  # noqa: B023 (called here)
        assert row.allows(total) == (total <= limit)
        seen.add(total <= limit)
    assert seen == {True, False}


def test_avoiding_cavities_keeps_points_near_rows() -> None:
    question = one("a avoid cavities(rows, width = 2)", points="a")
    (boxes,) = question.query.constraints
    assert isinstance(boxes, AvoidBoxes)
    inside = [dict(row) for row in world({"a": "binary"}, {}).rows["rows"][:7]]
    for row in inside:
        assert holds(boxes, inputs_of(question.query, np.array([[row[f] for f in NAMES]])))
    rng = np.random.default_rng(0)
    negated = one("not a avoid cavities(rows, width = 2)", points="a")
    found = set()
    for row in [*inside, *(values(rng) for _ in range(30))]:
        x = np.array([[row[f] for f in NAMES]])
        avoids = holds(boxes, inputs_of(question.query, x))
        assert holds(negated.query.constraints[0], inputs_of(negated.query, x)) != avoids
        found.add(avoids)
    assert found == {True, False}


def test_fine_cells_lie_in_their_coarse_cell() -> None:
    coarse = FeatureGrid("x", NumberType.FLOAT32, np.array([0.0, 1.0]), missing=True)
    fine = coarse.refined([0.5, 2.0])
    assert coarse_cells(coarse, fine).tolist() == [0, 1, 1, 2, 2, 3]
    assert [r.tolist() for r in fine_runs(coarse, fine)] == [[0, 1, 3, 5], [0, 2, 4, 5]]


def test_distances_of_cells_without_a_legal_value_are_zero() -> None:
    grid = FeatureGrid("x", NumberType.FLOAT32, np.array([0.0, 1.0]))
    domain = RealDomain(0.0, 0.5)
    assert distances_to_row(domain, grid, 2.0, Fraction(1, 2), ordered=True) == [0, 3, 0]


@pytest.mark.parametrize("number_type", list(NumberType))
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_cells_that_change_a_row_are_those_at_a_distance(number_type: NumberType, missing: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cuts = np.unique(number_type.cast(rng.choice([rng.normal(size=9), np.arange(-4.0, 5.0)])))
    grid = FeatureGrid("x", number_type, cuts, missing=missing)
    low, high = sorted(number_type.cast(rng.normal(scale=2, size=2)))
    values = np.unique(number_type.cast(rng.normal(size=6)))
    for domain in (
        RealDomain(low, high, missing=missing),
        RealDomain(float(np.floor(low)), float(np.ceil(high)), whole=True, missing=missing),
        ValueDomain(values, tuple(values.tolist()), missing=missing),
    ):
        legal = legal_cells(domain, grid)
        for value in (*cuts, *values, low, 0.0, 0.5, 2.0, *([np.nan] if missing else [])):
            expected = distances_to_row(domain, grid, float(value), Fraction(1), ordered=False)
            assert changes_from_value(domain, grid, legal, float(value)).tolist() == [int(d) for d in expected]


@pytest.mark.parametrize("number_type", list(NumberType))
@pytest.mark.parametrize("whole", [False, True])
def test_legal_cells_are_those_with_a_range(number_type: NumberType, whole: bool) -> None:
    rng = np.random.default_rng(3)
    for scale in (1.0, 5.0, 1e9, 1e30):
        cuts = np.unique(number_type.cast(rng.normal(scale=scale, size=40)))
        grid = FeatureGrid("x", number_type, cuts)
        low, high = sorted(number_type.cast(rng.normal(scale=scale, size=2)))
        domain = RealDomain(float(low), float(high), whole=whole)
        ranges = [cell_range(domain, grid, cell) for cell in range(grid.n_cells)]
        assert legal_cells(domain, grid).tolist() == [a <= b for a, b in ranges]
        lows, highs = grid.intervals()
        assert list(zip(lows.tolist(), highs.tolist(), strict=True)) == [grid.interval(c) for c in range(grid.n_cells)]
