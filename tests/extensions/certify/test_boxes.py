"""Deep trees: their proofs have no messages, and numpy accepts of them what the checker itself accepts."""

from __future__ import annotations

import copy
import hashlib
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
from treesens.extensions.treesens_verify import bits, boxes
from treesens.extensions.treesens_verify.core import MALFORMED

from tests.extensions.certify.made import make, query_of
from tests.extensions.certify.mutations import mutant
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify import produce
from treesens.extensions.certify.command import run_checker
from treesens.extensions.certify.produce import refutation
from treesens.extensions.certify.statement import NoCertificate

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


@pytest.mark.long
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
                mine = proof.bound(domain, weights, 0, [])
                yours = exact.bound(domain, weights, 0, [])
                assert mine == yours == -1 or mine << proof.layer(weights).shift >= yours
                asked, same = asked + 1, same + (mine << proof.layer(weights).shift == yours)
    assert asked > 60
    assert same > asked / 3


GAPS = "feature f0: integer in [-3, 3]\nfeature f2: integer in [-2, 2]\nfeature f1: real in [-3, 3] or missing\n"


def random_cuts(problem: Any, dice: random.Random, depth: int) -> list[Any]:
    """A tree of random cuts, in preorder; its leaves have some weights. Domains may be cut down to nothing."""
    if depth == 0 or dice.random() < 0.1:
        return [[[1] * len(problem.constant), 0, []]]
    v = dice.choice([v for v, size in enumerate(problem.sizes) if size > 1])
    sides = (random_cuts(problem, dice, depth - 1) for _ in range(2))
    return [[v, dice.randrange(1, problem.sizes[v])], *(node for side in sides for node in side)]


def leaves_of(problem: Any, nodes: list[Any]) -> dict[int, list[int]]:
    """The cells of every leaf that has some, as the checker cuts them."""
    found, stack = dict[int, list[int]](), [list(problem.domain)]
    for number, node in enumerate(nodes):
        domain = stack.pop()
        if len(node) == 2:
            sides = (-1 << node[1], (1 << node[1]) - 1)
            stack += [[cells & s if v == node[0] else cells for v, cells in enumerate(domain)] for s in sides]
        elif all(domain):
            found[number] = domain
    return found


@pytest.mark.parametrize("whole", [2, 1 << 20])
def test_bits_have_the_bounds_of_boxes_and_none_is_below_that_of_the_checker(
    whole: int, made: list[tuple[Document, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every leaf of honest proofs and of random cuts, with gaps and missing values; in parts of few nodes and in one."""
    monkeypatch.setattr(bits, "WHOLE", whole)
    monkeypatch.setattr(bits, "SMALL", min(whole // 2, bits.SMALL))
    monkeypatch.setattr(bits, "PARTS", 2)
    monkeypatch.setattr(bits, "MOST_BYTES", 1000 if whole == 2 else bits.MOST_BYTES)
    deep(1, tmp_path / "m.json")
    text = f'model m from "m.json"\n{GAPS}query q: {QUESTIONS["two features"].replace("$", "4")}'
    gaps = json.loads(json.dumps(refutation(query_of(text, tmp_path), check=False).document))
    dice, asked, same = random.Random(7), 0, 0
    honest = [one for one in made if not messages_in(one[0])]
    for number, (document, data) in enumerate([*honest, (gaps, (tmp_path / "m.json").read_bytes())]):
        problem = checker.problem_of(document, [data], first_trees=True)
        problem.make_factors(set(document["apart"]))
        exact, turns = checker.Proof(problem), 3 if number % 2 == 0 or document is gaps else 1
        for turn in range(turns):
            nodes = random_cuts(problem, dice, 9) if turn or document is gaps else document["nodes"]
            proof, leaves = boxes.BoxProof(problem), leaves_of(problem, nodes)
            ((weights, _),) = Counter(tuple(node[0]) for node in nodes if len(node) == 3).most_common(1)
            leaves = {i: domain for i, domain in leaves.items() if tuple(nodes[i][0]) == weights}
            cuts = bits.Cuts(problem, proof.ends, nodes, weights, proof.bound_at)
            assert set(cuts.asked) == set(leaves)
            told = dict[int, int]()
            for at, bounds in bits.bounds_of(cuts, proof.layer(weights)):
                told |= dict(zip(at.tolist(), bounds.tolist(), strict=True))
            for leaf, domain in leaves.items():
                mine = proof.bound(domain, *nodes[leaf])
                assert told.get(leaf, -1) == mine, leaf
                asked += 1
            for leaf in dice.sample(sorted(leaves), min(4, len(leaves))):
                yours = exact.bound(leaves[leaf], *nodes[leaf])
                bound = told.get(leaf, -1)
                assert bound == yours == -1 or bound << proof.layer(weights).shift >= yours
                same += bound == yours
    assert asked > 700
    assert same > 5


def test_a_leaf_that_is_not_refuted_is_found_among_all_others(made: list[tuple[Document, bytes]]) -> None:
    """Of honest proofs one cut is made a leaf: boxes accept that only if the checker does."""
    dice, outcomes = random.Random(2), Counter[bool]()
    for document, data in made:
        nodes = document["nodes"]
        cuts = [
            i for i, node in enumerate(nodes[:-2]) if len(node) == 2 and len(nodes[i + 1]) == len(nodes[i + 2]) == 3
        ]
        if messages_in(document) or not cuts:
            continue
        i = dice.choice(cuts)
        wrong = {**document, "nodes": [*nodes[:i], nodes[i + 1], *nodes[i + 3 :]]}
        assert by_itself(wrong, data) or not by_boxes(wrong, data)
        outcomes[by_boxes(wrong, data)] += 1
    assert outcomes[False] > 3, outcomes


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


CELLS = 66_000


def of_many_cells() -> tuple[Document, Document, bytes]:
    """A false `none`, the input that refutes it, and the model: a feature of 2^16 cells, and a score independent of it.

    The domain of the feature ends at cell 66,001. In 16 bits this is 465, before the cut of the proof.
    """
    nodes: list[Any] = []

    def make(low: int, high: int) -> int:
        at = len(nodes)
        nodes.append(None)
        middle = (low + high) // 2
        nodes[at] = (
            [["-10" if low <= 30_000 else "0"]]
            if low >= high
            else [0, float(middle), False, make(low, middle), make(middle + 1, high)]
        )
        return at

    make(0, CELLS)
    trees = [nodes, [[1, 0.5, False, 1, 2], [["0"]], [["1"]]]]
    file = {
        "format": "treesens-trees",
        "version": 1,
        "made_from": {"format": "other", "sha256": "0" * 64},
        "number": "float32",
        "features": ["f0", "f1"],
        "base": ["0", "0"],
        "average": 1,
        "trees": [{"outputs": [o], "nodes": tree} for o, tree in enumerate(trees)],
    }
    data = json.dumps(file).encode()
    stated = {"sha256": hashlib.sha256(data).hexdigest(), "format": "treesens-trees", "trees": 2, "base": ["0", "0"]}
    bound = {"rational": "0", "logs": []}
    statement = {
        "models": [stated],
        "points": [{"name": "a", "model": 0}, {"name": "b", "model": 0}],
        "same_except": None,
        "domain": [[0, 0, {"runs": [[29_990, CELLS]]}]],
        "rows": [{"terms": [["1", o, o]], "costs": [], "bound": bound, "strict": False} for o in range(2)],
        "clauses": [],
        "orders": [],
    }
    head = {"format": "treesens-certificate", "version": 1, "statement": statement}
    lie = {**head, "claim": "none", "apart": [], "nodes": [[0, 29_992], [[1, 0], 0, []], [[1, 1], 0, []]]}
    return lie, {**head, "claim": "found", "inputs": [[40_000, 0], [0, 0]]}, data


@pytest.mark.parametrize("check", [checker.check, boxes.check])
def test_the_cells_of_a_feature_that_a_score_does_not_ask_are_not_cut_short(check: Any) -> None:
    lie, answer, data = of_many_cells()
    check(answer, [data], trees_alone=True)
    with pytest.raises(checker.Rejected, match="does not refute"):
        check(lie, [data], trees_alone=True)
    true = copy.deepcopy(lie)
    true["statement"]["rows"][0]["bound"]["rational"] = "1"
    true["nodes"] = [[0, 29_992], [[1, 0], 0, []], [[1, 0], 0, []]]
    check(true, [data], trees_alone=True)
    problem = checker.problem_of(true, [data], trees_alone=True)
    boxes.BoxProof(problem).go_through(true["nodes"])
