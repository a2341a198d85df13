"""Calibrated classifiers of scikit-learn: its own predict_proba and predict judge every comparison, flat steps too."""

from __future__ import annotations

import itertools
import operator
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.frontends.versions import since
from treesens.errors import ModelError

calibration = pytest.importorskip("sklearn.calibration")
ensemble = pytest.importorskip("sklearn.ensemble")
selection = pytest.importorskip("sklearn.model_selection")

pytestmark = pytest.mark.extensions

NAMES = ["p", "q"]
GRID = pd.DataFrame(np.array(list(itertools.product(range(8), repeat=2))), columns=NAMES)
SIGNS = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}


def rows(seed: int = 1) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.integers(0, 8, (150, 2))
    return pd.DataFrame(x, columns=NAMES), (x.sum(axis=1) + random.normal(0, 2, 150) > 8).astype(int)


def inner(kind: str, seed: int) -> Any:
    match kind:
        case "forest":
            return ensemble.RandomForestClassifier(10, max_depth=4, random_state=seed)
        case "histogram":
            return ensemble.HistGradientBoostingClassifier(max_iter=5)
        case "boosted":
            return ensemble.GradientBoostingClassifier(n_estimators=5, random_state=seed)
        case "exponential":
            return ensemble.GradientBoostingClassifier(n_estimators=5, loss="exponential", random_state=seed)
        case "pipeline":
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler

            return make_pipeline(StandardScaler(), inner("forest", seed))
        case "xgboost":
            xgboost = pytest.importorskip("xgboost")
            return xgboost.XGBClassifier(n_estimators=5, max_depth=3, random_state=seed)
        case "lightgbm":
            lightgbm = pytest.importorskip("lightgbm")
            return lightgbm.LGBMClassifier(n_estimators=5, min_child_samples=5, n_jobs=1, verbosity=-1)
    raise ValueError(kind)


@cache
def calibrated(kind: str, method: str, seed: int = 1) -> Any:
    x, y = rows(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = calibration.CalibratedClassifierCV(inner(kind, seed), method=method, ensemble=False, cv=3)
        return made.fit(x, y)


def counted(model: Any, questions: dict[str, str]) -> dict[str, Any]:
    """The rows of the grid that satisfy each constraint."""
    text = 'model m from "m"\ndata d from "d"\ndomain from d\n'
    text += "".join(f"query {name}: count rows of d as a such that {asked}\n" for name, asked in questions.items())
    answers = ts.check_text(text, models={"m": ts.load(model)}, data={"d": GRID})
    return {name: answers[name].count for name in questions}


def judged(model: Any, kind: str, cuts: list[str]) -> None:
    """Every comparison of the probability with every cut is that of the library: but where both agree to the last digits."""
    shown = model.predict_proba(GRID)[:, 1]
    asked = {f"q{i}{k}": (sign, cut) for i, cut in enumerate(cuts) for k, sign in enumerate(SIGNS)}
    found = counted(model, {name: f"prob(a) {sign} {cut}" for name, (sign, cut) in asked.items()})
    digits = 1e-6 if kind == "xgboost" else 1e-12
    for name, (sign, cut) in asked.items():
        expected = set(np.flatnonzero(SIGNS[sign](shown, float(cut))).tolist())
        differ = (expected ^ set(found[name].rows)) | set(found[name].undecided)
        assert all(abs(shown[i] - float(cut)) <= digits for i in differ), (sign, cut, differ)


KINDS = ["forest", "histogram", "boosted", "exponential", "pipeline", "xgboost", "lightgbm"]


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled
def test_probabilities_are_those_of_the_library(kind: str, method: str) -> None:
    model = calibrated(kind, method)
    shown = np.unique(model.predict_proba(GRID)[:, 1])
    between = (shown[1:] + shown[:-1]) / 2
    cuts = sorted({f"{v:.12f}" for v in (*shown, *between) if 0 < v < 1} | {"0.01", "0.3", "0.5", "0.99"})
    judged(model, kind, cuts)
    loaded = ts.load(model)
    e, grid = loaded.ensemble, GRID.to_numpy(float)
    for margins in (loaded.margins(grid), e.margins_emulated(grid)):
        assert e.probabilities(margins)[:, 0] == pytest.approx(model.predict_proba(GRID)[:, 1], abs=3e-7)
        assert e.predicted_classes(np.asarray(margins)).tolist() == model.predict(GRID).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_flat_steps_knots_and_clipped_ends_are_exact(seed: int) -> None:
    """The cuts are the very values that the isotonic function takes on its flat steps, as the library prints them."""
    model = calibrated("boosted", "isotonic", seed)
    knots = model.calibrated_classifiers_[0].calibrators[0]
    values = knots.y_thresholds_
    flat = {float(v) for v in values[1:][np.diff(values) == 0]}
    shown = model.predict_proba(GRID)[:, 1]
    cuts = [
        f"{np.format_float_positional(v)}" for v in sorted({*flat, float(values[0]), float(values[-1])}) if 0 < v < 1
    ]
    scores, ends = np.ravel(model.calibrated_classifiers_[0].estimator.decision_function(GRID)), knots.X_thresholds_
    # Well inside: a score on a knot is off it by what the library rounds.
    on_flat = np.isin(shown, list(flat)) & (np.abs(scores[:, None] - ends[None, :]).min(axis=1) > 1e-9)
    assert len(np.unique(shown[on_flat])) >= 2
    asked = {f"q{i}{k}": (sign, cut) for i, cut in enumerate(cuts) for k, sign in enumerate(SIGNS)}
    found = counted(model, {name: f"prob(a) {sign} {cut}" for name, (sign, cut) in asked.items()})
    for name, (sign, cut) in asked.items():
        holds = SIGNS[sign](shown, float(cut))
        assert not set(found[name].undecided) & set(np.flatnonzero(on_flat).tolist())
        assert [i for i in found[name].rows if on_flat[i]] == np.flatnonzero(holds & on_flat).tolist()


@pytest.mark.parametrize("kind", ["forest", "histogram", "xgboost"])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_classes_leads_and_impossible_probabilities(kind: str, method: str) -> None:
    model = calibrated(kind, method)
    shown = model.predict_proba(GRID)[:, 1]
    expected = {
        "class(a) = 1": model.predict(GRID) == 1,
        "not class(a) = 1": model.predict(GRID) == 0,
        "class(a) = 0": model.predict(GRID) == 0,
        "class(a) = 1 by factor 2": shown >= 2 * (1 - shown),
        "class(a) = 0 by factor 3": 1 - shown >= 3 * shown,
        "prob(a, 0) >= 0.75": 1 - shown >= 0.75,
        "prob(a) >= 1.5": np.zeros(64, bool),
        "prob(a) < 1.5": np.ones(64, bool),
        "prob(a) = 0.123456": np.zeros(64, bool),
        "prob(a) != 0.123456": np.ones(64, bool),
        "prob(a) > 0.2 and prob(a) < 0.8 or a.p = 3": (shown > 0.2) & (shown < 0.8) | (GRID.p == 3).to_numpy(),
    }
    found = counted(model, {f"q{i}": text for i, text in enumerate(expected)})
    for i, (text, rows_of) in enumerate(expected.items()):
        assert list(found[f"q{i}"].rows) == np.flatnonzero(rows_of).tolist(), text


@pytest.mark.parametrize("backend", ["native", "cpsat", "highs", "z3"])
def test_pairs_and_proofs(backend: str) -> None:
    model = calibrated("histogram", "isotonic")
    table = model.predict_proba(GRID)[:, 1].reshape(8, 8)
    spread = table.max(axis=1) - table.min(axis=1)
    row = int(spread.argmax())
    high, low = float(table[row].max()), float(table[row].min())
    text = 'model m from "m"\nfeature p: integer in [0, 7]\nfeature q: integer in [0, 7]\n'
    for name, up in (("yes", high - 1e-6), ("no", float(table.max()) + 1e-6)):
        text += f"query {name}: find a, b such that a = b except q; prob(a) >= {up:.9f}; prob(b) <= {low + 1e-6:.9f}\n"
    answers = ts.check_text(text, models={"m": ts.load(model)}, backend=backend)
    assert str(answers["yes"].verdict) == "found"
    assert str(answers["no"].verdict) == "none"
    points = answers["yes"].points
    one, two = (model.predict_proba(pd.DataFrame([points[n]])[NAMES])[0, 1] for n in "ab")
    assert one >= high - 1e-6
    assert two <= low + 1e-6


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("kind", ["forest", "histogram", "xgboost"])
@pytest.mark.parametrize("cut", [None, 0.3])
def test_audits_count_the_rows_that_the_library_flips(kind: str, method: str, cut: float | None) -> None:
    model, (x, _) = calibrated(kind, method), rows()
    chance = model.predict_proba(GRID)[:, 1].reshape(8, 8)
    centre = cut or 0.5
    found = ts.audit(model, x, gap=[0.05, 0.1], threshold=cut)
    for varied, gap, flipped in zip(found["varied"], found["gap"], found["rows_flipped"], strict=True):
        axis = NAMES.index(varied)
        high, low = chance.max(axis=axis, keepdims=True), chance.min(axis=axis, keepdims=True)
        flips = np.broadcast_to((high >= centre + gap) & (low <= centre - gap), (8, 8))
        assert flipped == int(flips[tuple(x.to_numpy().T)].sum())


def test_files_and_searches(tmp_path: Path) -> None:
    skops, (x, y) = pytest.importorskip("skops.io"), rows()
    model = calibrated("forest", "isotonic")
    skops.dump(model, tmp_path / "m.skops")
    assert ts.load(tmp_path / "m.skops").ensemble.link == ts.load(model).ensemble.link
    search = selection.GridSearchCV(inner("forest", 1), {"max_depth": [2, 3]}, cv=2)
    outer = calibration.CalibratedClassifierCV(search, ensemble=False, cv=2).fit(x, y)
    judged(outer, "forest", ["0.4"])


@since("sklearn", "1.6")
def test_frozen_models() -> None:
    from sklearn.frozen import FrozenEstimator

    x, y = rows()
    frozen = calibration.CalibratedClassifierCV(FrozenEstimator(inner("forest", 1).fit(x, y))).fit(x, y)
    judged(frozen, "forest", ["0.25", "0.5"])


@since("sklearn", "1.5")
def test_cut_offs_around_and_inside() -> None:
    model, (x, y) = calibrated("forest", "isotonic"), rows()
    fixed = selection.FixedThresholdClassifier(model, threshold=0.35).fit(x, y)
    assert list(counted(fixed, {"q": "class(a) = 1"})["q"].rows) == np.flatnonzero(fixed.predict(GRID)).tolist()
    inside = selection.FixedThresholdClassifier(inner("forest", 1), threshold=0.2)
    around = calibration.CalibratedClassifierCV(inside, ensemble=False, cv=2).fit(x, y)
    assert list(counted(around, {"q": "class(a) = 1"})["q"].rows) == np.flatnonzero(around.predict(GRID)).tolist()


def test_what_is_no_function_of_one_score_is_refused() -> None:
    x, y = rows()
    made = calibration.CalibratedClassifierCV
    refused = {
        "AdaBoost": made(ensemble.AdaBoostClassifier(n_estimators=3), cv=2, ensemble=False).fit(x, y),
        "does not preserve the order": made(inner("forest", 1), cv=2, ensemble=False).fit(x, y),
        "not been fitted": made(inner("forest", 1)),
    }
    refused["does not preserve the order"].calibrated_classifiers_[0].calibrators[0].a_ = 1.0
    for message, model in refused.items():
        with pytest.raises(ModelError, match=message) as caught:
            ts.load(model)
        assert caught.value.remedy
    with pytest.raises(ts.errors.TreesensError, match="lead by a probability"):
        counted(calibrated("forest", "sigmoid"), {"q": "class(a) = 1 by margin 2"})


# --- more than two classes -----------------------------------------------------------------------------------------------

OF_CLASSES: list[Any] = ["forest", "histogram", "boosted", "pipeline"]
# LightGBM has a `decision_function` since then; before, what is calibrated is the softmax of all scores, which is refused.
OF_CLASSES.append(pytest.param("lightgbm", marks=since("lightgbm", "4.6")))


def classes_of(seed: int, count: int = 3) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.integers(0, 8, (240, 2))
    y = np.digitize(x.sum(axis=1) + random.normal(0, 2, 240), np.linspace(3, 11, count + 1)[1:-1])
    return pd.DataFrame(x, columns=NAMES), y


@cache
def of_classes(kind: str, method: str, seed: int = 1, count: int = 3) -> Any:
    x, y = classes_of(seed, count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = calibration.CalibratedClassifierCV(inner(kind, seed), method=method, ensemble=False, cv=3)
        return made.fit(x, np.array(["low", "middle", "high", "top"])[y])


def surely(shown: np.ndarray) -> np.ndarray:
    """Rows of which the best probability is ahead by more than its last digits."""
    best = np.sort(shown, axis=1)
    return best[:, -1] - best[:, -2] > 1e-9


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("kind", OF_CLASSES)
@pytest.mark.sampled
def test_several_classes_are_those_of_the_library(kind: str, method: str) -> None:
    from treesens.compiler.query.predicted_classes import sure_classes
    from treesens.extensions.conformance import formats as conformance

    for seed in range(3):
        model = of_classes(kind, method, seed, 3 + seed % 2)
        loaded = ts.load(model)
        e, grid = loaded.ensemble, GRID.to_numpy(float)
        shown, predicted = model.predict_proba(GRID), model.predict(GRID).tolist()
        for margins in (np.asarray(loaded.margins(grid)), e.margins_emulated(grid)):
            assert [e.classes[c] for c in e.predicted_classes(margins)] == predicted
            sure = sure_classes(e, margins)
            assert [c is not None for c in sure] == surely(shown).tolist()
        conformance.check(loaded, rows=60).raise_if_wrong()
        asked = {
            f"{p}{i}": f"{no}class(a) = {c}" for i, c in enumerate(e.classes) for p, no in (("q", ""), ("n", "not "))
        }
        found = counted(model, asked)
        for i, label in enumerate(e.classes):
            for name, wanted in ((f"q{i}", True), (f"n{i}", False)):
                expected = {r for r in range(64) if (predicted[r] == label) == wanted}
                assert expected ^ set(found[name].rows) <= set(found[name].undecided)
                assert not set(found[name].undecided) & set(np.flatnonzero(surely(shown)).tolist())


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("kind", ["forest", "histogram"])
def test_a_class_that_no_input_has_is_proved(kind: str, method: str) -> None:
    """For every column of the grid and every class: the pair, or none, that the library's own classes say."""
    model = of_classes(kind, method)
    table, sure = model.predict(GRID).reshape(8, 8), surely(model.predict_proba(GRID)).reshape(8, 8)
    text = 'model m from "m"\nfeature p: integer in [0, 7]\nfeature q: integer in [0, 7]\n'
    expected = {}
    for p in range(0, 8, 3):
        if not sure[p].all():
            continue
        for label in model.classes_:
            text += f"query is_{p}_{label}: find a in m such that class(a) = {label}; a.p = {p}\n"
            expected[f"is_{p}_{label}"] = "found" if (table[p] == label).any() else "none"
        text += f"query turns_{p}: find a, b such that a = b except q; class(a) != class(b); a.p = {p}\n"
        expected[f"turns_{p}"] = "found" if len(set(table[p])) > 1 else "none"
    answers = ts.check_text(text, models={"m": ts.load(model)})
    assert {name: str(answers[name].verdict) for name in expected} == expected
    assert {"found", "none"} <= set(expected.values())


def test_ties_of_calibrated_scores_are_open() -> None:
    """Flat steps of two functions at one height: the library takes the first class, which its last digits could change."""
    model = of_classes("boosted", "isotonic", 7)
    for calibrator in model.calibrated_classifiers_[0].calibrators[:2]:
        calibrator.y_thresholds_[:] = 0.5
        calibrator._build_f(calibrator.X_thresholds_, calibrator.y_thresholds_)
    model.calibrated_classifiers_[0].calibrators[2].y_thresholds_[:] = 0.25
    last = model.calibrated_classifiers_[0].calibrators[2]
    last._build_f(last.X_thresholds_, last.y_thresholds_)
    assert set(model.predict(GRID)) == {model.classes_[0]}
    text = 'model m from "m"\n' + "".join(
        f"query q{i}: find a in m such that class(a) = {label}\n" for i, label in enumerate(model.classes_)
    )
    answers = ts.check_text(text, models={"m": ts.load(model)})
    assert [str(answers[f"q{i}"].verdict) for i in range(3)] == ["unknown", "none", "none"]


def test_audits_of_several_classes_count_the_rows_that_flip() -> None:
    model, (x, _) = of_classes("forest", "sigmoid"), classes_of(1)
    assert surely(model.predict_proba(GRID)).all()
    table = model.predict(GRID).reshape(8, 8)
    found = ts.audit(model, x)
    assert len(found) > 0
    for varied, pair, flipped in zip(found["varied"], found["classes"], found["rows_flipped"], strict=True):
        axis, (one, two) = NAMES.index(varied), pair.split(" / ")
        both = (table == one).any(axis=axis, keepdims=True) & (table == two).any(axis=axis, keepdims=True)
        assert flipped == int(np.broadcast_to(both, (8, 8))[tuple(x.to_numpy().T)].sum())


def test_what_several_classes_have_not_is_said_by_name(tmp_path: Path) -> None:
    model = of_classes("forest", "isotonic")
    loaded = ts.load(model)
    assert any("divided by their sum" in note for note in loaded.notes)
    for asked, message in {
        "prob(a, low) >= 0.5": "calibrated scores of its classes",
        "margin(a, low) >= 0.5": "calibrated scores of its classes",
        "class(a) = low by factor 2": "calibrated scores of classes",
    }.items():
        with pytest.raises(ts.errors.TreesensError, match=message):
            ts.check_text(f'model m from "m"\nquery q: find a in m such that {asked}', models={"m": loaded})
    with pytest.raises(ts.errors.UsageError, match="calibrated scores of its classes"):
        ts.gap(model, vary=["p"])
    skops = pytest.importorskip("skops.io")
    skops.dump(model, tmp_path / "m.skops")
    again = ts.load(tmp_path / "m.skops").ensemble
    assert (
        again.margins_emulated(GRID.to_numpy(float)).tolist()
        == loaded.ensemble.margins_emulated(GRID.to_numpy(float)).tolist()
    )


def test_several_classes_that_are_no_functions_of_one_score_each_are_refused() -> None:
    x, y = classes_of(1)
    made = calibration.CalibratedClassifierCV
    refused = {
        "a softmax": (made(inner("xgboost", 1), cv=2, ensemble=False).fit(x, y), "calibrate a forest"),
        "does not preserve the order": (made(inner("forest", 1), cv=2, ensemble=False).fit(x, y), "the wrapped model"),
        "AdaBoost": (
            made(ensemble.AdaBoostClassifier(n_estimators=3), cv=2, ensemble=False).fit(x, y),
            "the wrapped model",
        ),
    }
    refused["does not preserve the order"][0].calibrated_classifiers_[0].calibrators[1].a_ = 1.0
    missing = made(inner("forest", 1), cv=2, ensemble=False).fit(x, y)
    missing.calibrated_classifiers_[0].calibrators.pop()
    refused["2 calibrators for 3 scores"] = (missing, "fit it again")
    for message, (model, remedy) in refused.items():
        with pytest.raises(ModelError, match=message) as caught:
            ts.load(model)
        assert remedy in caught.value.remedy
