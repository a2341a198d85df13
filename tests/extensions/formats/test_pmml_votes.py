"""Models of PMML that vote for classes: ties, weights and scores as JPMML-Evaluator resolves them.

`tests/data/pmml/make.py` drew the trees, and wrote what JPMML says beside them; `test_pmml.py` compares the classes.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.extensions.formats.java import in_java
from tests.extensions.formats.test_pmml import FOLDER, START, rows_of
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.extensions.formats.pmml.votes import vote_values
from treesens.frontends.registry import load

NAMES = tuple("xyzw")
DICTIONARY = "".join(f'<DataField name="{name}" optype="continuous" dataType="double"/>' for name in NAMES)
SCHEMA = "<MiningSchema>" + "".join(f'<MiningField name="{name}"/>' for name in NAMES) + "</MiningSchema>"


def stump(name: str, low: str, high: str) -> str:
    """A tree that votes for `low` if `name` is below 0."""
    left = f'<Node score="{low}"><SimplePredicate field="{name}" operator="lessThan" value="0"/></Node>'
    right = f'<Node score="{high}"><True/></Node>'
    return f'<TreeModel functionName="classification">{SCHEMA}<Node><True/>{left}{right}</Node></TreeModel>'


def vote(*models: str, method: str = "majorityVote", weights: tuple[Any, ...] = (), more: str = "") -> str:
    given = weights or (1,) * len(models)
    segments = "".join(f'<Segment weight="{w}"><True/>{m}</Segment>' for w, m in zip(given, models, strict=True))
    inside = f'<Segmentation multipleModelMethod="{method}">{segments}</Segmentation>'
    return f'<MiningModel functionName="classification">{SCHEMA}{more}{inside}</MiningModel>'


def written(folder: Path, model: str) -> Path:
    path = folder / "vote.pmml"
    path.write_text(f"{START}<DataDictionary>{DICTIONARY}</DataDictionary>{model}</PMML>", encoding="utf-8")
    return path


def classes(loaded: Any, rows: np.ndarray) -> list[str]:
    e = loaded.ensemble
    return [str(e.classes[c]) for c in e.predicted_classes(e.margins_emulated(rows))]


CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=len(NAMES))))


def first_of_the_best(votes: list[str], weights: tuple[float, ...]) -> str:
    """The rule of JPMML: a linked map of classes in the order of their votes, of which the first best one wins."""
    counted: dict[str, float] = {}
    for label, weight in zip(votes, weights, strict=True):
        counted[label] = counted.get(label, 0.0) + weight
    return max(counted, key=lambda label: counted[label])


@pytest.mark.parametrize("weights", [(1, 1, 1, 1), (2, 1, 1, 2), (0, 1, 1, 0), (0.1, 0.2, 0.3, 0.4), (3, 1, 1, 1)])
@pytest.mark.parametrize("high", ["aabb", "abab", "abcb", "abcd"])
def test_of_equal_votes_the_first_one_wins(weights: tuple[float, ...], high: str, tmp_path: Path) -> None:
    low = "cbab"
    models = [stump(name, below, label) for name, below, label in zip(NAMES, low, high, strict=True)]
    loaded = load(written(tmp_path, vote(*models, method="weightedMajorityVote", weights=weights)))
    expected = [
        first_of_the_best([h if x >= 0 else b for h, b, x in zip(high, low, row, strict=True)], weights)
        for row in CORNERS
    ]
    assert classes(loaded, CORNERS) == expected


@pytest.mark.parametrize("method", ["majorityVote", "weightedMajorityVote"])
def test_jpmml_says_the_same_of_every_corner(method: str, tmp_path: Path) -> None:
    pytest.importorskip("jpmml_evaluator", reason="pip install jpmml-evaluator jpype1 (AGPL), and Java")
    models = [stump(name, low, high) for name, low, high in zip(NAMES, "bcab", "abca", strict=True)]
    loaded = load(written(tmp_path, vote(*models, method=method, weights=(0.1, 0.2, 0.2, 0.1))))
    said = in_java(loaded).predicts(CORNERS)  # type: ignore[misc]
    assert [loaded.ensemble.classes[c] for c in said.classes] == classes(loaded, CORNERS)
    conformance.check(in_java(loaded), rows=50).raise_if_wrong()


@pytest.mark.parametrize("name", ["vote_three", "vote_decimals"])
def test_proofs_and_pairs_are_those_of_all_inputs(name: str) -> None:
    """Two of the columns have a few values, and all others stay: JPMML's answers are those of `test_pmml.py`."""
    e = load(FOLDER / f"{name}.pmml").ensemble
    asked = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    rows = rows_of(e, asked["columns"], asked["rows"])
    row = rows[~np.isnan(rows).any(axis=1)][0]
    words = e.features[e.feature_names.index("c")].labels or ()
    row[[e.feature_names.index("f"), e.feature_names.index("i")]] = 0.25, 2.0
    grid = np.array([[*row]] * (9 * len(words)))
    n, c = e.feature_names.index("n"), e.feature_names.index("c")
    grid[:, n], grid[:, c] = np.repeat(np.arange(-4, 5), len(words)), np.tile(np.arange(len(words)), 9)
    there = {str(e.classes[k]) for k in e.predicted_classes(e.margins_emulated(grid))}
    fixed = "; ".join(
        f"a.{f.name} = {json.dumps(str(f.labels[int(x)]), ensure_ascii=False) if f.labels else repr(float(x))}"
        for f, x in zip(e.features, row, strict=True)
        if f.name not in ("n", "c")
    )
    text = 'model m from "m"\nfeature n: integer in [-4, 4]\n'
    for label in e.classes:
        text += f'query {label}: find a such that {fixed}; class(a) = "{label}"\n'
    answers = ts.check_text(text, models={"m": load(FOLDER / f"{name}.pmml")}, replay="emulated")
    found = {label: str(answers[str(label)].verdict) for label in e.classes}
    assert found == {label: "found" if label in there else "none" for label in e.classes}


def test_a_tree_predicts_its_score_and_not_its_most_probable_class(tmp_path: Path) -> None:
    """As of a tree with costs: JPMML returns the score."""
    shares = '<ScoreDistribution value="a" recordCount="9"/><ScoreDistribution value="b" recordCount="1"/>'
    model = stump("x", "b", "a").replace("</Node>", f"{shares}</Node>", 1)
    loaded = load(written(tmp_path, model))
    assert classes(loaded, CORNERS) == ["b" if row[0] < 0 else "a" for row in CORNERS]
    assert not loaded.ensemble.link.is_known
    plain = load(
        written(
            tmp_path, model.replace('score="b"', 'score="a"').replace('score="a"><True/>', f'score="a"><True/>{shares}')
        )
    )
    assert plain.ensemble.link.is_linear


DECIMALS = vote(*[stump(n, "a", "b") for n in NAMES], method="weightedMajorityVote", weights=(0.1, 0.2, 0.3, 0.7))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (vote(stump("x", "a", "b"), weights=(-1,), method="weightedMajorityVote"), "is negative, or all weights are 0"),
        (vote(stump("x", "a", "b"), weights=(0,), method="weightedMajorityVote"), "is negative, or all weights are 0"),
        (vote(stump("x", "a", "b"), weights=("x",), method="weightedMajorityVote"), "`weight` is not a finite number"),
        (vote(stump("x", "1", "1.0")), "the same class in different spellings"),
        (vote(stump("x", "a", "a")), "fewer than two classes"),
        (vote(stump("x", "a", "b"), stump("y", "a", "b").replace(' score="b"', "")), "casts no vote"),
        (vote(vote(stump("x", "a", "b")), stump("y", "a", "b")), "a vote inside a vote is not supported"),
        (vote(DECIMALS, stump("y", "a", "b")), "a vote inside a vote is not supported"),
        (DECIMALS, None),
        (vote(*[stump(NAMES[i % 4], "abc"[i % 3], "abc"[(i + 1) % 3]) for i in range(60)]), "too many orders"),
        (vote(stump("x", "a", "b"), more="<Targets><Target/></Targets>"), "targets are supported only for a single sum"),
        (vote(stump("x", "a", "b").replace("classification", "regression")), "not a (finite number|model for classification)"),
    ],
)  # fmt: skip
def test_what_is_refused_has_a_place_and_a_remedy(model: str, message: str | None, tmp_path: Path) -> None:
    path = written(tmp_path, model)
    if message is None:
        load(path)
        return
    with pytest.raises(ModelError, match=message) as told:
        load(path)
    assert "vote.pmml:" in str(told.value)
    assert told.value.remedy


@pytest.mark.parametrize("classes", [2, 3])
def test_votes_count_more_the_earlier_they_are(classes: int) -> None:
    assert vote_values([1.0] * 500, classes) == ([1.5, *[1.0] * 499] if classes == 2 else None)
    assert vote_values([1.0] * 3, 2) == [1.0] * 3
    assert vote_values([0.0, 0.0], classes) is None
    assert vote_values([1.0] * 3, 3) == [1.5, 1.25, 1.125]
    assert vote_values([2.0**-1000, 1.0], classes) is None
    # 10 times 0.1 is less than 0.8 + 0.2 in floats, and the same otherwise.
    assert vote_values([0.1] * 10 + [0.8, 0.2], classes) is None
    assert vote_values([0.1] * 5, classes) == vote_values([1.0] * 5, classes)
    assert (vote_values([1.0] * 47, 3) is None, vote_values([1.0] * 48, 3) is None) == (False, True)
