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
from tests.frontends.versions import before, since, voting
from treesens.compiler.query.exact_sums import Value
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.extensions.formats.links.calibration import Isotonic, Learnt, Sigmoid
from treesens.extensions.formats.links.curves import (
    add_value,
    floats_of,
    greatest_curvature,
    least_constant,
    slope_above,
    steepest,
)

calibration = pytest.importorskip("sklearn.calibration")
ensemble = pytest.importorskip("sklearn.ensemble")
trees = pytest.importorskip("sklearn.tree")
linear = pytest.importorskip("sklearn.linear_model")
naive_bayes = pytest.importorskip("sklearn.naive_bayes")
xgboost = pytest.importorskip("xgboost")
lightgbm = pytest.importorskip("lightgbm")

pytestmark = pytest.mark.extensions

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
        "many values": ("value", lambda m: mean([(f"{name}{k}", one) for k in range(3) for name, one in m("FEG")])),
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
        **{
            f"folds of classes {letter} {way}": ("three", lambda m, x=letter, w=way: _folds(m(x)[0][1], w))
            for letter in "FHLP"
            for way in ("sigmoid", "isotonic")
        },
        "vote with folds of classes": ("three", _vote_with_folds),
    }[case]
    _, y = rows(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made(lambda names: members(kind, names)).fit(x, y)


def _folds(inner: Any, way: str) -> Any:
    return calibration.CalibratedClassifierCV(inner, method=way, cv=3)


def _vote_with_folds(made: Any) -> Any:
    """Folds of a calibration, one calibrator for each class, and boosted trees."""
    once = calibration.CalibratedClassifierCV(made("H")[0][1], method="isotonic", cv=2, ensemble=False)
    inside = [("c", _folds(made("F")[0][1], "sigmoid")), ("o", once), *made("X")]
    return ensemble.VotingClassifier(inside, voting="soft", weights=[0.5, 0.2, 0.3])


SUMS = ["forests", "forests, weighted", "values", "many values", "values, weighted"]
SUMS += ["stack", "stack of classes", "stack of values", "bag of forests"]
FOLDS = [f"folds {letter} {way}" for letter in "FGHXLP" for way in ("sigmoid", "isotonic")]
FOLDS_OF_CLASSES = [f"folds of classes {kind}" for kind in ("F sigmoid", "P isotonic", "H isotonic")]
# LightGBM has a `decision_function` since then; before, what is calibrated is the softmax of all scores, which is refused.
FOLDS_OF_CLASSES += [] if before("lightgbm", "4.6") else ["folds of classes L sigmoid"]
FOLDS_OF_CLASSES.append("vote with folds of classes")
CASES = [
    *SUMS,
    "bag of values",
    "boosted",
    "all kinds, weighted",
    "three classes",
    "bag of boosted",
    *FOLDS,
    *FOLDS_OF_CLASSES,
]


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_the_kit_finds_no_difference(case: str) -> None:
    model = ts.load(fitted(case))
    report = conformance.check(model, rows=100)
    report.raise_if_wrong()
    assert len(report.compared) > 1
    assert (model.ensemble.link.name == "blended") is (case not in (*SUMS, "bag of values"))


def counted(model: Any, questions: dict[str, str]) -> dict[str, Any]:
    """The rows of the grid that satisfy each constraint."""
    text = 'model m from "m"\ndata d from "d"\ndomain from d\n'
    text += "".join(f"query {name}: count rows of d as a such that {asked}\n" for name, asked in questions.items())
    answers = ts.check_text(text, models={"m": ts.load(model)}, data={"d": GRID})
    return {name: answers[name].count for name in questions}


@pytest.mark.parametrize("case", ["forests", "stack", "boosted", "all kinds, weighted", "bag of boosted", *FOLDS])
@pytest.mark.sampled
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


@pytest.mark.parametrize("case", FOLDS_OF_CLASSES)
def test_folds_of_three_classes_are_what_the_library_says(case: str) -> None:
    """Every comparison of a probability, of two of them and of classes; rows that are open differ by their last digits."""
    model = fitted(case)
    shown, said = model.predict_proba(GRID), model.predict(GRID)
    for margins in (ts.load(model).margins(GRID.to_numpy(float)), ts.load(model).ensemble.margins_emulated(GRID)):
        assert ts.load(model).ensemble.probabilities(margins) == pytest.approx(shown, abs=1e-7)
    expected: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
    for c in range(3):
        lead = shown[:, c] - np.delete(shown, c, axis=1).max(axis=1)
        expected[f"class(a) = {c}"] = (said == c, lead)
        ahead = shown[:, c] - 2 * np.delete(shown, c, axis=1).max(axis=1)
        expected[f"class(a) = {c} by factor 2"] = (ahead >= 0, ahead)
        for sign, cut in ((">=", f"{np.sort(shown[:, c])[-9]:.12f}"), ("<", "0.25")):
            past = shown[:, c] - float(cut)
            expected[f"prob(a, {c}) {sign} {cut}"] = (SIGNS[sign](past, 0), past)
        apart = shown[:, c] - shown[:, (c + 1) % 3] - 0.1
        expected[f"prob(a, {c}) - prob(a, {(c + 1) % 3}) > 0.1"] = (apart > 0, apart)
    found = counted(model, {f"q{i}": text for i, text in enumerate(expected)})
    for i, (text, (holds, distance)) in enumerate(expected.items()):
        differ = set(np.flatnonzero(holds).tolist()) ^ set(found[f"q{i}"].rows) | set(found[f"q{i}"].undecided)
        assert all(abs(distance[row]) <= 1e-6 for row in differ), (text, differ)


@pytest.mark.parametrize(
    ("case", "backend"), [*((c, "auto") for c in FOLDS_OF_CLASSES[1:3]), (FOLDS_OF_CLASSES[0], "cpsat")]
)
def test_pairs_of_folds_of_three_classes_are_those_of_the_whole_grid(case: str, backend: str) -> None:
    """Each class against each other one, and the largest difference of a probability; a solver needs lines above quotients."""
    model = fitted(case)
    said, shown = model.predict(GRID).reshape(6, 6, 6), model.predict_proba(GRID)[:, 1].reshape(6, 6, 6)
    text, expected = PAIRS, {}
    for axis, name in enumerate(NAMES[1:], 1):
        lines = np.moveaxis(said, axis, 0).reshape(6, -1)
        for one, other in itertools.combinations(range(3), 2):
            both = bool(((lines == one).any(axis=0) & (lines == other).any(axis=0)).any())
            if both or backend == "auto":
                text += f"query c{name}{one}{other}: find a, b such that a = b except {name}; class(a) = {one}; "
                text += f"class(b) = {other}\n"
                expected[f"c{name}{one}{other}"] = "found" if both else "none"
        reach = float((shown.max(axis=axis) - shown.min(axis=axis)).max())
        for word, gap in (("found", reach - 1e-6), ("none", reach + 1e-6)) if backend == "auto" else (("none", 1.0),):
            text += f"query {word}{name}: find a, b such that a = b except {name}; "
            text += f"prob(a, 1) - prob(b, 1) >= {gap:.9f}\n"
            expected[f"{word}{name}"] = word
    answers = ts.check_text(text, models={"m": ts.load(model)}, backend=backend, time_limit=60)
    assert {name: str(answers[name].verdict) for name in expected} == expected
    assert {"found", "none"} <= set(expected.values())


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
    with pytest.raises(ts.errors.UsageError, match="a share of inputs is measured by regions of one score"):
        ts.count(model, x, vary="p", gap=0.1)
    with pytest.raises(ts.errors.UsageError, match="the link `blended` has no loss for prices"):
        ts.repair(model, x.assign(y=y), label="y", vary="p", gap=0.1, output=tmp_path / "m.skops")
    assert ts.audit(model, x, vary="p", gap=[0.1]).records
    assert ts.audit(fitted("forests"), x, gap=[0.1]).records


def test_the_best_mean_of_ratios_is_that_of_the_whole_grid() -> None:
    model = fitted("folds of classes F sigmoid")
    highest = float(model.predict_proba(GRID)[:, 1].max())
    text = PAIRS + "query q: find a in m such that a.p >= 0; maximize prob(a, 1)\n"
    goal = ts.check_text(text, models={"m": ts.load(model)}, tolerance=0.001)["q"].result.objective
    assert goal is not None
    assert goal.bound is not None
    assert goal.value <= highest + 1e-12
    assert highest <= goal.bound + 1e-12
    assert goal.bound <= 1.0011 * goal.value


def test_certificates_say_that_they_leave_a_mean_of_ratios_out(tmp_path: Path) -> None:
    model = fitted("folds of classes H isotonic")
    highest = float(model.predict_proba(GRID)[:, 1].max())
    text = PAIRS + f"query yes: find a in m such that prob(a, 1) >= {highest - 0.01:.6f}\n"
    text += f"query no: find a in m such that prob(a, 1) >= {highest + 0.05:.6f}\n"
    answers = ts.check_text(text, models={"m": ts.load(model)}, certificates=tmp_path)
    assert {name: str(answers[name].verdict) for name in ("yes", "no")} == {"yes": "found", "no": "none"}
    (found,), (none,) = (answers[name].result.certificates for name in ("yes", "no"))
    assert not found.path
    assert "a probability of classes that were calibrated" in found.reason
    assert "a sum of probabilities" in (none.reason if not none.path else none.left_out[0])


def test_files_of_a_vote(tmp_path: Path) -> None:
    joblib, model = pytest.importorskip("joblib"), fitted("boosted")
    joblib.dump(model, tmp_path / "m.joblib")
    loaded = ts.load(tmp_path / "m.joblib", trust_pickle=True)
    assert loaded.ensemble.n_trees == ts.load(model).ensemble.n_trees
    skops = pytest.importorskip("skops.io")
    for case in ("forests", "stack", "bag of forests", "folds H isotonic"):
        skops.dump(fitted(case), tmp_path / "m.skops")
        assert ts.load(tmp_path / "m.skops").ensemble.n_trees == ts.load(fitted(case)).ensemble.n_trees


@since("sklearn", "1.5")
def test_a_cut_off_around_a_vote() -> None:
    from sklearn.model_selection import FixedThresholdClassifier

    model = fitted("boosted")
    fixed = FixedThresholdClassifier(model, threshold=0.35, response_method="predict_proba").fit(*rows("two"))
    assert list(counted(fixed, {"q": "class(a) = 1"})["q"].rows) == np.flatnonzero(fixed.predict(GRID)).tolist()


def test_what_is_no_mean_of_readable_models_is_refused_by_name() -> None:
    x, y = rows("two")
    _, three = rows("three")
    vote, stack = ensemble.VotingClassifier, ensemble.StackingClassifier
    ada = ("a", ensemble.AdaBoostClassifier(n_estimators=3, **voting()))
    against_all = stack(members("three", "F"), cv=2).fit(x, three)
    against_all.final_estimator_.solver = "liblinear"  # what older versions of scikit-learn fit
    refused = {
        "not functions of its scores": vote([ada, *members("three", "F")], voting="soft").fit(x, three),
        "GaussianNB is not supported": vote([("l", naive_bayes.GaussianNB()), *members("two", "F")], voting="soft").fit(
            x, y
        ),
        "stack over boosted models": stack(members("two", "FG"), cv=2).fit(x, y),
        "last model is RandomForestClassifier": stack(
            members("two", "F"), final_estimator=members("two", "F")[0][1], cv=2
        ).fit(x, y),
        "passthrough": stack(members("two", "F"), passthrough=True, cv=2).fit(x, y),
        "stack over boosted models applies": stack(members("three", "FX"), cv=2).fit(x, three),
        "each class with all others": against_all,
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


CURVES: list[Learnt] = [
    Sigmoid(-1.0, 0.0),
    Sigmoid(-7.5, 3.0, of_probability=True),
    Isotonic((-1.0, -0.5, 0.5, 0.5000000001), (0.1, 0.3, 0.3, 0.9)),
    Isotonic((0.2, 0.4, 0.9), (0.0, 0.25, 1.0), of_probability=True),
    Isotonic((0.5, 0.50000001, 0.9), (0.0, 0.75, 1.0), of_probability=True),
    Sigmoid(-400.0, 1.0),
    Sigmoid(-300.0, 150.0, of_probability=True),
]


def knots(curve: Learnt) -> NDArray[np.float64]:
    """The scores at which a function has a kink."""
    if isinstance(curve, Sigmoid):
        return np.zeros(0)
    at = np.array(curve.scores)
    return np.log(at / (1 - at)) if curve.of_probability else at


@pytest.mark.parametrize("curve", CURVES)
def test_lines_lie_above_functions_and_enclosures_hold_what_floats_say(curve: Learnt) -> None:
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
        add_value(value, Fraction(2), curve, Fraction(score))
        low_end, high_end = value.bounds(80)
        assert low_end <= high_end
        assert float(low_end) == pytest.approx(2 * float(plain(np.array([score]))[0]), abs=1e-6)
    ends = np.linspace(-3, 3, 4001)
    rises = np.diff(plain(ends)) / np.diff(ends)
    assert rises.max() <= float(steepest(curve)) * (1 + 1e-9)


def test_equal_probabilities_are_equal() -> None:
    """Terms of equal scores cancel, also those of sigmoids of probabilities, which no number of digits tells from 0."""
    text = PAIRS + "query same: find a, b such that a = b; prob(a) = prob(b)\n"
    # LightGBM gives its `feature_names_in_` to what is around it since 4.5.
    for case in ("folds X sigmoid", "boosted", *([] if before("lightgbm", "4.5") else ["folds L isotonic"])):
        assert str(ts.check_text(text, models={"m": ts.load(fitted(case))})["same"].verdict) == "found"


def test_the_score_of_a_stack_depends_on_the_number_of_rows() -> None:
    """BLAS adds the products of one row in another order than those of many, so that the last bit of a score is undecided."""
    model = fitted("stack of classes")
    read = ts.load(model)
    assert read.ensemble.accumulation.any_order
    exact = np.array([[float(score) for score in row] for row in read.ensemble.margins_exact(GRID.to_numpy())])
    bands = np.array([float(band) for band in read.ensemble.bands()])
    for size in (1, 2, 3, 7, len(GRID)):
        parts = [model.decision_function(GRID.iloc[at : at + size]) for at in range(0, len(GRID), size)]
        assert (np.abs(np.concatenate(parts) - exact) <= bands + np.spacing(np.abs(exact))).all()
    score = float(model.decision_function(GRID).max(axis=0)[2])
    text = (
        f'model m from "m"\ndata d from "d"\ndomain from d\nquery q: find a in m such that margin(a, 2) > {score:.60f}'
    )
    assert ts.check_text(text, models={"m": read}, data={"d": GRID})["q"].verdict != "found"
