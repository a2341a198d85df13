"""`explain row N of DATA` against every set of features and every combination of values, by the library's own predictions."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.command import run_command
from tests.extensions.methods.test_least_radius import NAMES, training_set, xgboost_model
from tests.extensions.methods.test_methods import alone, asked_of
from tests.extensions.studies.test_reasons import decides, sets_of_features
from tests.solve.test_split_disjunction import ROW, World, world_of
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.compiler.result import Result, Verdict
from treesens.errors import QueryError
from treesens.extensions.answers.reasons import METHOD

DOMAIN = "".join(f"feature {name}: real in [0, 10]\n" for name in NAMES)
FILE = f'model m from "m"\ndata d from "d"\n{DOMAIN}'


def frame(x: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(x.astype(float), columns=list(NAMES))


def asked(model: Any, x: np.ndarray, *lines: str, **options: Any) -> dict[str, Any]:
    text = FILE + "".join(f"query q{i}: {line}\n" for i, line in enumerate(lines))
    rows = frame(x)
    return dict(ts.check_text(text, models={"m": model}, data={"d": rows}, **options))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("clause", ["", "smallest", "without f1", "without {f0, f2} smallest"])
@pytest.mark.sampled
def test_a_reason_decides_and_none_means_that_what_is_left_out_matters(seed: int, clause: str) -> None:
    booster, classes, cuts = xgboost_model(seed)
    x = training_set(800 + seed, 8)[0]
    barred = {i for i, name in enumerate(NAMES) if clause.startswith("without") and name in clause}
    answers = asked(booster, x, *(f"explain row {i} of d {clause}" for i in range(len(x))))
    for answer, row in zip(answers.values(), x, strict=True):
        own = int(classes(row[None])[0])
        sufficient = [s for s in sets_of_features() if not s & barred and decides(classes, cuts, row, s)]
        known = answer.to_dict()["explanation"]
        assert known["class"] == str(own)
        assert answer.verdict == ("found" if sufficient else "none")
        if not sufficient:
            assert known["sufficient"] is None
            continue
        used = {NAMES.index(name) for name in known["sufficient"]}
        assert used in sufficient
        assert not any(s < used for s in sufficient)
        assert answer.proof == "exact"
        if "smallest" in clause:
            assert len(used) == min(map(len, sufficient))
        if known["point"] is None:
            assert decides(classes, cuts, row, set())
            continue
        point = np.array([[known["point"][name] for name in NAMES]], np.float32)
        assert classes(point)[0] != own
        assert {NAMES[f] for f in range(3) if point[0, f] != row[f]} == set(known["contrast"])


def test_several_classes_and_forests_are_explained() -> None:
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(5)
    x = rng.integers(0, 4, (300, 3)).astype(np.float32)
    y = np.where(x[:, 0] > 1, 2, (x[:, 1] + x[:, 2] > 3).astype(int))
    forest = RandomForestClassifier(7, max_depth=4, random_state=0).fit(x, y)
    points = np.array(list(itertools.product(range(4), repeat=3)), np.float32)
    ordered = np.sort(forest.predict_proba(points), axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > 1e-9  # the library's rounding breaks ties
    predicted = forest.predict(points)
    text = 'model m from "m"\ndata d from "d"\n' + "".join(f"feature {n}: integer in [0, 3]\n" for n in NAMES)
    rows = [i for i in range(0, len(points), 5) if clear[i]]
    text += "".join(f"query q{i}: explain row {i} of d\n" for i in rows)
    answers = ts.check_text(text, models={"m": forest}, data={"d": frame(points)})
    for i in rows:
        known = answers[f"q{i}"].to_dict()["explanation"]
        assert known["class"] == str(predicted[i])
        kept = [NAMES.index(name) for name in known["sufficient"]]
        agree = (points[:, kept] == points[i, kept]).all(axis=1)
        assert (predicted[agree & clear] == predicted[i]).all()
        for f in kept:
            fewer = [g for g in kept if g != f]
            agree = (points[:, fewer] == points[i, fewer]).all(axis=1)
            assert (predicted[agree] != predicted[i]).any() or not clear[agree].all()


def test_other_backends_give_reasons_too() -> None:
    booster, classes, cuts = xgboost_model(1)
    x = training_set(900, 3)[0]
    for backend in ("z3", "cpsat"):
        answers = asked(booster, x, *(f"explain row {i} of d" for i in range(3)), backend=backend)
        for answer, row in zip(answers.values(), x, strict=True):
            known = answer.to_dict()
            assert known["backend"] == backend
            used = {NAMES.index(name) for name in known["explanation"]["sufficient"]}
            assert decides(classes, cuts, row, used)


def test_a_reason_is_confirmed_by_another_backend_and_by_the_library() -> None:
    booster, _, _ = xgboost_model(1)
    x = training_set(901, 2)[0]
    for confirm in ("z3", "library"):
        for answer in asked(booster, x, "explain row 0 of d", "explain row 1 of d smallest", confirm=confirm).values():
            assert answer.result.confirmed_by == confirm


def test_certificates_say_that_no_other_class_agrees_with_the_reason(tmp_path: Path) -> None:
    booster, _, _ = xgboost_model(2)
    path = tmp_path / "m.json"
    booster.save_model(path)
    x = training_set(902, 2)[0]
    (answer,) = asked(path, x, "explain row 0 of d", certificates=tmp_path / "proofs").values()
    claims = answer.result.certificates
    features = len(answer.result.explanation.features)
    assert [claim.claim for claim in claims] == ["none", *["found"] * features, "manifest"]
    assert all(claim.path for claim in claims)
    ran = run_command(tmp_path, "verify", str(claims[-1].path), "--model", str(path))
    assert ran.returncode == 0, ran.stderr
    assert "if any one of these features is free, there are inputs of one of the cases" in ran.stdout
    assert f"{claims[-1].path}: accepted" in ran.stdout


def test_no_time_is_no_answer() -> None:
    booster, _, _ = xgboost_model(1)
    (answer,) = asked(booster, training_set(5, 1)[0], "explain row 0 of d", time_limit=0.000001).values()
    assert answer.verdict is Verdict.UNKNOWN
    assert "explanation" not in answer.to_dict()


def test_a_question_in_a_session_and_from_objects_is_the_same() -> None:
    booster, _, _ = xgboost_model(3)
    x = training_set(903, 4)[0]
    rows = frame(x)
    with ts.session(booster, rows, declarations=DOMAIN) as session:
        first = session.ask("explain row 2 of d without f1")
    built = ts.query.explain("d", 2, without="f1")
    second = asked(booster, x, str(built).partition(":")[2].strip())["q0"]
    assert first.verdict == second.verdict
    assert first.to_dict()["explanation"] == second.to_dict()["explanation"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("explain row 9 of d", "so no row 9"),
        ("explain row 0 of d without g", "no feature `g`"),
        ("explain row 0 of d top 2", "an explanation has no `top`"),
        ("explain row 1 of d", "lies outside the domain of `f0`"),
    ],
)
def test_what_cannot_be_explained_is_said(line: str, words: str) -> None:
    booster, _, _ = xgboost_model(3)
    x = np.array([[1, 1, 1], [-1, 1, 1]], float)
    with pytest.raises(DiagnosticsError, match=words):
        asked(booster, x, line)


def test_a_regressor_has_no_class_to_explain() -> None:
    from sklearn.tree import DecisionTreeRegressor

    x = training_set(3, 50)[0]
    tree = DecisionTreeRegressor(max_depth=3).fit(x, x[:, 0])
    with pytest.raises(DiagnosticsError, match="a regressor has no classes"):
        asked(tree, x, "explain row 0 of d")


def test_an_explanation_is_no_single_module() -> None:
    booster, _, _ = xgboost_model(3)
    with pytest.raises(QueryError, match="explains a row"):
        ts.explain(FILE + "query q0: explain row 0 of d\n", models={"m": booster}, data={"d": frame(np.ones((1, 3)))})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_of(tmp_path_factory.mktemp("reason"), 4)


def test_a_reason_alone_decides_the_class(world: World) -> None:
    query = asked_of(world, f"explain row {ROW} of d in m")
    result = alone(METHOD, query)
    assert isinstance(result, Result)
    assert result.explanation is not None
    features = sorted(result.explanation.features or ())
    agree = (world.inputs[:, features] == world.row[features]).all(axis=1)
    own = world.margins[(world.inputs == world.row).all(axis=1)][0] > 0
    assert ((world.margins > 0)[agree] == own).all()
