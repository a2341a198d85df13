"""Limits of draws against the binomial distribution itself (scipy), and how often they hold."""

from __future__ import annotations

import numpy as np
import pytest

from treesens.compiler.measure.deviation import lower_limit, upper_limit
from treesens.compiler.measure.share import stages

stats = pytest.importorskip("scipy.stats")


@pytest.mark.parametrize("draws", [1, 7, 100, 5_000])
@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-6])
def test_limits_are_outside_those_of_clopper_and_pearson(draws: int, delta: float) -> None:
    """The exact limits of a binomial: no valid ones can lie inside of them for every number of hits."""
    for hits in sorted({0, 1, draws // 10, draws // 2, draws - 1, draws}):
        exact_high = 1.0 if hits == draws else stats.beta.ppf(1 - delta, hits + 1, draws - hits)
        exact_low = 0.0 if hits == 0 else stats.beta.ppf(delta, hits, draws - hits + 1)
        assert upper_limit(hits, draws, delta) >= exact_high - 1e-9
        assert lower_limit(hits, draws, delta) <= exact_low + 1e-9


def test_no_draw_says_nothing() -> None:
    assert (lower_limit(0, 0, 0.1), upper_limit(0, 0, 0.1)) == (0.0, 1.0)


def test_draws_with_different_expectations_are_covered_as_often_as_claimed() -> None:
    random = np.random.default_rng(0)
    chances = random.random(200) ** 4
    mean, missed, delta = chances.mean(), 0, 0.2
    for _ in range(2_000):
        hits = int((random.random(200) < chances).sum())
        missed += not lower_limit(hits, 200, delta / 2) <= mean <= upper_limit(hits, 200, delta / 2)
    assert missed <= 2_000 * delta


def test_the_parts_of_delta_add_up_to_one() -> None:
    parts, ends = [], []
    for (end, part), _ in zip(stages(1_000), range(60), strict=False):
        ends.append(end)
        parts.append(part)
    assert 1 - 1e-12 < sum(parts) <= 1
    assert ends == sorted(ends)
    assert ends[2] == 1_000
