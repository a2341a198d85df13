"""Proofs by the search on the trees themselves: every `none` about scores has one, and the checker accepts it."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
import xgboost

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


def test_decisions_between_several_classes_have_proofs(tmp_path: Path) -> None:
    """Trees that ask for nothing that varies belong to both points; whether a class can flip is seen by XGBoost itself."""
    path = tmp_path / "m.json"
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 3, (120, 3)), rng.integers(0, 3, 120)
    options = {"objective": "multi:softprob", "num_class": 3, "max_depth": 2, "nthread": 1, "eta": 0.8}
    booster = xgboost.train(options, xgboost.DMatrix(x, y), 3)
    booster.save_model(path)
    inputs = np.array(list(product(range(3), repeat=3)), np.float32)
    scores = booster.predict(xgboost.DMatrix(inputs), output_margin=True).astype(float)
    head = f'model m from "{path}"\n' + "".join(f"feature f{i}: integer in [0, 2]\n" for i in range(3))
    accepted = 0
    for varied, (one, other), factor in product(range(3), permutations(range(3), 2), (1.01, 2.0, 6.0)):
        query = query_of(f"{head}query q: sensitive m to f{varied} from `{one}` to `{other}` factor {factor}", tmp_path)
        least = {c: scores[:, c] - np.delete(scores, c, axis=1).max(axis=1) >= np.log(factor) for c in (one, other)}
        flips = any(
            least[one][i] and least[other][j]
            for i, j in product(range(27), repeat=2)
            if np.array_equal(np.delete(inputs[i], varied), np.delete(inputs[j], varied))
        )
        with reused():
            found = decide_on_trees(query, Budget.of(10))
            assert found is not None
            assert found.none == (not flips)
            if flips:
                continue
            statement = statement_of(query)
            proof = _prove_on_trees(statement, 10)
        assert proof is not None
        checker.check(_document(statement, query, "none") | proof, [path.read_bytes()])
        accepted += 1
    assert accepted >= 10
