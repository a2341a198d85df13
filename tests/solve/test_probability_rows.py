"""Probabilities that no linear constraint can say, judged by predict_proba of the libraries on every input of a grid."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from treesens.backends.base import get_backend
from treesens.cli import main
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result
from treesens.python.questions import table_of
from treesens.solve.methods.probability_rows import answer_probabilities
from treesens.solve.options import Options
from treesens.solve.question import answer as general

xgboost = pytest.importorskip("xgboost")
ensemble = pytest.importorskip("sklearn.ensemble")

NAMES = ["p", "q", "s"]
SIZE = 4
GRID = pd.DataFrame(np.array(list(itertools.product(range(SIZE), repeat=3))), columns=NAMES)
DOMAIN = "".join(f"feature {name}: integer in [0, {SIZE - 1}]\n" for name in NAMES)
CLEAR = 1e-5
"""Bounds keep away from every probability by this much: float32 is not finer."""


@cache
def trained(kind: str, classes: int) -> Any:
    random = np.random.default_rng(classes)
    x = pd.DataFrame(random.integers(0, SIZE, (300, 3)), columns=NAMES)
    score = x.p + 0.7 * x.q * (x.s > 1) + random.normal(0, 0.8, 300)
    y = pd.qcut(score, classes, labels=False).to_numpy()
    if kind == "xgboost":
        return xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(x, y)
    if kind == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        return lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbosity=-1).fit(x, y)
    if kind in ("sigmoid", "isotonic"):
        from sklearn.calibration import CalibratedClassifierCV

        inner = ensemble.HistGradientBoostingClassifier(max_iter=5)
        return CalibratedClassifierCV(inner, method=kind, ensemble=False, cv=3).fit(x, y)
    if kind == "forest":
        return ensemble.RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, y)
    return ensemble.HistGradientBoostingClassifier(max_iter=5).fit(x, y)


def shown(kind: str, classes: int) -> np.ndarray:
    return np.asarray(trained(kind, classes).predict_proba(GRID), float)


def answer(kind: str, classes: int, asked: str, **options: Any) -> Any:
    text = f'model m from "m"\n{DOMAIN}query q: {asked}'
    return ts.check_text(text, models={"m": trained(kind, classes)}, **options)["q"]


def chance(kind: str, classes: int, point: dict[str, Any], wanted: int) -> float:
    return float(trained(kind, classes).predict_proba(pd.DataFrame([point])[NAMES])[0, wanted])


def bounds(values: np.ndarray) -> list[float]:
    """Numbers between those that are reached: near both ends, in the middle, and beyond."""
    known = np.unique(np.round(values, 6))
    inside = [(known[i] + known[i + 1]) / 2 for i in (0, len(known) - 2)]
    return [c for c in (*inside, known[-1] + 2e-5, known[0] - 2e-5) if 0 < c < 1 and np.abs(values - c).min() > CLEAR]


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "histogram"])
@pytest.mark.parametrize("classes", [3, 5])
@pytest.mark.sampled
def test_one_probability_of_a_softmax(kind: str, classes: int) -> None:
    table = shown(kind, classes)
    asked = 0
    for wanted in range(classes):
        for c in bounds(table[:, wanted]):
            for sign, holds in ((">=", table[:, wanted] >= c), ("<=", table[:, wanted] <= c)):
                found = answer(kind, classes, f"find a such that prob(a, {wanted}) {sign} {c:.9f}")
                assert str(found.verdict) == ("found" if holds.any() else "none"), (wanted, sign, c, found.reason)
                if holds.any():
                    reached = chance(kind, classes, found.points["a"], wanted)
                    assert reached >= c if sign == ">=" else reached <= c
                asked += 1
    assert asked >= 6 * classes


@pytest.mark.parametrize(
    ("kind", "classes"), [("xgboost", 2), ("sigmoid", 2), ("isotonic", 2), ("xgboost", 3), ("histogram", 4)]
)
@pytest.mark.parametrize("backend", ["native", "auto"])
@pytest.mark.sampled
def test_how_far_apart_two_probabilities_are(kind: str, classes: int, backend: str) -> None:
    table = shown(kind, classes).reshape(SIZE, SIZE, SIZE, classes)
    for wanted, (axis, free) in itertools.product((0, classes - 1), enumerate(NAMES)):
        most = float((table[..., wanted].max(axis=axis) - table[..., wanted].min(axis=axis)).max())
        for c, there in ((most - 2e-5, True), (0.6 * most, True), (most + 2e-5, False)):
            text = f"find a, b such that a = b except {free}; prob(a, {wanted}) - prob(b, {wanted}) >= {c:.9f}"
            found = answer(kind, classes, text, backend=backend)
            assert str(found.verdict) == ("found" if there else "none"), (text, found.reason)
            if there:
                one, two = (chance(kind, classes, found.points[p], wanted) for p in "ab")
                assert one - two >= c - 1e-6


@pytest.mark.parametrize("backend", ["cpsat", "highs", "z3", "scip", "cbc"])
def test_every_backend_takes_the_rows(backend: str) -> None:
    if (missing := get_backend(backend).available()) is not None:
        pytest.skip(missing)
    table = shown("xgboost", 3)[:, 1]
    for c, there in ((table.max() - 2e-5, True), (table.max() + 2e-5, False)):
        found = answer("xgboost", 3, f"find a such that prob(a, 1) >= {c:.9f}", backend=backend)
        assert str(found.verdict) == ("found" if there else "none"), found.reason
    for c, there in ((table.min() + 2e-5, True), (table.min() - 2e-5, False)):
        found = answer("xgboost", 3, f"find a such that prob(a, 1) <= {c:.9f}", backend=backend)
        assert str(found.verdict) == ("found" if there else "none"), found.reason


def test_formulas_sums_and_negations() -> None:
    table = shown("xgboost", 3)
    p, q = GRID.p.to_numpy(), GRID.q.to_numpy()
    expected = {
        "prob(a, 0) + prob(a, 2) <= 0.5": table[:, 0] + table[:, 2] <= 0.5,
        "2 * prob(a, 0) - prob(a, 1) > 0.3": 2 * table[:, 0] - table[:, 1] > 0.3,
        "not prob(a, 0) >= 0.4": table[:, 0] < 0.4,
        "prob(a, 0) >= 0.55 or a.p = 2": (table[:, 0] >= 0.55) | (p == 2),
        "prob(a, 0) >= 0.5 implies a.q >= 2": (table[:, 0] < 0.5) | (q >= 2),
        "prob(a, 1) = 0.123456": np.zeros(len(table), bool),
        "prob(a, 0) + prob(a, 1) + prob(a, 2) >= 1.001": np.zeros(len(table), bool),
        "prob(a, 0) + prob(a, 1) >= 2.5": np.zeros(len(table), bool),
        "prob(a, 0) + prob(a, 1) >= -1": np.ones(len(table), bool),
        "prob(a, 2) <= 0.35 and prob(a, 1) <= 0.35": (table[:, 2] <= 0.35) & (table[:, 1] <= 0.35),
    }
    text = f'model m from "m"\ndata d from "d"\n{DOMAIN}'
    for i, asked in enumerate(expected):
        text += f"query c{i}: count rows of d as a such that {asked}\nquery f{i}: find a such that {asked}\n"
    found = ts.check_text(text, models={"m": trained("xgboost", 3)}, data={"d": GRID})
    for i, (asked, holds) in enumerate(expected.items()):
        assert list(found[f"c{i}"].count.rows) == np.flatnonzero(holds).tolist(), asked
        assert str(found[f"f{i}"].verdict) == ("found" if holds.any() else "none"), asked


def test_rows_of_which_another_point_is_far() -> None:
    table = shown("xgboost", 3).reshape(SIZE, SIZE, SIZE, 3)[..., 1]
    above = table.max(axis=0, keepdims=True) - table >= 0.2
    text = f'model m from "m"\ndata d from "d"\n{DOMAIN}query q: count rows of d as a, b such that a = b except p; '
    text += "prob(b, 1) - prob(a, 1) >= 0.2"
    found = ts.check_text(text, models={"m": trained("xgboost", 3)}, data={"d": GRID})["q"]
    assert list(found.count.rows) == np.flatnonzero(above.ravel()).tolist()


@pytest.mark.parametrize("sense", ["maximize", "minimize"])
def test_objectives_over_such_constraints(sense: str) -> None:
    """The best margin among the inputs that the library gives a probability of at least 0.4; all digits of it."""
    table, margins = shown("xgboost", 3), trained("xgboost", 3).predict(GRID, output_margin=True).astype(float)
    here = table[:, 1] >= 0.4
    goal = margins[here, 0] - margins[here, 2]
    best = goal.max() if sense == "maximize" else goal.min()
    found = answer("xgboost", 3, f"find a such that prob(a, 1) >= 0.4 {sense} margin(a, 0) - margin(a, 2)")
    assert found.result.objective.value == pytest.approx(best, abs=1e-5)
    assert found.bound == pytest.approx(best, abs=1e-5)


def test_two_models() -> None:
    one, other = shown("sigmoid", 2)[:, 1], shown("histogram", 2)[:, 1]
    most = float((one - other).max())
    head = f'model new from "new"\nmodel old from "old"\n{DOMAIN}query q: find a in new, b in old such that a = b; '
    models = {"new": trained("sigmoid", 2), "old": trained("histogram", 2)}
    for c, verdict in ((most - 2e-5, "found"), (most + 2e-5, "none")):
        found = ts.check_text(f"{head}prob(a) - prob(b) >= {c:.9f}", models=models)["q"]
        assert str(found.verdict) == verdict


PAIRS = [
    ("sigmoid", "isotonic"),
    ("isotonic", "isotonic"),
    ("sigmoid", "xgboost"),
    ("forest", "xgboost"),
    ("isotonic", "forest"),
]


@pytest.mark.parametrize("operator", [">=", ">", "<=", "<"])
@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.sampled
def test_probabilities_of_two_points_are_not_ordered_as_their_margins(one: str, other: str, operator: str) -> None:
    """Each model has a calibration of its own, and an isotonic one is level: equal probabilities have different margins."""
    p, q = shown(one, 2)[:, 1], shown(other, 2)[:, 1]
    holds = getattr(np, {">=": "greater_equal", ">": "greater", "<=": "less_equal", "<": "less"}[operator])
    expected = holds(p[:, None], q[None, :])
    clear = (np.abs(p[:, None] - q[None, :]) > CLEAR) | ((one == other) & (p[:, None] == q[None, :]))
    random = np.random.default_rng(5)
    both = (np.argwhere(clear & (expected == truth)) for truth in (True, False))
    places = [tuple(pair) for pairs in both for pair in random.permutation(pairs)[:8]]
    text = f'model m from "m"\nmodel n from "n"\n{DOMAIN}'
    for number, pair in enumerate(places):
        pinned = "; ".join(f"{w}.{name} = {GRID[name][i]}" for w, i in zip("ab", pair, strict=True) for name in NAMES)
        text += f"query q{number}: find a in m, b in n such that {pinned}; prob(a) {operator} prob(b)\n"
    found = ts.check_text(text, models={"m": trained(one, 2), "n": trained(other, 2)})
    for number, pair in enumerate(places):
        assert str(found[f"q{number}"].verdict) == ("found" if expected[pair] else "none"), (
            pair,
            found[f"q{number}"].reason,
        )


def test_two_points_on_one_level_of_a_calibration() -> None:
    model, p = trained("isotonic", 2), shown("isotonic", 2)[:, 1]
    scores = model.calibrated_classifiers_[0].estimator.decision_function(GRID)
    level = (p[:, None] == p[None, :]) & (scores[:, None] > scores[None, :] + 1e-3)
    assert level.any()
    found = answer("isotonic", 2, "find a, b such that margin(a) >= margin(b) + 0.001; prob(a) <= prob(b)")
    assert str(found.verdict) == "found", found.reason
    assert chance("isotonic", 2, found.points["a"], 1) == chance("isotonic", 2, found.points["b"], 1)


def test_none_that_the_library_confirms() -> None:
    table = shown("histogram", 3)[:, 1]
    found = answer("histogram", 3, f"find a such that prob(a, 1) >= {table.max() + 1e-6:.9f}", confirm="library")
    assert str(found.verdict) == "none"
    assert found.to_dict()["confirmed_by"] == "library"


def test_what_is_written_for_a_solver_is_called_a_relaxation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained("xgboost", 3).save_model(tmp_path / "m.json")
    (tmp_path / "q.sens").write_text(f'model m from "m.json"\n{DOMAIN}query q: find a such that prob(a, 1) >= 0.4\n')
    with pytest.raises(SystemExit) as ended:
        main(["emit", str(tmp_path / "q.sens"), "--to", "lp"])
    assert ended.value.code == 0
    assert "q: nonlinear probabilities" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["explain", str(tmp_path / "q.sens")])
    shown_text = capsys.readouterr().out
    assert "(relaxation)" in shown_text
    assert "1/(1 + exp(" in shown_text


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_a_best_answer_that_is_out_of_time_is_told_with_its_value(norm: str) -> None:
    """The nearest row of a table: what was found without an objective has a distance, if no bound."""
    from treesens.binder.session import Session
    from treesens.grammar.parsing.parser import parse

    rows = pd.DataFrame({name: [0.0, 3.0] for name in NAMES})
    asked = f"find a such that prob(a, 1) >= 0.4  minimize distance(a, nearest row of d, {norm})"
    declared = parse(f'model m from "m"\ndata d from "d"\n{DOMAIN}query q: {asked}')
    model, table = ts.load(trained("xgboost", 3)), table_of(rows, None, None)
    load: Any = {"load_model": lambda *_: model, "load_table": lambda *_: table}
    question = Session(declared, Path(), **load).bind(declared.queries[0])

    def out_of_time(query: Query, options: Options, budget: Budget) -> Result:
        return general(query, options, budget if query.objective is None else Budget.of(0.0))

    found = answer_probabilities(out_of_time, question.query, Options(time_limit=20.0), Budget.of(20.0))
    assert found.witness is not None
    assert found.objective is not None
    steps = np.abs(rows.to_numpy() - found.witness.values[0]) / (SIZE - 1)
    away = steps.sum(axis=1) if norm == "l1" else steps.max(axis=1)
    assert found.objective.value == pytest.approx(away.min())
    assert found.objective.bound is None or found.objective.bound <= found.objective.value
