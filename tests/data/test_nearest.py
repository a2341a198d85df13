"""Regions and nearest rows: guarantees by sampling, distances by going through the rows."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.data.distances import distances_to_row
from tests.data.settings import ask, needs_bench
from treesens.compiler.result import Verdict
from treesens.extensions.answers.location import box_of_cells, distances
from treesens.extensions.answers.regions import RegionFinder
from treesens.solve.options import Options
from treesens.solve.question import answer, answer_question
from treesens.values.verify import verify_cells

pytestmark = needs_bench


@pytest.mark.parametrize("feature", ["f2", "f6", "f8"])
def test_every_pair_of_a_region_is_an_answer(feature: str) -> None:
    bound = ask(f"query q: sensitive m to {feature} margin 0.5", "diabetes_unrobust", "diabetes")["q"]
    query = bound.query
    result = answer(query, Options(backend="native", time_limit=5))
    assert result.witness is not None
    finder = RegionFinder(query)
    leaf, wide = finder.leaf_region(result.witness.cells), finder.region(result.witness.cells)
    assert leaf is not None
    assert wide is not None
    rng = np.random.default_rng(1)
    for point in range(2):
        for f, cell in enumerate(result.witness.cells[point]):
            assert leaf.boxes[point][f][cell]
            assert (wide.boxes[point][f] >= leaf.boxes[point][f]).all()
    for _ in range(40):
        cells = np.array([[rng.choice(np.flatnonzero(mask)) for mask in box] for box in wide.boxes], np.int32)
        for f in wide.shared:
            cells[1, f] = cells[0, f]
        assert not hasattr(verify_cells(query, cells), "reason")


def test_distances_to_a_box_are_those_of_its_nearest_cell() -> None:
    query = ask("query q: sensitive m to f8 margin 0.5", "diabetes_unrobust", "diabetes")["q"]
    space, rows = query.query.space, query.rows["d"]
    cells = space.grid.cells(rows[17:18])[0]
    found = distances(query.query, box_of_cells(query.query, cells), rows[:30])
    for row in range(30):
        total = 0.0
        for f in range(len(space.names)):
            if f != space.names.index("f8"):
                unit = Fraction(1)
                listed = distances_to_row(space.domains[f], space.grid[f], float(rows[row, f]), unit, ordered=True)
                domain = space.domains[f]
                ends = (domain.values[0], domain.values[-1]) if hasattr(domain, "values") else (domain.low, domain.high)
                total += (float(listed[cells[f]]) / (float(ends[1] - ends[0]) or 1.0)) ** 2
        assert found[row] == pytest.approx(total**0.5, abs=1e-9)
    assert found[17] == 0


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_the_nearest_pair_is_the_best_over_all_cells(norm: str) -> None:
    """Two features and a table of few rows: every pair of cells can be tried."""
    text = f"""
        query q: find a, b such that
            a = b except f8
            margin(a) >= 0.4
            margin(b) <= -0.4
            a.f1 = 0.25
            a.f3 = 0.5
            a.f4 = 0.25
            a.f5 = 0.125
            a.f7 = 0.125
        minimize distance(a, nearest row of d, {norm})
    """
    bound = ask(text, "diabetes_unrobust", "diabetes")["q"]
    query = bound.query
    assert query.objective is not None
    assert query.objective.nearest is not None
    # l1 and l2 end with a proof; the time is for a busy machine.
    result = answer_question(bound, Options(time_limit=60 if norm in {"l1", "l2"} else 20))
    space, rows = query.space, bound.rows["d"]
    names = space.names
    free = [names.index("f2"), names.index("f6")]
    fixed = {"f1": 0.25, "f3": 0.5, "f4": 0.25, "f5": 0.125, "f7": 0.125}
    f8 = names.index("f8")
    scored: dict[tuple[int, int], bool] = {}
    model = query.models[0]
    base = np.zeros((1, len(names)))
    for name, value in fixed.items():
        base[0, names.index(name)] = value
    cells = space.grid.cells(query.space.grid[0].number_type.cast(base))
    options = np.flatnonzero(space.legal[f8])
    for pair in product(*(np.flatnonzero(space.legal[f]) for f in free)):
        many = np.repeat(cells, len(options), axis=0)
        many[:, free] = pair
        many[:, f8] = options
        margins = model.ensemble.sums_exact(model.leaves(many)).fractions()[:, 0]
        scored[pair] = max(margins) >= Fraction("0.4") and min(margins) <= Fraction("-0.4")
    good = [pair for pair, flips in scored.items() if flips]
    if not good:
        assert result.verdict is Verdict.NONE
        return
    assert result.verdict is Verdict.FOUND
    assert result.objective is not None
    nearest = query.objective.nearest
    per_feature = {}
    for f in free:
        column = nearest.features.index(f)
        low = np.array([space.grid[f].interval(c)[0] for c in range(space.grid[f].n_cells)])
        high = np.array([space.grid[f].interval(c)[1] for c in range(space.grid[f].n_cells)])
        low, high = np.maximum(low, space.domains[f].low), np.minimum(high, space.domains[f].high)  # type: ignore[union-attr]
        value = nearest.values[:, column][:, None]
        per_feature[f] = np.maximum(0, np.maximum(low - value, value - high)) / nearest.widths[column]
    rest = [
        np.abs(rows[:, names.index(n)] - np.float32(v)) / nearest.widths[nearest.features.index(names.index(n))]
        for n, v in fixed.items()
    ]
    best = np.inf
    for one, two in good:
        parts = np.stack([*rest, per_feature[free[0]][:, one], per_feature[free[1]][:, two]])
        if norm == "l0":
            value = (parts > 0).sum(axis=0)
        elif norm == "linf":
            value = parts.max(axis=0)
        else:
            value = parts.sum(axis=0) if norm == "l1" else np.sqrt((parts**2).sum(axis=0))
        best = min(best, float(value.min()))
    assert result.objective.value == pytest.approx(best, rel=2e-3, abs=1e-6)
    assert result.objective.bound is not None
    assert result.objective.bound <= best + 1e-6
    if norm in {"l1", "l2"}:
        assert result.objective.bound == pytest.approx(best, rel=1e-4, abs=1e-6)


def test_rows_come_first_and_values_stay_near_the_nearest_row() -> None:
    bound = ask(
        """
        query row: sensitive m to f8 margin 0.5
        query far: sensitive m to f8 margin 1.5
        query near: sensitive m to f8 margin 1.5 near d using distance
        """,
        "diabetes_unrobust",
        "diabetes",
    )
    row = answer_question(bound["row"], Options())
    assert row.backend == "rows"
    assert row.nearest is not None
    assert row.nearest.distance == row.nearest.point_distance == 0
    far, near = (answer_question(bound[name], Options(time_limit=4)) for name in ("far", "near"))
    if far.verdict is Verdict.FOUND:
        assert far.nearest is not None
        assert near.nearest is not None
        assert near.nearest.point_distance <= far.nearest.point_distance + 1e-9
