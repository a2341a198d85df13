"""Sets of features that flip a decision, against every set and every combination of values, by the library's own scores."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.corpus import boosted, margins_of
from treesens.compiler.base.floats import next_down_array
from treesens.errors import UsageError
from treesens.extensions.studies.commands.study import remembered
from treesens.extensions.studies.sets import SetOptions
from treesens.extensions.studies.sets_search import MinimalSets, ask
from treesens.extensions.studies.study import Asking
from treesens.frontends.registry import load
from treesens.records.plain import plain

NAMES = ("f0", "f1", "f2", "f3", "f4")
Scores = Callable[[NDArray[Any]], NDArray[np.float64]]
Made = tuple[Any, Scores]


def training_set(seed: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    x = rng.random((300, 5)).astype(np.float32)
    score = x[:, 0] + 2 * x[:, 1] * x[:, 2] - x[:, 3] + rng.normal(0, 0.2, 300)
    return x, (score > np.median(score)).astype(np.int64)


def xgboost_model(seed: int) -> Made:
    x, y = training_set(seed)
    model = boosted(x, y, 7, 2, names=NAMES, eta=0.6, base_score=0.5)
    return model, lambda rows: margins_of(model, rows)


def lightgbm_model(seed: int) -> Made:
    import lightgbm as lgb

    x, y = training_set(seed)
    options = {"objective": "binary", "num_leaves": 4, "verbose": -1, "num_threads": 1, "learning_rate": 0.5}
    model = lgb.train(options, lgb.Dataset(x, y, feature_name=list(NAMES)), 6)
    return model, lambda rows: model.predict(rows, raw_score=True)


def sklearn_model(seed: int) -> Made:
    from sklearn.ensemble import GradientBoostingClassifier

    x, y = training_set(seed)
    model = GradientBoostingClassifier(n_estimators=6, max_depth=2, learning_rate=0.5, random_state=seed).fit(x, y)
    return model, model.decision_function


def every_input(model: Any) -> NDArray[Any]:
    """A value on both sides of every cut, in all combinations."""
    columns = []
    for grid in load(model).ensemble.grid():
        below = next_down_array(grid.cuts, grid.number_type)
        columns.append(np.unique(np.concatenate([grid.cuts, below, [0.5]])))
    return np.array(list(itertools.product(*columns)))


def flipping_sets(rows: NDArray[Any], scores: NDArray[np.float64], margin: float) -> list[frozenset[int]]:
    """All sets of features with two rows that differ in these alone and lie a margin from 0 on both sides."""
    assert np.abs(np.abs(scores) - margin).min() > 1e-5
    found = []
    values = [np.unique(column, return_inverse=True)[1].ravel() for column in rows.T]
    for size in range(len(NAMES) + 1):
        for varied in itertools.combinations(range(len(NAMES)), size):
            kept = [f for f in range(len(NAMES)) if f not in varied]
            group = np.zeros(len(rows), np.int64)
            for f in kept:
                group = group * (values[f].max() + 1) + values[f]
            most, least = np.full(group.max() + 1, -np.inf), np.full(group.max() + 1, np.inf)
            np.maximum.at(most, group, scores)
            np.minimum.at(least, group, scores)
            if ((most >= margin) & (least <= -margin)).any():
                found.append(frozenset(varied))
    return found


def asked(model: Any, margin: float, **more: Any) -> MinimalSets:
    options = SetOptions(
        margin=(str(margin),),
        vary=more.pop("features", NAMES),
        time_limit=more.pop("time_limit", 30.0),
        most=more.pop("most", None),
    )
    (found,) = ask(Asking((load(model, trust_pickle=True),), None, options, **more)).result
    return found


def check_pairs(flips: list[dict[str, Any]], scores: Scores, margin: float) -> None:
    """The library's scores of each pair lie on both sides, and the pair differs in the features of its set alone."""
    for item in flips:
        pair = np.array([[item["points"][p][name] for name in NAMES] for p in ("a", "b")])
        high, low = scores(pair)
        assert high >= margin - 1e-5
        assert low <= -margin + 1e-5
        assert {name for name, x, y in zip(NAMES, *pair, strict=True) if x != y} == set(item["features"])


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("train", [xgboost_model, lightgbm_model, sklearn_model])
@pytest.mark.sampled
def test_sets_are_those_of_trying_all(train: Callable[[int], Made], seed: int) -> None:
    model, scores = train(seed)
    rows = every_input(model)
    known = np.asarray(scores(rows), np.float64)
    sets = [frozenset(c) for n in range(6) for c in itertools.combinations(range(5), n)]
    sizes = set()
    for part in (0.15, 0.4, 0.6, 0.85):
        margin = round(part * min(known.max(), -known.min()), 4) + 0.00003
        flips = flipping_sets(rows, known, margin)
        holds = [one for one in sets if one not in flips]
        found = asked(model, margin)
        assert found.complete
        assert set(found.lattice.having) == {one for one in flips if not any(other < one for other in flips)}
        assert set(found.lattice.lacking) == {one for one in holds if not any(one < other for other in holds)}
        record = plain(found.record())
        assert all(item["minimal"] for item in record["flip"])
        assert all(item["maximal"] for item in record["hold"])
        check_pairs(record["flip"], scores, margin)
        sizes |= {len(one) for one in found.lattice.having}
    assert len(sizes) >= 2


def test_without_time_every_set_is_open_or_right() -> None:
    model, scores = xgboost_model(2)
    rows = every_input(model)
    flips = flipping_sets(rows, np.asarray(scores(rows), np.float64), 0.70003)
    found = asked(model, 0.70003, time_limit=0.0)
    assert all(one in flips for one in found.lattice.having)
    assert not any(one in flips for one in found.lattice.lacking)
    assert found.lattice.open_sets
    assert not found.complete
    assert all(item["reason"] for item in plain(found.record())["open"])


def test_some_features_and_some_sets() -> None:
    model, _ = xgboost_model(3)
    whole, part = asked(model, 0.3), asked(model, 0.3, features=("f1", "f3"))
    assert part.complete
    assert part.lattice.every == {1, 3}
    assert {one for one in whole.lattice.having if one <= {1, 3}} == set(part.lattice.having)
    assert len(asked(model, 0.3, most=1).lattice.having) == 1
    assert not asked(model, 0.3, most=1).complete
    with pytest.raises(UsageError, match="no feature `f9`"):
        asked(model, 0.3, features=("f9",))


def test_a_journal_answers_what_was_asked_before(tmp_path: Path) -> None:
    model, scores = xgboost_model(4)
    whole = asked(model, 0.4)
    stop, answers = threading.Event(), list[str]()

    def after_two(words: str) -> None:
        answers.append(words)
        if len(answers) == 2:
            stop.set()

    with remembered(tmp_path / "sets.sqlite", 30.0, "model 4") as memory:
        first = asked(model, 0.4, memory=memory, stop=stop, say=after_two)
    assert first.asked == 2
    assert not first.complete
    with remembered(tmp_path / "sets.sqlite", 30.0, "model 4") as memory:
        assert memory is not None
        before = sum(1 for _ in memory.journal.entries())
        second = asked(model, 0.4, memory=memory)
        after = sum(1 for _ in memory.journal.entries())
        third = asked(model, 0.4, memory=memory)
        assert sum(1 for _ in memory.journal.entries()) == after
    assert before == 2
    # How many are asked depends on the pairs that answer, and a busy machine may give another pair.
    assert after == second.asked
    expected, record = plain(whole.record()), plain(second.record())
    assert [(x["features"], x["minimal"]) for x in record["flip"]] == [
        (x["features"], x["minimal"]) for x in expected["flip"]
    ]
    check_pairs(record["flip"], scores, 0.4)
    assert record["hold"] == expected["hold"]
    assert plain(third.record())["flip"] == record["flip"]
    with remembered(tmp_path / "sets.sqlite", 30.0, "another model") as memory:
        assert memory is not None
        assert memory.known("anything") is None
