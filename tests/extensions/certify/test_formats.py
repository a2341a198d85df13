"""Certificates about models of every library: the trees file is faithful to the library, and a `none` about it is accepted."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import treesens.extensions.treesens_verify as checker
from treesens.extensions.treesens_verify.models import neutral_tree

from tests.extensions.certify.made import query_of
from treesens.binder.file import bind
from treesens.extensions.certify.produce import refutation
from treesens.extensions.certify.trees import trees_file
from treesens.frontends.registry import load
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer, answer_question

Values = Any
NAMES = ["p", "q", "r", "s"]
FORESTS = ("RandomForestClassifier", "ExtraTreesClassifier")


def table(missing: bool) -> tuple[pd.DataFrame, Values, Values]:
    """Four numbers and a category, and two labels."""
    random = np.random.default_rng(5)
    x = random.integers(0, 9, (400, 4)).astype(float) / 4
    kind = random.integers(0, 5, 400)
    y = (x[:, 0] > 1).astype(int) ^ (x[:, 1] + x[:, 2] > 1.7) ^ np.isin(kind, [1, 3])
    frame = pd.DataFrame(x, columns=NAMES)
    if missing:
        frame = frame.mask(random.random(frame.shape) < 0.1)
    return frame.assign(c=pd.Categorical(kind)), y.astype(int), y.astype(int) + (x[:, 3] > 1.2)


def xgboost_model(path: Path, *, classes: int = 2, suffix: str = "ubj", category: bool = False) -> Any:
    xgboost = pytest.importorskip("xgboost")
    frame, two, three = table(missing=True)
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=3, enable_categorical=category, max_cat_to_onehot=1)
    model.fit(frame if category else frame[NAMES], two if classes == 2 else three)
    model.save_model(path / f"m.{suffix}")
    columns = [*NAMES, "c"] if category else NAMES
    kinds = ["q"] * 4 + ["c"] * category

    def margins(rows: Values) -> Values:
        data = xgboost.DMatrix(rows, feature_names=columns, feature_types=kinds, enable_categorical=True)
        return model.get_booster().predict(data, output_margin=True)

    return path / f"m.{suffix}", margins


def lightgbm_model(path: Path, *, category: bool = False) -> Any:
    lightgbm = pytest.importorskip("lightgbm")
    frame, two, _ = table(missing=True)
    model = lightgbm.LGBMClassifier(n_estimators=5, max_depth=3, verbose=-1, min_child_samples=5)
    model.fit(frame if category else frame[NAMES], two)
    model.booster_.save_model(path / "m.txt")
    loaded = lightgbm.Booster(model_file=path / "m.txt")
    return path / "m.txt", lambda rows: loaded.predict(rows, raw_score=True)


def lightgbm_of_zeros(path: Path) -> Any:
    """Zeros go the way of missing values, between numbers on both sides of them."""
    lightgbm = pytest.importorskip("lightgbm")
    frame, two, _ = table(missing=True)
    model = lightgbm.LGBMClassifier(
        n_estimators=8, max_depth=5, verbose=-1, min_child_samples=5, zero_as_missing=True, n_jobs=1
    )
    model.fit(frame[NAMES] - 1, two)
    model.booster_.save_model(path / "m.txt")
    loaded = lightgbm.Booster(model_file=path / "m.txt")
    return path / "m.txt", lambda rows: loaded.predict(rows, raw_score=True)


def sklearn_model(path: Path, name: str, *, classes: int = 2) -> Any:
    ensemble, skops = pytest.importorskip("sklearn.ensemble"), pytest.importorskip("skops.io")
    frame, two, three = table(missing=name.startswith("Hist"))
    steps = {"max_iter": 5} if name.startswith("Hist") else {"n_estimators": 6}
    model = getattr(ensemble, name)(max_depth=3, random_state=0, **steps)
    model.fit(frame[NAMES].to_numpy(), two if classes == 2 else three)
    skops.dump(model, path / "m.skops")
    score: Callable[[Values], Values] = getattr(model, "predict_proba" if name in FORESTS else "decision_function")
    return path / "m.skops", score


def catboost_model(path: Path) -> Any:
    catboost = pytest.importorskip("catboost")
    frame, two, _ = table(missing=True)
    options = {"iterations": 5, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = catboost.CatBoostClassifier(**options).fit(frame[NAMES], two)
    model.save_model(str(path / "m.json"), format="json")
    return path / "m.json", lambda rows: model.predict(rows.astype(np.float32), prediction_type="RawFormulaVal")


def onnx_model(path: Path) -> Any:
    skl2onnx, runtime = pytest.importorskip("skl2onnx"), pytest.importorskip("onnxruntime")
    ensemble = pytest.importorskip("sklearn.ensemble")
    frame, two, _ = table(missing=False)
    model = ensemble.GradientBoostingRegressor(n_estimators=5, max_depth=3, random_state=0)
    model.fit(frame[NAMES].to_numpy(np.float32), two)
    kinds = [("x", skl2onnx.common.data_types.FloatTensorType([None, 4]))]
    proto = skl2onnx.to_onnx(model, initial_types=kinds, target_opset={"": 15, "ai.onnx.ml": 3})
    (path / "m.onnx").write_bytes(proto.SerializeToString())
    session = runtime.InferenceSession(str(path / "m.onnx"), providers=["CPUExecutionProvider"])
    return path / "m.onnx", lambda rows: session.run(None, {"x": rows.astype(np.float32)})[0]


MODELS: dict[str, Callable[[Path], Any]] = {
    "xgboost-ubj": xgboost_model,
    "xgboost-classes": lambda path: xgboost_model(path, classes=3),
    "xgboost-categories": lambda path: xgboost_model(path, category=True, suffix="json"),
    "xgboost-categories-ubj": lambda path: xgboost_model(path, category=True),
    "lightgbm": lightgbm_model,
    "lightgbm-categories": lambda path: lightgbm_model(path, category=True),
    "lightgbm-zeros": lightgbm_of_zeros,
    "forest": lambda path: sklearn_model(path, "RandomForestClassifier"),
    "forest-classes": lambda path: sklearn_model(path, "RandomForestClassifier", classes=3),
    "extra-trees": lambda path: sklearn_model(path, "ExtraTreesClassifier"),
    "gradient-boosting": lambda path: sklearn_model(path, "GradientBoostingClassifier"),
    "catboost": catboost_model,
    "onnx": onnx_model,
    "hist-gradient-boosting": lambda path: sklearn_model(path, "HistGradientBoostingClassifier"),
}


def rows_for(model: checker.Model) -> Values:
    """Random rows on and beside the cuts, with missing values and categories where the model takes them."""
    random = np.random.default_rng(1)
    kind = np.dtype(model.number).type
    columns = []
    for f, cuts in enumerate(model.cuts):
        finite = [x for x in cuts if np.isfinite(x)]
        values = [0.0, 1.0, -3.0, *finite]
        values += [float(np.nextafter(kind(x), kind(-np.inf))) for x in finite]
        if f in model.categories:
            values = [float(code) for code in range(7)]
        columns.append(random.choice(values, 60))
    rows = np.column_stack(columns)
    return np.where(random.random(rows.shape) < 0.15, np.nan, rows)


def claim(document: dict[str, Any], row: list[float | None], output: int, sign: int, level: float) -> dict[str, Any]:
    """The claim that at `row` an output is at least (sign 1) or at most (-1) a level."""
    bound = {"rational": str(Fraction(sign * level)), "logs": []}
    statement = {
        "models": [document],
        "points": [{"name": "a", "model": 0}],
        "same_except": None,
        "domain": [[0, f, {"runs": [[None, None]], "missing": True}] for f in range(len(row))],
        "rows": [{"name": "m", "terms": [[str(sign), 0, output]], "costs": [], "bound": bound, "strict": False}],
        "clauses": [],
        "orders": [],
    }
    whole = {"format": "treesens-certificate", "version": 1, "claim": "found"}
    return whole | {"inputs": [row], "statement": statement}


@pytest.mark.sampled
@pytest.mark.parametrize("name", MODELS)
def test_the_trees_file_is_faithful_to_the_library(name: str, tmp_path: Path) -> None:
    path, margins = MODELS[name](tmp_path)
    data = trees_file(load(path).ensemble)
    written = json.loads(data)
    stated = {
        "sha256": hashlib.sha256(data).hexdigest(),
        "format": "treesens-trees",
        "trees": len(written["trees"]),
        "base": written["base"],
    }
    model = checker.read_model(data, stated)
    if name == "lightgbm-zeros":
        splits = sum(len(node) > 1 for tree in written["trees"] for node in tree["nodes"])
        assert splits > len(load(path).ensemble.left[load(path).ensemble.left >= 0])  # some stand more than once
    rows = rows_for(model)
    if name.startswith(("forest", "extra")) or name == "gradient-boosting":
        rows = np.nan_to_num(rows, nan=0.5)
    found = np.asarray(margins(rows), float).reshape(len(rows), -1)
    for row, expected in zip(rows, found, strict=True):
        inputs = [None if np.isnan(x) else float(x) for x in row]
        for output, margin in enumerate(expected):
            for sign in (1, -1):
                checker.check(
                    claim(stated, inputs, output, sign, float(margin) - sign * 1e-5), [data], trees_alone=True
                )
                with pytest.raises(checker.Rejected, match="a row does not hold"):
                    checker.check(
                        claim(stated, inputs, output, sign, float(margin) + sign * 1e-5), [data], trees_alone=True
                    )


@pytest.mark.parametrize("name", MODELS)
def test_a_none_of_every_format_has_a_certificate(name: str, tmp_path: Path) -> None:
    path, _ = MODELS[name](tmp_path)
    ensemble = load(path).ensemble
    first = ensemble.feature_names[0]
    gap_of = "margin(a, 1) - margin(b, 1)" if ensemble.n_outputs > 1 else "margin(a) - margin(b)"
    made = 0
    for gap in ("0.3", "0.6", "0.9", "1.5", "2.5", "4"):
        text = f'model m from "{path}"\nquery q: find a, b in m such that a = b except `{first}`; {gap_of} >= {gap}'
        query = query_of(text, tmp_path)
        if answer(query, Options()).verdict.value == "none":
            refuted = refutation(query)
            assert refuted.document["claim"] == "none"
            made += 1
    assert made


def test_a_leaf_that_differs_makes_another_certificate(tmp_path: Path) -> None:
    """The trees file is judged, not only named: with one leaf raised the same proof is rejected."""
    path, _ = MODELS["lightgbm"](tmp_path)
    text = f'model m from "{path}"\nquery q: find a, b in m such that a = b except p; margin(a) - margin(b) >= 4'
    made = refutation(query_of(text, tmp_path))
    raised = json.loads(made.files[0])
    for tree in raised["trees"]:
        for node in tree["nodes"]:
            if len(node) == 1:
                node[0][0] *= 50
    data = json.dumps(raised).encode()
    document = json.loads(json.dumps(made.document))
    with pytest.raises(checker.Rejected, match="no model file has the SHA-256"):
        checker.check(document, [data], trees_alone=True)
    document["statement"]["models"][0]["sha256"] = hashlib.sha256(data).hexdigest()
    with pytest.raises(checker.Rejected, match="does not refute"):
        checker.check(document, [data], trees_alone=True)


def test_a_strict_row_about_one_of_two_models_is_said_on_its_own_grid(tmp_path: Path) -> None:
    """Votes of grown trees are whole numbers: a class leads by one vote, however fine the leaves of the other model are."""
    ensemble, tree = pytest.importorskip("sklearn.ensemble"), pytest.importorskip("sklearn.tree")
    random = np.random.default_rng(1)
    rows, classes = 2 * random.random((60, 2)), random.integers(0, 3, 60)
    live = {
        "m": load(ensemble.RandomForestClassifier(3, random_state=1).fit(rows, classes)),
        "n": load(tree.DecisionTreeClassifier(max_depth=3, random_state=1).fit(rows, classes)),
    }
    text = (
        'model m from "m"\nmodel n from "n"\nfeature f0: real in [0, 2]\nfeature f1: real in [0, 2]\n'
        "query q: find a in m, b in n such that a = b except {f0}; class(a) = 1; class(b) = 0\n"
        "maximize margin(a, 0) - margin(b, 0)\n"
    )
    (asked,) = bind(parse(text, "<test>"), tmp_path, load_model=lambda path, _: live[Path(path).name]).queries
    result = answer_question(asked, Options(time_limit=20, certificates=tmp_path / "out", regions=False))
    assert [(one.claim, one.reason) for one in result.certificates] == [("found", ""), ("bound", "")]
    bound = checker.read(next(one.path for one in result.certificates if one.claim == "bound"))
    leads = next(row for row in bound["statement"]["rows"] if row["name"] == "class.a")
    assert (leads["bound"]["rational"], leads["strict"]) == ("1", False)


SPLIT, LEAVES = [0, 0.5, False, 1, 2], [[[0.25]], [["1/3"]]]
"""A split of the first of two features, and its leaves, as a trees file has them."""


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([[0, 0.5, False, 1, 1], *LEAVES], "two parents"),
        ([[0, 0.5, False, 1, 2], [1, 0.5, False, 2, 3], *LEAVES], "two parents"),
        ([[0, 0.5, False, 0, 1], *LEAVES], "does not follow"),
        ([[0, 0.5, False, 1, 3], *LEAVES], "does not follow"),
        ([[0, 0.5, False, 1, 2.0], *LEAVES], "no whole number|not a whole number"),
        ([[True, 0.5, False, 1, 2], *LEAVES], "not a whole number"),
        ([[2, 0.5, False, 1, 2], *LEAVES], "does not exist"),
        ([[-1, 0.5, False, 1, 2], *LEAVES], "does not exist"),
        ([[0, 0.5, 0, 1, 2], *LEAVES], "neither true nor false"),
        ([[0, math.nan, False, 1, 2], *LEAVES], "a threshold is none"),
        ([[0, "nan", False, 1, 2], *LEAVES], "a threshold is none"),
        ([[0, [1, -1], False, 1, 2], *LEAVES], "no whole number"),
        ([[0, [True], False, 1, 2], *LEAVES], "no whole number"),
        ([SPLIT, [[0.25, 0.5]], [[0.5]]], "another number of values"),
        ([SPLIT, ["1"], [[0.5]]], "no list of numbers"),
        ([SPLIT, [[True]], [[0.5]]], "a flag is no number"),
        ([SPLIT, [[0.25], [0.5]], [[0.5]]], "neither a split nor a leaf"),
        ([SPLIT, {"0": [0.5]}, [[0.5]]], "neither a split nor a leaf"),
        (["01234", *LEAVES], "neither a split nor a leaf"),
        ([], "without nodes"),
    ],
)
def test_trees_that_could_be_read_in_two_ways_are_refused(nodes: list[Any], reason: str) -> None:
    with pytest.raises(checker.Rejected, match=reason):
        neutral_tree(nodes, 1).checked(2)


def test_trees_are_the_same_if_their_nodes_are() -> None:
    one = neutral_tree([SPLIT, *LEAVES], 1).checked(2)
    assert one.nodes == [tuple(SPLIT), ((0.25,),), ((Fraction(1, 3),),)]
    assert one == neutral_tree([[0, 0.5, False, 1, 2], [["1/4"]], [["1/3"]]], 1)
    for other in ([[0, 0.75, False, 1, 2], *LEAVES], [SPLIT, LEAVES[1], LEAVES[0]], [[0, 0.5, False, 2, 1], *LEAVES]):
        assert one != neutral_tree(other, 1)
