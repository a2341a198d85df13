"""Minimal cores: against brute force, with their places, and with codes of the catalogue."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.binder.setting import bound
from tests.commands.test_command_line import STUMP
from tests.extensions.answers.test_top_n import loose_query
from tests.questions import oracle, random_cell_set
from treesens.binder.conflicts import Conjunct
from treesens.binder.file import ResolvedQuestion
from treesens.cli import main
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.compiler.query.query import CellSet, Constraint, Query
from treesens.compiler.result import Verdict
from treesens.grammar.constructs.missing import IsMissing
from treesens.grammar.messages.catalogue import CATALOGUE
from treesens.grammar.tree import ast
from treesens.solve.options import Options
from treesens.solve.question import answer, explain_none
from treesens.solve.tasks.unsat_core import core_of, diagnostic_of


def half(chosen: CellSet, rng: np.random.Generator) -> CellSet:
    """A set of about half of the cells."""
    return replace(chosen, mask=rng.random(len(chosen.mask)) < 0.5)


def random_conjuncts(seed: int) -> tuple[Query, ResolvedQuestion, dict[str, Constraint]]:
    """A random question with more constraints than it bears, each as a conjunct `a.cN >= 0`."""
    rng = np.random.default_rng(seed)
    query = loose_query(seed)
    extra = [half(random_cell_set(rng, query.space), rng) for _ in range(int(rng.integers(2, 6)))]
    query = replace(query, objective=None, constraints=(*query.constraints, *extra))
    named: dict[str, Constraint] = {}
    conjuncts = []
    for number, constraint in enumerate(query.constraints):
        node = IsMissing(ast.FeatureOf(ast.Name("a"), ast.Name(f"c{number}")))
        named[f"missing(a.c{number})"] = constraint
        conjuncts.append(Conjunct(node, (constraint,)))
    find = ast.Find((ast.Point(ast.Name("a")),), ())
    node = ast.Query(ast.Name("q"), find)
    return query, ResolvedQuestion(query, (), {}, find, node, conjuncts=tuple(conjuncts)), named


@pytest.mark.parametrize("backend", ["native", "z3"])
def test_a_core_has_no_answer_and_every_part_of_it_has_one(backend: str) -> None:
    sizes = []
    for seed in range(500, 530 if backend == "native" else 508):
        query, question, named = random_conjuncts(seed)
        if oracle(query)[0]:
            continue
        core = core_of(question, lambda q, part: answer(q, Options(backend=backend), part), Budget.of(120))
        assert core.minimal
        chosen = [named[text] for text in core.texts]
        assert not oracle(replace(query, constraints=tuple(chosen)))[0], seed
        for leave in range(len(chosen)):
            assert oracle(replace(query, constraints=tuple(chosen[:leave] + chosen[leave + 1 :])))[0], seed
        sizes.append(len(chosen))
    assert len(sizes) > 1
    assert backend != "native" or len(set(sizes)) > 2, sizes


CLASHES = [
    # (constraints, texts of the core, code)
    (
        "a = b except sex\n a.age >= 24\n a.y >= 1\n b.age <= 20\n prob(a) >= 0.5",
        ["a = b except sex", "a.age >= 24", "b.age <= 20"],
        "E309",
    ),
    ("a.x <= b.x\n b.x <= a.y\n a.y <= 0.5\n a.x >= 1\n margin(a) >= 0", None, "E309"),
    ("a = b except sex\n margin(a) >= 1000\n a.x >= 0", ["margin(a) >= 1000"], "E501"),
    (
        "a = b\n a.x >= 0\n margin(a) >= 0.4\n margin(b) <= 0.2",
        ["a = b", "margin(a) >= 0.4", "margin(b) <= 0.2"],
        "E501",
    ),
]


@pytest.mark.parametrize(("text", "wanted", "code"), CLASHES)
def test_the_clashing_conjuncts_are_named(text: str, wanted: list[str] | None, code: str) -> None:
    question = bound(f"query q: find a, b in binary such that\n {text}", models=("binary",))["q"]
    options = Options(backend="native", time_limit=60)
    result = answer(question.query, options)
    assert result.verdict is Verdict.NONE
    core = explain_none(question, result, replace(options, core=True)).core
    assert core is not None
    assert core.minimal
    note = diagnostic_of(core)
    assert note.code == code
    assert note.code in CATALOGUE
    if wanted is not None:
        assert list(core.texts) == wanted
    shown = note.render()
    for written in core.texts:
        assert f"{written}\n" in shown, "every conjunct is shown in its line"
    assert shown.count("^" * min(len(t) for t in core.texts)) >= len(core.texts)


def test_no_core_without_time_and_none_for_what_has_an_answer() -> None:
    text = "query q: find a, b in binary such that\n a = b\n margin(a) >= 0.4\n margin(b) <= 0.2"
    question = bound(text, models=("binary",))["q"]
    core = core_of(question, lambda q, part: answer(q, Options(backend="native"), part), Budget.of(0.001))
    assert not core.minimal
    assert len(core.texts) == 3
    assert "perhaps some of them suffice" in diagnostic_of(core).message
    found = bound("query q: find a in binary such that a.x >= 0", models=("binary",))["q"]
    result = answer(found.query, Options(backend="native"))
    assert explain_none(found, result, Options(core=True)).core is None


@pytest.mark.parametrize(
    ("text", "caret", "others"),
    [
        ("a.x >= 0\n a.x >= 1\n a.y >= 1\n a.x < 0.5", "a.x < 0.5", ["a.x >= 1"]),
        ("a.town != Bonn\n a.town != Ulm\n a.town != Köln", "a.town != Köln", ["a.town != Bonn", "a.town != Ulm"]),
        ("a.x > b.x\n a.y > b.y\n a.x < b.x", "a.x < b.x", ["a.x > b.x"]),
        ("a.x >= b.x + 0.5 and b.x >= a.x - 0.25", "b.x >= a.x - 0.25", ["a.x >= b.x + 0.5"]),
    ],
)
def test_what_needs_no_model_is_an_error_with_every_place(text: str, caret: str, others: list[str]) -> None:
    with pytest.raises(DiagnosticsError) as caught:
        bound(f"query q: find a, b in binary such that\n {text}", models=("binary",))
    (found,) = caught.value.diagnostics
    assert found.code == "E309"
    assert found.span is not None
    assert found.span.text == caret
    assert [span.text for span in found.related] == others
    assert found.render().count("^^^") >= 1 + len(others)


def test_check_shows_cores_where_the_compiler_sees_the_clash_and_where_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.json").write_text(json.dumps(STUMP))
    (tmp_path / "q.sens").write_text(
        'model m from "model.json"\n'
        "query seen:\n  find a, b such that\n    a = b\n    a.age <= 1\n    a.sex >= 0.5\n    b.sex < 0.5\n"
        "query asked:\n  find a such that\n    a.sex >= 0.5\n    margin(a) <= 0\n    a.age >= 3\n"
    )

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["check", str(tmp_path / "q.sens"), *arguments])
        assert ended.value.code == 0
        return capsys.readouterr().out

    seen, asked = json.loads(run("--json", "--core"))["results"]
    assert [c["text"] for c in seen["core"]["conjuncts"]] == ["a = b", "a.sex >= 0.5", "b.sex < 0.5"]
    assert seen["core"]["conjuncts"][0]["place"].endswith("q.sens:4:5")
    assert (seen["core"]["code"], seen["core"]["model_free"], seen["core"]["minimal"]) == ("E309", True, True)
    assert [c["text"] for c in asked["core"]["conjuncts"]] == ["a.sex >= 0.5", "margin(a) <= 0"]
    assert asked["core"]["code"] == "E501"
    shown = run("--core", "asked")
    assert "note[E501]: nothing satisfies these 2 constraints together for this model" in shown
    assert "   11 |     margin(a) <= 0\n      |     ^^^^^^^^^^^^^^" in shown
