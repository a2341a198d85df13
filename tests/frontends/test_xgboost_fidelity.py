"""The contract: same leaves and same margins as xgboost, bit for bit, for every kind of model; and wrong readers
fail.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.settings import BENCH, needs_bench
from tests.frontends import mutants
from tests.frontends.trained import MODELS, NAMES, numeric, target, train, xgboost
from tests.frontends.versions import before, since
from treesens.compiler.base.floats import NumberType, next_up_array
from treesens.compiler.model import Ensemble
from treesens.extensions.conformance import formats as conformance
from treesens.frontends import LoadedModel, load

FILES = sorted((BENCH / "models").glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["object", "json", "ubj"])
@pytest.mark.sampled
def test_trained_models_are_read_exactly(name: str, form: str, tmp_path: Path) -> None:
    made = MODELS[name]()
    if form == "object":
        loaded = load(made)
    else:
        path = tmp_path / f"model.{form}"
        made.save_model(path)
        loaded = load(path)
        assert loaded.ensemble.source.format == f"xgboost-{form}"
    conformance.check(loaded, rows=200).raise_if_wrong()


@pytest.mark.sampled
@needs_bench
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_papers_models_are_read_exactly(path: Path) -> None:
    report = conformance.check(load(path), rows=300)
    report.raise_if_wrong()
    assert report.leaf_ids_checked


def _next_threshold(e: Ensemble) -> Ensemble:
    return replace(e, threshold=next_up_array(e.threshold, NumberType.FLOAT32))


@pytest.mark.parametrize(
    ("model", "mutant"),
    [
        ("logistic", mutants.other_inputs),
        ("logistic", mutants.other_comparison),
        ("logistic", _next_threshold),
        ("logistic", mutants.one_threshold),
        ("logistic", mutants.no_base),
        ("logistic", mutants.missing_turned),
        ("logistic", mutants.last_bits),
        ("dart", mutants.no_weights),
        ("categories, partition", mutants.sets_to_the_other_side),
        ("categories, one-hot", mutants.unseen_turned),
    ],
)
def test_wrong_readers_are_caught(model: str, mutant: Callable[[Ensemble], Ensemble]) -> None:
    loaded = load(MODELS[model]())
    report = conformance.check(replace(loaded, ensemble=mutant(loaded.ensemble)), rows=200)
    assert not report.ok
    assert report.mismatches


def test_a_reader_that_keeps_the_decimals_of_thresholds_is_caught() -> None:
    booster = MODELS["logistic"]()
    loaded = load(booster)
    e = loaded.ensemble
    decimals = {
        np.float32(v): v
        for tree in json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
        for v in tree["split_conditions"]
    }
    threshold = np.array([decimals.get(np.float32(t), t) for t in e.threshold])
    assert (threshold != e.threshold).any()
    assert not conformance.check(replace(loaded, ensemble=replace(e, threshold=threshold)), rows=200).ok


_CUT = [pytest.param(score, marks=since("xgboost", "3.1")) for score in (1e-7, 1 - 1e-7)]


@pytest.mark.parametrize("score", [*_CUT, 0.0012, 0.1, 0.24083011, 0.3, 0.5, 0.777, 0.9999])
@pytest.mark.parametrize("shape", ["number", "text", "list"])
@pytest.mark.sampled
def test_base_score_in_all_shapes(score: float, shape: str, tmp_path: Path) -> None:
    document = json.loads(MODELS["logistic"]().save_raw("json"))
    stored: Any = {"number": score, "text": str(score), "list": f"[{score}]"}[shape]
    document["learner"]["learner_model_param"]["base_score"] = stored
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    loaded = load(path)
    ignored = shape == "list" and before("xgboost", "3.1")
    if ignored:
        with pytest.raises(Exception, match=r"XGBoost 3\.1 writes base_score in a way that .*, does not read"):
            loaded.margins(numeric().to_numpy(float))
    if shape == "number" or ignored:  # xgboost itself wants a text, or knows no list; these are compared through a text
        document["learner"]["learner_model_param"]["base_score"] = str(score)
        path.write_text(json.dumps(document))
        again = load(path)
        loaded = replace(loaded, margins=again.margins, leaf_ids=again.leaf_ids, predicts=again.predicts)
    conformance.check(loaded, rows=20).raise_if_wrong()


def test_logarithms_of_many_base_scores_match_the_library() -> None:
    rng = np.random.default_rng(0)
    for objective, scores in (("count:poisson", rng.exponential(size=40)), ("binary:logistic", rng.random(40))):
        document = json.loads(train({"objective": objective}, np.ones(400), numeric(), 1).save_raw("json"))
        for score in np.float32(scores):
            document["learner"]["learner_model_param"]["base_score"] = str(score)
            booster = xgboost.Booster()
            booster.load_model(bytearray(json.dumps(document).encode()))
            loaded = load(booster)
            row = np.zeros((1, 5))
            assert loaded.margins(row) == loaded.ensemble.margins_emulated(row)


def test_wrappers_stop_at_the_best_iteration_and_files_do_not(tmp_path: Path) -> None:
    wrapper = MODELS["early stopping"]()
    live, path = load(wrapper), tmp_path / "early.json"
    wrapper.save_model(path)
    file = load(path)
    assert live.ensemble.n_trees == wrapper.best_iteration + 1 < file.ensemble.n_trees
    assert live.notes == ()
    assert "best_iteration" in file.notes[0]
    rows = numeric()
    ours = live.ensemble.margins_emulated(rows.to_numpy(float))[:, 0]
    assert np.array_equal(ours, wrapper.predict(rows, output_margin=True))
    assert live.ensemble.source.options == {"rounds": str(wrapper.best_iteration + 1)}


def test_probabilities_are_those_of_the_library() -> None:
    rows = numeric()
    for name in ("logistic", "softprob", "poisson"):
        booster = MODELS[name]()
        e = load(booster).ensemble
        ours = e.probabilities(e.margins_emulated(rows.to_numpy(float)))
        theirs = booster.predict(xgboost.DMatrix(rows)).reshape(ours.shape)
        np.testing.assert_allclose(ours, theirs, rtol=2e-6)


@since("xgboost", "3.1")
def test_names_kinds_and_category_labels_come_along() -> None:
    e = load(MODELS["categories, both"]()).ensemble
    kinds = {f.name: (f.kind.value, f.categories, f.labels) for f in e.features}
    assert kinds["real"] == ("numeric", 0, None)
    assert kinds["whole"] == ("integer", 0, None)
    assert kinds["colour"] == ("categorical", 7, ("red", "green", "blue", "w", "x", "y", "z"))
    assert kinds["town"][2] is None
    assert kinds["code"][1:] == (30, tuple(range(10, 40)))


def test_decimals_close_to_halfway_are_rounded_once(tmp_path: Path) -> None:
    document = json.loads(MODELS["logistic"]().save_raw("json"))
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    path = tmp_path / "model.json"
    marked = json.dumps(document).replace(f"{tree['split_conditions'][0]}", "1.0000000596046447753906250000001", 1)
    path.write_text(marked)
    assert load(path).ensemble.threshold[0] == 1 + 2**-23
    assert np.float32(float("1.0000000596046447753906250000001")) == 1.0


def test_a_wrapper_with_another_missing_value_is_refused() -> None:
    wrapper = xgboost.XGBRegressor(n_estimators=2, missing=-999.0).fit(numeric(), target())
    with pytest.raises(Exception, match="treats the value -999"):
        load(wrapper)


def test_the_band_covers_the_difference_and_is_not_absurd() -> None:
    for name in ("logistic", "dart", "softprob", *([] if before("xgboost", "3.2") else ["vector leaves"])):
        loaded: LoadedModel = load(MODELS[name]())
        rows = numeric().to_numpy(float)
        exact = loaded.ensemble.margins_exact(rows)
        sums = loaded.margins(rows)
        worst = max(abs(float(sums[i]) - float(exact[i])) for i in np.ndindex(exact.shape))
        assert worst <= loaded.ensemble.band() < 1e-3


def _with_ids(order: list[int], name: str = "dart, many classes") -> bytes:
    """A saved model whose listed trees have these numbers, as far as there are any."""
    document = json.loads(MODELS[name]().save_raw("json"))
    booster = document["learner"]["gradient_booster"]
    trees = booster.get("gbtree", booster)["model"]["trees"]
    for tree, number in zip(trees, order, strict=False):
        tree["id"] = number
    return json.dumps(document).encode()


@pytest.mark.parametrize("name", ["dart, many classes", "softprob", "squared error"])
def test_a_tree_is_at_its_id_wherever_it_is_listed(name: str, tmp_path: Path) -> None:
    """The tree's number decides which output it feeds, which weight it has and which round it belongs to."""
    path = tmp_path / "m.json"
    path.write_bytes(_with_ids([2, 0, 4, 3, 1], name))
    other = load(MODELS[name]()).ensemble
    loaded = load(path)
    assert not np.array_equal(loaded.ensemble.leaf_value, other.leaf_value)
    conformance.check(loaded, rows=200).raise_if_wrong()


@pytest.mark.parametrize("order", [[1, 1], [-1], [10**6], [2**40]])
def test_ids_that_are_no_places_are_refused(order: list[int], tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(_with_ids(order))
    with pytest.raises(Exception, match=r"trees\[[01]\]\.id: .* (is not a position among|have the) "):
        load(path)


@pytest.mark.parametrize("parallel", [1, 2])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_every_option_has_its_rounds_for_every_kind_of_model(
    booster: str, classes: int, parallel: int, tmp_path: Path
) -> None:
    """Boosters x classes x trees per round x forms x variants; XGBoost predicts from the rounds that each names."""
    rows, label = numeric(), np.digitize(target(), [1.0, 2.0][: classes - 1])
    kind = {"rate_drop": 0.4, "one_drop": 1, "learning_rate": 0.9} if booster == "dart" else {}
    wrapper = xgboost.XGBClassifier(
        booster=booster, num_parallel_tree=parallel, n_estimators=12, max_depth=3, n_jobs=1, random_state=1, **kind
    )  # fmt: skip
    library = wrapper.fit(rows, label).get_booster()
    library.set_attr(best_iteration="6")  # as early stopping does
    best = wrapper.best_iteration + 1
    for form in ("json", "ubj"):
        path = tmp_path / f"m.{form}"
        wrapper.save_model(path)
        for option, rounds in ((None, 0), ("xgboost", 0), ("xgboost:all", 0), ("xgboost:best", best)):
            loaded = load(path, option)
            ours = loaded.ensemble.margins_emulated(rows.to_numpy(float))
            theirs = library.predict(xgboost.DMatrix(rows), iteration_range=(0, rounds), output_margin=True)
            assert np.array_equal(ours, theirs.reshape(ours.shape)), (form, option)
            assert (loaded.ensemble.tree_weight != 1).any() == (booster == "dart")
        conformance.check(loaded, rows=200).raise_if_wrong()
    # The wrapper predicts in place, where XGBoost adds the weighted trees in another order.
    np.testing.assert_allclose(ours, wrapper.predict(rows, output_margin=True).reshape(ours.shape), atol=1e-6)


def _newer(document: dict[str, Any], version: list[int]) -> dict[str, Any]:
    """A DART model as XGBoost 3.4 lays it out: a booster `gbtree`, the weights in its model."""
    booster = document["learner"]["gradient_booster"]
    model = {**booster["gbtree"]["model"], "weight_drop": booster["weight_drop"]}
    learner = {**document["learner"], "gradient_booster": {"name": "gbtree", "model": model}}
    return {"learner": learner, "version": version}


def test_weights_of_trees_where_xgboost_3_4_writes_them(tmp_path: Path) -> None:
    """The judge is the library that reads the same model in its own layout; an older one forgets the weights of the newer."""
    made = MODELS["dart"]()
    path = tmp_path / "m.json"
    path.write_text(json.dumps(_newer(json.loads(made.save_raw("json")), [3, 4, 1])))
    loaded, rows = load(path), numeric()
    ours = loaded.ensemble.margins_emulated(rows.to_numpy(float))[:, 0]
    theirs = made.predict(xgboost.DMatrix(rows), output_margin=True)
    assert np.array_equal(ours, theirs)
    if before("xgboost", "3.4"):
        assert not np.allclose(
            theirs, xgboost.Booster(model_file=path).predict(xgboost.DMatrix(rows), output_margin=True)
        )
        with pytest.raises(Exception, match=r"XGBoost 3\.4 writes the weights of trees in a way that [23]\."):
            loaded.margins(rows.to_numpy(float))


def test_weights_that_the_version_of_the_file_does_not_use_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(json.dumps(_newer(json.loads(MODELS["dart"]().save_raw("json")), [3, 2, 0])))
    with pytest.raises(Exception, match=r"XGBoost 3\.2\.0 does not use weights of trees here"):
        load(path)
