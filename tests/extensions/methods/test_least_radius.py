"""The least largest distance from a row: against every combination of values, by the library itself, and what others found."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import treesens as ts
from tests.corpus import boosted, margins_of
from tests.data.settings import BENCH, needs_bench, needs_distances
from treesens.compiler.result import Result
from treesens.solve.methods import refine

NAMES = ("f0", "f1", "f2")
TOP = {"f0": 1, "f1": 4, "f2": 9}
DOMAIN = "feature f0: real in [0, 1]\nfeature f1: real in [0, 4]\nfeature f2: integer in [0, 9]\n"


def training_set(seed: int, rows: int = 200) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.random(rows), 4 * rng.random(rows), rng.integers(0, 10, rows)]).astype(np.float32)
    noise = rng.normal(0, 0.3, rows)
    return x, (np.sin(5 * x[:, 0]) + 0.4 * x[:, 1] - 0.2 * x[:, 2] + noise > 0.4).astype(np.int64)


def xgboost_model(seed: int) -> tuple[Any, Callable[[NDArray[np.float32]], NDArray[np.int64]], dict[str, list[float]]]:
    x, y = training_set(seed)
    booster = boosted(x, y, 3, names=NAMES, base_score=0.5, eta=0.7)

    def classes(rows: NDArray[np.float32]) -> NDArray[np.int64]:
        margins = margins_of(booster, rows)
        return (np.asarray(margins) > 0).astype(np.int64)

    splits = booster.trees_to_dataframe().dropna(subset=["Split"])
    return booster, classes, {n: splits[splits["Feature"] == n]["Split"].tolist() for n in NAMES}


def forest_model(seed: int) -> tuple[Any, Callable[[NDArray[np.float32]], NDArray[np.int64]], dict[str, list[float]]]:
    from sklearn.ensemble import RandomForestClassifier

    x, y = training_set(seed)
    forest = RandomForestClassifier(n_estimators=3, max_depth=3, random_state=seed).fit(x, y)
    cuts: dict[str, list[float]] = {n: [] for n in NAMES}
    for tree in forest.estimators_:
        for feature, threshold in zip(tree.tree_.feature, tree.tree_.threshold, strict=True):
            if feature >= 0:
                cuts[NAMES[feature]].append(float(threshold))
    return forest, lambda rows: np.asarray(forest.predict(rows), np.int64), cuts


def candidates(row: NDArray[np.float32], cuts: dict[str, list[float]]) -> NDArray[np.float32]:
    """Every combination of values that may be nearest: the row's own, the floats around thresholds, whole numbers."""
    columns = []
    for i, name in enumerate(NAMES):
        at = np.array(sorted(set(cuts[name])), np.float32)
        floats = np.concatenate(
            [at, np.nextafter(at, np.float32(-9)), np.nextafter(at, np.float32(99)), row[i : i + 1]]
        )
        inside = floats[(floats >= 0) & (floats <= TOP[name])]
        columns.append(np.arange(10, dtype=np.float32) if name == "f2" else np.unique(inside))
    return np.array(list(itertools.product(*columns)), np.float32)


def distances(points: NDArray[np.float32], row: NDArray[np.float32]) -> NDArray[np.float64]:
    away = np.abs(points.astype(np.float64) - row.astype(np.float64)) / np.array([TOP[n] for n in NAMES])
    return np.asarray(away.max(axis=1))


@pytest.fixture
def by_questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions for which the search over radii had no answer, so that whole questions are asked instead."""
    asked_whole: list[str] = []

    class Noted(refine.Bisection):
        def run(self) -> Result:
            asked_whole.append(self.query.name)
            return super().run()

    monkeypatch.setattr(refine, "Bisection", Noted)
    return asked_whole


@pytest.mark.parametrize("make", [xgboost_model, forest_model])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.sampled
def test_the_least_radius_is_that_of_trying_all_values(
    make: Callable[[int], Any], seed: int, by_questions: list[str]
) -> None:
    model, classes, cuts = make(seed)
    rows, _ = training_set(100 + seed, 6)
    found = 0
    for row in rows:
        own = int(classes(row[None])[0])
        points = candidates(row, cuts)
        other = points[classes(points) != own]
        answer = asked(model, row, own)
        if len(other) == 0:
            assert str(answer.verdict) == "none"
            continue
        found += 1
        goal = answer.result.objective
        least = float(distances(other, row).min())
        assert goal.value == goal.bound
        assert goal.value == pytest.approx(least, rel=1e-12, abs=0)
        values = answer.result.witness.values.astype(np.float32)
        assert int(classes(values)[0]) != own
        assert float(distances(values, row)[0]) == pytest.approx(least, rel=1e-12, abs=0)
    assert found >= 3
    # Votes of a forest tie, and its library decides ties by rounding: that is what whole questions are for.
    assert not by_questions or make is forest_model


def asked(model: Any, row: NDArray[np.float32], own: int) -> Any:
    import pandas as pd

    frame = pd.DataFrame(row[None], columns=list(NAMES))
    lines = f'model m from "m"\ndata d from "d"\n{DOMAIN}'
    lines += f"query q: find a such that class(a) = {1 - own}\n  minimize distance(a, row 0 of d, linf)\n"
    return ts.check_text(lines, models={"m": model}, data={"d": frame})["q"]


def known_distances(model: str) -> dict[int, dict[str, dict[str, float]]]:
    """By row and source: what others found of the largest norm."""
    known: dict[int, dict[str, dict[str, float]]] = {}
    for line in (BENCH / "local" / "distances.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["model"] == model and record["norm"] == "linf":
            known.setdefault(record["row"], {})[record["source"]] = record
    return known


@needs_bench
@needs_distances
@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "ijcnn"])
@pytest.mark.parametrize("kind", ["robust", "unrobust"])
def test_others_agree_on_published_models(name: str, kind: str, by_questions: list[str]) -> None:
    model = f"{name}_{kind}"
    known = known_distances(model)
    rows = [row for row in sorted(known) if "veritas" in known[row]][:8]
    bound = questions(model, name, rows)
    for row, answer in zip(rows, bound, strict=True):
        veritas = known[row]["veritas"]
        goal = answer.result.objective
        if goal is None:
            assert str(answer.verdict) == "none"
            assert veritas["example"] is None
            continue
        assert goal.value == goal.bound
        assert goal.value >= veritas["lower"] - 1e-6
        if veritas["example"] is not None:
            assert goal.value <= veritas["example"] + 1e-6
    assert by_questions == []


def questions(model: str, name: str, rows: list[int]) -> list[Any]:
    import xgboost as xgb

    table = BENCH / "local" / f"rows_{name}.csv"
    booster = xgb.Booster(model_file=str(BENCH / "models" / f"{model}.json"))
    values = np.genfromtxt(table, delimiter=",", skip_header=1, dtype=np.float32)
    margins = margins_of(booster, values)
    text = f'model m from "{BENCH / "models" / model}.json"\ndata d from "{table}"\n'
    text += "".join(f"feature f{i}: real in [0, 1]\n" for i in range(values.shape[1]))
    for row in rows:
        label = 0 if margins[row] > 0 else 1
        text += f"query r{row}: find a such that class(a) = {label}\n  minimize distance(a, row {row} of d, linf)\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "q.sens"
        path.write_text(text)
        answers = ts.check(path, time_limit=20)
    return [answers[f"r{row}"] for row in rows]
