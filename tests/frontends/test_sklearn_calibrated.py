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
from treesens.errors import ModelError

calibration = pytest.importorskip("sklearn.calibration")
ensemble = pytest.importorskip("sklearn.ensemble")
selection = pytest.importorskip("sklearn.model_selection")

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


def test_files_cut_offs_searches_and_frozen_models(tmp_path: Path) -> None:
    skops, (x, y) = pytest.importorskip("skops.io"), rows()
    from sklearn.frozen import FrozenEstimator

    model = calibrated("forest", "isotonic")
    skops.dump(model, tmp_path / "m.skops")
    assert ts.load(tmp_path / "m.skops").ensemble.calibration == ts.load(model).ensemble.calibration
    frozen = calibration.CalibratedClassifierCV(FrozenEstimator(inner("forest", 1).fit(x, y))).fit(x, y)
    judged(frozen, "forest", ["0.25", "0.5"])
    fixed = selection.FixedThresholdClassifier(model, threshold=0.35).fit(x, y)
    assert list(counted(fixed, {"q": "class(a) = 1"})["q"].rows) == np.flatnonzero(fixed.predict(GRID)).tolist()
    search = selection.GridSearchCV(inner("forest", 1), {"max_depth": [2, 3]}, cv=2)
    outer = calibration.CalibratedClassifierCV(search, ensemble=False, cv=2).fit(x, y)
    judged(outer, "forest", ["0.4"])
    inside = selection.FixedThresholdClassifier(inner("forest", 1), threshold=0.2)
    around = calibration.CalibratedClassifierCV(inside, ensemble=False, cv=2).fit(x, y)
    assert list(counted(around, {"q": "class(a) = 1"})["q"].rows) == np.flatnonzero(around.predict(GRID)).tolist()


def test_what_is_no_function_of_one_score_is_refused() -> None:
    x, y = rows()
    made = calibration.CalibratedClassifierCV
    refused = {
        "more than two classes": made(inner("forest", 1), cv=2, ensemble=False).fit(x, y + (x.p > 6)),
        "the mean of 2 such ratios is no sum": made(inner("forest", 1), cv=2).fit(x, y + (x.p > 6)),
        "AdaBoost": made(ensemble.AdaBoostClassifier(n_estimators=3), cv=2, ensemble=False).fit(x, y),
        "turns the order": made(inner("forest", 1), cv=2, ensemble=False).fit(x, y),
        "not been fitted": made(inner("forest", 1)),
    }
    refused["turns the order"].calibrated_classifiers_[0].calibrators[0].a_ = 1.0
    for message, model in refused.items():
        with pytest.raises(ModelError, match=message) as caught:
            ts.load(model)
        assert caught.value.remedy
    with pytest.raises(ts.errors.TreesensError, match="leads by a probability"):
        counted(calibrated("forest", "sigmoid"), {"q": "class(a) = 1 by margin 2"})
