"""The best sum of probabilities: judged by predict_proba of the libraries on every input of a grid, and cuts by floats."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.solve.test_probability_rows import DOMAIN, GRID, NAMES, answer, chance, shown, trained
from treesens.binder.session import Session
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.probabilities import excluding, relaxed
from treesens.compiler.query.query import AllOf, AtLeast, Constraint, ProbabilitySum, ScoreTerm
from treesens.compiler.query.shares import Exponent, Probability
from treesens.grammar.parsing.parser import parse
from treesens.solve.method import OpenQuestion
from treesens.solve.methods.best_probability import BestProbability
from treesens.solve.options import Options
from treesens.solve.question import answer as general

CLEAR = 1e-5
"""Probabilities of float32 are not finer."""


def check(found: object, best: float, *, maximize: bool) -> None:
    goal = found.result.objective  # type: ignore[attr-defined]
    assert goal.value == pytest.approx(best, abs=CLEAR)
    beyond = goal.bound - best if maximize else best - goal.bound
    assert -CLEAR <= beyond <= 2 * CLEAR


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "sigmoid", "isotonic", "histogram"])
@pytest.mark.parametrize("maximize", [True, False])
def test_one_probability_is_as_good_as_its_score(kind: str, maximize: bool) -> None:
    table = shown(kind, 2)
    inside = (GRID.p <= 2) & (GRID.q >= 1)
    for wanted in (0, 1):
        sense = "maximize" if maximize else "minimize"
        found = answer(kind, 2, f"find a such that a.p <= 2; a.q >= 1 {sense} 2 * prob(a, {wanted}) + 1")
        values = 2 * table[inside, wanted] + 1
        check(found, float(values.max() if maximize else values.min()), maximize=maximize)


@pytest.mark.parametrize("kind", ["xgboost", "histogram"])
def test_one_class_of_several(kind: str) -> None:
    table = shown(kind, 3)
    for wanted in range(3):
        found = answer(kind, 3, f"find a such that a.s = 1 maximize prob(a, {wanted})")
        check(found, float(table[GRID.s == 1, wanted].max()), maximize=True)


@pytest.mark.parametrize("kind", ["xgboost", "sigmoid", "isotonic", "histogram"])
def test_the_largest_difference_of_two_inputs(kind: str) -> None:
    table = shown(kind, 2)[:, 1]
    for free in NAMES:
        rest = [name for name in NAMES if name != free]
        groups = GRID.assign(chance=table).groupby(rest).chance
        best = float((groups.max() - groups.min()).max())
        found = answer(kind, 2, f"find a, b such that a = b except {{{free}}} maximize prob(a) - prob(b)")
        check(found, best, maximize=True)
        apart = chance(kind, 2, found.points["a"], 1) - chance(kind, 2, found.points["b"], 1)
        assert apart == pytest.approx(found.result.objective.value, abs=CLEAR)


def test_a_forest_beside_a_boosted_model() -> None:
    """The probability of one is its score, that of the other is not linear in its score."""
    one, other = shown("forest", 2)[:, 1], shown("xgboost", 2)[:, 1]
    models = {"m": trained("forest", 2), "n": trained("xgboost", 2)}
    text = f'model m from "m"\nmodel n from "n"\n{DOMAIN}'
    text += "query q: find a in m, b in n such that a = b maximize prob(a) - prob(b)"
    check(ts.check_text(text, models=models)["q"], float((one - other).max()), maximize=True)


def test_a_mean_of_folds() -> None:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.tree import DecisionTreeClassifier

    x, y = GRID, (trained("xgboost", 2).predict(GRID) ^ (np.arange(len(GRID)) % 7 == 0)).astype(int)
    inner = DecisionTreeClassifier(max_depth=3, random_state=0)
    model = CalibratedClassifierCV(inner, method="sigmoid", cv=3).fit(x, y)
    table = model.predict_proba(GRID)[:, 1]
    groups = GRID.assign(chance=table).groupby(["q", "s"]).chance
    text = f'model m from "m"\n{DOMAIN}query q: find a, b such that a = b except {{p}} maximize prob(a) - prob(b)'
    found = ts.check_text(text, models={"m": model})["q"]
    check(found, float((groups.max() - groups.min()).max()), maximize=True)


class Start(BestProbability):
    """The search without its decisions: its initial state."""

    def _halve(self) -> None:
        pass


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "sigmoid", "isotonic", "histogram"])
@pytest.mark.parametrize("sense", ["maximize", "minimize"])
def test_a_difference_begins_at_the_best_difference_of_scores(kind: str, sense: str) -> None:
    """Never worse than one point twice; and the bound that begins holds for all pairs of the grid."""
    model, table = ts.load(trained(kind, 2)), shown(kind, 2)[:, 1]
    groups = GRID.assign(chance=table).groupby(["p", "s"]).chance
    best = float((groups.max() - groups.min()).max()) * (1 if sense == "maximize" else -1)
    declared = parse(f'model m from "m"\n{DOMAIN}query q: find a, b such that a = b except q {sense} prob(a) - prob(b)')
    session = Session(declared, Path(), load_model=lambda *_: model, load_table=no_table)
    query = session.bind(declared.queries[0]).query
    found = Start(OpenQuestion(query, Options(time_limit=20.0), general), Budget.of(20.0)).run()
    assert found.objective is not None
    assert found.objective.bound is not None
    value, bound = found.objective.value, found.objective.bound
    assert abs(value) >= 0.5 * abs(best)
    assert value * best >= 0
    assert abs(bound) >= abs(best) - CLEAR
    assert abs(bound) < 1 or kind in ("sigmoid", "isotonic")


def no_table(*_: object) -> Any:
    raise AssertionError("the question has no table")


def test_no_difference_is_exactly_none() -> None:
    found = answer("xgboost", 2, "find a, b such that a = b except {p}; a.p = b.p maximize prob(a) - prob(b)")
    goal = found.result.objective
    assert (goal.value, goal.bound) == (0, 0)


def test_a_bound_has_a_certificate(tmp_path: object) -> None:
    found = answer(
        "xgboost", 2, "find a, b such that a = b except {p} maximize prob(a) - prob(b)", certificates=tmp_path
    )
    claims = {one.claim: one for one in found.result.certificates}
    assert claims["bound"].path, claims["bound"].reason


def sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


@pytest.mark.parametrize("seed", range(4))
def test_a_cut_keeps_every_difference_that_is_large_enough(seed: int) -> None:
    """At pairs on the boundary logit(c + p), and the sum that it cuts off is broken."""
    rng = np.random.default_rng(seed)
    for _ in range(25):
        c = Fraction(int(rng.integers(0, 99)), 100)
        parts = [
            Probability(Fraction(sign), (Exponent((ScoreTerm(i, 0, Fraction(-1)),)),)) for i, sign in enumerate((1, -1))
        ]
        row = ProbabilitySum(tuple(parts[:: int(rng.choice([1, -1]))]), c)
        x, y = (Fraction(float(v)).limit_denominator(1 << 20) for v in rng.normal(0, 4, 2))
        if sigmoid(float(x)) - sigmoid(float(y)) > float(c) - 1e-6:
            continue
        cuts = [relaxed(row), excluding(row, [[x], [y]])]
        assert not all(kept(cut, float(x), float(y), 0.0) for cut in cuts)
        for p in rng.uniform(0, 1 - float(c), 40):
            other = log(p / (1 - p))
            one = log((float(c) + p) / (1 - float(c) - p))
            for more in (0.0, 0.5):
                assert all(kept(cut, one + more, other, 1e-7) for cut in cuts)


def kept(cut: Constraint, x: float, y: float, slack: float) -> bool:
    """Whether scores x and y satisfy rows, or miss them by `slack` at most."""
    if isinstance(cut, AllOf):
        return all(kept(part, x, y, slack) for part in cut.parts)
    if not isinstance(cut, AtLeast):
        return any(kept(part, x, y, slack) for part in cut.parts)  # type: ignore[union-attr]
    scores = ((Fraction(x),), (Fraction(y),))
    value = sum((t.coefficient * scores[t.point][t.output] for t in cut.form.scores), Fraction(0))
    low, high = cut.bound.enclose(64)
    return float(value - (low + high) / 2) >= -slack * (1 + abs(float(high)))
