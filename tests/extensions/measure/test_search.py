"""The engine's masses and draws against sums over every combination of cells, and estimates against their claims."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.extensions.measure.test_learnt import probability
from tests.extensions.studies.share_cases import FEATURES, NAMES, Case, forest_case, xgboost_case
from tests.extensions.studies.test_shares import units
from tests.trials import trials
from treesens.compiler.base.budget import Budget
from treesens.extensions.measure.counted import counted_of
from treesens.extensions.measure.measure import Measure
from treesens.extensions.measure.measures import measure_of
from treesens.extensions.measure.precision import Precision
from treesens.extensions.measure.proposal import tilts_for
from treesens.extensions.measure.sampler import Sampler, hunt
from treesens.extensions.measure.search import CONCERNED, ShareSearch
from treesens.extensions.studies.count_search import Unit


def built(seed: int, make: Any = xgboost_case, varied: tuple[int, ...] = (0,)) -> tuple[Case, Unit, Measure]:
    case = make(np.random.default_rng(seed))
    unit = units(case, varied, case.sizes[0])[0]
    return case, unit, measure_of("chow-liu", unit.question)


def search_of(unit: Unit, measure: Measure) -> ShareSearch:
    counted = counted_of(unit.question.query)
    return ShareSearch(counted.trees, counted.sides, measure)


@pytest.mark.parametrize("seed", range(6))
def test_the_mass_of_a_box_is_the_sum_over_its_cells(seed: int) -> None:
    _, unit, measure = built(seed)
    search, random = search_of(unit, measure), np.random.default_rng(seed)
    sizes = [len(w) for w in measure.weights]
    for _ in range(20):
        ends = np.sort(random.integers(0, sizes, (2, FEATURES)), axis=0).astype(np.int32)
        ranges = [range(low, high + 1) for low, high in ends.T]
        ranges[0] = range(sizes[0])  # varied: it counts with all its cells
        expected = sum(probability(measure, cells) for cells in product(*ranges))
        assert search.mass(ends[0], ends[1]) == pytest.approx(expected, rel=1e-12, abs=1e-300)


def _shares_by_cell(case: Case, unit: Unit, measure: Measure) -> Iterator[tuple[float, bool]]:
    """Every combination of cells with its probability, and what the library says of a value in each."""
    grid = unit.question.query.space.grid
    values = [np.unique(case.frame[name]) for name in NAMES]
    inside = [
        {c: v[f.cell_of(v) == c][0] for c in np.unique(f.cell_of(v)).tolist()}
        for f, v in zip(grid, values, strict=True)
    ]
    size = float(case.sizes[0])
    for rest in product(*(inside[f] for f in range(1, FEATURES))):
        row = [inside[f][c] for f, c in enumerate(rest, start=1)]
        scores = case.scores(np.array([[v, *row] for v in values[0]]))
        mass = sum(probability(measure, (c, *rest)) for c in inside[0])
        yield mass, case.concerned[0](scores, size)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("make", [xgboost_case, forest_case])
def test_shares_by_a_tree_of_pairs_are_sums_over_cells(seed: int, make: Any) -> None:
    case, unit, measure = built(40 + seed, make)
    truth = sum(mass for mass, concerned in _shares_by_cell(case, unit, measure) if concerned)
    for boxes in (1, 2, 5, 10**6):
        search = search_of(unit, measure)
        search.run(30.0, most_boxes=boxes)
        masses = search.masses()
        assert masses.lower - 1e-12 <= truth <= masses.upper + 1e-12
    assert masses.upper - masses.lower < 1e-9


@pytest.mark.parametrize(
    ("make", "seed"),
    [(forest_case, 61), (forest_case, 121), (forest_case, 102), (xgboost_case, 121), (xgboost_case, 103)],
)
def test_bounds_hold_after_every_step_whatever_is_open(make: Any, seed: int) -> None:
    """A search is stopped at any number of open boxes: the truth lies between the bounds, which never get worse."""
    case, unit, measure = built(seed, make)
    truth, search = _exact(case, unit, measure), search_of(unit, measure)
    before, most_open = search.masses(), 0
    while before.open_boxes:
        search.run(30.0, most_nodes=3)
        masses = search.masses()
        assert masses.nodes > before.nodes
        assert masses.lower - 1e-12 <= truth <= masses.upper + 1e-12
        assert masses.lower >= before.lower - 1e-12
        assert masses.upper <= before.upper + 1e-12
        before, most_open = masses, max(most_open, masses.open_boxes)
    assert most_open > 4


def test_draws_follow_the_measure() -> None:
    """Pearson's statistic of cells of open boxes; nothing is bounded yet, so that the whole space is one box."""
    stats = pytest.importorskip("scipy.stats")
    case, unit, measure = _open_case()
    search = search_of(unit, measure)
    drawn = search.sample(40_000, 5, 40_000)
    hits = drawn.hits
    assert np.allclose(drawn.concerned, search.masses().open / 40_000)
    rows = list(_shares_by_cell(case, unit, measure))
    total = sum(mass for mass, concerned in rows if concerned)
    assert len(hits) / 40_000 == pytest.approx(total, abs=0.01)
    grid = unit.question.query.space.grid
    values = [np.unique(case.frame[name]) for name in NAMES]
    cells = [np.unique(f.cell_of(v)).tolist() for f, v in zip(grid, values, strict=True)]
    expected, seen = [], []
    for (mass, concerned), rest in zip(rows, product(*cells[1:]), strict=True):
        if concerned and mass > 1e-4:
            expected.append(mass)
            seen.append(int((hits[:, 1:] == rest).all(axis=1).sum()))
    scaled = np.array(expected) / sum(expected) * sum(seen)
    assert stats.chisquare(seen, scaled).pvalue > 1e-4


def _open_case() -> tuple[Case, Unit, Measure]:
    """A question that its first box does not decide, with a share that is neither rare nor almost everything."""
    for seed in range(100, 200):
        case, unit, measure = built(seed)
        search = search_of(unit, measure)
        search.run(10.0)
        begun = search_of(unit, measure)
        begun.run(10.0, most_boxes=3)
        if 0.05 < search.masses().lower < 0.5 and begun.masses().open > 0.2:
            return case, unit, measure
    raise AssertionError("no such case")


def _exact(case: Case, unit: Unit, measure: Measure) -> float:
    return sum(mass for mass, concerned in _shares_by_cell(case, unit, measure) if concerned)


@pytest.mark.parametrize("boxes", [1, 3])
def test_estimates_hold_as_often_as_they_claim(boxes: int) -> None:
    """Boxes are cut between rounds of draws, and draws are moved by what was drawn before."""
    case, unit, measure = _open_case()
    truth, delta, missed, moved = _exact(case, unit, measure), 0.2, 0, 0
    for seed in trials(2_000):
        search = search_of(unit, measure)
        search.run(10.0, most_boxes=boxes)
        sampler = Sampler(search, Precision(0.01, delta, 0.0), seed=1_000_003 * seed)
        for number in range(5):
            masses = search.masses()
            sampler.draw(100, masses)
            estimate = sampler.estimate
            assert estimate is not None
            assert masses.lower <= estimate.low <= estimate.value <= estimate.high <= masses.upper
            search.run(10.0, most_nodes=2 * (number % 2), most_boxes=boxes + 1)
        moved += not np.isclose(search.heaviest(), search.masses().open)
        missed += not estimate.low - 1e-12 <= truth <= estimate.high + 1e-12
    assert missed <= len(trials(2_000)) * delta
    assert moved > 0


@pytest.mark.parametrize("seed", range(4))
def test_tilted_draws_have_the_mass_that_they_stand_for(seed: int) -> None:
    """The weighted sum of hits is the concerned mass, whatever rows the tilts were fitted to."""
    case, unit, measure = _open_case()
    truth, search, random = _exact(case, unit, measure), search_of(unit, measure), np.random.default_rng(seed)
    rows = np.stack([random.integers(0, len(w), 30) for w in measure.weights], axis=1).astype(np.int32)
    tilts = tilts_for(measure, search.varied, rows, random.random(30), count=3, plain=0.3, seed=seed)
    assert sum(tilt.part for tilt in tilts) == pytest.approx(0.7)
    search.run(10.0, most_boxes=3)
    search.propose(tilts)
    count = 100_000
    draws = search.sample(count, seed)
    assert draws.concerned.max() <= search.heaviest() / count * (1 + 1e-9)
    deviation = float(np.sqrt((draws.concerned**2).sum()))
    assert abs(search.full_mass() + draws.concerned.sum() - truth) < 5 * deviation


def test_a_hunt_finds_concerned_inputs() -> None:
    _, unit, measure = _open_case()
    search = search_of(unit, measure)
    found = hunt(search, 1, Budget.of(60.0))
    assert len(found) > 0
    assert (search.answers(found) == CONCERNED).all()


def test_answers_of_inputs_are_those_of_the_library() -> None:
    case, unit, measure = built(3)
    cells = unit.question.query.space.grid.cells(case.frame.to_numpy())
    found = search_of(unit, measure).answers(cells) == CONCERNED
    values = np.unique(case.frame[NAMES[0]])
    for row, answer in zip(case.frame.to_numpy(), found, strict=True):
        scores = case.scores(np.array([[v, *row[1:]] for v in values]))
        assert answer == case.concerned[0](scores, float(case.sizes[0]))
