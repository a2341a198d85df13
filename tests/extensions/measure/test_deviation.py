"""Limits of weighted draws: how often they hold, how near they come, and how the parts of delta add up."""

from __future__ import annotations

import numpy as np
import pytest

from treesens.extensions.measure.deviation import _LEVELS, Bet, Limits, Round

stats = pytest.importorskip("scipy.stats")

NOTHING = np.zeros(0)


def test_no_draw_says_nothing() -> None:
    limits = Limits(0.1)
    assert (limits.low, limits.high) == (-np.inf, np.inf)


def test_the_parts_of_delta_add_up_to_one() -> None:
    assert sum(part for _, part in _LEVELS) == 1


@pytest.mark.parametrize("delta", [0.1, 1e-6])
@pytest.mark.parametrize("draws", [100, 5_000])
def test_limits_are_outside_those_of_clopper_and_pearson(draws: int, delta: float) -> None:
    """The exact limits of a binomial: no valid ones can lie inside of them for every number of hits."""
    for hits in sorted({0, 1, draws // 10, draws // 2, draws}):
        limits = Limits(delta)
        limits.add(Bet(1 / draws, 1 / draws, 0.3), Round(0.0, np.full(hits, 1 / draws), NOTHING))
        exact_high = 1.0 if hits == draws else stats.beta.ppf(1 - delta / 2, hits + 1, draws - hits)
        exact_low = 0.0 if hits == 0 else stats.beta.ppf(delta / 2, hits, draws - hits + 1)
        assert limits.high >= exact_high - 1e-9
        assert limits.low <= exact_low + 1e-9


def test_weighted_draws_are_covered_at_all_times_as_often_as_claimed() -> None:
    """Two kinds of draws of different weight, a proved part that grows, bets that follow what was seen; every round counts."""
    random = np.random.default_rng(0)
    truth, delta, missed = 0.5 * 0.2 + 0.2 * 0.4, 0.2, 0
    for _ in range(2_000):
        limits, wrong, seen = Limits(delta), False, 0.1
        for number in range(6):
            full = 0.01 * number  # proved, of the kind with a mass of 0.5, of which 0.1 is concerned
            weights = [(0.5 - full) / 20, 0.2 / 40]
            hits = random.binomial([20, 40], [(0.1 - full) / (0.5 - full), 0.4])
            drawn = np.repeat(weights, hits)
            limits.add(Bet(seen / 5, max(weights), 0.3), Round(full, drawn, NOTHING))
            seen = max(0.01, float(drawn.sum()))
            wrong |= not limits.low <= truth <= limits.high
        missed += wrong
    assert missed <= 2_000 * delta


def test_what_may_be_concerned_widens_both_sides() -> None:
    sure, unsure = Limits(0.1), Limits(0.1)
    bet, hits = Bet(0.01, 0.01, 0.3), np.full(40, 0.01)
    sure.add(bet, Round(0.0, hits, NOTHING))
    unsure.add(bet, Round(0.0, hits[:20], hits[20:]))
    assert unsure.low < sure.low
    assert unsure.high == pytest.approx(sure.high)
