"""Two rows about one score of two points that leave nothing between them: a proof of one line, for both checkers."""

from __future__ import annotations

import json
import subprocess
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import xgboost

from tests.corpus import boosted
from tests.extensions.certify.made import query_of
from tests.extensions.certify.test_coq_agreement import export, program
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify.produce import refutation
from treesens.extensions.certify.short_proofs import may_clash, proof_by_clash
from treesens.extensions.certify.statement import NoCertificate, statement_of

__all__ = ["export", "program"]
NAMES = ["x", "y", "z", "s"]
VALUES = range(4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of four classes whose trees ask for different features."""
    made = tmp_path_factory.mktemp("clashes")
    rows = np.array(list(product(VALUES, repeat=4)))
    draw = np.random.default_rng(5)
    labels = np.where(
        rows[:, 3] + draw.normal(0, 1, len(rows)) > 2.5, 3, (rows[:, 0] + draw.integers(0, 3, len(rows))) % 3
    )
    # Margins on both sides of 0 with every version: XGBoost before 3.1 begins at 0.5, later ones at what the labels give.
    boosted(rows, labels, 3, 2, names=NAMES, path=made / "m.json", num_class=4, base_score=0.0)
    return made


def asked_for(folder: Path) -> set[tuple[str, int]]:
    """Features and the classes whose trees ask for them."""
    trees = xgboost.Booster(model_file=folder / "m.json").trees_to_dataframe()
    return {(name, tree % 4) for name, tree in zip(trees["Feature"], trees["Tree"], strict=True)}


def questions(folder: Path) -> list[tuple[str, int, int]]:
    """Features that the trees of two classes do not ask for, with these, in both orders."""
    asked = asked_for(folder)
    return [
        (f, one, other)
        for f, one, other in product(NAMES, range(4), range(4))
        if one != other and not {(f, one), (f, other)} & asked
    ]


def text_of(name: str, clauses: str) -> str:
    features = "\n".join(f"feature {f}: integer in [0, 3]" for f in NAMES)
    return f'model m from "m.json"\n{features}\nquery q: find a, b in m such that a = b except {{{name}}}; {clauses}\n'


def test_classes_that_change_places_nowhere_have_a_proof_of_one_line(
    folder: Path, program: Path, export: ModuleType, tmp_path: Path
) -> None:
    found = questions(folder)
    assert len(found) >= 4
    data = (folder / "m.json").read_bytes()
    for name, one, other in found:
        query = query_of(text_of(name, f"class(a) = {one}; class(b) = {other}"), folder)
        document = json.loads(json.dumps(refutation(query).document))
        (leaf,) = document["nodes"]
        weights, exponent, messages = leaf
        assert sum(map(bool, weights)) == 2
        assert (exponent, messages, document["apart"]) == (0, [], [])
        file = tmp_path / "integers"
        file.write_text(" ".join(map(str, export.integers_of(document, [data]))))
        done = subprocess.run([program, file], capture_output=True, text=True, check=False)
        assert done.stdout.startswith(f"{file}: accepted:"), done.stdout
        # Without one of the two rows, or with a weight that is wrong, nothing is proved.
        for weight in (place for place, w in enumerate(weights) if w):
            for wrong in (0, weights[weight] + 1):
                planted = json.loads(json.dumps(document))
                planted["nodes"][0][0][weight] = wrong
                with pytest.raises(checker.Rejected, match="does not refute"):
                    checker.check(planted, [data])


@pytest.mark.parametrize(
    ("clauses", "clash"),
    [
        ("margin(a, C) >= 0.5; margin(b, C) <= 0.25", True),
        ("margin(a, C) >= 0.5; margin(b, C) < 0.5", True),
        ("4 * margin(a, C) - 2 * margin(a, D) >= 2; margin(b, D) - 2 * margin(b, C) >= -0.5", True),
        ("margin(a, C) >= 0.5; margin(b, C) <= 0.5", False),
        ("2 * margin(a, C) - margin(a, D) >= 1; margin(b, D) - 2 * margin(b, C) >= -0.5", True),
        ("2 * margin(a, C) - margin(a, D) >= 1; margin(b, D) - 3 * margin(b, C) >= -0.5", False),
        ("margin(a, C) - margin(b, D) >= 1; margin(a, D) - margin(b, C) >= 0", True),
        ("prob(a, C) >= 2 * prob(a, D); prob(b, C) <= prob(b, D)", True),
        ("margin(a, C) >= 0.5; margin(a, C) <= 0.25", True),
        ("margin(a, C) >= 0.5; margin(b, D) <= 0.25", False),
    ],
)
def test_what_clashes(clauses: str, clash: bool, folder: Path) -> None:
    """About a feature that the trees of two classes C and D do not ask for."""
    name, one, other = questions(folder)[0]
    query = query_of(text_of(name, clauses.replace("C", str(one)).replace("D", str(other))), folder)
    statement = statement_of(query)
    assert may_clash(statement) == clash
    if clash:
        models = [
            checker.read_model(data, m) for data, m in zip(statement.files, statement.text["models"], strict=True)
        ]
        proof = proof_by_clash(statement, checker.Problem(statement.text, models))
        assert proof is not None
        (leaf,) = proof["nodes"]
        assert leaf[1:] == [0, []]
        assert sum(map(bool, leaf[0])) == 2


def test_a_feature_that_trees_ask_for_makes_no_clash(folder: Path) -> None:
    """Else what two points share would be proved of what they do not."""
    asked = asked_for(folder)
    name, label = next((f, c) for f, c in sorted(asked) if f in NAMES)
    query = query_of(text_of(name, f"margin(a, {label}) >= 0.01; margin(b, {label}) <= 0"), folder)
    assert not may_clash(statement_of(query))
    with pytest.raises(NoCertificate):
        refutation(query)
