"""Rounded rows against the row itself at every 0/1 point: relaxing keeps each that holds, restricting adds none."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from treesens.compiler.legalise.rounding import bits_beyond, round_row


@pytest.mark.parametrize("kind", [np.int64, object])
@pytest.mark.parametrize("relax", [True, False])
def test_rows_of_both_signs_are_rounded_outwards(relax: bool, kind: type) -> None:
    rng = np.random.default_rng(0)
    lost = ties = 0
    for trial in range(400):
        n = int(rng.integers(1, 9))
        magnitude = 10 ** int(rng.integers(1, 16))
        coefficients = rng.integers(-magnitude, magnitude + 1, n)
        points = np.array(list(itertools.product((0, 1), repeat=n)))
        sums = points @ coefficients
        bound = int(rng.choice(sums)) + int(rng.integers(-1, 2))  # at, just below and just above a sum
        bits, at_least = int(rng.integers(2, 30)), int(rng.integers(0, 4))
        rounded = round_row(coefficients.astype(kind), bound, bits=bits, relax=relax, at_least=at_least)
        holds = sums >= bound
        said = points @ rounded.coefficients.astype(object) >= rounded.bound
        assert rounded.dropped == max(at_least, bits_beyond(coefficients, bound, bits), 0)
        assert not (holds & ~said if relax else said & ~holds).any(), (trial, coefficients, bound)
        if rounded.exact:
            assert (said == holds).all()
        # No more is lost than the rounding of each term: one unit for each and one for the bound.
        unit = 1 << rounded.dropped
        clear = sums >= bound + (n + 1) * unit if not relax else sums < bound - (n + 1) * unit
        assert (said[clear] == holds[clear]).all()
        lost += int((holds != said).sum())
        ties += int((sums == bound).any())
    assert lost > 20
    assert ties > 100
