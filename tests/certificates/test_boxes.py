"""Deep trees: their proofs have no messages, and numpy accepts of them what the checker itself accepts."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from treesens.certificates.treesens_verify import boxes
from treesens.certificates.treesens_verify.core import MALFORMED

from tests.certificates.made import make, query_of
from tests.certificates.mutations import mutant
from treesens.certificates import produce
from treesens.certificates import treesens_verify as checker
from treesens.certificates.produce import refutation
from treesens.certificates.statement import NoCertificate
from treesens.commands.verify import run_checker

Document = dict[str, Any]
QUESTIONS = {
    "a pair": "find a, b in m such that a = b except {f0}; margin(a) >= $; margin(b) <= -$",
    "two features": "find a, b in m such that a = b except {f0, f2}; margin(a) >= $; margin(b) <= -$",
    "a narrow set": "find a, b in m such that a = b except {f0}; a.f1 in [-1, 0]; margin(a) >= $; margin(b) <= -$",
    "missing": "find a, b in m such that a = b except {f1}; margin(a) >= $; margin(b) <= -$",
    "unlike weights": "find a, b in m such that a = b except {f0}; margin(a) >= $; 2 * margin(b) <= -$",
    "one point": "find a in m such that margin(a) >= 2 * $; a.f0 >= 0",
}
HEAD = "feature f0: real in [-3, 3]\nfeature f1: real in [-3, 3] or missing\n"


def deep(seed: int, path: Path) -> xgboost.Booster:
    """Trees with a hundred leaves and more, grown on noise."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(500, 4)).astype(np.float32)
    rows[::9, 1] = np.nan
    data = xgboost.DMatrix(rows, random.integers(0, 2, 500))
    options = {"max_depth": 12, "min_child_weight": 0, "lambda": 0.1, "eta": 0.3, "nthread": 1, "base_score": 0.5}
    booster = xgboost.train({"objective": "binary:logistic", **options}, data, 6)
    booster.save_model(path)
    return booster


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Document, bytes]]:
    """Certificates about deep trees as the engine makes them: no checker has seen them."""
    folder, found = tmp_path_factory.mktemp("deep"), list[tuple[Document, bytes]]()
    for seed in (1, 2):
        model = folder / f"{seed}.json"
        booster = deep(seed, model)
        assert booster.trees_to_dataframe().groupby("Tree").size().min() > 127
        for text in QUESTIONS.values():
            for gap in ("1", "1.4", "2", "2.6"):
                query = query_of(f'model m from "{model}"\n{HEAD}query q: {text.replace("$", gap)}', folder)
                try:
                    document = refutation(query, check=False).document
                except NoCertificate:
                    continue  # there is an answer
                found.append((json.loads(json.dumps(document)), model.read_bytes()))
    return found


def messages_in(document: Document) -> bool:
    return any(len(node) == 3 and node[2] for node in document["nodes"])


def by_boxes(document: Document, data: bytes) -> bool:
    """Whether boxes alone accept, without the proof that has the last word."""
    try:
        problem = checker.problem_of(document, [data], first_trees=True)
        problem.make_factors(set(document["apart"]))
        proof = boxes.BoxProof(problem)
        if not proof.suits(document["nodes"]):
            return False
        proof.go_through(document["nodes"])
    except (checker.Rejected, *MALFORMED):
        return False
    return True


def by_itself(document: Document, data: bytes) -> bool:
    try:
        checker.check(document, [data], first_trees=True)
    except checker.Rejected:
        return False
    return True


def test_proofs_of_deep_trees_have_no_messages_and_both_accept_them(made: list[tuple[Document, bytes]]) -> None:
    for document, data in made:
        assert by_itself(document, data)
        # Within a narrow set trees are not deep.
        assert messages_in(document) <= (len(document["statement"]["domain"]) > 4)
        assert by_boxes(document, data) != messages_in(document)
    assert max(len(document["nodes"]) for document, _ in made) > 100
    weights = {tuple(node[0]) for document, _ in made for node in document["nodes"] if len(node) == 3}
    assert {(1, 1), (1, 0)} <= weights


def test_boxes_accept_nothing_that_the_checker_rejects(made: list[tuple[Document, bytes]], tmp_path: Path) -> None:
    """Mutants of proofs and statements, of deep trees and of tiny ones whose messages were taken away."""
    dice, total = random.Random(5), Counter[tuple[bool, bool]]()
    tiny = [make(seed, tmp_path, gaps=("0.8", "1.6", "3.5")) for seed in (3, 4)]
    cases = [(document, one.data) for one in tiny for document in one.documents.values()]
    shallow = [m for m in made if len(m[0]["nodes"]) < 40]
    for number in range(600):
        document, data = dice.choice(shallow if number % 3 == 0 and shallow else cases)
        wrong = mutant(document, dice)
        for node in wrong["nodes"] if isinstance(wrong["nodes"], list) else ():
            if isinstance(node, list) and len(node) == 3:
                node[2] = []
        mine, yours = by_boxes(wrong, data), by_itself(wrong, data)
        assert yours or not mine, wrong
        total[mine, yours] += 1
    assert total[True, True] > 60
    assert total[False, False] > 60


def test_no_bound_is_lower_than_that_of_the_checker(made: list[tuple[Document, bytes]]) -> None:
    """On random runs of cells, with missing values, without them and of them alone."""
    dice, same, asked = random.Random(3), 0, 0
    for document, data in made[:2]:
        problem = checker.problem_of(document, [data], first_trees=True)
        problem.make_factors(set(document["apart"]))
        proof, exact = boxes.BoxProof(problem), checker.Proof(problem)
        for weights in ([1, 1], [1, 0], [2, 1]):
            for _ in range(60):
                domain = [
                    cells & run_of_cells(size, dice) for cells, size in zip(problem.domain, problem.sizes, strict=True)
                ]
                if not problem.propagate(domain):
                    continue
                mine = proof.bound(domain, proof.ends, {}, weights, 0, [])
                yours = exact.bound(domain, weights, 0, [])
                assert mine == yours == -1 or mine << proof.layer(weights).shift >= yours
                asked, same = asked + 1, same + (mine << proof.layer(weights).shift == yours)
    assert asked > 60
    assert same > asked / 3


def test_boxes_in_arrays_of_their_own_have_the_same_bounds(
    made: list[tuple[Document, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every leaf of honest proofs, with copies of few boxes at every cut and with none."""

    def bounds(document: Document, data: bytes, large: int) -> list[int]:
        monkeypatch.setattr(boxes, "LARGE", large)
        monkeypatch.setattr(boxes, "FEW", 1)
        told, bound = list[int](), boxes.Layer.bound
        with monkeypatch.context() as patched:
            patched.setattr(boxes.Layer, "bound", lambda self, mine: told.append(bound(self, mine)) or told[-1])
            assert by_boxes(document, data)
        return told

    asked = [(document, data) for document, data in made if not messages_in(document)]
    told = [bounds(document, data, 1) for document, data in asked]
    assert told == [bounds(document, data, 1 << 60) for document, data in asked]
    assert max(map(len, told)) > 50


def run_of_cells(size: int, dice: random.Random) -> int:
    """A run of present cells, the missing value, or both."""
    low, high = sorted(dice.sample(range(size), 2))
    present = ((1 << high) - (1 << low)) & ((1 << size - 1) - 1)
    return dice.choice([present, present | 1 << size - 1, 1 << size - 1, (1 << size) - 1])


def test_what_boxes_do_not_accept_is_left_to_the_checker(tmp_path: Path) -> None:
    """With messages, and without a leaf: the verdicts are those of the checker."""
    one = make(3, tmp_path, gaps=("0.8", "1.6"))
    with_messages = [document for document in one.documents.values() if messages_in(document)]
    assert with_messages
    for document in with_messages:
        assert not by_boxes(document, one.data)
        boxes.check(document, [one.data])
        wrong = {**document, "nodes": document["nodes"][:-1]}
        with pytest.raises(checker.Rejected, match=r"not dealt with|refute"):
            boxes.check(wrong, [one.data])


def test_numbers_that_are_too_long_are_rounded_upwards(made: list[tuple[Document, bytes]]) -> None:
    """Rows in units so fine that sums do not fit 64 bits: no value is below what it stands for, or more than a unit above."""
    document, data = json.loads(json.dumps(made[0][0])), made[0][1]
    assert not messages_in(document)
    for row in document["statement"]["rows"]:
        row["bound"]["rational"] = str(Fraction(row["bound"]["rational"]) + Fraction(1, 3**40))
        row["terms"] = [[str(Fraction(c) * Fraction(3**41 + 1, 3**41)), p, o] for c, p, o in row["terms"]]
    assert by_itself(document, data)
    assert by_boxes(document, data)
    problem = checker.problem_of(document, [data], first_trees=True)
    weights = [1] * len(problem.constant)
    layer = boxes.BoxProof(problem).layer(weights)
    assert layer.shift > 0
    assert int(np.abs(layer.value).max()) < 1 << 61
    exact = sum(w * c for w, c in zip(weights, problem.constant, strict=True))
    assert 0 <= (layer.constant << layer.shift) - exact < 1 << layer.shift


def test_the_command_and_production(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is produced about a large model is checked with numpy; the command does so if it is asked to."""
    monkeypatch.setattr(produce, "LARGE", 0)
    seen: list[int] = []
    go_through = boxes.BoxProof.go_through

    def counted(self: Any, nodes: list[Any]) -> None:
        seen.append(len(nodes))
        go_through(self, nodes)

    monkeypatch.setattr(boxes.BoxProof, "go_through", counted)
    deep(1, tmp_path / "m.json")
    text = f'model m from "m.json"\n{HEAD}query q: {QUESTIONS["a pair"].replace("$", "2.4")}'
    certificate = tmp_path / "q.none.cert.xz"
    certificate.write_bytes(refutation(query_of(text, tmp_path)).packed())
    assert seen
    for asked in ({"numpy": True}, {}):
        assert run_checker([certificate], [tmp_path / "m.json"], asked) == 0
        assert run_checker([certificate], [Path(__file__)], asked) == 1


def test_without_numpy_the_option_says_so(tmp_path: Path) -> None:
    deep(1, tmp_path / "m.json")
    text = f'model m from "m.json"\n{HEAD}query q: {QUESTIONS["a pair"].replace("$", "2.4")}'
    (tmp_path / "q.cert.xz").write_bytes(refutation(query_of(text, tmp_path)).packed())
    folder = Path(checker.__file__).parents[1]
    program = "import sys; sys.path.insert(0, sys.argv.pop(1)); from treesens_verify import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-c", program, folder, "--numpy", tmp_path / "q.cert.xz", "--model", tmp_path / "m.json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "rejected: numpy cannot be imported" in done.stdout
