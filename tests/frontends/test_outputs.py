"""Models that predict several labels or targets at once, one output at a time: judged by what the library says of it."""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.command import run_command
from tests.frontends.damage import refusals
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance

pytest.importorskip("sklearn")
xgboost = pytest.importorskip("xgboost")

pytestmark = pytest.mark.extensions

NAMES = ["p", "q"]
GRID = pd.DataFrame(np.array(list(itertools.product(range(8), repeat=2))), columns=NAMES)
ROWS = GRID.to_numpy(float)


def rows() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Columns, three labels of which the last has three classes, and two targets."""
    random = np.random.default_rng(1)
    x = pd.DataFrame(random.integers(0, 8, (200, 2)), columns=NAMES)
    score = x.p + x.q + random.normal(0, 2, 200)
    labels = np.stack([score > 7, x.p - x.q + random.normal(0, 2, 200) > 0, np.digitize(score, [5, 9])], axis=1)
    return x, labels.astype(int), np.stack([score, x.p * x.q + random.normal(0, 1, 200)], axis=1)


@cache
def fitted(case: str) -> Any:
    from sklearn import ensemble, multioutput, pipeline, preprocessing, tree

    x, labels, targets = rows()
    few = {"n_estimators": 5, "max_depth": 3, "random_state": 0}
    forest = ensemble.RandomForestClassifier(**few)
    boosted = ensemble.HistGradientBoostingClassifier(max_iter=4, max_depth=3)
    made, y = {
        "tree of labels": (tree.DecisionTreeClassifier(max_depth=4), labels),
        "forest of labels": (forest, labels),
        "extra trees of targets": (ensemble.ExtraTreesRegressor(**few), targets),
        "tree of targets": (tree.DecisionTreeRegressor(max_depth=4), targets),
        "one for each label": (multioutput.MultiOutputClassifier(boosted), labels),
        "one for each target": (multioutput.MultiOutputRegressor(ensemble.GradientBoostingRegressor(**few)), targets),
        "pipeline of labels": (pipeline.make_pipeline(preprocessing.StandardScaler(), forest), labels),
        "pipeline of estimators": (
            pipeline.make_pipeline(preprocessing.StandardScaler(), multioutput.MultiOutputClassifier(boosted)),
            labels,
        ),
        "xgboost labels": (xgboost.XGBClassifier(n_estimators=5, max_depth=3), labels[:, :2]),
        "xgboost labels, shared trees": (
            xgboost.XGBClassifier(n_estimators=5, max_depth=3, multi_strategy="multi_output_tree"),
            labels[:, :2],
        ),
        "xgboost targets": (xgboost.XGBRegressor(n_estimators=5, max_depth=3), targets),
        "xgboost targets, shared trees": (
            xgboost.XGBRegressor(n_estimators=5, max_depth=3, multi_strategy="multi_output_tree"),
            targets,
        ),
    }[case]
    return made.fit(x, y)


LABELS = ["tree of labels", "forest of labels", "one for each label", "pipeline of labels", "pipeline of estimators"]
LABELS += ["xgboost labels", "xgboost labels, shared trees"]
TARGETS = ["extra trees of targets", "tree of targets", "one for each target", "xgboost targets"]
TARGETS.append("xgboost targets, shared trees")


def library_of(case: str) -> str:
    return "xgboost" if case.startswith("xgboost") else "sklearn"


def shown_of(case: str, output: int) -> np.ndarray:
    """The probabilities that the library gives for one label, [rows, classes]."""
    found = fitted(case).predict_proba(GRID)
    if isinstance(found, list):
        return np.asarray(found[output])
    return np.stack([1 - found[:, output], found[:, output]], axis=1)


@pytest.mark.parametrize("case", [*LABELS, *TARGETS])
def test_each_output_is_that_of_the_library(case: str) -> None:
    model = fitted(case)
    said = np.asarray(model.predict(GRID))
    for output in range(said.shape[1]):
        loaded = ts.load(model, f"{library_of(case)}:output={output}")
        conformance.check(loaded, rows=60).raise_if_wrong()
        e = loaded.ensemble
        assert e.feature_names == tuple(NAMES)
        assert e.source.format.startswith(f"output {output} of {library_of(case)}")
        assert f"output {output} of {said.shape[1]}" in loaded.notes[0]
        assert loaded.predicts is not None
        by_library = loaded.predicts(ROWS)
        for margins in (np.asarray(loaded.margins(ROWS)), e.margins_emulated(ROWS)):
            if not e.classes:
                assert margins[:, 0].tolist() == said[:, output].tolist()
                continue
            predicted = [e.classes[c] for c in e.predicted_classes(margins)]
            assert predicted == said[:, output].tolist()
            assert np.asarray(e.probabilities(margins))[:, -1] == pytest.approx(shown_of(case, output)[:, -1], abs=3e-7)
        if e.classes:
            assert by_library.classes is not None
            assert [e.classes[c] for c in by_library.classes] == said[:, output].tolist()


@pytest.mark.parametrize(
    "case", ["forest of labels", "xgboost labels", "xgboost labels, shared trees", "tree of targets"]
)
def test_questions_are_about_the_output_that_is_named(case: str, tmp_path: Path) -> None:
    """In a file, of a file; the answers are those of the grid, and certificates name the output."""
    model, library = fitted(case), library_of(case)
    if library == "xgboost":
        path = tmp_path / "m.json"
        model.save_model(path)
    else:
        path = tmp_path / "m.skops"
        pytest.importorskip("skops.io").dump(model, path)
    targets = case in TARGETS
    for output in range(2):
        shown = model.predict(GRID)[:, output] if targets else shown_of(case, output)[:, 1]
        apart = shown.reshape(8, 8).max(axis=0) - shown.reshape(8, 8).min(axis=0)
        score = "value" if targets else "prob"
        text = f'model m from "{path}" as `{library}:output={output}`\n'
        text += "feature p: integer in [0, 7]\nfeature q: integer in [0, 7]\n"
        high, low = float(sorted(shown)[-9]) - 1e-4, float(sorted(shown)[8]) + 1e-4
        text += f"query yes: find a in m such that {score}(a) >= {high:.6f}\n"
        text += f"query no: find a in m such that {score}(a) >= {shown.max() + 1e-4:.6f}\n"
        text += f"query pair: find a, b such that a = b except p; {score}(a) >= {high:.6f}; {score}(b) <= {low:.6f}\n"
        (tmp_path / "q.sens").write_text(text)
        answers = ts.check(tmp_path / "q.sens")
        table = shown.reshape(8, 8)
        both = ((table >= high).any(axis=0) & (table <= low).any(axis=0)).any()
        assert apart.max() > 0
        expected = {"yes": "found", "no": "none", "pair": "found" if both else "none"}
        assert {name: str(answers[name].verdict) for name in expected} == expected
        proved = ts.check_text(
            text.replace(text.splitlines()[0], 'model m from "m"'),
            models={"m": ts.load(path, f"{library}:output={output}")},
            certificates=tmp_path / "certificates",
        )
        (claim,) = proved["no"].result.certificates
        assert claim.path, claim.reason
        written = [json.loads(p.read_bytes()) for p in (tmp_path / "certificates").glob("*trees*")]
        assert any(str(tree["made_from"]["format"]).startswith(f"output {output} of ") for tree in written)


def test_info_reads_an_output_and_says_how_to_name_one(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    fitted("xgboost labels").save_model(path)
    plain = run_command(tmp_path, "info", "m.json")
    assert plain.returncode != 0
    assert "xgboost:output=0" in plain.stderr
    found = run_command(tmp_path, "info", "m.json", "--format", "xgboost:output=1", "--check")
    assert found.returncode == 0, found.stderr
    assert "this is output 1 of 2 (0 to 1), and the others are left out" in " ".join(found.stdout.split())


def test_a_pickle_and_a_wrapper_that_stopped_early_have_outputs(tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib")
    joblib.dump(fitted("one for each label"), tmp_path / "m.joblib")
    loaded = ts.load(tmp_path / "m.joblib", "sklearn:output=2", trust_pickle=True).ensemble
    assert loaded.source.format == "output 2 of sklearn-pickle"
    assert loaded.source.sha256
    x, labels, _ = rows()
    model = xgboost.XGBClassifier(n_estimators=40, max_depth=3, early_stopping_rounds=2, learning_rate=0.9)
    model.fit(x[:150], labels[:150, :2], eval_set=[(x[150:], labels[150:, :2])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    live = ts.load(model, "xgboost:output=1")
    conformance.check(live, rows=60).raise_if_wrong()
    assert live.ensemble.probabilities(live.margins(ROWS))[:, 0] == pytest.approx(
        model.predict_proba(GRID)[:, 1], abs=3e-7
    )
    model.save_model(tmp_path / "m.json")
    (_, note) = ts.load(tmp_path / "m.json", "xgboost:output=1").notes
    assert "Pass the live wrapper for these" in note


def test_targets_of_any_format_have_outputs() -> None:
    """CatBoost writes one file for several targets, each of which is a column of its leaves."""
    catboost = pytest.importorskip("catboost")
    x, _, targets = rows()
    settings = {"iterations": 4, "depth": 3, "verbose": False, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(loss_function="MultiRMSE", **settings).fit(x, targets)
    for output in range(2):
        loaded = ts.load(model, f"catboost:output={output}")
        conformance.check(loaded, rows=60).raise_if_wrong()
        margins = np.asarray(loaded.ensemble.margins_emulated(ROWS))
        assert margins[:, 0].tolist() == model.predict(GRID)[:, output].tolist()


@pytest.mark.parametrize("case", ["xgboost labels", "xgboost labels, shared trees", "forest of labels"])
def test_random_damage_gives_a_typed_error_or_a_valid_model(case: str, tmp_path: Path) -> None:
    path = tmp_path / ("m.json" if library_of(case) == "xgboost" else "m.skops")
    if library_of(case) == "xgboost":
        fitted(case).save_model(path)
    else:
        pytest.importorskip("skops.io").dump(fitted(case), path)
    data = path.read_bytes()

    def read(content: bytes) -> Any:
        path.write_bytes(content)
        return ts.load(path, f"{library_of(case)}:output=1")

    assert refusals(data, read) > 10


def test_what_names_no_output_is_refused_with_a_remedy(tmp_path: Path) -> None:
    from sklearn import ensemble, tree

    x, labels, _ = rows()
    path = tmp_path / "m.json"
    fitted("xgboost labels").save_model(path)
    one = tree.DecisionTreeClassifier(max_depth=2).fit(x, labels[:, 0])
    several = ensemble.RandomForestClassifier(3, max_depth=2).fit(x, labels)
    three = xgboost.XGBClassifier(n_estimators=2).fit(x, labels[:, 2])
    damaged = tree.DecisionTreeClassifier(max_depth=2).fit(x, labels)
    damaged.n_outputs_ = 9
    damaged.classes_ = [np.array([0, 1])] * 9
    refused: list[tuple[Any, str | None, str, str]] = [
        (several, None, "several labels at once", "sklearn:output=0"),
        (path, None, "several labels at once", "xgboost:output=0"),
        (fitted("one for each label"), None, "is not supported", "sklearn:output=0"),
        (path, "xgboost:output=2", "no output 2", "0 to 1"),
        (path, "xgboost:output=x", "not an output number", "count from 0"),
        (path, "xgboost:output=", "not an output number", "count from 0"),
        (path, "xgboost:output=-1", "not an output number", "count from 0"),
        (path, "xgboost:output=1111111111", "not an output number", "count from 0"),
        (several, "sklearn:output=3", "no output 3", "0 to 2"),
        (one, "sklearn:output=0", "one output", "leave `output=` out"),
        (three, "xgboost:output=0", "one output", "leave `output=` out"),
        (
            ensemble.GradientBoostingClassifier(n_estimators=2).fit(x, labels[:, 0]),
            "sklearn:output=0",
            "are not supported",
            "forest",
        ),
        (damaged, "sklearn:output=7", "`n_outputs_` is not 3", "save the model again"),
    ]
    for source, form, message, remedy in refused:
        with pytest.raises(ModelError, match=message) as caught:
            ts.load(source, form)
        assert remedy in (caught.value.remedy or ""), message


def test_a_repair_does_not_write_one_output_over_the_others(tmp_path: Path) -> None:
    x, labels, _ = rows()
    path = tmp_path / "m.json"
    fitted("xgboost labels").save_model(path)
    model = ts.load(path, "xgboost:output=0")
    with pytest.raises(ts.errors.TreesensError, match="output 0 of xgboost-json"):
        ts.repair(model, x.assign(y=labels[:, 0]), label="y", vary="p", gap=0.1, output=tmp_path / "new.json")
