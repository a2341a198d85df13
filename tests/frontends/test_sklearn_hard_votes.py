"""Counted votes of scikit-learn: what its own `predict` says judges the kit, counts of rows, pairs and proofs."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.frontends.test_sklearn_blends import GRID, NAMES, counted, members, rows
from tests.frontends.versions import since, voting
from treesens.errors import ModelError, UsageError
from treesens.extensions.conformance import formats as conformance

calibration = pytest.importorskip("sklearn.calibration")
ensemble = pytest.importorskip("sklearn.ensemble")
trees = pytest.importorskip("sklearn.tree")
model_selection = pytest.importorskip("sklearn.model_selection")

pytestmark = pytest.mark.extensions


def single(seed: int) -> Any:
    return trees.DecisionTreeClassifier(max_depth=2, max_features=1, random_state=seed)


# Sums of 0.1, 0.2 and 0.3 are ties in decimals, and none in floats.
CASES: dict[str, tuple[str, Any, list[float] | None]] = {
    "two": ("two", "FGX", None),
    "even": ("two", "FX", None),
    "weighted": ("two", "FGX", [0.1, 0.2, 0.3]),
    "one rules": ("two", "FGL", [3, 1, 1]),
    "three classes": ("three", "FHX", None),
    "three classes, weighted": ("three", "FGXL", [0.1, 0.2, 0.3, 0.1]),
    "trees": ("two", [(f"t{i}", single(i)) for i in range(6)], None),
    "weighted trees": ("three", [(f"t{i}", single(i)) for i in range(3)], [0.1, 0.2, 0.3]),
    # 8 times 0.1 is less than 0.8 in floats, and the same otherwise.
    "trees, sums that are rounded": (
        "two",
        [*((f"t{i}", single(0)) for i in range(8)), ("big", trees.DecisionTreeClassifier(max_depth=2))],
        [0.1] * 8 + [0.8],
    ),
    "boosted votes": (
        "two",
        [("a", ensemble.AdaBoostClassifier(single(0), n_estimators=3, **voting())), *members("two", "GP")],
        None,
    ),
}


@cache
def fitted(case: str) -> Any:
    kind, names, weights = CASES[case]
    x, y = rows(kind)
    inside = members(kind, names) if isinstance(names, str) else names
    return ensemble.VotingClassifier(inside, voting="hard", weights=weights).fit(x, y)


@pytest.mark.parametrize("case", CASES)
def test_the_kit_finds_no_difference(case: str) -> None:
    report = conformance.check(ts.load(fitted(case)), rows=100)
    report.raise_if_wrong()
    assert "labels" in report.compared
    assert "probabilities" not in report.compared


@pytest.mark.parametrize("case", CASES)
def test_each_class_has_the_rows_that_the_library_gives_it(case: str) -> None:
    model = fitted(case)
    said = model.predict(GRID)
    asked = {f"y{c}": f"class(a) = {c}" for c in model.classes_} | {f"n{c}": f"class(a) != {c}" for c in model.classes_}
    found = counted(model, asked)
    for c in model.classes_:
        assert not found[f"y{c}"].undecided
        assert list(found[f"y{c}"].rows) == np.flatnonzero(said == c).tolist()
        assert list(found[f"n{c}"].rows) == np.flatnonzero(said != c).tolist()


@pytest.mark.parametrize("case", CASES)
def test_pairs_and_proofs_are_those_of_brute_force(case: str) -> None:
    """On the grid of whole numbers that `integer` declares, all pairs that differ in one feature are tried."""
    model = fitted(case)
    said = model.predict(GRID).reshape(6, 6, 6)
    text = 'model m from "m"\n' + "".join(f"feature {name}: integer in [0, 5]\n" for name in NAMES)
    expected = {}
    for axis, name in enumerate(NAMES):
        lines = np.moveaxis(said, axis, 0).reshape(6, -1)
        for one, two in itertools.permutations(range(len(model.classes_)), 2):
            there = bool(((lines == one).any(axis=0) & (lines == two).any(axis=0)).any())
            expected[f"{name}{one}{two}"] = "found" if there else "none"
            text += (
                f"query {name}{one}{two}: find a, b such that a = b except {name}; class(a) = {one}; class(b) = {two}\n"
            )
    answers = ts.check_text(text, models={"m": ts.load(model)})
    assert {name: str(answers[name].verdict) for name in expected} == expected


def test_what_has_no_probability_is_refused_with_what_to_do() -> None:
    model = ts.load(fitted("two"))
    for asked in ("prob(a) >= 0.5", "margin(a) >= 0", "class(a) = 1 by factor 2", "class(a) = 1 by margin 1"):
        with pytest.raises(
            ts.errors.TreesensError, match=r"counts? the classes|votes for classes are counted"
        ) as caught:
            ts.check_text(f'model m from "m"\nquery q: find a such that {asked}\n', models={"m": model})
        assert "class(a)" in str(caught.value)


def test_what_is_no_vote_of_readable_models_is_refused_by_name() -> None:
    x, y = rows("two")
    vote = ensemble.VotingClassifier
    folds = calibration.CalibratedClassifierCV(members("two", "F")[0][1], cv=2)
    refused = {
        "11 models can vote for 2 classes in too many ways": vote(
            [(f"m{i}", members("two", "F")[0][1]) for i in range(11)]
        ).fit(x, y),
        "12 models can vote for 2 classes in too many ways": vote(
            [(f"t{i}", single(i)) for i in range(12)], weights=[0.1] * 11 + [0.8]
        ).fit(x, y),
        "calibrated or averaged probabilities": vote([("c", folds), *members("two", "F")]).fit(x, y),
        "not been fitted": vote(members("two", "F")),
        "lacks `voting`": vote(members("two", "F"), voting="hard").fit(x, y),
        "lacks `weights`": vote(members("two", "F"), voting="hard").fit(x, y),
    }
    for message, changed in (("are not lists", {"estimators": None}), ("1 weights for 2", {"weights": [1]})):
        refused[message] = vote(members("two", "FG"), voting="hard", weights=[1, 2]).fit(x, y)
        vars(refused[message]).update(changed)
    del refused["lacks `voting`"].voting
    del refused["lacks `weights`"].weights
    for message, model in refused.items():
        with pytest.raises(ModelError, match=message) as caught:
            ts.load(model)
        assert caught.value.remedy, message


@since("sklearn", "1.5")
def test_a_member_decides_by_its_own_cut_off() -> None:
    x, y = rows("two")
    vote, fixed = ensemble.VotingClassifier, model_selection.FixedThresholdClassifier
    inside = [
        ("x", fixed(members("two", "X")[0][1], threshold=0.8)),
        ("f", fixed(members("two", "F")[0][1], threshold=0.3)),
    ]
    model = vote([*inside, *members("two", "G")]).fit(x, y)
    conformance.check(ts.load(model), rows=100).raise_if_wrong()
    assert list(counted(model, {"q": "class(a) = 1"})["q"].rows) == np.flatnonzero(model.predict(GRID) == 1).tolist()


@pytest.mark.parametrize("case", ["two", "three classes, weighted", "trees"])
def test_an_audit_counts_the_rows_that_the_library_flips(case: str) -> None:
    model, frame = fitted(case), pd.DataFrame(GRID, columns=NAMES)
    said = model.predict(GRID).reshape(6, 6, 6)
    for record in ts.audit(model, frame, margin=0, time_limit=20).records:
        lines = np.moveaxis(said, NAMES.index(record["varied"][0]), 0)
        there = [(lines == c).any(axis=0) for c in record["classes"]]
        assert record["rows_flipped"] == 6 * (there[0] & there[1]).sum()
        assert record["verdict"] == ("found" if record["rows_flipped"] else "none")


@pytest.mark.parametrize("case", ["two", "three classes"])
def test_reasons_hold_for_all_other_values(case: str) -> None:
    model, frame = fitted(case), pd.DataFrame(GRID, columns=NAMES)
    said = model.predict(GRID)
    for record in ts.why(model, frame, [0, 50, 100, 215]).records:
        kept = record["sufficient"]
        alike = (frame[list(kept)] == frame.loc[record["row"], list(kept)]).all(axis=1)
        assert set(said[alike]) == {said[record["row"]]}
        for name in kept:
            fewer = [other for other in kept if other != name]
            wider = (frame[fewer] == frame.loc[record["row"], fewer]).all(axis=1)
            assert len(set(said[wider])) > 1, f"{name} can be left out"


@pytest.mark.parametrize("study", ["gap", "shape", "count", "diff", "repair"])
def test_what_is_about_scores_says_so(study: str) -> None:
    model, frame = fitted("two"), pd.DataFrame(GRID, columns=NAMES)
    more: dict[str, Any] = {
        "count": {"vary": "p", "margin": 0},
        "repair": {"vary": "p", "gap": 0.1, "label": "label"},
    }.get(study, {})
    models = [model] * (2 if study == "diff" else 1)
    with pytest.raises(UsageError) as told:
        getattr(ts, study)(*models, frame if study != "repair" else frame.assign(label=0), **more)
    assert told.value.remedy
