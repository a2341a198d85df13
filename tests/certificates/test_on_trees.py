"""Proofs by the search on the trees themselves: every `none` about scores has one, and the checker accepts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.certificates.made import query_of
from tests.certificates.models import QUESTIONS, file_of, train
from treesens.backends.native.tree_question import decide_on_trees
from treesens.certificates import treesens_verify as checker
from treesens.certificates.produce import _document, _prove_on_trees
from treesens.certificates.statement import statement_of
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.reuse import reused

ABOUT_SCORES = ("pair", "two", "one", "free")


@pytest.mark.parametrize("kind", ABOUT_SCORES)
def test_the_search_that_decides_writes_the_proof(kind: str, tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    train(3, model, trees=6, depth=3)
    accepted = 0
    for gap in ("0.6", "0.9", "1.2", "1.5", "2", "3", "9"):
        query = query_of(
            file_of(model, QUESTIONS[kind], "feature f1: real in [-0.5, 2]", gap, str(min(float(gap) / 8, 0.49))),
            tmp_path,
        )
        with reused():
            found = decide_on_trees(query, Budget.of(10))
            assert found is not None
            if not found.none:
                continue
            statement = statement_of(query)
            proof = _prove_on_trees(statement, 10)
        assert proof is not None
        checker.check(_document(statement, query, "none") | proof, [model.read_bytes()])
        accepted += 1
    assert accepted >= 1
