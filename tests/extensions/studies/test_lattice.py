"""What is known of a lattice, against all monotone properties that chance makes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from treesens.extensions.studies.sets_search import Lattice, Set


def subsets(every: Set) -> list[Set]:
    return [frozenset(c) for size in range(len(every) + 1) for c in itertools.combinations(sorted(every), size)]


def explore(every: Set, having: list[Set], unanswered: list[Set]) -> tuple[Lattice, int]:
    """All questions that the lattice asks, answered by the sets that have the property, and those around them."""
    lattice, asked = Lattice(every), 0
    while (one := lattice.unexplored()) is not None:
        asked += 1
        assert not lattice.is_having(one)
        assert not lattice.is_lacking(one)
        assert one not in lattice.open_sets
        if one in unanswered:
            lattice.stays_open(one)
        elif any(known <= one for known in having):
            least = one
            for x in sorted(one):
                if any(known <= least - {x} for known in having) and least - {x} not in unanswered:
                    least -= {x}
            lattice.has(least)
        else:
            lattice.lacks(one)
    return lattice, asked


@pytest.mark.parametrize("seed", range(60))
def test_the_least_and_the_greatest_sets_are_all_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    every = frozenset(range(int(rng.integers(1, 7))))
    all_of_them = subsets(every)
    having = [all_of_them[i] for i in rng.choice(len(all_of_them), int(rng.integers(0, 5)))]
    true = [one for one in all_of_them if any(known <= one for known in having)]
    false = [one for one in all_of_them if one not in true]
    lattice, asked = explore(every, having, [])
    assert set(lattice.having) == {one for one in true if not any(other < one for other in true)}
    assert set(lattice.lacking) == {one for one in false if not any(one < other for other in false)}
    assert all(map(lattice.is_minimal, lattice.having))
    assert all(map(lattice.is_maximal, lattice.lacking))
    assert asked <= len(lattice.having) + len(lattice.lacking)


@pytest.mark.parametrize("seed", range(60))
def test_sets_without_an_answer_stay_open_and_nothing_else_does(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    every = frozenset(range(5))
    all_of_them = subsets(every)
    having = [all_of_them[i] for i in rng.choice(len(all_of_them), 3)]
    unanswered = [all_of_them[i] for i in rng.choice(len(all_of_them), 8, replace=False)]
    lattice, _ = explore(every, having, unanswered)
    for one in all_of_them:
        flips = any(known <= one for known in having)
        assert lattice.is_having(one) <= flips
        assert lattice.is_lacking(one) <= (not flips)
        assert lattice.is_having(one) or lattice.is_lacking(one) or one in lattice.open_sets
        assert one not in lattice.open_sets or one in unanswered
    for one in lattice.having:
        assert lattice.is_minimal(one) <= all(not any(known <= one - {x} for known in having) for x in one)


def test_a_search_that_is_over_stops() -> None:
    with pytest.raises(TimeoutError):
        Lattice(frozenset({1, 2})).unexplored(lambda: True)
