"""Aff takes out the terms of unaffected leaves by itself: its row is the same with and without UnAff rows beside it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.questions import random_query
from treesens.compiler.ir import Linear, Module
from treesens.compiler.lower import lower
from treesens.compiler.passes.unaffected_leaves import unaffected_pairs
from treesens.compiler.pipeline import Pipeline


def aff_rows(module: Module, text: str) -> list[Linear]:
    return [row for row in Pipeline.parse(text).run(module).module.ops_of(Linear) if row.name.startswith("aff.")]


@pytest.mark.parametrize("seed", range(40))
def test_no_unaffected_leaf_has_a_term(seed: int) -> None:
    module = lower(random_query(np.random.default_rng(seed)))
    alone = aff_rows(module, "aff-reduce")
    beside = aff_rows(module, "unaffected-leaves,aff-reduce")
    unaffected = np.concatenate(unaffected_pairs(module))
    for row, other in zip(alone, beside, strict=True):
        assert not np.isin(row.variables, unaffected).any()
        assert row.variables.tolist() == other.variables.tolist()
        assert row.coefficients.tolist() == other.coefficients.tolist()
        assert row.bound == other.bound


def test_the_questions_have_such_leaves() -> None:
    """Without unaffected leaves in gap rows the test above would say nothing."""
    kept = dropped = 0
    for seed in range(40):
        module = lower(random_query(np.random.default_rng(seed)))
        unaffected = np.concatenate(unaffected_pairs(module))
        rows = aff_rows(module, "aff-reduce")
        if rows and len(unaffected):
            gaps = [row for row in module.ops_of(Linear) if f".{row.name}" in rows[0].name]
            dropped += sum(int(np.isin(row.variables, unaffected).sum()) for row in gaps)
            kept += len(rows[0].variables)
    assert kept > 20
    assert dropped > 20
