"""The counts that another tool publishes, cell by cell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.measure.xcount import ensemble_of, searches

PUBLISHED = Path(__file__).parents[4] / "shared" / "bench" / "xcount" / "xcount5.json"


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published models are not here")
@pytest.mark.parametrize("trees", range(1, 6))
def test_published_counts_are_met_exactly(trees: int) -> None:
    known = json.loads(PUBLISHED.read_text())
    ensemble = ensemble_of(known["trees"][:trees])
    model = ensemble.on(ensemble.grid())
    low = high = 0
    for search, cells in searches(model, known["feature"], known["gap"], known["digits"]):
        search.run(60.0)
        masses = search.masses()
        low += round(masses.lower * cells)
        high += round(masses.upper * cells)
    assert low == high == known["counts"][trees - 1]
