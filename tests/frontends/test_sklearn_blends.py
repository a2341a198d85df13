"""Votes, stacks, bags and folds of scikit-learn: its own predictions judge the kit, comparisons, pairs and proofs."""

from __future__ import annotations

import itertools
import operator
import warnings
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import treesens as ts
from treesens.compiler.model.calibration import Calibration, Isotonic, Sigmoid
from treesens.compiler.query.curves import Value, floats_of, greatest_curvature, least_constant, slope_above, steepest
from treesens.errors import ModelError
from treesens.frontends import conformance

calibration = pytest.importorskip("sklearn.calibration")
ensemble = pytest.importorskip("sklearn.ensemble")
trees = pytest.importorskip("sklearn.tree")
linear = pytest.importorskip("sklearn.linear_model")
xgboost = pytest.importorskip("xgboost")
lightgbm = pytest.importorskip("lightgbm")

NAMES = ["p", "q", "r"]
GRID = pd.DataFrame(np.array(list(itertools.product(range(6), repeat=3))), columns=NAMES)
SIGNS = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}


def rows(kind: str) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(3)
    x = random.integers(0, 6, (200, 3))
    score = x[:, 0] + np.abs(x[:, 1] - 3) + random.normal(0, 1, 200)
    y = {"two": (score > 4).astype(int), "three": np.digitize(score, [3, 5]), "value": score}[kind]
    return pd.DataFrame(x, columns=NAMES), y


def members(kind: str, names: str) -> list[tuple[str, Any]]:
    """Untrained models by their letters: Forest, Extra trees, Gradient, Histogram, Xgboost, Lightgbm, Pipeline."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    end = "Regressor" if kind == "value" else "Classifier"
    made: dict[str, Any] = {
        "F": getattr(ensemble, f"RandomForest{end}")(6, max_depth=3, random_state=1),
        "E": getattr(ensemble, f"ExtraTrees{end}")(4, max_depth=3, random_state=2),
        "G": getattr(ensemble, f"GradientBoosting{end}")(n_estimators=4, max_depth=2, random_state=1),
        "H": getattr(ensemble, f"HistGradientBoosting{end}")(max_iter=4, max_depth=3),
        "X": getattr(xgboost, f"XGB{end[:9] if end == 'Regressor' else end}")(n_estimators=4, max_depth=2),
        "L": getattr(lightgbm, f"LGBM{end}")(n_estimators=4, num_leaves=4, n_jobs=1, verbosity=-1),
    }
    made["P"] = make_pipeline(StandardScaler(), made["F"])
    return [(name.lower(), made[name]) for name in names]


@cache
def fitted(case: str) -> Any:
    x, _ = rows("two")
    vote, mean = ensemble.VotingClassifier, ensemble.VotingRegressor
    stack, stack_values = ensemble.StackingClassifier, ensemble.StackingRegressor
    logistic, tree = linear.LogisticRegression(), trees.DecisionTreeClassifier(max_depth=3)
    kind, made = {
        "forests": ("two", lambda m: vote(m("FE"), voting="soft")),
        "forests, weighted": ("three", lambda m: vote(m("FE"), voting="soft", weights=[0.3, 0.7])),
        "boosted": ("two", lambda m: vote(m("GHXL"), voting="soft")),
        "all kinds, weighted": ("two", lambda m: vote(m("FGXP"), voting="soft", weights=[1, 2, 3, 1])),
        "three classes": ("three", lambda m: vote(m("FGX"), voting="soft")),
        "values": ("value", lambda m: mean(m("FGHXLP"))),
        "values, weighted": ("value", lambda m: mean(m("FGX"), weights=[0.2, 0.3, 0.5])),
        "stack": ("two", lambda m: stack(m("FE"), final_estimator=logistic, cv=3)),
        "stack of classes": ("three", lambda m: stack([*m("FE"), ("t", tree)], final_estimator=logistic, cv=3)),
        "stack of values": ("value", lambda m: stack_values(m("FGL"), final_estimator=linear.RidgeCV(), cv=3)),
        "bag of forests": ("three", lambda m: ensemble.BaggingClassifier(m("F")[0][1], 3, random_state=1)),
        "bag of boosted": ("two", lambda m: ensemble.BaggingClassifier(m("X")[0][1], 3, random_state=1)),
        "bag of values": (
            "value",
            lambda m: ensemble.BaggingRegressor(m("G")[0][1], 3, max_features=2, random_state=1),
        ),
        **{
            f"folds {letter} {way}": ("two", lambda m, x=letter, w=way: _folds(m(x)[0][1], w))
            for letter in "FGHXLP"
            for way in ("sigmoid", "isotonic")
        },
    }[case]
    _, y = rows(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made(lambda names: members(kind, names)).fit(x, y)


def _folds(inner: Any, way: str) -> Any:
    return calibration.CalibratedClassifierCV(inner, method=way, cv=3)


SUMS = ["forests", "forests, weighted", "values", "values, weighted"]
SUMS += ["stack", "stack of classes", "stack of values", "bag of forests"]
FOLDS = [f"folds {letter} {way}" for letter in "FGHXLP" for way in ("sigmoid", "isotonic")]
CASES = [*SUMS, "bag of values", "boosted", "all kinds, weighted", "three classes", "bag of boosted", *FOLDS]


@pytest.mark.parametrize("case", CASES)
def test_the_kit_finds_no_difference(case: str) -> None:
    model = ts.load(fitted(case))
    report = conformance.check(model, rows=100)
    report.raise_if_wrong()
    assert len(report.compared) > 1
    assert (model.ensemble.link.value == "blended") is (case not in (*SUMS, "bag of values"))


def counted(model: Any, questions: dict[str, str]) -> dict[str, Any]:
    """The rows of the grid that satisfy each constraint."""
    text = 'model m from "m"\ndata d from "d"\ndomain from d\n'
    text += "".join(f"query {name}: count rows of d as a such that {asked}\n" for name, asked in questions.items())
    answers = ts.check_text(text, models={"m": ts.load(model)}, data={"d": GRID})
    return {name: answers[name].count for name in questions}


@pytest.mark.parametrize("case", ["forests", "stack", "boosted", "all kinds, weighted", "bag of boosted", *FOLDS])
def test_every_comparison_is_that_of_the_library(case: str) -> None:
    model = fitted(case)
    shown = model.predict_proba(GRID)[:, 1]
    ordered = np.unique(shown)
    near = (*ordered[:: max(1, len(ordered) // 3)], *((ordered[1:] + ordered[:-1]) / 2)[:: max(1, len(ordered) // 3)])
    cuts = sorted({f"{v:.12f}" for v in near if 0 < v < 1} | {"0.01", "0.5", "0.99"})
    asked = {f"q{i}{k}": (sign, cut) for i, cut in enumerate(cuts) for k, sign in enumerate(SIGNS)}
    found = counted(model, {name: f"prob(a) {sign} {cut}" for name, (sign, cut) in asked.items()})
    for name, (sign, cut) in asked.items():
        expected = set(np.flatnonzero(SIGNS[sign](shown, float(cut))).tolist())
        differ = (expected ^ set(found[name].rows)) | set(found[name].undecided)
        assert all(abs(shown[i] - float(cut)) <= 1e-6 for i in differ), (sign, cut, differ)


@pytest.mark.parametrize("case", ["forests", "stack", "all kinds, weighted", "folds F isotonic", "folds X sigmoid"])
def test_classes_leads_and_bounds_that_all_or_none_meet(case: str) -> None:
    model = fitted(case)
    shown = model.predict_proba(GRID)[:, 1]
    expected = {
        "class(a) = 1": model.predict(GRID) == 1,
        "not class(a) = 1": model.predict(GRID) == 0,
        "class(a) = 0": model.predict(GRID) == 0,
        "class(a) = 1 by factor 2": shown >= 2 * (1 - shown),
        "prob(a, 0) >= 0.75": 1 - shown >= 0.75,
        "prob(a) > 0.2 and prob(a) < 0.8 or a.p = 3": (shown > 0.2) & (shown < 0.8) | (GRID.p == 3).to_numpy(),
    }
    if case not in SUMS:
        expected |= {"prob(a) >= 1.5": np.zeros(216, bool), "prob(a) < 1.5": np.ones(216, bool)}
    found = counted(model, {f"q{i}": text for i, text in enumerate(expected)})
    for i, (text, rows_of) in enumerate(expected.items()):
        assert list(found[f"q{i}"].rows) == np.flatnonzero(rows_of).tolist(), text


def test_three_classes_are_those_that_the_library_predicts() -> None:
    model = fitted("three classes")
    found = counted(model, {f"q{c}": f"class(a) = {c}" for c in range(3)} | {"p": "prob(a, 2) >= 0.4"})
    for c in range(3):
        assert list(found[f"q{c}"].rows) == np.flatnonzero(model.predict(GRID) == c).tolist()
    assert list(found["p"].rows) == np.flatnonzero(model.predict_proba(GRID)[:, 2] >= 0.4).tolist()


PAIRS = 'model m from "m"\n' + "".join(f"feature {name}: integer in [0, 5]\n" for name in NAMES)


@pytest.mark.parametrize(
    ("case", "backend"),
    [
        *(
            (case, "auto")
            for case in ("forests", "boosted", "all kinds, weighted", "folds F sigmoid", "folds X isotonic")
        ),
        ("boosted", "cpsat"),
    ],
)
def test_pairs_and_proofs_are_those_of_the_whole_grid(case: str, backend: str) -> None:
    """A solver does not walk through all combinations of cells, and so its answers rest on the lines above the functions."""
    model = fitted(case)
    shown = model.predict_proba(GRID)[:, 1].reshape(6, 6, 6)
    for axis, name in enumerate(NAMES):
        high, low = shown.max(axis=axis), shown.min(axis=axis)
        reach = float(np.minimum(high - 0.5, 0.5 - low).max())
        if reach <= 0:
            continue
        text = PAIRS
        for verdict, gap in (("yes", reach - 1e-6), ("no", reach + 1e-6)):
            text += f"query {verdict}: find a, b such that a = b except {name}; "
            text += f"prob(a) >= {0.5 + gap:.9f}; prob(b) <= {0.5 - gap:.9f}\n"
        answers = ts.check_text(text, models={"m": ts.load(model)}, backend=backend, time_limit=60)
        assert str(answers["yes"].verdict) == "found", name
        assert str(answers["no"].verdict) == "none", name
        if backend == "cpsat":
            # Lines are laid in floats: the proof says what it rests on, and is not called exact.
            assert str(answers["no"].proof) == "tolerance"
            assert any("floating point" in part for part in answers["no"].result.proof_dependencies)
        if case == "forests":
            assert str(answers["no"].proof) == "exact"


@pytest.mark.parametrize("case", ["boosted", "folds G isotonic"])
def test_the_largest_gap_is_that_of_the_whole_grid(case: str) -> None:
    model = fitted(case)
    shown = model.predict_proba(GRID)[:, 1].reshape(6, 6, 6)
    found = ts.gap(model, vary=[["p"], ["q"]], data=GRID, time_limit=60)
    for axis, record in enumerate(found.records):
        reach = float(np.minimum(shown.max(axis=axis) - 0.5, 0.5 - shown.min(axis=axis)).max())
        if reach <= 0:
            assert record["verdict"] == "none"
            continue
        assert record["closed"]
        assert record["unit"] == "probability"
        assert record["largest_gap"] <= reach + 1e-9
        assert reach <= record["largest_gap_bound"] + 1e-9


def test_studies_about_one_score_refuse_a_mean_of_several_by_name(tmp_path: Path) -> None:
    model, (x, y) = fitted("boosted"), rows("two")
    with pytest.raises(ts.errors.UsageError, match="a share of inputs is one of regions of one score"):
        ts.count(model, x, vary="p", gap=0.1)
    with pytest.raises(ts.errors.UsageError, match="the link `blended` has no loss to count a price in"):
        ts.repair(model, x.assign(y=y), label="y", vary="p", gap=0.1, output=tmp_path / "m.skops")
    assert ts.audit(model, x, vary="p", gap=[0.1]).records
    assert ts.audit(fitted("forests"), x, gap=[0.1]).records


def test_files_and_cut_offs_around_a_vote(tmp_path: Path) -> None:
    joblib, model = pytest.importorskip("joblib"), fitted("boosted")
    joblib.dump(model, tmp_path / "m.joblib")
    loaded = ts.load(tmp_path / "m.joblib", trust_pickle=True)
    assert loaded.ensemble.n_trees == ts.load(model).ensemble.n_trees
    skops = pytest.importorskip("skops.io")
    for case in ("forests", "stack", "bag of forests", "folds H isotonic"):
        skops.dump(fitted(case), tmp_path / "m.skops")
        assert ts.load(tmp_path / "m.skops").ensemble.n_trees == ts.load(fitted(case)).ensemble.n_trees
    from sklearn.model_selection import FixedThresholdClassifier

    fixed = FixedThresholdClassifier(model, threshold=0.35, response_method="predict_proba").fit(*rows("two"))
    assert list(counted(fixed, {"q": "class(a) = 1"})["q"].rows) == np.flatnonzero(fixed.predict(GRID)).tolist()


def test_what_is_no_mean_of_readable_models_is_refused_by_name() -> None:
    x, y = rows("two")
    _, three = rows("three")
    vote, stack = ensemble.VotingClassifier, ensemble.StackingClassifier
    ada = ("a", ensemble.AdaBoostClassifier(n_estimators=3))
    against_all = stack(members("three", "F"), cv=2).fit(x, three)
    against_all.final_estimator_.solver = "liblinear"  # what older versions of scikit-learn fit
    refused = {
        "no function of its scores": vote([ada, *members("two", "F")], voting="soft").fit(x, y),
        "LogisticRegression is not supported": vote(
            [("l", linear.LogisticRegression()), *members("two", "F")], voting="soft"
        ).fit(x, y),
        "stack over boosted models": stack(members("two", "FG"), cv=2).fit(x, y),
        "last model is RandomForestClassifier": stack(
            members("two", "F"), final_estimator=members("two", "F")[0][1], cv=2
        ).fit(x, y),
        "passthrough": stack(members("two", "F"), passthrough=True, cv=2).fit(x, y),
        "stack over boosted models takes": stack(members("three", "FX"), cv=2).fit(x, three),
        "each class against all others": against_all,
        "not been fitted": vote(members("two", "F"), voting="soft"),
    }
    for message, model in refused.items():
        with pytest.raises(ModelError, match=message) as caught:
            ts.load(model)
        assert caught.value.remedy, message


def test_a_stack_of_three_classes_is_asked_as_the_library_predicts() -> None:
    model = fitted("stack of classes")
    shown, predicted = model.predict_proba(GRID), model.predict(GRID)
    asked = {f"c{k}": f"class(a) = {k}" for k in range(3)} | {f"p{k}": f"prob(a, {k}) >= 0.4" for k in range(3)}
    found = counted(model, asked)
    for k in range(3):
        assert list(found[f"c{k}"].rows) == np.flatnonzero(predicted == k).tolist()
        assert list(found[f"p{k}"].rows) == np.flatnonzero(shown[:, k] >= 0.4).tolist()
    pairs = [(one, other) for one in range(3) for other in range(3) if one != other]
    text = 'model m from "m"\n' + "".join(f"feature {name}: integer in [0, 5]\n" for name in NAMES)
    text += "".join(
        f"query q{one}{other}: find a, b such that a = b except {NAMES[1]}; class(a) = {one}; class(b) = {other}\n"
        for one, other in pairs
    )
    answers = ts.check_text(text, models={"m": ts.load(model)})
    together = [set(predicted[group.index]) for _, group in GRID.groupby([NAMES[0], NAMES[2]])]
    for one, other in pairs:
        expected = "found" if any({one, other} <= classes for classes in together) else "none"
        assert str(answers[f"q{one}{other}"].verdict) == expected


CURVES: list[Calibration] = [
    Sigmoid(-1.0, 0.0),
    Sigmoid(-7.5, 3.0, of_probability=True),
    Isotonic((-1.0, -0.5, 0.5, 0.5000000001), (0.1, 0.3, 0.3, 0.9)),
    Isotonic((0.2, 0.4, 0.9), (0.0, 0.25, 1.0), of_probability=True),
    Isotonic((0.5, 0.50000001, 0.9), (0.0, 0.75, 1.0), of_probability=True),
    Sigmoid(-400.0, 1.0),
    Sigmoid(-300.0, 150.0, of_probability=True),
]


def knots(curve: Calibration) -> NDArray[np.float64]:
    """The scores at which a function has a kink."""
    if isinstance(curve, Sigmoid):
        return np.zeros(0)
    at = np.array(curve.scores)
    return np.log(at / (1 - at)) if curve.of_probability else at


@pytest.mark.parametrize("curve", CURVES)
def test_lines_lie_above_functions_and_enclosures_hold_what_floats_say(curve: Calibration) -> None:
    random, plain = np.random.default_rng(5), floats_of(curve)
    for low, high in ((-3.0, 3.0), (-3.0, -0.1), (0.2, 2.0), (1.0, 1.0)):
        above = floats_of(curve, 1.0)
        for at in (low, (low + high) / 2, high):
            slope = slope_above(above, low, high, at, np.zeros(0))
            constant = float(least_constant(above, low, high, slope, knots(curve), greatest_curvature(curve)))
            around = [k + np.linspace(-1e-6, 1e-6, 201) for k in [*knots(curve), at, 0.0] if low <= k <= high]
            places = np.clip(np.concatenate([np.linspace(low, high, 20001), *around]), low, high)
            most = (plain(places) - slope * places).max()
            assert most <= constant + 1e-12
            assert (
                constant <= most + 2e-6
            )  # on a grid as fine as this no function has its greatest value far from a point
            for rising in (random.uniform(0, 2, 5) * float(steepest(curve))).tolist():
                least = float(least_constant(above, low, high, rising, knots(curve), greatest_curvature(curve)))
                assert (plain(places) <= least + rising * places + 1e-12 * (1 + rising)).all()
    for score in (-2.25, -0.5, 0.0, 0.25, 1.5):
        value = Value()
        value.add(Fraction(2), curve, Fraction(score))
        low_end, high_end = value.bounds(80)
        assert low_end <= high_end
        assert float(low_end) == pytest.approx(2 * float(plain(np.array([score]))[0]), abs=1e-6)
    ends = np.linspace(-3, 3, 4001)
    rises = np.diff(plain(ends)) / np.diff(ends)
    assert rises.max() <= float(steepest(curve)) * (1 + 1e-9)


def test_equal_probabilities_are_equal() -> None:
    """Terms of equal scores cancel, also those of sigmoids of probabilities, which no number of digits tells from 0."""
    text = PAIRS + "query same: find a, b such that a = b; prob(a) = prob(b)\n"
    for case in ("folds X sigmoid", "folds L isotonic", "boosted"):
        assert str(ts.check_text(text, models={"m": ts.load(fitted(case))})["same"].verdict) == "found"
