"""The contract for LightGBM: same leaves and margins as the library on every input, from text, JSON and live objects."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.command import run_command
from tests.frontends import mutants
from tests.frontends.damage import refusals
from tests.frontends.trained import target
from tests.frontends.trained_lightgbm import MODELS, frame, lightgbm, numeric, train
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.compiler.model import Ensemble
from treesens.data.tables import align_table, read_table
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.frontends import LoadedModel, load
from treesens.frontends.lightgbm.frontend import LightGBMFrontend
from treesens.frontends.lightgbm.model import ZERO_BAND


@cache
def booster(name: str) -> Any:
    made = MODELS[name]()
    return getattr(made, "booster_", made)


def read(data: bytes) -> Any:
    return LightGBMFrontend().load(Path("model.txt"), data)


@pytest.mark.parametrize("name", MODELS)
def test_trained_models_are_read_exactly(name: str) -> None:
    report = conformance.check(load(MODELS[name]()), rows=150)
    report.raise_if_wrong()
    assert report.leaf_ids_checked
    assert not report.refused


@pytest.mark.parametrize("name", MODELS)
def test_files_say_the_same_as_the_object(name: str, tmp_path: Path) -> None:
    text, dumped = tmp_path / "model.txt", tmp_path / "model.json"
    booster(name).save_model(text)
    dumped.write_text(json.dumps(booster(name).dump_model()))
    one, other = load(text), load(dumped)
    assert (one.ensemble.source.format, other.ensemble.source.format) == ("lightgbm-text", "lightgbm-json")
    for field in fields(Ensemble):
        if field.name not in ("source", "name"):
            left, right = getattr(one.ensemble, field.name), getattr(other.ensemble, field.name)
            assert np.array_equal(left, right) if isinstance(left, np.ndarray) else left == right, field.name
    # The library cannot load its own dump: the text stands in for it.
    conformance.check_ensemble(other.ensemble, one.margins, one.leaf_ids, rows=50).raise_if_wrong()
    with pytest.raises(ModelError, match="cannot load the JSON of dump_model"):
        other.margins(np.zeros((1, other.ensemble.n_features)))


@pytest.mark.parametrize(
    ("model", "mutant"),
    [
        ("binary", mutants.other_inputs),
        ("binary", mutants.other_comparison),
        ("binary", mutants.rounded_thresholds),
        ("binary", mutants.one_threshold),
        ("binary", mutants.missing_turned),
        ("binary", mutants.last_bits),
        ("binary, zero as missing", mutants.zeros_not_missing),
        ("binary, no missing", mutants.missing_turned),
        ("random forest", mutants.no_average),
        ("categories", mutants.sets_to_the_other_side),
        ("categories", mutants.unseen_turned),
        ("categories", mutants.codes_not_truncated),
    ],
)
def test_wrong_readers_are_caught(model: str, mutant: Callable[[Ensemble], Ensemble]) -> None:
    loaded = load(booster(model))
    wrong = mutant(loaded.ensemble)
    assert not conformance.check(replace(loaded, ensemble=wrong), rows=150).ok


@pytest.mark.parametrize("name", MODELS)
def test_links_lead_from_margins_to_predictions(name: str) -> None:
    loaded = load(booster(name))
    rows = np.random.default_rng(0).normal(size=(20, loaded.ensemble.n_features))
    predicted = booster(name).predict(rows).reshape(20, -1)
    if not loaded.ensemble.link.is_known:
        assert any("use margins" in note for note in loaded.notes)
    else:
        assert loaded.ensemble.probabilities(loaded.margins(rows)) == pytest.approx(predicted, rel=1e-12)


def test_zeros_that_are_missing_have_cells_of_their_own() -> None:
    e = load(booster("binary, zero as missing")).ensemble
    assert e.zero_apart.any()
    feature = int(e.node_feature[e.zero_apart][0])
    grid = e.grid()[feature]
    cells = grid.cell_of([-1e-34, -ZERO_BAND, 0.0, ZERO_BAND, 1e-34])
    assert cells[1] == cells[2] == cells[3]
    assert cells[0] < cells[1] < cells[4]
    boxes = e.on(e.grid(missing=True)).leaf_boxes()
    assert (boxes.mask >= 0).any()
    assert boxes.reachable.any()


def test_no_cut_lies_inside_the_zero_band(tmp_path: Path) -> None:
    """Thresholds below 1e-35 cannot tell values apart that the library reads as zero."""
    text = booster("binary").model_to_string().encode()
    tree = text.split(b"threshold=")[1].split(b"\n")[0].split(b" ")
    for threshold in (b"5e-36", b"-5e-36", b"0", b"-1e-35", b"1e-35"):
        path = tmp_path / "model.txt"
        changed = text.replace(b" ".join(tree), b" ".join([threshold, *tree[1:]]), 1)
        path.write_bytes(re.sub(rb"tree_sizes=.*\n", b"", changed))
        loaded = load(path)
        conformance.check(loaded, rows=50).raise_if_wrong()
        blind = conformance.check(replace(loaded, ensemble=mutants.no_zero_band(loaded.ensemble)), rows=50)
        assert not blind.ok
        for grid in loaded.ensemble.grid():
            assert not ((grid.cuts > -ZERO_BAND) & (grid.cuts <= ZERO_BAND)).any()


@pytest.mark.parametrize("threshold", ["0", "1e-35", "-1e-35"])
def test_a_missing_value_is_a_zero_at_thresholds_around_it(threshold: str, tmp_path: Path) -> None:
    """Without missing values LightGBM reads NaN as 0, which goes left at the threshold 0; training writes no such threshold."""
    text = re.sub(r"tree_sizes=.*\n", "", booster("binary, no missing").model_to_string())
    text = re.sub(r"threshold=.*", lambda m: "threshold=" + " ".join([threshold] * len(m[0].split(" "))), text)
    (tmp_path / "m.txt").write_text(text)
    loaded = load(tmp_path / "m.txt")
    rows = np.random.default_rng(0).choice([np.nan, -1.0, -1e-35, 0.0, 1e-35, 1.0], (60, loaded.ensemble.n_features))
    assert np.array_equal(
        loaded.ensemble.margins_emulated(rows).reshape(-1),
        lightgbm.Booster(model_file=str(tmp_path / "m.txt")).predict(rows, raw_score=True),
    )


def test_categories_of_data_frames_have_their_names() -> None:
    data = frame().drop(
        columns="tiny"
    )  # LightGBM takes it for constant, and a constant column may be a category of any names
    made = train({"objective": "binary"}, (target() > 1).astype(int), data)
    features = {f.name: f for f in load(made).ensemble.features}
    assert features["colour"].labels == tuple(frame().colour.cat.categories)
    assert load(MODELS["classifier"]()).ensemble.classes == ("low", "mid", "top")


def _text(name: str = "categories") -> str:
    made: str = booster(name).model_to_string()
    return made


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version=v4", "version=v9", "version `v9` is not known"),
        ("objective=binary sigmoid:1", "objective=binary2", "objective `binary2` is not supported"),
        ("objective=binary sigmoid:1", "objective=regression sqrt", "reg_sqrt"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=4", "do not form complete rounds"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=0", "do not form complete rounds"),
        ("is_linear=0", "is_linear=1", "linear trees"),
        ("Tree=1\n", "Tree=2\n", "expected tree 1"),
        ("max_feature_idx=", "max_feature_idx=9", "names and"),
        ("left_child=", "left_child=99 ", "entries, not"),
        ("left_child=1 ", "left_child=0 ", "reached twice|two parents"),
        ("right_child=", "right_child=x", "not a number|entries"),
        ("cat_boundaries=0 ", "cat_boundaries=3 ", "do not increase from 0"),
        ("decision_type=", "decision_type=1", "decision_type|category set|cat"),
        ("split_feature=", "split_feature=99", "does not exist"),
        ("end of trees", "", "ends in the middle"),
        ("shrinkage=1\n", "shrinkage=1\nleaf_value=3\n", "appears twice"),
    ],
)
def test_wrong_contents_name_the_line(old: str, new: str, message: str) -> None:
    text = _text()
    assert old in text
    with pytest.raises(ModelError, match=message) as caught:
        read(text.replace(old, new, 1).encode())
    assert caught.value.place.startswith("model.txt")


def old_text(name: str) -> str:
    """A file in the layout of versions before 2.2, which do not mark the end of the trees."""
    trees = _text(name).partition("end of trees")[0].replace("version=v4", "version=v2")
    return trees + "\nfeature importances:\nColumn_0=1\n\npandas_categorical:null\n"


@pytest.mark.parametrize("name", ["softmax", "dart"])
def test_files_before_the_end_of_trees_was_marked(name: str) -> None:
    rows = np.random.default_rng(1).normal(size=(50, booster(name).num_feature()))
    old = read(old_text(name).encode())
    assert np.array_equal(old.ensemble.margins_emulated(rows).squeeze(), booster(name).predict(rows, raw_score=True))
    assert np.array_equal(old.margins(rows).squeeze(), booster(name).predict(rows, raw_score=True))


def test_old_forests_that_averaged_probabilities_are_refused() -> None:
    forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
    text = train({"objective": "binary", **forest}, (target() > 1).astype(int), numeric(), 3).model_to_string()
    trees = text.partition("end of trees")[0]
    with pytest.raises(ModelError, match="random forests of LightGBM before"):
        read(f"{trees}\nfeature importances:\n".encode())


def test_a_large_category_code_is_a_limit() -> None:
    codes = pd.DataFrame({"post": np.repeat([5, 70_000, 1_500_000], 100)})
    model = train({"objective": "regression"}, codes.post.to_numpy() % 7, codes, 1, categorical_feature=["post"])
    with pytest.raises(ModelError, match="column `post` has the code 1500000; treesens reads codes below 100,000"):
        read(model.model_to_string().encode())


def test_linear_trees_are_refused() -> None:
    linear = train({"objective": "regression", "linear_tree": True}, numeric().real.to_numpy(), numeric(), 3)
    with pytest.raises(ModelError, match="linear trees"):
        load(linear)
    with pytest.raises(ModelError, match="linear trees"):
        read(json.dumps(linear.dump_model()).encode())


def test_unfitted_objects_are_refused() -> None:
    with pytest.raises(ModelError, match="fit it first"):
        load(lightgbm.LGBMClassifier())


def test_every_truncation_is_noticed() -> None:
    data = _text("dart").split("end of trees")[0].encode()
    for end in [*range(1, 300, 7), *range(300, len(data), max(1, len(data) // 150))]:
        with pytest.raises(ModelError):
            read(data[:end])


@pytest.mark.parametrize("name", ["categories", "binary, zero as missing"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_random_damage_gives_a_typed_error_or_a_valid_model(name: str, form: str) -> None:
    text = _text(name).split("\nparameters:")[0]
    data = text if form == "text" else json.dumps(booster(name).dump_model())
    assert refusals(data.encode(), read) > 10


@pytest.mark.parametrize("objective", ["poisson", "cross_entropy"])
def test_an_objective_of_one_output_is_refused_for_several(objective: str) -> None:
    """LightGBM transforms the first output alone and leaves the others as they are."""
    text = _text("softmax")
    head, _, rest = text.partition("objective=")
    changed = f"{head}objective={objective}\n{rest.partition(chr(10))[2]}"
    library = lightgbm.Booster(model_str=changed)
    table = np.random.default_rng(1).normal(size=(20, library.num_feature()))
    scores, said = library.predict(table, raw_score=True), library.predict(table)
    assert (scores[:, 0] != said[:, 0]).all()
    assert (scores[:, 1:] == said[:, 1:]).all()
    with pytest.raises(ModelError, match="does not support 4 outputs"):
        read(changed.encode())


@pytest.mark.parametrize("objective", ["binary", "poisson"])
def test_a_dump_without_its_objective_is_refused(objective: str) -> None:
    """Dumps of LightGBM 2.1 and 2.2.1 have neither `objective` nor `average_output`."""
    label = (target() > 1).astype(int)
    dump = train({"objective": objective}, label, numeric()).dump_model()
    for key in ("objective", "average_output", "pandas_categorical"):
        del dump[key]
    with pytest.raises(ModelError, match="the prediction task is unknown") as caught:
        read(json.dumps(dump).encode())
    assert "Booster.save_model" in str(caught.value.remedy)


def test_the_dump_of_a_custom_objective_is_one_of_scores() -> None:
    """LightGBM 2.2.3 and later leave the objective out of such a dump, and say whether trees are averaged."""
    label = target()
    options = {"objective": lambda scores, data: (scores - data.get_label(), np.ones_like(scores))}
    custom = train(options, label, numeric())
    dump = custom.dump_model()
    assert "objective" not in dump
    assert dump["average_output"] is False
    loaded = read(json.dumps(dump).encode())
    ours = loaded.ensemble.margins_emulated(numeric().to_numpy(float))[:, 0]
    assert np.array_equal(ours, custom.predict(numeric()))


def _labels(data: pd.DataFrame, form: str, **options: Any) -> tuple[dict[str, Any], LoadedModel]:
    rng = np.random.default_rng(3)
    label = rng.normal(size=len(data)) + (data.iloc[:, 0].astype(str) == str(data.iloc[0, 0]))
    made = lightgbm.train(
        {"objective": "regression", "verbosity": -1, "num_threads": 1, "min_data_per_group": 5, "cat_smooth": 1},
        lightgbm.Dataset(data, label, **options), 10,
    )  # fmt: skip
    text = made.model_to_string() if form == "text" else json.dumps(made.dump_model())
    loaded = read(text.encode())
    return {f.name: f.labels for f in loaded.ensemble.features}, loaded


def _towns(whole: int, *, ordered: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    names = ["north", "south", "east"]
    return pd.DataFrame(
        {
            "region": pd.Categorical.from_codes(rng.integers(0, 3, 300), names, ordered=ordered),
            "code": rng.integers(0, whole, 300),
            "age": rng.integers(18, 80, 300),
        }
    )


@pytest.mark.parametrize("form", ["text", "json"])
def test_names_of_categories_go_to_no_column_by_counting(form: str) -> None:
    """As many lists of names as categorical features: LightGBM takes `region` for a number here, and `code` lacks names."""
    labels, loaded = _labels(_towns(3), form, categorical_feature=["code"])
    assert labels == {"region": None, "code": None, "age": None}
    assert "those of `code` or of other columns" in loaded.notes[-1]


def test_the_frame_of_a_call_names_the_categories_as_predict_does(tmp_path: Path) -> None:
    """`flag` may have the names of `sex` as well: it is 0 or 1."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"flag": rng.integers(0, 2, 400), "sex": rng.choice(["male", "female"], 400), "x": rng.normal(size=400)}
    )
    frame = frame.astype({"sex": "category"})
    label = (frame["sex"] == "male") + frame["flag"] + frame["x"] > 1
    model = lightgbm.LGBMClassifier(n_estimators=8, verbosity=-1, n_jobs=1).fit(frame, label)
    pair = ts.sensitivity(model, vary="sex", gap=0.1, data=frame).pair
    assert set(pair["sex"]) == {"male", "female"}
    named = pair.assign(sex=pd.Categorical(pair["sex"], frame["sex"].cat.categories))[list(frame)]
    high, low = model.predict_proba(named)[:, 1]
    assert high >= 0.6
    assert low <= 0.4
    assert ts.audit(model, frame, vary="sex", gap=0.1).records[0]["verdict"] == "found"
    with pytest.raises(DiagnosticsError, match="may be those of `sex` or of other columns"):
        ts.audit(model, frame.assign(flag=frame["flag"].astype("category")), vary="sex", gap=0.1)
    model.booster_.save_model(tmp_path / "m.txt")
    with pytest.raises(DiagnosticsError, match="may be those of `sex` or of other columns"):
        ts.audit(tmp_path / "m.txt", frame, vary="sex", gap=0.1)


DECLARED = {"region": "integer in [0, 2]", "code": "category {A = 0, B = 1, C = 2}"}


def test_numbers_that_may_be_names_are_read_with_declared_codes_alone(tmp_path: Path) -> None:
    """LightGBM reads the codes of `region`, whose names are numbers as well, and the file does not say that they are its."""
    data = _towns(5)
    data["region"] = data.region.cat.rename_categories({"north": 2, "south": 3, "east": 0})
    data["code"] %= 3
    label = data.code + np.random.default_rng(3).normal(size=len(data))
    options = {"objective": "regression", "verbosity": -1, "num_threads": 1, "min_data_per_group": 5, "cat_smooth": 1}
    made = lightgbm.train(options, lightgbm.Dataset(data, label, categorical_feature=["code"]), 10)
    made.save_model(tmp_path / "m.txt")
    (tmp_path / "q.sens").write_text(
        'model m from "m.txt"\ndata d from "d.csv"\ndomain from d\nquery q: count rows of d as x such that margin(x) >= 1\n'
    )
    data.to_csv(tmp_path / "d.csv", index=False)
    for condition in ("region = 2", "region >= 1", "region in [1, 2]", "code = 1", "code in {0, 1}"):
        with pytest.raises(DiagnosticsError, match="may be a code of"):
            ts.check_text(
                f'model m from "m"\nquery q: find a in m such that a.{condition}\n',
                models={"m": load(tmp_path / "m.txt")},
            )
    text = 'model m from "m"\nfeature code: category {0, 1}\nquery q: find a in m such that margin(a) >= 0\n'
    with pytest.raises(DiagnosticsError, match="may be a code of"):
        ts.check_text(text, models={"m": load(tmp_path / "m.txt")})
    for column in ("region", "code"):
        with pytest.raises(DiagnosticsError, match=f"column `{column}` may hold codes or names"):
            ts.check(tmp_path / "q.sens")
        text = (tmp_path / "q.sens").read_text().replace("query", f"feature {column}: {DECLARED[column]}\nquery")
        (tmp_path / "q.sens").write_text(text)
    data["region"] = data.region.cat.codes
    data.to_csv(tmp_path / "d.csv", index=False)
    count = ts.check(tmp_path / "q.sens")["q"].count
    assert count.at_least == count.at_most == int((made.predict(data.to_numpy(float)) >= 1).sum())


@pytest.mark.parametrize(
    "study",
    [
        ("why", "--row", "0"),
        ("robust", "--rows", "0"),
        ("audit",),
        ("groups", "--by", "age", "--favourable", "1"),
    ],
)
def test_no_study_reads_the_numbers_of_an_ordered_category(study: tuple[str, ...], tmp_path: Path) -> None:
    """LightGBM reads the codes of 0 to 2, and the table holds the numbers that they are called."""
    data = _towns(5)
    data["region"] = pd.Categorical(data.code.clip(upper=2) * 10, categories=[0, 10, 20], ordered=True)
    options = {"objective": "binary", "verbosity": -1, "num_threads": 1}
    made = lightgbm.train(options, lightgbm.Dataset(data, data.region.cat.codes > 0), 10)
    made.save_model(tmp_path / "m.txt")
    data.to_csv(tmp_path / "d.csv", index=False)
    done = run_command(tmp_path, study[0], "m.txt", "--data", "d.csv", *study[1:])
    assert done.returncode != 0
    assert "column `region` may hold codes or names" in done.stderr
    assert "Traceback" not in done.stderr


def test_first_questions_declare_no_numbers_that_may_be_names(tmp_path: Path) -> None:
    """A range that `init` took from the table would settle that its numbers are codes."""
    data = _towns(15)
    data["region"] = pd.Categorical(data.code * 10, categories=range(0, 150, 10), ordered=True)
    options = {"objective": "binary", "verbosity": -1, "num_threads": 1}
    made = lightgbm.train(options, lightgbm.Dataset(data, data.region.cat.codes > 7), 10)
    made.save_model(tmp_path / "m.txt")
    data.to_csv(tmp_path / "d.csv", index=False)
    assert run_command(tmp_path, "init", "m.txt", "d.csv", "-o", "q.sens").returncode == 0
    assert "feature region" not in (tmp_path / "q.sens").read_text()
    assert "feature age: integer in" in (tmp_path / "q.sens").read_text()
    done = run_command(tmp_path, "check", "q.sens")
    assert done.returncode != 0
    assert "column `region` may hold codes or names" in done.stderr


@pytest.mark.parametrize("form", ["text", "json"])
def test_names_stay_where_no_other_column_can_have_them(form: str) -> None:
    """Three names fit neither the five codes nor the ages."""
    data = _towns(5)
    labels, loaded = _labels(data, form)
    assert labels["region"] == tuple(data.region.cat.categories)
    assert loaded.notes == ()


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_ordered_category_takes_no_names_of_another_column(form: str) -> None:
    """LightGBM takes an ordered category for a number; its list comes first nevertheless."""
    data = _towns(5, ordered=True)
    data["sex"] = pd.Categorical.from_codes(np.arange(300) * 7 % 2, ["F", "M"])
    labels, _ = _labels(data, form)
    assert labels == {"region": None, "code": None, "age": None, "sex": ("F", "M")}


def test_names_of_ordered_categories_are_numbers(tmp_path: Path) -> None:
    data = _towns(5, ordered=True).drop(columns="code")
    data["region"] = data["region"].cat.rename_categories(["low", "mid", "high"])
    label = (data["age"].to_numpy() * 7 % 3 + data["region"].cat.codes.to_numpy() > 1).astype(int)
    model = train({"objective": "binary"}, label, data, 5)
    path = tmp_path / "model.txt"
    path.write_text(model.model_to_string())
    table = read_table(data)
    for one in (load(model), load(path)):
        rows = align_table(one, table).matrix(one.ensemble.feature_names)
        assert np.array_equal(rows[:, list(data).index("region")], data["region"].cat.codes)
        assert np.array_equal(one.ensemble.margins_emulated(rows)[:, 0], model.predict(data, raw_score=True))


def test_the_old_name_of_cross_entropy_is_known() -> None:
    text = _text("cross entropy")
    assert text.count("objective=cross_entropy") == 1
    old, new = (
        read(one.encode()).ensemble for one in (text.replace("objective=cross_entropy", "objective=xentropy"), text)
    )
    rows = numeric().to_numpy(float)
    assert np.array_equal(old.probabilities(old.margins_emulated(rows)), new.probabilities(new.margins_emulated(rows)))


def test_names_of_the_table_find_features_whose_blanks_were_replaced(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"legal sex": rng.integers(0, 2, 200), "age": rng.integers(18, 80, 200)})
    label = (data["age"] + 30 * data["legal sex"] > 60).astype(int)
    path = tmp_path / "model.txt"
    path.write_text(train({"objective": "binary"}, label.to_numpy(), data, 5).model_to_string())
    (tmp_path / "treesens.toml").write_text('protected = ["legal sex"]')
    model = ts.load(path)
    assert model.meaning.protected == ("legal_sex",)
    data.assign(y=label).to_csv(tmp_path / "d.csv", index=False)
    rest = ["--data", str(tmp_path / "d.csv"), "--label", "y", "--gap", "0.05", "--vary", "legal sex"]
    done = run_command(tmp_path, "audit", str(path), *rest, "--protected", "legal sex")
    assert "legal_sex" in done.stdout
    assert ts.audit(path, data, vary=["legal sex"], gap=0.05)["varied"] == ["legal_sex"]
    assert ts.sensitivity(path, data=data, vary="legal sex", gap=0.05, real=["legal sex"]).verdict == "found"
    favourable = np.asarray(lightgbm.Booster(model_file=str(path)).predict(data)) > 0.5
    groups = ts.groups(path, data, by="legal sex", favourable=1)
    assert groups["favourable_rows"] == [int(favourable[data["legal sex"] == sex].sum()) for sex in (0, 1)]
