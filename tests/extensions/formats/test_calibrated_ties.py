"""A mean of sigmoids that is its bound, or that no digits tell from it: decided, or open, and no error of ours.

A bound at a value that `predict_proba` prints of the first class is that value, though it is 1 - p rounded once more.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier

import treesens as ts
from treesens.compiler.query.probabilities import reaches
from treesens.compiler.query.query import ProbabilitySum, ScoreTerm
from treesens.errors import UndecidedError
from treesens.extensions.formats.links.calibration import Isotonic, Learnt, Sigmoid
from treesens.extensions.formats.links.curve_sums import Curve

pytestmark = pytest.mark.fault

HALF = Fraction(1, 2)
LOGISTIC = Sigmoid(-1.0, 0.0)


def curve(output: int, factor: int, calibration: Learnt) -> Curve:
    wide = Fraction(100_000)
    return Curve(Fraction(factor), (ScoreTerm(0, output, Fraction(1)),), -wide, wide, calibration)


def of_probability(slope: float, intercept: float) -> Sigmoid:
    return Sigmoid(slope, intercept, of_probability=True)


# What a sum equals exactly, by s(-x) = 1 - s(x) for s(x) = 1 / (1 + e**-x), and s(0) = 1/2.
EQUAL = {
    "a score of 0": ([curve(0, 1, of_probability(-2.0, 1.0))], [0], HALF),
    "two that add up to 1": (
        [curve(0, 1, of_probability(-2.0, 1.0)), curve(1, 1, of_probability(-2.0, 1.0))],
        [3, -3],
        Fraction(1),
    ),
    "two calibrations of one model": (
        [curve(0, 2, of_probability(-3.0, 0.5)), curve(1, 2, of_probability(-3.0, 2.5))],
        [-2, 2],
        Fraction(2),
    ),
    "twenty pairs": ([curve(i, 1, LOGISTIC) for i in range(40)], [i // 2 * (-1) ** i for i in range(40)], Fraction(20)),
    "isotonic, and a sigmoid": (
        [curve(0, 1, Isotonic((0.0, 1.0), (0.0, 1.0), of_probability=True)), curve(1, 1, LOGISTIC)],
        [5, -5],
        Fraction(1),
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_a_sum_that_equals_its_bound_reaches_it_and_is_not_above_it(name: str) -> None:
    terms, scores, bound = EQUAL[name]
    at = [[Fraction(s) for s in scores]]
    assert reaches(ProbabilitySum(tuple(terms), bound), at)
    assert not reaches(ProbabilitySum(tuple(terms), bound, strict=True), at)
    assert not reaches(ProbabilitySum(tuple(terms), bound + Fraction(1, 10**40)), at)
    assert reaches(ProbabilitySum(tuple(terms), bound - Fraction(1, 10**40), strict=True), at)


def test_a_score_beyond_all_digits_still_moves_a_sigmoid() -> None:
    # 1/2 + 1 / (1 + e**50000) is above 1/2.
    above = ProbabilitySum((curve(0, 1, LOGISTIC), curve(1, 1, LOGISTIC)), HALF, strict=True)
    assert reaches(above, [[Fraction(0), Fraction(-50_000)]])


def test_what_no_digits_tell_apart_is_undecided() -> None:
    f = of_probability(-2.0, 1.0)
    rows = [((curve(0, 1, of_probability(-2.0, 2.0)),), HALF), ((curve(0, 1, f), curve(1, -1, f)), Fraction(0))]
    for terms, bound in rows:
        with pytest.raises(UndecidedError, match="too close to its bound"):
            reaches(ProbabilitySum(terms, bound, strict=True), [[Fraction(50_000), Fraction(40_000)]])


def test_folds_whose_probability_is_the_bound_are_answered() -> None:
    from lightgbm import LGBMClassifier

    x = np.array([[0.0], [1.0]] * 40)
    y = np.array([0, 1] * 40)
    base = LGBMClassifier(n_estimators=1, min_child_samples=1, max_depth=1, verbose=-1)
    model = CalibratedClassifierCV(base, cv=2).fit(x, y)
    blend = ts.load(model).ensemble.blend
    assert blend is not None
    for fold, member in zip(model.calibrated_classifiers_, blend.members, strict=True):
        # One leaf on each side at the same distance from 0: what the sigmoid is of is opposite on the two sides.
        fold.calibrators[0].a_, fold.calibrators[0].b_ = -2.0, 1.0 if member.link.of_probability else 0.0
    probabilities = model.predict_proba(np.array([[0.0], [1.0]]))[:, 1]
    assert probabilities.sum() == pytest.approx(1.0)
    text = 'model m from "m"\nfeature f0: integer in [0, 1]\n' + "\n".join(
        f"query {name}: find a, b such that a.f0 = 0 and b.f0 = 1 and prob(a) + prob(b) {bound}"
        for name, bound in (("reached", ">= 1"), ("above", "> 1"), ("equal", "= 1"))
    )
    answers = ts.check_text(text, models={"m": ts.load(model)})
    assert [str(answers[name].verdict) for name in ("reached", "above", "equal")] == ["found", "none", "found"]


@pytest.mark.parametrize("seed", range(6))
def test_printed_values_of_the_first_class_are_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = pd.DataFrame({"x": rng.integers(0, 7, 60).astype(float)})
    y = (x["x"].to_numpy() + rng.normal(size=60) * 3 > 3).astype(int)
    tree = DecisionTreeClassifier(max_depth=3).fit(x, y)
    held_out = pd.DataFrame({"x": rng.integers(0, 7, 67).astype(float)})
    label = (held_out["x"].to_numpy() + rng.normal(size=67) * 3 > 3).astype(int)
    model = CalibratedClassifierCV(FrozenEstimator(tree), method="isotonic").fit(held_out, label)
    inputs = pd.DataFrame({"x": np.arange(7.0)})
    printed = model.predict_proba(inputs)[:, 0]
    for value in sorted(set(printed.tolist())):
        for operator, truth in (("<", printed < value), ("<=", printed <= value), ("!=", printed != value)):
            text = "model m from 'm'\nfeature x: integer in [0, 6]\n".replace("'", '"')
            text += f"query q:\n  find a in m such that prob(a, 0) {operator} {value!r}\n"
            answer = ts.check_text(text, models={"m": model})["q"]
            assert answer.verdict == ("found" if truth.any() else "none"), (operator, value)
