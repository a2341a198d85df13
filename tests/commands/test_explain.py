"""`treesens explain`: the question in words and formulas, the cells, the passes, the legalisations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import treesens as ts
from tests.commands.conftest import Ran
from treesens.backends.base import BACKENDS, get_backend
from treesens.compiler.passes.registry import PASSES
from treesens.errors import BackendError, PipelineError, QueryError, UsageError
from treesens.grammar.parsing.parser import parse
from treesens.grammar.tree import ast
from treesens.records.passes import about
from treesens.report.english import sentence
from treesens.report.explain import row_formulas
from treesens.solve.methods.registry import all_methods

Command = Callable[..., Ran]


def test_words_expansion_and_exact_bounds(treesens: Command, sens_file: Path) -> None:
    ran = treesens("explain", sens_file, "sex_alone")
    assert ran.code == 0
    assert "agree on every feature but sex" in ran.out.replace("\n", " ")
    assert "a = b except sex" in ran.out
    assert "prob(a) >= 0.6" in ran.out
    assert "S(a) ≥ ln(1.5) ≈ 0.405465108108" in ran.out
    assert "-S(b) ≥ -ln(2/3) ≈ 0.405465108108" in ran.out
    assert "one of {Female, Male}, may differ" in ran.out


def test_the_record_holds_what_is_shown(treesens: Command, sens_file: Path) -> None:
    ran = treesens("explain", sens_file, "best", "--json", "--backend", "cbc", "--pipeline", "ensense")
    (record,) = ran.record["results"]
    assert record["sentence"].endswith("shall be as large as possible. The file expects the answer yes.")
    assert record["formulas"][-1] == "maximise margin: (S(a) - S(b))"
    assert "-0.25 ≤ a.age - b.age ≤ 0.25" in record["formulas"]
    assert [step["pass"] for step in record["passes"]] == ["lower", "unaffected-leaves", "aff-reduce", "gap-objective"]
    assert {row["feature"] for row in record["cells"]} == {"age", "sex", "hours"}
    becomes = {item["kind"]: item["becomes"] for item in record["legalisation"]["rewritten"]}
    assert becomes["Equal"] == "a - b = 0"
    assert becomes["Order"] == "p[i] - p[i+1] <= 0"
    assert "relaxed" in record["legalisation"]["rounding"]


def test_every_row_kind_has_its_formula() -> None:
    kinds = {
        "order block",
        "exactly-one block",
        "LeafImplies",
        "LeafSum",
        "Equal",
        "Clauses",
        "Linear",
        "Membership",
        "Facts",
    }
    assert set(row_formulas()) == kinds


@pytest.mark.parametrize("name", [n for n in BACKENDS.builtin if n != "pb"])
def test_every_backend_can_be_explained(treesens: Command, sens_file: Path, name: str) -> None:
    ran = treesens("explain", sens_file, "--backend", name)
    assert ran.code == 0
    assert f"For the backend {name} ({get_backend(name).capabilities.proof.value} proofs)" in ran.out


def test_every_pass_says_what_it_does() -> None:
    for name in PASSES.builtin:
        words = about(PASSES.get(name))
        assert len(words) > 20
        assert not words.startswith(name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "find a such that prob(a, 2) > 0.5 or not missing(a.x)",
            "either the predicted probability of class 2 at a is above 0.5 or it is not so that x of a is missing",
        ),
        (
            "find a, b in m such that a = b",
            "Are there inputs a and b of the model m such that a and b agree on every feature?",
        ),
        (
            "find a such that a = row 3 of d except {x, y}; a.x in (1, 2]",
            "a is row 3 of d in every feature but x and y and x of a lies between 1 and 2 (1 itself not)",
        ),
        (
            "find a such that class(a) = 1 by factor 2; a.x in {1, 2, 3}",
            "puts a into class 1, at least 2 times as probable against every other class and x of a is 1, 2 or 3",
        ),
        (
            "find a, b such that a, b avoid cavities(d, width = 3)",
            "a and b lie in no box over at most 3 features that holds no row of d",
        ),
        (
            "find a, b such that a = b\nminimize changes(a, b)\ntop 5 diverse",
            "Of all, the number of features in which a and b differ shall be as small as possible. "
            "The 5 best answers, each outside the widened regions of the others, are wanted.",
        ),
        (
            "find a such that a.x >= 1 implies a.y < 2\nmaximize likelihood(a, d) * likelihood(a, e)\nexpect none",
            "if x of a is at least 1, then y of a is below 2? Of all, the product of the likelihood of a among the rows "
            "of d and the likelihood of a among the rows of e shall be as large as possible. "
            "The file expects the answer no.",
        ),
        (
            "find a, b in m\nmaximize margin(a) - margin(b)",
            "Which inputs a and b of the model m are wanted? Of all, the raw score at a minus the raw score at b shall be "
            "as large as possible.",
        ),
        (
            "find a such that distance(a, nearest row of d, l2) <= 0.5",
            "the l2 distance of a to the nearest row of d is at most 0.5",
        ),
        (
            "count rows of d as a, b such that a = b except x; margin(b) >= 0",
            "For how many rows of d, each as a, is it true that some b exists so that a and b agree on every feature "
            "but x and the raw score at b is at least 0?",
        ),
    ],
)
def test_sentences(text: str, words: str) -> None:
    lines = "\n  ".join(text.split("\n"))
    (query,) = parse(f"query q:\n  {lines}\n").queries
    assert isinstance(query.body, ast.Find | ast.Count)
    assert words in sentence(query.body)


def test_a_misspelt_query_or_backend(treesens: Command, sens_file: Path) -> None:
    assert treesens("explain", sens_file, "sex_alon").code == 1
    ran = treesens("explain", sens_file, "--backend", "cpsta")
    assert ran.code == 2
    assert "did you mean `cpsat`?" in ran.err


def test_python_tells_what_the_command_tells(treesens: Command, sens_file: Path, model_file: Path) -> None:
    ran = treesens("explain", sens_file, "--json")
    found = ts.explain(sens_file)
    assert list(found) == ["sex_alone", "best"]
    for record in ran.record["results"]:
        mine = found[record["query"]]
        for key in ("sentence", "expansion", "formulas", "cells", "pipeline", "rows", "legalisation", "methods"):
            assert mine.record[key] == record[key], key
        assert mine.sentence == record["sentence"]
        assert all(line in str(mine) for line in record["formulas"])
    assert list(ts.explain(sens_file, "best", backend="cbc", pipeline="ensense")) == ["best"]


def test_python_explains_texts_and_objects(model_file: Path) -> None:
    text = 'model m from "m"\nquery q: sensitive m to sex gap 0.1\n'
    of_text = ts.explain(text, models={"m": model_file})["q"]
    question = ts.query.sensitive("m", ["sex"], gap=0.1).named("q")
    of_object = ts.explain(question, models={"m": ts.load(model_file)})["q"]
    assert of_text.sentence == of_object.sentence
    assert of_text.formulas == of_object.formulas
    assert of_text.expansion == of_object.expansion
    assert "S(a) ≥ ln(1.5)" in of_text._repr_html_()


def test_python_names_what_is_wrong(sens_file: Path, model_file: Path) -> None:
    with pytest.raises(UsageError, match="no query `bets`"):
        ts.explain(sens_file, "bets")
    with pytest.raises(UsageError, match="declares its own models"):
        ts.explain(sens_file, models={"small": model_file})
    with pytest.raises(BackendError):
        ts.explain(sens_file, backend="nothing")
    with pytest.raises(PipelineError):
        ts.explain(sens_file, pipeline="nothing")
    with pytest.raises(QueryError):
        ts.explain('model m from "m"\nquery q: find a such that a.f > 1\n', models={"m": model_file})


def test_the_methods_that_fit_are_listed_in_their_order(treesens: Command, sens_file: Path) -> None:
    ran = treesens("explain", sens_file, "sex_alone", "--json", "--backend", "auto")
    (record,) = ran.record["results"]
    names = [method["method"] for method in record["methods"]]
    listed = [method.name for method in all_methods()]
    assert names == sorted(names, key=listed.index)
    assert names[-2:] == ["trees", "compiled"]
    assert record["method_notes"] == []
    shown = treesens("explain", sens_file, "sex_alone", "--backend", "auto").out
    places = [shown.index(f"  {name} ") for name in names]
    assert places == sorted(places)
    alone = treesens("explain", sens_file, "sex_alone", "--json", "--backend", "highs").record["results"][0]
    assert [method["method"] for method in alone["methods"]] == ["compiled"]


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("find a, b such that a = b except {sex} maximize prob(a) - prob(b)", "maximise probability:"),
        ("find a such that prob(a) >= 0.6 minimize distance(a, nearest row of d, l1)", "to the nearest of 3 rows"),
        ("count rows of d as a such that prob(a) >= 0.6", "S(a) ≥"),
    ],
)
def test_what_no_module_says_is_explained_but_for_it(model_file: Path, question: str, told: str) -> None:
    import pandas as pd

    names = ts.load(model_file).ensemble.feature_names
    rows = pd.DataFrame(np.arange(3.0)[:, None].repeat(len(names), axis=1) / 2, columns=list(names))
    declared = "".join(f"feature `{name}`: real in [0, 1]\n" for name in names)
    text = f'model m from "m"\ndata d from "d"\n{declared}query q: {question}\n'
    found = ts.explain(text, models={"m": model_file}, data={"d": rows})["q"]
    assert any(told in line for line in found.formulas)
    assert found.record["methods"]
    linear = question.startswith("count")
    assert (found.record["relation"] == "relaxation") is not linear
