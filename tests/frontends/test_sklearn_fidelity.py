"""The contract for scikit-learn: same leaves and margins as the estimators on every input, from objects and skops files."""

from __future__ import annotations

import pickle
import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.frontends import mutants
from tests.frontends.damage import damaged
from tests.frontends.trained_sklearn import MODELS, RANDOM_TREES_TAKE_MISSING, REFUSED, numeric
from treesens.compiler.model import Ensemble, Task
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.frontends import load
from treesens.links import Identity

TAKES_MISSING = ("tree", "forest", "histogram", *(("extra trees", "random tree") if RANDOM_TREES_TAKE_MISSING else ()))


@cache
def made(name: str) -> Any:
    return MODELS[name]()


@pytest.mark.sampled
@pytest.mark.parametrize("name", MODELS)
def test_trained_models_are_read_exactly(name: str) -> None:
    loaded = load(made(name))
    report = conformance.check(loaded, rows=150)
    report.raise_if_wrong()
    assert report.leaf_ids_checked == (not name.startswith("histogram"))
    if name.startswith(TAKES_MISSING):
        assert all("infinity" in reason for reason in report.refused)


CODED = ("histogram, categories", "histogram, coded", "histogram, early")
"""Their rows hold raw categories behind the codes; the test above compares their margins."""


@pytest.mark.parametrize("name", [name for name in MODELS if name not in CODED])
def test_links_lead_from_margins_to_predictions(name: str) -> None:
    """Models whose probabilities are not a function of the margins say so, and decide as the library does."""
    estimator, loaded = made(name), load(made(name))
    rows = loaded.ensemble.grid()
    x = np.column_stack([np.random.default_rng(0).choice([*g.cuts, 0.0, 1.0], 30) for g in rows])
    margins, e = loaded.margins(x), loaded.ensemble
    frame = numeric()[:0].reindex(range(30)).fillna(0.0)
    frame.loc[:, :] = x
    given = frame if hasattr(estimator, "feature_names_in_") else x
    if not e.link.is_known:
        assert loaded.notes
        predicted = estimator.predict(given)
        assert [str(e.classes[c]) for c in e.predicted_classes(margins, x)] == [str(c) for c in predicted]
        return
    if e.task is Task.REGRESSION:
        expected = estimator.predict(given).reshape(30, -1)
    else:
        expected = estimator.predict_proba(given)
        assert [str(c) for c in estimator.classes_] == [str(c) for c in e.classes]
    ours = e.probabilities(margins)
    ours = np.column_stack([1 - ours, ours]) if ours.shape[1] == 1 and expected.shape[1] == 2 else ours
    assert ours == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_forests_predict_probabilities_themselves() -> None:
    e = load(made("forest, two classes")).ensemble
    assert (e.n_outputs, e.average, e.link, e.task) == (2, 7, Identity(), Task.BINARY)
    rows = numeric().to_numpy()[:20]
    assert all(abs(sum(row) - 1) < 1e-12 for row in e.margins_exact(rows))


@pytest.mark.parametrize(
    ("model", "mutant"),
    [
        ("forest, four classes", mutants.other_inputs),
        ("forest, four classes", mutants.other_comparison),
        ("forest, four classes", mutants.rounded_thresholds),
        ("forest, four classes", mutants.no_average),
        ("forest, two classes", mutants.missing_turned),
        ("tree, value", mutants.last_bits),
        ("boosting, two classes", mutants.no_weights),
        ("boosting, two classes", mutants.no_base),
        ("histogram, value", mutants.other_inputs),
        ("histogram, value", mutants.other_comparison),
        ("histogram, value", mutants.missing_turned),
        ("histogram, value", mutants.no_base),
        ("histogram, categories", mutants.sets_to_the_other_side),
        ("histogram, categories", mutants.unseen_turned),
        ("ada, four classes", mutants.last_bits),
    ],
)
def test_wrong_readers_are_caught(model: str, mutant: Callable[[Ensemble], Ensemble]) -> None:
    loaded = load(made(model))
    assert not conformance.check(replace(loaded, ensemble=mutant(loaded.ensemble)), rows=150).ok


@pytest.mark.parametrize("reason", REFUSED)
def test_other_estimators_are_refused_by_name(reason: str) -> None:
    with pytest.raises(ModelError, match=reason) as caught:
        load(REFUSED[reason]())
    assert caught.value.remedy
    assert caught.value.place


SKOPS = [
    "tree, two classes",
    "forest, four classes",
    "boosting, four classes",
    "histogram, categories",
    "ada, two classes",
]


@pytest.mark.parametrize("name", SKOPS)
def test_skops_files_are_read_without_running_them(name: str, tmp_path: Path) -> None:
    skops_io = pytest.importorskip("skops.io", reason="pip install treesens[skops]")
    path = tmp_path / "model.skops"
    skops_io.dump(made(name), path)
    loaded = load(path)
    assert loaded.ensemble.source.format == "sklearn-skops"
    conformance.check(loaded, rows=50).raise_if_wrong()


class Bomb:
    """A pickle that leaves a trace when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("form", ["pickle", "protocol 2", "joblib", "compressed"])
@pytest.mark.parametrize("named", [None, "sklearn", "xgboost"])
def test_pickles_are_never_opened_without_the_flag(form: str, named: str | None, tmp_path: Path) -> None:
    import joblib

    trace, path = tmp_path / "trace", tmp_path / "model.json"
    match form:
        case "pickle":
            path.write_bytes(pickle.dumps(Bomb(trace)))
        case "protocol 2":
            path.write_bytes(pickle.dumps(Bomb(trace), protocol=2))
        case "joblib":
            joblib.dump(Bomb(trace), path)
        case _:
            joblib.dump(Bomb(trace), path, compress=3)
    with pytest.raises(ModelError, match="can run any code") as caught:
        load(path, named)
    assert "--trust-pickle" in caught.value.remedy
    assert not trace.exists()


def test_protocols_0_and_1_are_not_known_as_models(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    for protocol in (0, 1):
        path.write_bytes(pickle.dumps(Bomb(tmp_path / "trace"), protocol=protocol))
        for trust in (False, True):
            with pytest.raises(ModelError, match="not a model of a known format"):
                load(path, trust_pickle=trust)
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("compress", [0, 3])
def test_trusted_pickles_are_read(compress: int, tmp_path: Path) -> None:
    import joblib

    path = tmp_path / "forest.joblib"
    joblib.dump(made("forest, two classes"), path, compress=compress)
    loaded = load(path, trust_pickle=True)
    assert (loaded.ensemble.name, loaded.ensemble.source.format) == ("forest", "sklearn-pickle")
    assert len(loaded.ensemble.source.sha256) == 64
    conformance.check(loaded, rows=50).raise_if_wrong()


def test_damaged_trusted_pickles_give_a_typed_error(tmp_path: Path) -> None:
    data, path = pickle.dumps(made("tree, two classes")), tmp_path / "model.pkl"
    for end in range(2, len(data) - 1, max(1, len(data) // 60)):
        path.write_bytes(data[:end])
        with pytest.raises(ModelError):
            load(path, trust_pickle=True)


def test_damaged_skops_files_give_a_typed_error_or_a_valid_model(tmp_path: Path) -> None:
    skops_io = pytest.importorskip("skops.io", reason="pip install treesens[skops]")
    data, path, rng, refused = skops_io.dumps(made("tree, four classes")), tmp_path / "model.skops", random.Random(3), 0
    for _ in range(60):
        path.write_bytes(b"PK\x03\x04" + damaged(data[4:], rng))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                load(path).ensemble.validate()
        except ModelError:
            refused += 1
    assert refused > 10


def test_other_archives_are_refused(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.txt", "tree")
    with pytest.raises(ModelError, match="not a skops file"):
        load(path)


def test_a_model_that_the_installed_version_cannot_predict_with_says_so() -> None:
    """Models of older versions lack attributes that a newer one reads."""
    from sklearn.ensemble import RandomForestClassifier

    rows = numeric().fillna(0)
    forest = RandomForestClassifier(2, max_depth=2).fit(rows, rows.iloc[:, 0] > 0)
    loaded = load(forest)
    del forest.estimators_[0].n_outputs_
    with pytest.raises(ModelError, match=r"refused to predict: .*n_outputs_") as caught:
        loaded.margins(np.zeros((1, loaded.ensemble.n_features)))
    assert "save the model again" in str(caught.value.remedy)
