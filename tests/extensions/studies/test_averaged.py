"""Studies of averaged probabilities: against the library's own `predict_proba` on every input of a small grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.binder.test_decisions import GRID, NAMES
from tests.trials import at_night
from treesens.errors import UsageError
from treesens.extensions.studies.shape_search import outputs_of

DIGITS = 2e-6
"""How closely differences of probabilities are looked for, and the library's rounding."""


def trained(kind: str, seed: int = 0) -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import (
        GradientBoostingClassifier,
        RandomForestClassifier,
        VotingClassifier,
    )

    random = np.random.default_rng(3 + seed)
    rows = pd.DataFrame(random.integers(0, 4, (300, 3)), columns=NAMES).astype(float)
    label = (rows.x + (rows.y - 1.5).abs() + random.normal(0, 1, 300) > 2.5).astype(int)
    boosted = GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=seed)
    forest = RandomForestClassifier(4, max_depth=3, random_state=seed)
    if kind == "vote":
        model: Any = VotingClassifier([("b", boosted), ("f", forest)], voting="soft", weights=[2, 1])
    elif kind in ("folds", "isotonic"):
        model = CalibratedClassifierCV(boosted, cv=3, method="sigmoid" if kind == "folds" else "isotonic")
    else:
        model = VotingClassifier(
            [("b", boosted), ("c", GradientBoostingClassifier(n_estimators=3, max_depth=1))], voting="soft"
        )
        label = (rows.x > 1).astype(int)  # increasing in x, and nothing else
    return model.fit(rows, label)


def groups(varied: str) -> list[pd.Index]:
    return [group.index for _, group in GRID.groupby([name for name in NAMES if name != varied])]


@pytest.mark.parametrize("kind", ["vote", at_night("isotonic"), at_night("folds")])
def test_an_audit_is_that_of_all_inputs(kind: str) -> None:
    model = trained(kind)
    p = model.predict_proba(GRID)[:, 1]
    predicted = model.predict(GRID)
    found = ts.audit(model, GRID, gap=[0, 0.05, 0.15], time_limit=20)
    verdicts = set()
    for record in found.records:
        (name,) = record["varied"]
        gap = record["gap"]
        flips = []
        for group in groups(name):
            beyond = p[group].max() >= 0.5 + gap and p[group].min() <= 0.5 - gap
            both = len(set(predicted[group])) == 2 if gap == 0 else beyond
            flips += group.tolist() if both else []
        assert (sorted(record["flipped_rows"]), record["rows_complete"]) == (sorted(flips), True), (name, gap)
        assert record["verdict"] == ("found" if flips else "none")
        largest = max(p[group].max() - p[group].min() for group in groups(name))
        assert record["max_swing"] - DIGITS <= largest <= record["max_swing_bound"] + DIGITS
        assert record["max_swing_bound"] - record["max_swing"] < 2 * DIGITS
        verdicts.add(record["verdict"])
    assert verdicts == {"found", "none"}


@pytest.mark.parametrize("kind", [at_night("vote"), "isotonic", at_night("folds"), "rising"])
def test_a_shape_is_that_of_all_inputs(kind: str) -> None:
    model = trained(kind)
    p = pd.Series(model.predict_proba(GRID)[:, 1])
    found = ts.shape(model, GRID, time_limit=20)
    shapes = {}
    for record in found.records:
        name = record["feature"]
        falls = [p[low] - p[high] for group in groups(name) for i, low in enumerate(group) for high in group[i:]]
        for largest, word in ((max(falls), "fall"), (max(-f for f in falls), "rise")):
            assert record[f"largest_{word}"] - DIGITS <= largest <= record[f"largest_{word}_bound"] + DIGITS
            assert record[f"largest_{word}_bound"] < largest + 2 * DIGITS
        shapes[name] = record["shape"]
    if kind == "rising":
        assert shapes["x"] == "increasing"  # proved exactly: the bound of a fall is 0
    else:
        assert shapes["y"] == "neither"


def test_a_shape_of_folds_of_three_classes_is_that_of_all_inputs() -> None:
    """Each probability is a mean of ratios, which rises in the score of its class and falls in the others."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import RandomForestClassifier

    random = np.random.default_rng(2)
    rows = pd.DataFrame(random.integers(0, 4, (300, 3)), columns=NAMES).astype(float)
    label = np.digitize(rows.x + (rows.y - 1.5).abs() + random.normal(0, 1, 300), [1.5, 3])
    forest = RandomForestClassifier(3, max_depth=2, random_state=0)
    model = CalibratedClassifierCV(forest, cv=2, method="isotonic").fit(rows, label)
    shown = model.predict_proba(GRID)
    (record,) = ts.shape(model, GRID, features=["x"], classes=["2"], time_limit=20).records
    assert record["class"] == 2
    falls = [
        shown[low, 2] - shown[high, 2] for group in groups("x") for i, low in enumerate(group) for high in group[i:]
    ]
    for largest, word in ((max(falls), "fall"), (max(-f for f in falls), "rise")):
        assert record[f"largest_{word}"] - DIGITS <= largest <= record[f"largest_{word}_bound"] + DIGITS
    assert outputs_of(ts.load(model).ensemble, ()) == [0, 1, 2]


@pytest.mark.parametrize(("one", "other"), [("vote", "vote"), ("isotonic", "folds"), ("folds", "vote")])
def test_a_diff_is_that_of_all_inputs(one: str, other: str) -> None:
    old, new = trained(one), trained(other, seed=1)
    p, q = old.predict_proba(GRID)[:, 1], new.predict_proba(GRID)[:, 1]
    found = ts.diff(old, new, GRID, time_limit=20)
    assert found.verdict == "different"
    for score, largest in zip(found.record["scores"], ((p - q).max(), (q - p).max()), strict=True):
        assert score["score"] == "probability"
        assert score["largest"] - DIGITS <= largest <= score["bound"] + DIGITS
        assert score["bound"] - score["largest"] < 2 * DIGITS
    assert sorted(found.changed_rows) == np.flatnonzero(old.predict(GRID) != new.predict(GRID)).tolist()
    same = ts.diff(old, old, GRID)
    assert (same.verdict, same.bound) == ("equal", 0)


def test_an_average_is_compared_with_a_model_of_one_score() -> None:
    from sklearn.ensemble import GradientBoostingClassifier

    vote = trained("vote")
    boosted = GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=4).fit(
        GRID, (GRID.x > 1).astype(int)
    )
    p, q = vote.predict_proba(GRID)[:, 1], boosted.predict_proba(GRID)[:, 1]
    found = ts.diff(vote, boosted, GRID, time_limit=20)
    assert [score["largest"] for score in found.record["scores"]] == pytest.approx(
        [(p - q).max(), (q - p).max()], abs=2 * DIGITS
    )


@pytest.mark.parametrize("seconds", [0.002, 0.02, 0.1])
@pytest.mark.parametrize("kind", ["vote", "isotonic"])
@pytest.mark.sampled
def test_what_is_told_in_a_hurry_is_true(kind: str, seconds: float) -> None:
    model, other = trained(kind), trained("folds", seed=1)
    p, q = (pd.Series(m.predict_proba(GRID)[:, 1]) for m in (model, other))
    for record in ts.audit(model, GRID, gap=[0.05], time_limit=seconds).records:
        largest = max(p[group].max() - p[group].min() for group in groups(record["varied"][0]))
        between(record["max_swing"], largest, record["max_swing_bound"])
    for record in ts.shape(model, GRID, time_limit=seconds).records:
        falls = [p[a] - p[b] for group in groups(record["feature"]) for i, a in enumerate(group) for b in group[i:]]
        between(record["largest_fall"], max(falls), record["largest_fall_bound"])
        between(record["largest_rise"], max(-f for f in falls), record["largest_rise_bound"])
    scores = ts.diff(model, other, GRID, time_limit=seconds).record["scores"]
    for score, largest in zip(scores, ((p - q).max(), (q - p).max()), strict=True):
        between(score["largest"], largest, score["bound"])


def between(value: float | None, largest: float, bound: float | None) -> None:
    """What was reached is not above the truth, and what was proved not below it."""
    assert value is None or value - DIGITS <= largest
    assert bound is None or largest <= bound + DIGITS


@pytest.mark.parametrize("option", [{"measure": "uniform"}, {"repair_gap": 0.1, "label": "y"}])
def test_what_needs_one_score_is_refused_by_name(option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="averages the probabilities") as told:
        ts.audit(trained("vote"), GRID.assign(y=0) if "label" in option else GRID, **option)
    assert told.value.remedy


def test_an_audit_tells_the_share_of_rows_and_what_is_left_of_typical_inputs() -> None:
    for record in ts.audit(trained("vote"), GRID, gap=0.05, measure="rows", typical=90).records:
        share, part = record["share"], record["typical"]
        assert share["lower"] == share["upper"] == record["rows_flipped"] / record["rows"]
        assert part["verdict"] in (("none",) if record["verdict"] == "none" else ("found", "none"))
