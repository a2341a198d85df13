"""Proofs by the search on the trees themselves: every `none` about scores has one, and the checker accepts it."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import boosted, margins_of
from tests.extensions.certify.made import query_of
from tests.extensions.certify.models import QUESTIONS, file_of, train
from treesens.backends.native.tree_question import decide_on_trees
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify.produce import _document, _prove_on_trees
from treesens.extensions.certify.statement import statement_of
from treesens.runtime.kept import reused

ABOUT_SCORES = ("pair", "two", "one", "free")


def is_refuted(query: Query, model: Path) -> bool:
    """Whether the search on the trees finds that there is nothing; the checker has to accept its proof then."""
    with reused():
        found = decide_on_trees(query, Budget.of(10))
        assert found is not None
        if not found.none:
            assert found.cells is not None
            return False
        statement = statement_of(query)
        proof = _prove_on_trees(statement, 10)
    assert proof is not None
    checker.check(_document(statement, query, "none") | proof, [model.read_bytes()])
    return True


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
        accepted += is_refuted(query, model)
    assert accepted >= 1


def test_decisions_between_several_classes_have_proofs(tmp_path: Path) -> None:
    """Trees that ask for nothing that varies belong to both points; whether a class can flip is seen by XGBoost itself."""
    path = tmp_path / "m.json"
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 3, (120, 3)), rng.integers(0, 3, 120)
    booster = boosted(x, y, 3, 2, path=path, num_class=3, eta=0.8)
    inputs = np.array(list(product(range(3), repeat=3)), np.float32)
    scores = margins_of(booster, inputs)
    head = f'model m from "{path}"\n' + "".join(f"feature f{i}: integer in [0, 2]\n" for i in range(3))
    accepted = 0
    for varied, (one, other), factor in product(range(3), permutations(range(3), 2), (1.01, 2.0, 6.0)):
        query = query_of(f"{head}query q: sensitive m to f{varied} from `{one}` to `{other}` factor {factor}", tmp_path)
        least = {c: scores[:, c] - np.delete(scores, c, axis=1).max(axis=1) >= np.log(factor) for c in (one, other)}
        refuted = is_refuted(query, path)
        assert refuted == (not pair_exists(inputs, varied, least[one], least[other]))
        accepted += refuted
    assert accepted >= 10


def test_ranges_of_both_scores_have_proofs(tmp_path: Path) -> None:
    """Up to four rows of scores, of which several pairs cancel; XGBoost says what the margins of all inputs are."""
    path = tmp_path / "m.json"
    rng = np.random.default_rng(6)
    x, y = rng.integers(0, 3, (120, 3)), rng.integers(0, 2, 120)
    booster = boosted(x, y, 6, 2, path=path, eta=0.8, base_score=0.5)
    inputs = np.array(list(product(range(3), repeat=3)), np.float32)
    margin = margins_of(booster, inputs)
    reached = np.unique(margin.round(5))
    between = [f"{end:.7f}" for end in (reached[:-1] + reached[1:]) / 2]
    head = f'model m from "{path}"\n' + "".join(f"feature f{i}: integer in [0, 2]\n" for i in range(3))
    refuted = 0
    for n in range(60):
        asked, holds = [], {}
        for point in "ab":
            low, high = np.sort(rng.choice(len(between), 2, replace=False))
            kept = ["<=", ">="] if n % 3 else [str(rng.choice(["<=", ">="]))]
            holds[point] = np.ones(len(margin), bool)
            if "<=" in kept:
                asked.append(f"margin({point}) <= {between[high]}")
                holds[point] &= margin <= float(between[high])
            if ">=" in kept:
                asked.append(f"margin({point}) >= {between[low]}")
                holds[point] &= margin >= float(between[low])
        varied = int(rng.integers(3))
        text = f"{head}query q: find a, b in m such that a = b except f{varied}; {'; '.join(rng.permutation(asked))}"
        answered = is_refuted(query_of(text, tmp_path), path)
        assert answered == (not pair_exists(inputs, varied, holds["a"], holds["b"]))
        refuted += answered
    assert 5 <= refuted <= 55


def pair_exists(inputs: np.ndarray, varied: int, one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two inputs that differ in the varied feature alone are one of `one`, and one of `other`."""
    rests = [np.delete(x, varied).tobytes() for x in inputs]
    return not {r for r, is_one in zip(rests, one, strict=True) if is_one}.isdisjoint(
        r for r, is_other in zip(rests, other, strict=True) if is_other
    )
