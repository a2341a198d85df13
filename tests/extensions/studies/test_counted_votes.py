"""Studies of counted votes, and of calibrated scores that are compared: scikit-learn's `predict` on all of a small grid judges
sets, distances, reasons and groups.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.extensions.studies.test_averaged import GRID as AVERAGED
from tests.extensions.studies.test_averaged import trained as averaged
from tests.frontends.test_sklearn_blends import GRID, NAMES
from tests.frontends.test_sklearn_hard_votes import fitted
from treesens.errors import UsageError

pytest.importorskip("sklearn.ensemble")
FRAME = pd.DataFrame(GRID, columns=list(NAMES))
CASES = ["even", "one rules", "three classes", "trees", "boosted votes"]
TWO = ["two", "even", "one rules", "trees", "boosted votes"]


CALIBRATED = ["calibrated forest, sigmoid", "calibrated boosting, isotonic"]


@cache
def model_of(case: str) -> Any:
    """A vote, or a calibration of three classes of which the library tells every two apart on the grid."""
    if case not in CALIBRATED:
        return fitted(case)
    from sklearn import calibration, ensemble

    random = np.random.default_rng(4)
    x = random.integers(0, 6, (260, 3))
    y = np.digitize(x @ [1.0, 0.7, 0.3] + random.normal(0, 1, 260), [3.5, 6.0])
    forest = ensemble.RandomForestClassifier(8, max_depth=4, random_state=0)
    boosted = ensemble.HistGradientBoostingClassifier(max_iter=4, max_depth=3)
    inner, method = (forest, "sigmoid") if "forest" in case else (boosted, "isotonic")
    made = calibration.CalibratedClassifierCV(inner, method=method, ensemble=False, cv=3)
    made.fit(pd.DataFrame(x, columns=list(NAMES)), y)
    best = np.sort(made.predict_proba(FRAME), axis=1)
    assert (best[:, -1] - best[:, -2]).min() > 1e-9
    return made


def said_of(case: str) -> Any:
    """The library's classes on the grid."""
    return model_of(case).predict(FRAME if case in CALIBRATED else GRID)


def subsets(names: Any) -> list[tuple[str, ...]]:
    return [part for size in range(len(names) + 1) for part in itertools.combinations(names, size)]


def reached(said: pd.Series, varied: tuple[str, ...]) -> list[set[Any]]:
    """For every input of the other features the classes that the library gives to its inputs."""
    kept = [name for name in NAMES if name not in varied]
    if not kept:
        return [set(said)]
    return [set(part) for _, part in said.groupby([FRAME[name] for name in kept])]


@pytest.mark.parametrize("case", [*CASES, *CALIBRATED])
def test_sets_that_flip_are_those_of_all_inputs(case: str) -> None:
    model, said = model_of(case), pd.Series(said_of(case))
    found = ts.sets(model, FRAME, margin=0, time_limit=20)
    assert len(found.records) == len(list(itertools.combinations(model.classes_, 2)))
    for record in found.records:
        assert record["complete"]
        pair = set(record["classes"])
        flips = [set(v) for v in subsets(NAMES) if any(pair <= there for there in reached(said, v))]
        smallest = [v for v in flips if not any(other < v for other in flips)]
        holds = [set(v) for v in subsets(NAMES) if set(v) not in flips]
        largest = [v for v in holds if not any(other > v for other in holds)]
        assert sorted(map(sorted, smallest)) == sorted(sorted(one["features"]) for one in record["flip"])
        assert sorted(map(sorted, largest)) == sorted(sorted(one["features"]) for one in record["hold"])


@pytest.mark.parametrize("norm", ["linf", "l1", "l2", "l0"])
@pytest.mark.parametrize("case", ["two", "three classes, weighted", "trees", *CALIBRATED])
@pytest.mark.sampled
def test_the_nearest_other_class_is_as_far_as_on_the_grid(case: str, norm: str) -> None:
    model, rows, said = model_of(case), [0, 50, 127, 215], said_of(case)
    found = ts.robust(model, FRAME, rows, norm=norm, time_limit=20)  # type: ignore[arg-type]
    steps = np.asarray(GRID, float) / 5
    for record in found.records:
        row = record["row"]
        away = np.abs(steps[said != said[row]] - steps[row])
        far = {"linf": away.max(axis=1), "l1": away.sum(axis=1), "l2": np.sqrt((away**2).sum(axis=1))}
        least = far.get(norm, (away > 0).sum(axis=1)).min()
        assert record["closed"]
        assert record["distance"] == pytest.approx(float(least), rel=1e-9)
        point = FRAME[(pd.Series(record["point"]) == FRAME).all(axis=1)].index[0]
        assert said[point] != said[row]


@pytest.mark.parametrize("case", TWO)
def test_principal_reasons_change_the_class_and_none_can_be_left_out(case: str) -> None:
    model = fitted(case)
    said = model.predict(GRID)
    wanted = model.classes_[1]
    denied = [int(row) for row in np.flatnonzero(said != wanted)[[0, 5, -1]]]
    found = ts.reasons(model, FRAME, rows=denied, most=3, favourable=str(wanted), time_limit=20)
    assert [record["row"] for record in found.records] == denied
    for record in found.records:
        names = {reason["feature"] for reason in record["reasons"]}

        def changes(freed: set[str], row: int = record["row"]) -> bool:
            kept = [name for name in NAMES if name not in freed]
            alike = (FRAME[kept] == FRAME.loc[row, kept]).all(axis=1)
            return bool((said[alike] == wanted).any())

        assert record["suffice"] == "yes"
        assert changes(names)
        assert not any(changes(names - {name}) for name in names)
        if case != "trees":
            assert all(reason["rise"] is None for reason in record["reasons"])


@pytest.mark.parametrize("case", ["two", "three classes", *CALIBRATED])
def test_groups_count_the_rows_that_the_library_favours(case: str) -> None:
    model, said = model_of(case), said_of(case)
    for record in ts.groups(model, FRAME, by="p", favourable=int(model.classes_[-1])).records:
        mine = (record["group"][0] == FRAME.p).to_numpy()
        assert record["favourable_rows"] == (said[mine] == model.classes_[-1]).sum()
        assert record["closed"]


def test_an_audit_tells_the_share_of_rows_and_refuses_other_measures() -> None:
    model = fitted("two")
    for record in ts.audit(model, FRAME, margin=0, measure="rows", typical=90).records:
        assert record["share"]["lower"] == record["share"]["upper"] == record["rows_flipped"] / record["rows"]
        assert record["typical"]["verdict"] in ("found", "none")
    refused: list[tuple[str, dict[str, Any]]] = [
        ("one score", {"measure": "uniform"}),
        ("one score", {"repair_gap": 0.0, "label": "y"}),
    ]
    for message, options in refused:
        with pytest.raises(UsageError, match=message) as told:
            ts.audit(model, FRAME.assign(y=0) if "label" in options else FRAME, margin=0, **options)
        assert told.value.remedy
    with pytest.raises(UsageError, match="has several"):
        ts.reasons(model, FRAME, rows=[0], shap=True, favourable=str(model.classes_[1]))


@pytest.mark.parametrize("name", ["votes", "mean"])
def test_shares_by_regions_are_refused_with_what_counts_rows(name: str) -> None:
    model = fitted("two") if name == "votes" else averaged("vote")
    frame = FRAME if name == "votes" else AVERAGED
    words = {"votes": "counts the classes of several", "mean": "averages the probabilities of several"}[name]
    size: dict[str, Any] = {"margin": 0} if name == "votes" else {"gap": 0.1}
    with pytest.raises(UsageError, match=words) as told:
        ts.count(model, frame, vary=frame.columns[0], measure="rows", **size)
    assert "audit" in str(told.value.remedy)
    with pytest.raises(UsageError, match=words) as told:
        ts.groups(model, frame, by=frame.columns[0], measure="uniform", favourable=str(model.classes_[1]))
    assert "rows" in str(told.value.remedy)
