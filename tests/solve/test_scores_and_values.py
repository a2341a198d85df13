"""Sums of scores and of features' values, as constraints and as objectives, against trying all values with the library."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.asking import ask, verdict
from treesens.compiler.base.diagnostics import DiagnosticsError

tree = pytest.importorskip("sklearn.tree")
xgboost = pytest.importorskip("xgboost")
lightgbm = pytest.importorskip("lightgbm")

BACKENDS = ("auto", "native", "cpsat", "highs", "z3")
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
FACTORS = [Fraction(a, b) for a in (-3, -2, -1, 1, 2, 3) for b in (1, 2, 5)]
Terms = list[tuple[Fraction, str, str]]
"""(factor, `x`, `y` or `value`, point)"""


def whole_numbers(seed: int, high: int) -> tuple[Any, np.ndarray]:
    """A tree whose leaves are quarters, so that the library's values are exact, and the inputs over [0, high]^2."""
    dice = np.random.default_rng(seed)
    rows = pd.DataFrame(dice.integers(0, high + 1, (120, 2)).astype(float), columns=["x", "y"])
    model = tree.DecisionTreeRegressor(max_leaf_nodes=8, random_state=0)
    model.fit(rows, rows.x * 0.3 - rows.y * 0.2 + np.sin(rows.y) * 2 + dice.normal(size=120))
    model.tree_.value[:] = np.round(model.tree_.value * 4) / 4
    return model, np.array(list(itertools.product(range(high + 1), repeat=2)), float)


def drawn(dice: random.Random, points: str) -> Terms:
    parts = [(dice.choice(FACTORS), "value", dice.choice(points))]
    return parts + [(dice.choice(FACTORS), dice.choice("xy"), dice.choice(points)) for _ in range(dice.randint(1, 3))]


def text_of(terms: Terms) -> str:
    names = (f"value({p})" if name == "value" else f"{p}.{name}" for _, name, p in terms)
    return " + ".join(f"({c}) * {name}" for (c, _, _), name in zip(terms, names, strict=True))


def formula(dice: random.Random, points: str, sums: Callable[[Terms], np.ndarray]) -> tuple[str, Any]:
    """A comparison, or its negation, with a bound that is reached, or just missed."""
    terms, sign = drawn(dice, points), dice.choice(list(COMPARE))
    totals = sums(terms)
    reached = sorted(set(totals))
    bound = dice.choice([reached[0], reached[-1], dice.choice(reached), dice.choice(reached) + Fraction(1, 7)])
    text, holds = f"{text_of(terms)} {sign} {bound}", COMPARE[sign](totals, bound).astype(bool)
    return (f"not ({text})", ~holds) if dice.random() < 0.3 else (text, holds)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("seed", range(24))
@pytest.mark.sampled
def test_all_operators_and_both_senses_are_those_of_trying_all_values(seed: int, backend: str) -> None:
    """Up to three comparisons share features: cells alone do not decide them. Values and bounds are exact fractions."""
    dice = random.Random(seed)
    points = dice.choice(["a", "ab"])
    model, grid = whole_numbers(seed, 4 if points == "ab" else 25)
    scores = [Fraction(float(v)) for v in model.predict(pd.DataFrame(grid, columns=["x", "y"]))]
    inputs = [{"x": int(x), "y": int(y), "value": s} for (x, y), s in zip(grid, scores, strict=True)]
    pairs = [(one, other) for one in inputs for other in inputs if one["y"] == other["y"]]
    tried = pairs if points == "ab" else [(one, one) for one in inputs]

    def sums(terms: Terms) -> np.ndarray:
        return np.array([sum(c * pair["ab".index(p)][name] for c, name, p in terms) for pair in tried], object)

    parts = [formula(dice, points, sums) for _ in range(dice.randint(1, 3))]
    if len(parts) > 1 and dice.random() < 0.4:
        (one, first), (other, second), *rest = parts
        parts = [(f"({one}) or ({other})", first | second), *rest]
    agree = ["a = b except x"] if points == "ab" else []
    asked = f"find {', '.join(points)} in m such that {'; '.join([*agree, *(text for text, _ in parts)])}"
    answers = np.logical_and.reduce([holds for _, holds in parts])
    declared = "".join(f"feature {f}: integer in [0, {4 if points == 'ab' else 25}]\n" for f in "xy")
    assert verdict(model, asked, declared, backend=backend) == ("found" if answers.any() else "none"), asked
    if not answers.any():
        return
    goal, sense = drawn(dice, points), dice.choice(["minimize", "maximize"])
    found = ask(model, f"{asked}\n  {sense} {text_of(goal)}", declared, backend=backend).result.objective
    best = float((min if sense == "minimize" else max)(sums(goal)[answers]))
    assert found.value == pytest.approx(best, rel=1e-12, abs=1e-12), (asked, goal)
    beyond = (found.bound - best) * (1 if sense == "maximize" else -1)
    assert -1e-9 <= beyond <= 0.02, (asked, goal)  # 1e-4 widths of the widest term


def boosted(kind: str, seed: int) -> tuple[Any, Callable[[np.ndarray], np.ndarray], list[list[float]]]:
    """A model, its library's scores, and per feature all values next to a threshold, with the ends of [0, 4]."""
    dice = np.random.default_rng(seed)
    rows = pd.DataFrame(dice.integers(0, 401, (200, 2)) / 100, columns=["x", "y"])
    label = rows.x * 1.5 - rows.y + np.sin(rows.y * 3) + dice.normal(size=200)
    if kind == "xgboost":
        model = xgboost.XGBRegressor(n_estimators=6, max_depth=3, learning_rate=0.5).fit(rows, label)
        cuts = model.get_booster().trees_to_dataframe().rename(columns={"Feature": "feature", "Split": "cut"})
        number, sides = np.float32, (-np.inf, None)
    else:
        model = lightgbm.LGBMRegressor(n_estimators=6, num_leaves=6, learning_rate=0.5, verbose=-1).fit(rows, label)
        frame = model.booster_.trees_to_dataframe()
        cuts, number, sides = (
            frame.rename(columns={"split_feature": "feature", "threshold": "cut"}),
            np.float64,
            (None, np.inf),
        )
    values = []
    for name in "xy":
        at = number(cuts[cuts.feature == name].cut.unique())
        near = [at if side is None else np.nextafter(at, number(side)) for side in sides]
        values.append(sorted({0.0, 4.0, *(float(v) for v in np.concatenate(near))}))
    return model, lambda inputs: np.asarray(model.predict(pd.DataFrame(inputs, columns=["x", "y"])), float), values


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.sampled
def test_the_ends_of_half_open_cells_are_reached(kind: str, seed: int, missing: bool) -> None:
    """The greatest and the least sum over floats are at thresholds; a bound beyond them has no answer, one before them has."""
    model, predict, values = boosted(kind, seed)
    dice = random.Random(seed)
    inputs = np.array(list(itertools.product(*(v + [np.nan] * missing for v in values))))
    c, d, e = (float(dice.choice(FACTORS[::3])) for _ in range(3))
    declared = "".join(f"feature {f}: real in [0, 4]{' or missing' if missing else ''}\n" for f in "xy")
    scores = predict(inputs)
    for factors in ((d, e), (d, 0.0)):
        terms = [f"{w} * a.{name}" for w, name in zip(factors, "xy", strict=True) if w]
        form = " + ".join([f"{c} * value(a)", *terms])
        sums = c * scores + sum(w * inputs[:, i] for i, w in enumerate(factors) if w)
        high, low = np.nanmax(sums), np.nanmin(sums)
        for sense, best in (("maximize", high), ("minimize", low)):
            found = ask(model, f"find a in m such that value(a) <= 1e6\n  {sense} {form}", declared).result.objective
            assert found.value == pytest.approx(best, abs=1e-5)
            assert (found.bound - best) * (1 if sense == "maximize" else -1) == pytest.approx(0, abs=1e-5)
        for sign, bound, expected in (
            (">=", high + 1e-4, "none"), (">=", high - 1e-4, "found"), ("<", low - 1e-4, "none"), ("<=", low + 1e-4, "found"),
        ):  # fmt: skip
            assert verdict(model, f"find a in m such that {form} {sign} {bound:.12f}", declared) == expected
        # Missing values satisfy no relation, and therefore every negated one.
        never = f"find a in m such that not ({form} <= {high + 1:.6f})"
        assert verdict(model, never, declared) == ("found" if missing else "none")


@pytest.fixture(scope="module")
def people() -> tuple[Any, pd.DataFrame]:
    dice = np.random.default_rng(0)
    rows = pd.DataFrame({"age": dice.integers(18, 80, 300) / 100, "cost": dice.random(300).astype(np.float32)})
    label = (rows.age * 5 - rows.cost * 3 + dice.normal(size=300) * 0.3 > 1).astype(int)
    return xgboost.XGBClassifier(n_estimators=8, max_depth=3).fit(rows, label), rows


def margins(model: Any, age: Any, cost: Any) -> np.ndarray:
    """The library's margins at stored ages and costs."""
    return np.asarray(model.predict(pd.DataFrame({"age": age, "cost": cost}), output_margin=True), float)


def ages_and_costs(model: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Every pair of ages 18 to 80 (stored as hundredths), for a cost in each cell."""
    cuts = model.get_booster().trees_to_dataframe()
    for cost in [0.0, *cuts[cuts.Feature == "cost"].Split.unique()]:
        yield np.arange(18, 81), margins(model, np.arange(18, 81) / 100, np.full(63, cost))


def test_a_slope_in_the_units_of_the_file(people: tuple[Any, pd.DataFrame]) -> None:
    """The steepest fall of the margin per year, over all pairs of ages, by the library."""
    model, _ = people
    declared = "feature age: integer in [18, 80] stored as [0.18, 0.8]\nfeature cost: real in [0, 1]\n"
    steepest = max(
        (m[i] - m[j]) / (ages[j] - ages[i])
        for ages, m in ages_and_costs(model) for i in range(63) for j in range(i + 5, 63)
    )  # fmt: skip
    asked = (
        "find a, b in m such that a = b except age; b.age - a.age >= 5; margin(a) - margin(b) >= {} * (b.age - a.age)"
    )
    assert verdict(model, asked.format(f"{steepest - 1e-4:.8f}"), declared) == "found"
    assert verdict(model, asked.format(f"{steepest + 1e-4:.8f}"), declared) == "none"


def test_rows_are_counted_and_decisions_use_sums(people: tuple[Any, pd.DataFrame]) -> None:
    model, rows = people
    declared = "feature age: real in [0, 1]\nfeature cost: real in [0, 1]\n"
    policy = "decision policy of p: approve when margin(p) - 2 * p.cost >= -0.3 else reject\n"
    profit = margins(model, rows.age, rows.cost) - 2 * np.asarray(rows.cost, float)
    assert np.abs(profit + 0.3).min() > 1e-5
    for asked in ("margin(a) - 2 * a.cost >= -0.3", "decision(a, policy) = approve"):
        question = f"count rows of d as a in m such that {asked}"
        counted = ask(model, question, declared + policy, rows.assign(label=0)).result.count
        assert counted.at_least == counted.at_most == int((profit >= -0.3).sum())


def test_the_library_confirms_values_that_suffice_by_little(people: tuple[Any, pd.DataFrame]) -> None:
    """The least cost at which a bound is reached: of the floats there, one is chosen that its library confirms, too."""
    model, _ = people
    declared = "feature age: real in [0, 1]\nfeature cost: real in [0, 1]\n"
    for bound in np.linspace(0.5, 3, 12):
        asked = f"find a in m such that margin(a) + 3 * a.cost >= {bound:.6f}; a.age <= 0.5\n  minimize a.cost"
        found = ask(model, asked, declared)
        assert str(found.verdict) == "found", found.result.reason
        values = found.result.witness.values[0]
        assert margins(model, values[:1], values[1:])[0] + 3 * values[1] >= float(f"{bound:.6f}")
        assert found.result.objective.value - found.result.objective.bound <= 2e-4


def test_what_is_not_linear_names_the_margin(people: tuple[Any, pd.DataFrame]) -> None:
    model, rows = people
    for asked, code in (
        ("find a in m such that prob(a) >= a.cost", "E205"),
        ("find a in m such that a.cost >= 0 maximize prob(a) - a.cost", "E209"),
    ):
        with pytest.raises(DiagnosticsError) as caught:
            ask(model, asked, "domain from d\n", rows)
        (error,) = caught.value.diagnostics
        assert (error.code, "`margin(a)`" in str(error.remedy)) == (code, True)
    unbounded = "find a in m such that margin(a) >= 0 maximize margin(a) - a.cost"
    with pytest.raises(DiagnosticsError, match="E312"):
        ask(model, unbounded)
    shares = "find a, b in m such that a = b except age; margin(a) - a.cost >= 1; margin(b) <= 0\n  share of u"
    with pytest.raises(DiagnosticsError, match="E223"):
        ask(model, shares, "measure u: uniform\ndomain from d\n", rows)
