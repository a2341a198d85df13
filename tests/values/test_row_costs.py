"""What cells cost: all features at once is what exact arithmetic says of each."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.questions import random_ensemble, random_space
from treesens.compiler.query.query import Space
from treesens.compiler.query.values import DistanceTerm
from treesens.values.distance_costs import cell_cost
from treesens.values.radii import exact_distance
from treesens.values.row_costs import best_of_cells, cell_costs, costs_of_terms

WIDTHS = (Fraction(1), Fraction(4), Fraction(3), Fraction(7, 10), Fraction(1, 3), Fraction(10**30))


def drawn(rng: np.random.Generator) -> tuple[Space, tuple[DistanceTerm, ...]]:
    """Terms to a row: values of cells, between them, missing, far outside, of every width."""
    ensemble = random_ensemble(rng)
    space = random_space(rng, ensemble)
    terms = []
    for f in range(len(space.names)):
        row = float(rng.choice([rng.normal(), float(rng.integers(-3, 4)), np.nan, 0.1, 1e20, -(2.0**-40)]))
        width = WIDTHS[rng.integers(len(WIDTHS))]
        factor = Fraction(int(rng.choice([1, 1, 3])), int(rng.choice([1, 1, 7])))
        power = int(rng.integers(1, 3))
        terms.append(DistanceTerm(0, f, None, row, width, power, bool(rng.random() < 0.2), factor))
    return space, tuple(terms)


@pytest.mark.parametrize("seed", range(6))
def test_costs_are_those_of_exact_arithmetic(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(30):
        space, terms = drawn(rng)
        for found, term in zip(cell_costs(space, terms), terms, strict=True):
            expected = cell_cost(space, term)
            assert found.shift == expected.shift
            assert [int(v) for v in found.costs] == [int(v) for v in expected.costs]
        upwards = best_of_cells(space, terms, True).costs
        for found, term in zip(upwards, terms, strict=True):
            low = cell_cost(space, DistanceTerm(**{**vars(term), "factor": -term.factor}))
            assert [int(v) for v in found.costs] == [-int(v) for v in low.costs]


@pytest.mark.parametrize("seed", range(6))
def test_whole_costs_are_never_more_than_the_truth_and_close_to_it(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    judged = 0
    for _ in range(30):
        space, terms = drawn(rng)
        found = costs_of_terms(space, terms)
        if found is None:
            continue
        total = 0
        for term in terms:
            costs = found.cost[term.places[0]]
            total += int(costs.max(initial=0))
            for cell, cost in enumerate(costs.tolist()):
                exact = exact_distance(space, term, cell)
                if exact is None:
                    assert cost == -1
                    continue
                judged += 1
                truth = exact * (1 << found.shift)
                assert 0 <= cost <= truth
                assert truth - cost <= 1 + truth / (1 << 46)
        assert total < 1 << 60
    assert judged > 100
