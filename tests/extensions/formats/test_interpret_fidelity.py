"""The contract for explainable boosting machines: the same scores, probabilities and classes as the library on every input."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.extensions.formats.trained_interpret import MODELS, made
from tests.frontends import mutants
from tests.frontends.damage import refusals
from treesens.compiler.model import Ensemble
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.extensions.formats.interpret.frontend import InterpretFrontend
from treesens.frontends import load


def saved(name: str, folder: Path, detail: str = "all") -> Path:
    path = folder / "model.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its JSON may change
        made(name).to_json(str(path), detail=detail)
    return path


def read(data: bytes) -> Any:
    return InterpretFrontend().load(Path("model.json"), data)


@pytest.mark.parametrize("name", MODELS)
def test_trained_models_are_read_exactly(name: str, tmp_path: Path) -> None:
    conformance.check(load(made(name)), rows=150).raise_if_wrong()
    loaded = load(saved(name, tmp_path))
    assert loaded.ensemble.source.format == "interpret-json"
    assert loaded.ensemble.n_trees == len(made(name).term_features_)
    conformance.check(loaded, rows=150).raise_if_wrong()


@pytest.mark.parametrize("detail", ["minimal", "interpretable", "mergeable", "all"])
def test_every_detail_of_the_file_is_read(detail: str, tmp_path: Path) -> None:
    loaded, live = load(saved("two classes", tmp_path, detail)), load(made("two classes"))
    assert (loaded.ensemble.leaf_value == live.ensemble.leaf_value).all()
    assert loaded.ensemble.features == live.ensemble.features


def test_categories_have_the_names_of_the_table() -> None:
    features = {f.name: f.labels for f in load(made("two classes")).ensemble.features}
    assert set(features["town"]) == {"x", "y", "a b"}
    assert set(features["code"]) == {0, 1, 2, 3}  # the library knows them by their texts


def one_cut(e: Ensemble) -> Ensemble:
    """One cut a float higher: of a term with one feature, since those of pairs are coarser."""
    inner = np.flatnonzero((e.node_feature >= 0) & (e.category_set < 0) & np.isfinite(e.threshold))
    threshold = e.threshold.copy()
    threshold[inner[0]] = np.nextafter(threshold[inner[0]], np.inf)
    return replace(e, threshold=threshold)


@pytest.mark.parametrize(
    ("model", "mutant"),
    [
        ("two classes", mutants.other_inputs),
        ("two classes", mutants.other_comparison),
        ("value", one_cut),
        ("two classes", mutants.missing_turned),
        ("value", mutants.no_base),
        ("two classes", mutants.last_bits),
    ],
)
def test_wrong_readers_are_caught(model: str, mutant: Callable[[Ensemble], Ensemble]) -> None:
    loaded = load(made(model))
    assert not conformance.check(replace(loaded, ensemble=mutant(loaded.ensemble)), rows=150).ok


def test_the_largest_swing_of_a_feature_is_that_of_the_bins() -> None:
    """Against the library's own terms: of an additive model without pairs it is the range of the feature's scores."""
    import treesens as ts

    model = made("one bin each")
    found = ts.gap(load(model), vary=[["town"]])
    term = model.term_features_.index((model.feature_names_in_.index("town"),))
    scores = model.term_scores_[term][1:-1]  # without the bins of missing and of unseen values
    assert found.records[0]["largest_gap"] == pytest.approx(float(scores.max() - scores.min()), abs=1e-6)


def _set(*path: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(d: Any) -> None:
        for key in path[:-1]:
            d = d[key]
        d[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("version", value="2.0"), "version"),
        (_set("ebm", "outputs", 0, "link", value="probit"), "probit"),
        (_set("ebm", "outputs", 0, "classes", value=[1]), "1 classes"),
        (_set("ebm", "outputs", 0, "classes", value="01"), "list of classes"),
        (_set("ebm", "outputs", 0, "classes", value=[1, 1]), "two classes have the same name"),
        (_set("ebm", "outputs", value=[]), "several targets"),
        (_set("ebm", "intercept", value=[]), "0 outputs"),
        (_set("ebm", "intercept", value=[0.1, 0.2]), "2 scores"),
        (_set("ebm", "features", 0, "cuts", value=[[1.0, 1.0]]), "are not ascending"),
        (_set("ebm", "features", 0, "cuts", value=[[1.0, 2.0, 3.0]]), "shape"),
        (_set("ebm", "features", 0, "cuts", value=[]), "without bins"),
        (_set("ebm", "features", 0, "type", value="text"), "type `text`"),
        (_set("ebm", "features", 0, "name", value="town"), "called `town`"),
        (_set("ebm", "terms", 0, "scores", value="x"), "not a table"),
        (_set("ebm", "terms", 0, "scores", 1, value="+inf"), "not finite"),
        (_set("ebm", "terms", 0, "term_features", value=["nobody"]), "does not exist"),
        (_set("ebm", "terms", 0, "term_features", value=[]), "does not exist"),
        (_set("ebm", "whatever", value=1), "whatever"),
    ],
)
def test_wrong_contents_name_the_field(change: Callable[[Any], None], message: str, tmp_path: Path) -> None:
    document = json.loads(saved("two classes", tmp_path, "minimal").read_text())
    change(document)
    with pytest.raises(ModelError, match=message) as caught:
        read(json.dumps(document).encode())
    assert str(caught.value.place).startswith("model.json")


def test_an_estimator_that_is_not_fitted_is_refused() -> None:
    from interpret.glassbox import ExplainableBoostingClassifier

    with pytest.raises(ModelError, match="fit it first"):
        load(ExplainableBoostingClassifier())


def test_random_damage_gives_a_typed_error_or_a_valid_model(tmp_path: Path) -> None:
    assert refusals(saved("two classes", tmp_path, "minimal").read_bytes(), read) > 10


def test_a_row_has_the_scores_of_the_library(tmp_path: Path) -> None:
    """Through the data of a user: names of categories, and missing values."""
    import pandas as pd

    loaded = load(saved("two classes", tmp_path))
    names = [f.name for f in loaded.ensemble.features]
    rows = pd.DataFrame(np.zeros((3, len(names))), columns=names).assign(
        town=["x", "elsewhere", "y"], code=["0", "3", "7"]
    )
    rows.iloc[1, 0] = np.nan
    codes = rows.assign(town=[list(loaded.ensemble.features[names.index("town")].labels).index("x"), 9, 1])
    codes["town"] = [
        list(loaded.ensemble.features[names.index("town")].labels).index(t) if t != "elsewhere" else 3
        for t in rows["town"]
    ]
    codes["code"] = [0, 3, 4]
    expected = made("two classes")._predict_score(rows)
    assert (loaded.ensemble.margins_emulated(codes.to_numpy(dtype=float))[:, 0] == expected).all()
