"""Mutated claims of manifests, and mutated statements of leaves that list sums: none that is accepted is false."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extensions.certify.claim_mutations import KINDS, run


@pytest.mark.parametrize("seed", [71, 72])
def test_no_false_claim_is_accepted(seed: int, tmp_path: Path) -> None:
    outcomes = run(2000, seed, tmp_path)
    for kind in KINDS:
        assert not outcomes[kind, "accepted, and false"], (kind, outcomes)
        assert outcomes[kind, "accepted, and true"], (kind, outcomes)
        assert outcomes[kind, "rejected"] >= 100, (kind, outcomes)
