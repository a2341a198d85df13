"""Sums over values: ranges move to legal values exactly, choices are found where there are some, proofs prove."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from treesens.compiler.base.floats import NumberType, next_down, next_up
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term, ValueRange, ValueSum, extremes
from treesens.values.propagation import (
    Choice,
    Ranges,
    conflict,
    generalise_conflict,
    propagate,
    root_above,
    root_below,
)

KIND = NumberType.FLOAT32
POOL = np.array([-1.0, -0.5, 0.0, 0.25, 1.0, 1.5, 2.0])


def test_ranges_of_floats_narrow_to_floats() -> None:
    reach = ValueRange(-1.0, 1.0, KIND)
    tenth = Fraction(1, 10)
    above = float(np.float32(0.1))
    assert Fraction(above) > tenth
    found = reach.narrowed(tenth, None)
    assert found is not None
    assert (found.low, found.high) == (above, 1.0)
    found = reach.narrowed(None, tenth)
    assert found is not None
    assert found.high == next_down(above, KIND)
    found = reach.narrowed(Fraction(1, 2), Fraction(3, 4), low_open=True, high_open=True)
    assert found is not None
    assert (found.low, found.high) == (next_up(0.5, KIND), next_down(0.75, KIND))
    assert reach.narrowed(Fraction(1), None, low_open=True) is None
    assert reach.narrowed(Fraction(2), None) is None


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(
    "bound", [Fraction(-1), Fraction(-1, 3), Fraction(1, 4), Fraction(1), Fraction(2), Fraction(3)]
)
def test_ranges_of_values_narrow_to_values(bound: Fraction, is_open: bool) -> None:
    for reach, values in (
        (ValueRange(-1.0, 2.0, KIND, values=POOL), POOL.tolist()),
        (ValueRange(-1.0, 2.0, KIND, whole=True), [-1.0, 0.0, 1.0, 2.0]),
    ):
        up = [v for v in values if (v > bound if is_open else v >= bound)]
        down = [v for v in values if (v < bound if is_open else v <= bound)]
        above, below = reach.narrowed(bound, None, low_open=is_open), reach.narrowed(None, bound, high_open=is_open)
        assert (above.low if above else None) == (min(up) if up else None)
        assert (below.high if below else None) == (max(down) if down else None)


def test_roots_are_rounded_outwards() -> None:
    for value in (Fraction(2), Fraction(1, 3), Fraction(0), Fraction(10**12), Fraction(4)):
        assert root_below(value, 2) ** 2 <= value <= root_above(value, 2) ** 2
        assert root_above(value, 2) - root_below(value, 2) < Fraction(1, 2**70)


def random_problem(rng: np.random.Generator) -> tuple[Ranges, list[ValueSum]]:
    """Three places with a few values each (one may be missing), and one to three sums."""
    places: list[Place] = [(0, 0), (1, 0), (0, 1)]
    ranges: Ranges = {}
    for place in places:
        values = np.sort(rng.choice(POOL, size=int(rng.integers(1, 5)), replace=False))
        ranges[place] = ValueRange(float(values[0]), float(values[-1]), KIND, values=values)
    if rng.random() < 0.2:
        ranges[0, 0] = None
    relations = [
        ValueSum(
            tuple(_term(rng) for _ in range(int(rng.integers(1, 4)))), Fraction(int(rng.integers(-4, 9)), 4), bool(k)
        )
        for k in rng.integers(0, 2, size=int(rng.integers(1, 4)))
    ]
    return ranges, relations


def _term(rng: np.random.Generator) -> Term:
    factor = Fraction(int(rng.choice([-2, -1, 1, 1, 3])))
    match int(rng.integers(3)):
        case 0:
            return LinearTerm(0, int(rng.integers(2)), factor)
        case 1:
            row = float(rng.choice([-1.0, 0.1, 1.0, np.nan]))
            return DistanceTerm(0, 1, None, row, Fraction(2), int(rng.integers(1, 3)), bool(rng.integers(2)), factor)
        case _:
            return DistanceTerm(0, 0, 1, 0.0, Fraction(3), int(rng.integers(1, 3)), bool(rng.integers(2)), factor)


def solutions(ranges: Ranges, relations: list[ValueSum]) -> list[dict[Place, float]]:
    lists = [[float("nan")] if r is None or r.values is None else r.values.tolist() for r in ranges.values()]
    found = []
    for chosen in itertools.product(*lists):
        values = dict(zip(ranges, chosen, strict=True))
        if all(relation.holds(values.__getitem__) for relation in relations):
            found.append(values)
    return found


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_values_are_chosen_where_there_are_some(start: int) -> None:
    seen = set()
    for seed in range(start, start + 100):
        ranges, relations = random_problem(np.random.default_rng(seed))
        some = solutions(ranges, relations)
        narrowed = propagate(ranges, relations)
        if narrowed is None:
            assert not some, seed
            guilty = conflict(ranges, relations)
            assert guilty, seed
            assert not solutions(ranges, list(guilty)), seed
        else:
            for values in some:
                for place, reach in narrowed.items():
                    assert reach is None or reach.low <= values[place] <= reach.high, seed
        choice = Choice(relations, (), {})
        found = choice.run(ranges)
        assert (found is not None) == bool(some), seed
        assert found is None or all(r.holds(found.__getitem__) for r in relations), seed
        assert choice.proved, seed
        seen.add(bool(some))
    assert seen == {True, False}


def test_the_extremes_of_a_term_are_those_of_its_values() -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        ranges, _ = random_problem(rng)
        term = _term(rng)
        mine = {p: ranges[p] for p in term.places}
        found = extremes(term, list(mine.values()))
        lists = [[float("nan")] if r is None or r.values is None else r.values.tolist() for r in mine.values()]
        every = [term.value(chosen) for chosen in itertools.product(*lists)]
        if found is None:
            assert every == [None], seed
            continue
        known = [v for v in every if v is not None]
        assert found[0] <= min(known), seed
        assert found[1] >= max(known), seed


def test_sums_of_floats_are_met_exactly() -> None:
    places: list[Place] = [(0, 0), (0, 1), (0, 2)]
    ranges: Ranges = {p: ValueRange(0.1, 2.9, KIND) for p in places}
    total = (LinearTerm(0, 0, Fraction(1)), LinearTerm(0, 1, Fraction(1)), LinearTerm(0, 2, Fraction(-1)))
    turned = tuple(LinearTerm(t.point, t.feature, -t.factor) for t in total)
    relations = [ValueSum(total, Fraction(-1, 4)), ValueSum(turned, Fraction(1, 4))]
    found = Choice(relations, (), {(0, 0): float(np.float32(0.3))}).run(ranges)
    assert found is not None
    assert Fraction(found[0, 0]) + Fraction(found[0, 1]) - Fraction(found[0, 2]) == Fraction(-1, 4)


def test_a_box_is_widened_as_far_as_the_proof_goes() -> None:
    """Cells 0..9 of width 1: x + y >= 12 has no values in (2, 3), nor in any cells whose upper ends sum to less."""
    relation = ValueSum((LinearTerm(0, 0, Fraction(-1)), LinearTerm(0, 1, Fraction(-1))), Fraction(-12))
    box = generalise_conflict(
        {(0, 0): (2, 2), (0, 1): (3, 3)},
        lambda place: 9,
        lambda place, first, last: ValueRange(float(first), last + 0.5, KIND),
        [relation],
    )
    (low, high), (other_low, other_high) = box[0, 0], box[0, 1]
    assert (low, other_low) == (0, 0)
    assert high + other_high + 1 < 12
    assert high + 1 + other_high + 1 >= 12
