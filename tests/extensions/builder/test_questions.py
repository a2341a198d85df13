"""Questions as objects are answered like their text, and mean the same as the interface's own shorthand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.binder.setting import bound
from tests.commands.test_command_line import STUMP
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.errors import UsageError

q = ts.query
A, B = q.points("a", "b")


@pytest.fixture
def stump(tmp_path: Path) -> Path:
    path = tmp_path / "m.json"
    path.write_text(json.dumps(STUMP))
    return path


@pytest.fixture
def frame() -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"age": [1.0, 2.0, 3.0], "sex": [0.0, 1.0, 1.0], "y": [0.0, 1.0, 0.0]})


def test_text_and_objects_build_the_same_typed_question() -> None:
    text = """query q:
  find a, b such that
    a = b except {sex, x}
    prob(a) >= 0.6
    margin(b) <= -0.25
    a.age >= 20 and b.town in {Köln, Bonn}
    a.x - b.x <= 0.5
  maximize margin(a) - margin(b)
"""
    built = (
        q.find(A, B)
        .such_that(
            B.except_("sex", "x") == A,
            A.prob() >= 0.6,
            B.margin() <= -0.25,
            (A["age"] >= 20) & B["town"].is_in(["Köln", "Bonn"]),
            A["x"] - B["x"] <= 0.5,
        )
        .maximize(A.margin() - B.margin())
        .named("q")
    )
    one = bound(text, models=("binary",)).queries[0]
    other = bound(str(built), models=("binary",)).queries[0]
    assert one.node == other.node == built.node
    assert one.find == other.find
    assert repr(one.query.points) == repr(other.query.points)
    assert len(one.query.constraints) == len(other.query.constraints)
    for mine, theirs in zip(one.query.constraints, other.query.constraints, strict=True):
        assert type(mine) is type(theirs)
        for name in type(mine).__dataclass_fields__:
            np.testing.assert_equal(getattr(mine, name), getattr(theirs, name))
    np.testing.assert_equal(
        [g.cuts.tolist() for g in one.query.space.grid], [g.cuts.tolist() for g in other.query.space.grid]
    )
    assert one.query.varied == other.query.varied == ("x", "sex")


def test_an_object_is_answered_over_a_model_and_a_frame(stump: Path, frame: Any) -> None:
    question = q.find(A, B).such_that(B.except_("sex") == A, A.margin() >= 0.5, B.margin() <= -0.5)
    found = question.answer(
        ts.load(stump), frame, declare=[q.data("data", "rows.csv", label="y"), q.domain_from("data")]
    )
    assert found.verdict == "found"
    assert found.points is not None
    assert found.points["a"]["age"] == found.points["b"]["age"]
    assert {found.points["a"]["sex"], found.points["b"]["sex"]} == {0, 1}
    assert type(found.pair) is type(frame)
    again = ts.check_text(question, models={"m": stump})
    assert again["question"].verdict == "found"
    none = question.such_that(A["sex"] == B["sex"]).answer(stump)
    assert none.verdict == "none"


def test_the_shorthand_takes_live_models_and_frames(stump: Path, frame: Any) -> None:
    live = ts.load(stump)
    rows = frame[["age", "sex"]]
    question = q.sensitive(live, ["sex"], margin=0.5, near=rows, using="both")
    assert str(question) == "query question:\n  sensitive model to sex margin 0.5 near data"
    built = question.answer(declare=[q.domain_from("data"), q.data("data", "-")])
    direct = ts.sensitivity(live, vary=["sex"], margin=0.5, data=rows, near="both")
    assert built.verdict == direct.verdict == "found"
    assert built.points == direct.points
    assert direct.name == "sensitivity"


def test_several_questions_in_one_file(stump: Path) -> None:
    one = q.sensitive("m", "sex", margin=0.5).named("one")
    other = q.sensitive("m", "age", margin=0.5).expect("none").named("other")
    file = q.file(q.model("m", stump), q.real("age", 0, 1), one, other)
    assert [x.name for x in file.questions] == ["one", "other"]
    assert len(file.declarations) == 2
    answers = file.answers()
    assert {name: a.verdict for name, a in answers.items()} == {"one": "found", "other": "none"}
    assert ts.query.parse(str(file)).answers()["other"].verdict == "none"
    each = q.sensitive("m", "f", margin=0.5).for_each("f", "features").named("each")
    assert set(q.file(each).answers(stump)) == {"each[age]", "each[sex]"}
    with pytest.raises(UsageError, match="`each` is a sweep of 2 questions"):
        each.answer(stump)


@pytest.mark.extensions
def test_several_answers_and_counts_are_asked_as_objects(stump: Path, frame: Any) -> None:
    rows = frame[["age", "sex"]]
    flips = q.count("people", A, B).such_that(B.except_("sex") == A, A.margin() >= 0.5, B.margin() <= -0.5)
    counted = flips.answer(stump, rows, declare=[q.domain_from("people"), q.data("people", "-")])
    assert counted.count is not None
    assert counted.count.rows == (1, 2)
    assert q.count(rows, A).such_that(A.margin() <= -0.5).answer(stump).count.rows == (0,)  # type: ignore[union-attr]
    best = q.find(A).such_that(A["sex"].is_in([0, 1]), A["age"].between(0, 1)).maximize(A.margin()).top(2)
    ranked = best.answer(stump).ranked
    assert ranked is not None
    assert len(ranked.answers) == 2


def test_what_is_not_given_is_named(stump: Path) -> None:
    question = q.sensitive("m", "sex", margin=0.5, near="people")
    with pytest.raises(DiagnosticsError, match=r"E102.*no data is called `people`"):
        question.answer(stump)
    with pytest.raises(DiagnosticsError, match="E112"):
        question.answer()
    two = q.find(q.point("a", model="m"), q.point("b", model="n")).such_that(A == B)
    with pytest.raises(UsageError, match="`models` is one object; the questions name `m`, `n`"):
        two.answer(stump)
    live = q.sensitive(ts.load(stump), "sex", margin=0.5)
    with pytest.raises(UsageError, match="`model` refers to two different objects"):
        q.file(live, q.sensitive(ts.load(stump), "age", margin=0.5).named("other"))
    with pytest.raises(UsageError, match="`near` steers towards data"):
        ts.sensitivity(stump, vary=["sex"], margin=0.5, near="both")


def test_names_with_slashes_find_their_models(stump: Path) -> None:
    answers = q.file(q.sensitive("old/m", "sex", margin=0.5)).answers({"old/m": stump})
    assert answers["question"].verdict == "found"
