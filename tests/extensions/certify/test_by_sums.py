"""Proofs by attainable sums: the checker lists them itself. What is true is judged by XGBoost over all inputs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import treesens.extensions.treesens_verify as checker
import xgboost as xgb

from tests.extensions.methods.test_attainable_sums import domain, stumps
from treesens.binder.file import bind
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query
from treesens.extensions.certify.produce import refutation
from treesens.extensions.certify.statement import NoCertificate
from treesens.frontends.registry import load
from treesens.grammar.parsing.parser import parse


def question(path: Path, text: str) -> Query:
    return bind(parse(text), path.parent, load_model=lambda *_: load(path))["q"].query


def accepted(document: dict[str, Any], path: Path) -> bool:
    try:
        checker.check(document, [path.read_bytes()])
    except checker.Rejected:
        return False
    return True


@pytest.mark.parametrize(("count", "bits"), [(24, 8), (24, 14), (60, 14)])
def test_subset_sums(count: int, bits: int, tmp_path: Path) -> None:
    """The reduction of the paper: even numbers have no odd sum, which a certificate of a few hundred bytes says."""
    rng = np.random.default_rng(count * bits)
    numbers = (2 * rng.integers(1, 1 << (bits - 1), count)).tolist()
    path = stumps(tmp_path, [(0.0, float(n)) for n in numbers])
    target = sum(numbers[::2]) + 1
    text = f'model m from "m"\n{domain(count)}\nquery q: find a in m such that value(a) = {target}'
    made = refutation(question(path, text), budget=Budget.of(30))
    assert made.document["nodes"] == [["sums"]]
    assert len(made.packed()) < 1000
    assert accepted(made.document, path)
    # The same proof of a sum that is attained, and of a row less, is none.
    (low, high) = made.document["statement"]["rows"]
    assert {low["bound"]["rational"], high["bound"]["rational"]} == {str(target), str(-target)}
    for attained in ([target - 1, -(target - 1)], [target - 1, -target]):
        for row, bound in zip((low, high), sorted(attained, reverse=low["terms"][0][0] == "1"), strict=True):
            row["bound"]["rational"] = str(bound)
        assert not accepted(made.document, path)
    made.document["statement"]["rows"] = [low]
    assert not accepted(made.document, path)


@pytest.fixture(scope="module")
def additive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray, np.ndarray]:
    """Trees over one or two of five features with values from 0 to 2, leaves in eighths; all inputs, and their scores."""
    rng = np.random.default_rng(3)
    inputs = np.array(list(itertools.product(range(3), repeat=5)), np.float32)
    names = [f"x{i}" for i in range(5)]
    data = xgb.DMatrix(inputs, label=rng.normal(size=len(inputs)), feature_names=names)
    pairs = "[[0, 1], [2], [3, 4]]"
    booster = xgb.train(
        {"max_depth": 3, "base_score": 0.0, "eta": 1.0, "lambda": 0, "interaction_constraints": pairs}, data, 9
    )
    text = json.loads(booster.save_raw("json"))
    for tree in text["learner"]["gradient_booster"]["model"]["trees"]:
        leaves = [i for i, left in enumerate(tree["left_children"]) if left < 0]
        for i in leaves:
            tree["split_conditions"][i] = float(rng.integers(-40, 41)) / 8
            tree["base_weights"][i] = tree["split_conditions"][i]
    path = tmp_path_factory.mktemp("additive") / "m.json"
    path.write_text(json.dumps(text))
    scores = xgb.Booster(model_file=path).predict(data, output_margin=True).astype(float)
    return path, inputs, scores


def windows(scores: np.ndarray, rng: np.random.Generator, count: int) -> list[tuple[float, float]]:
    """Some windows in eighths: most hold no score, some do."""
    low = rng.integers(int(scores.min() * 8) - 4, int(scores.max() * 8) + 4, count) / 8
    return [(float(x), float(x + w / 8)) for x, w in zip(low, rng.integers(0, 3, count), strict=True)]


def test_windows_of_one_score(additive: tuple[Path, np.ndarray, np.ndarray]) -> None:
    path, _, scores = additive
    kinds = set()
    values = "\n".join(f"feature x{i}: integer in [0, 2]" for i in range(5))
    for low, high in windows(scores, np.random.default_rng(5), 60):
        text = f'model m from "m"\n{values}\nquery q: find a in m such that value(a) >= {low}; value(a) <= {high}'
        asked = question(path, text)
        truth = bool(((scores >= low) & (scores <= high)).any())
        kinds.add(truth)
        document = statement_of_none(asked) | {"apart": [], "nodes": [["sums"]]}
        assert accepted(document, path) is not truth
    assert len(checker.parts_of(checker.problem_of(document, [path.read_bytes()]))) == 3
    assert kinds == {True, False}


def test_two_points_that_agree_on_some_features(additive: tuple[Path, np.ndarray, np.ndarray]) -> None:
    """Bounds of two scores around every pair that no other pair is better than in both."""
    path, inputs, scores = additive
    values = "\n".join(f"feature x{i}: integer in [0, 2]" for i in range(5))
    same = (inputs[:, None, 1:4] == inputs[None, :, 1:4]).all(axis=2)
    one, two = (x[same] for x in np.broadcast_arrays(scores[:, None], -scores[None]))
    order = np.lexsort((-two, -one))
    front, best = [], -np.inf
    for i in order:
        if two[i] > best:
            best = two[i]
            front.append((one[i], two[i]))
    assert len(front) > 3
    for first, second in front:
        for more, less in itertools.product((0.0, 0.125), (0.0, 0.125)):
            truth = bool(((one >= first + more) & (two >= second + less)).any())
            text = (
                f'model m from "m"\n{values}\nquery q: find a, b in m such that a = b except {{x0, x4}}; '
                f"value(a) >= {first + more}; value(b) <= {-(second + less)}"
            )
            document = statement_of_none(question(path, text)) | {"apart": [], "nodes": [["sums"]]}
            assert accepted(document, path) is not truth


def statement_of_none(query: Query) -> dict[str, Any]:
    """A certificate without its proof."""
    from treesens.extensions.certify.produce import _document
    from treesens.extensions.certify.statement import statement_of

    return _document(statement_of(query), query, "none")


@pytest.mark.parametrize("node", [["Sums"], [1], [None], ["sums", "sums"], [["sums"]]])
def test_other_words_are_no_proof(node: list[Any], additive: tuple[Path, np.ndarray, np.ndarray]) -> None:
    path, _, scores = additive
    text = f'model m from "m"\nquery q: find a in m such that value(a) >= {scores.max() + 1}'
    document = statement_of_none(question(path, text))
    assert accepted(document | {"apart": [], "nodes": [["sums"]]}, path)
    assert not accepted(document | {"apart": [], "nodes": [node]}, path)


def test_a_limit_on_combinations_holds(additive: tuple[Path, np.ndarray, np.ndarray]) -> None:
    path, _, scores = additive
    text = f'model m from "m"\nquery q: find a in m such that value(a) >= {scores.max() + 1}'
    document = statement_of_none(question(path, text)) | {"apart": [], "nodes": [["sums"]]}
    with pytest.raises(checker.Rejected, match="combinations"):
        checker.check(document, [path.read_bytes()], entries=10)


def test_what_is_false_has_no_certificate(additive: tuple[Path, np.ndarray, np.ndarray]) -> None:
    path, _, scores = additive
    asked = question(path, f'model m from "m"\nquery q: find a in m such that value(a) >= {scores.max()}')
    with pytest.raises(NoCertificate):
        refutation(asked, budget=Budget.of(1))
