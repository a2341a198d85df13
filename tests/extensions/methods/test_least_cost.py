"""The least distance from a row in l1, l2 and l0: against every combination of values, by the library itself."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import treesens as ts
from tests.corpus import boosted, margins_of
from tests.data.settings import BENCH, needs_bench, needs_distances
from tests.extensions.methods.test_least_radius import (
    DOMAIN,
    NAMES,
    TOP,
    candidates,
    forest_model,
    training_set,
    xgboost_model,
)
from tests.questions import every_input, random_query
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.evaluate import holds
from treesens.compiler.query.query import AnyOf, CellSet, Query
from treesens.extensions.methods import least_cost
from treesens.extensions.methods.cost_search import CostOutcome, least_cost_on_trees

NORMS = ("l1", "l2", "l0")


@pytest.fixture
def left_over(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Questions that this search leaves to the general one. It has a minute, so that a busy machine changes nothing."""
    asked_again: list[str] = []

    search = least_cost.search_least_cost

    def first(asked: Any, budget: Any) -> Any:
        settled = search(asked, Budget.of(60))
        if settled is None:
            asked_again.append(asked.query.name)
        return settled

    monkeypatch.setattr(least_cost, "_MOMENT", 60.0)
    monkeypatch.setattr(least_cost, "search_least_cost", first)
    return asked_again


def distances(points: NDArray[Any], row: NDArray[Any], norm: str) -> NDArray[np.float64]:
    """Exact enough: widths are whole numbers, and values floats of 24 bits."""
    away = np.abs(points.astype(np.float64) - row.astype(np.float64)) / np.array([TOP[n] for n in NAMES])
    if norm == "l0":
        return np.asarray((away > 0).sum(axis=1), np.float64)
    return np.asarray(away.sum(axis=1) if norm == "l1" else np.sqrt((away**2).sum(axis=1)))


def asked(model: Any, frame: Any, condition: str, declarations: str = DOMAIN) -> dict[str, Any]:
    """The answers to one question per norm."""
    lines = f'model m from "m"\ndata d from "d"\n{declarations}'
    for norm in NORMS:
        lines += f"query {norm}: find a such that {condition}\n  minimize distance(a, row 0 of d, {norm})\n"
    answers = ts.check_text(lines, models={"m": model}, data={"d": frame})
    return {norm: answers[norm] for norm in NORMS}


def check(answer: Any, least: float | None, norm: str) -> None:
    """The verdict, the value and the bound against the least distance of all."""
    if least is None:
        assert str(answer.verdict) == "none"
        return
    goal = answer.result.objective
    assert goal.value == pytest.approx(least, rel=1e-9, abs=0)
    assert goal.bound <= least * (1 + 1e-12)
    assert goal.bound >= least * (1 - 1e-6)
    if norm == "l0":
        assert goal.bound == least


@pytest.mark.parametrize("make", [xgboost_model, forest_model])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.sampled
def test_the_least_distance_is_that_of_trying_all_values(
    make: Callable[[int], Any], seed: int, left_over: list[str]
) -> None:
    import pandas as pd

    model, classes, cuts = make(seed)
    rows, _ = training_set(100 + seed, 3)
    found = 0
    for row in rows:
        own = int(classes(row[None])[0])
        points = candidates(row, cuts)
        other = points[classes(points) != own]
        found += len(other) > 0
        frame = pd.DataFrame(row[None], columns=list(NAMES))
        for norm, answer in asked(model, frame, f"class(a) = {1 - own}").items():
            check(answer, float(distances(other, row, norm).min()) if len(other) else None, norm)
            if answer.result.witness is not None:
                values = answer.result.witness.values.astype(np.float32)
                assert int(classes(values)[0]) != own
                reached = float(distances(values, row, norm)[0])
                assert reached == pytest.approx(answer.result.objective.value, rel=1e-12, abs=0)
    assert found >= 1
    # Votes of a forest tie, and its library decides ties by rounding: then the usual search is asked.
    assert not left_over or make is forest_model


@pytest.mark.parametrize("seed", range(4))
def test_several_classes_are_alternatives(seed: int, left_over: list[str]) -> None:
    import pandas as pd

    x, _ = training_set(seed)
    y = np.digitize(np.sin(5 * x[:, 0]) + 0.4 * x[:, 1] - 0.2 * x[:, 2], [0.0, 0.8])
    booster = boosted(x, y, 2, 2, names=NAMES, num_class=3, eta=0.7)

    def classes(rows: NDArray[Any]) -> NDArray[Any]:
        margins = margins_of(booster, rows)
        return np.asarray(margins.argmax(axis=1))

    splits = booster.trees_to_dataframe().dropna(subset=["Split"])
    cuts = {n: splits[splits["Feature"] == n]["Split"].tolist() for n in NAMES}
    for row in training_set(100 + seed, 3)[0]:
        own = int(classes(row[None])[0])
        points = candidates(row, cuts)
        other = points[classes(points) != own]
        frame = pd.DataFrame(row[None], columns=list(NAMES))
        for norm, answer in asked(booster, frame, f"class(a) != {own}").items():
            check(answer, float(distances(other, row, norm).min()) if len(other) else None, norm)
    assert left_over == []


@pytest.mark.parametrize("seed", range(4))
def test_missing_values_and_categories_are_one_width_away(seed: int, left_over: list[str]) -> None:
    import pandas as pd
    import xgboost as xgb

    rng = np.random.default_rng(seed)
    number = np.where(rng.random(150) < 0.2, np.nan, rng.random(150)).astype(np.float32)
    kind = rng.integers(0, 4, 150)
    y = (np.nan_to_num(number, nan=0.8) + 0.3 * (kind == 2) + rng.normal(0, 0.2, 150) > 0.7).astype(int)
    types = ["q", "c"]
    data = xgb.DMatrix(
        np.column_stack([number, kind]), y, feature_names=["n", "k"], feature_types=types, enable_categorical=True
    )
    booster = xgb.train(
        {"max_depth": 3, "objective": "binary:logistic", "base_score": 0.5, "nthread": 1, "max_cat_to_onehot": 1},
        data,
        num_boost_round=4,
    )
    cuts = [float(s) for s in booster.get_split_value_histogram("n")["SplitValue"]] if booster.get_fscore() else []
    splits = [
        node["split_condition"]
        for tree in booster.get_dump(dump_format="json")
        for node in _splits(json.loads(tree))
        if node["split"] == "n"
    ]
    at = np.array([*cuts, *splits], np.float32)
    declarations = "feature n: real in [0, 1] or missing\nfeature k: category {A = 0, B = 1, C = 2, D = 3}\n"

    def classes(points: NDArray[Any]) -> NDArray[Any]:
        made = xgb.DMatrix(points, feature_names=["n", "k"], feature_types=types, enable_categorical=True)
        return np.asarray(booster.predict(made, output_margin=True) > 0)

    found = 0
    for _ in range(4):
        row = np.array([rng.choice([np.nan, rng.random()]), rng.integers(4)], np.float32)
        own = bool(classes(row[None])[0])
        floats = np.concatenate([at, np.nextafter(at, np.float32(-9)), row[:1], [np.nan]]).astype(np.float32)
        floats = floats[np.isnan(floats) | ((floats >= 0) & (floats <= 1))]
        points = np.array(list(itertools.product(floats, range(4))), np.float32)
        other = points[classes(points) != own]
        found += len(other) > 0
        both = np.isnan(other[:, 0]) & np.isnan(row[0])
        one = np.isnan(other[:, 0]) != np.isnan(row[0])
        away = np.where(both, 0.0, np.where(one, 1.0, np.abs(other[:, 0].astype(float) - float(row[0]))))
        unequal = (other[:, 1] != row[1]).astype(float)
        least = {
            "l1": away + unequal,
            "l2": np.sqrt(away**2 + unequal),
            "l0": (away > 0) + unequal,
        }
        frame = pd.DataFrame({"n": row[:1], "k": [int(row[1])]})
        for norm, answer in asked(booster, frame, f"class(a) = {int(not own)}", declarations).items():
            check(answer, float(least[norm].min()) if len(other) else None, norm)
    assert found >= 1
    assert left_over == []


def _splits(node: dict[str, Any]) -> list[dict[str, Any]]:
    if "children" not in node:
        return []
    return [node, *(found for child in node["children"] for found in _splits(child))]


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.sampled
def test_the_cheapest_cells_are_those_of_trying_all(seed: int) -> None:
    """Questions about two points, with weak and strict bounds, sets of cells, boxes to avoid and alternatives."""
    rng = np.random.default_rng(4000 + seed)
    found = 0
    for _ in range(40):
        query = random_query(rng)
        places = [(p, f) for p in (0, 1) for f in range(len(query.space.names)) if rng.random() < 0.7]
        largest = int(rng.choice([2, 9, 10**6, 10**15]))
        costs = {place: rng.integers(0, largest, query.space.grid[place[1]].n_cells) for place in places}
        for cost in costs.values():
            cost[rng.random(len(cost)) < 0.1] = -1
        outcome = least_cost_on_trees(query, costs, Budget.of(20.0), seed=seed)
        if outcome is None:
            assert _is_beyond(query) or _is_empty(query, costs)
            continue
        found += _judge(query, costs, outcome)
    assert found >= 3


def _is_beyond(query: Query) -> bool:
    return sum(isinstance(c, AnyOf) for c in query.constraints) > 1


def _is_empty(query: Query, costs: dict[Any, Any]) -> bool:
    """Whether sets of cells alone leave nothing of some feature."""
    sets = [c for c in query.constraints if isinstance(c, CellSet)]
    return not any(_total(costs, x.cells) is not None and all(holds(c, x) for c in sets) for x in every_input(query))


def _total(costs: dict[Any, Any], cells: Any) -> int | None:
    paid = [int(cost[cells[place]]) for place, cost in costs.items()]
    return None if any(p < 0 for p in paid) else sum(paid)


def _judge(query: Query, costs: dict[Any, Any], outcome: CostOutcome) -> bool:
    totals = [
        total
        for x in every_input(query)
        if (total := _total(costs, x.cells)) is not None and all(holds(c, x) for c in query.constraints)
    ]
    assert outcome.closed, outcome.reason
    if not totals:
        assert outcome.cells is None
        return False
    assert outcome.cells is not None
    reached = _total(costs, outcome.cells)
    assert reached is not None
    assert any(np.array_equal(x.cells, outcome.cells) for x in every_input(query))
    assert outcome.low <= min(totals) <= reached
    assert reached - outcome.low <= max(totals) >> 28
    return True


def test_a_bound_that_is_shown_is_never_above_what_is_proved() -> None:
    from treesens.compiler.query.query import LinearForm, Objective

    rng = np.random.default_rng(1)
    for kind in ("distance l1", "distance l2"):
        goal = Objective(LinearForm(), False, kind)
        for _ in range(2000):
            bound = Fraction(int(rng.integers(1, 1 << 60)), 1 << int(rng.integers(50, 120)))
            shown = Fraction(least_cost.shown_bound(goal, bound))
            assert (shown**2 if kind == "distance l2" else shown) <= bound
            assert float(shown) == pytest.approx(float(bound) if kind == "distance l1" else sqrt(float(bound)))


@needs_bench
@needs_distances
@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "ijcnn"])
def test_no_distance_is_further_than_that_of_an_attack(name: str, left_over: list[str]) -> None:
    from treesens.data.tables import read_table
    from treesens.extensions.studies.robust import RobustOptions
    from treesens.extensions.studies.robust_search import ask as robustness
    from treesens.extensions.studies.study import Asking
    from treesens.frontends.registry import load

    model = load(BENCH / "models" / f"{name}_unrobust.json", None)
    table = read_table(BENCH / "local" / f"rows_{name}.csv")
    records = [json.loads(line) for line in (BENCH / "local" / "distances.jsonl").read_text().splitlines()]
    for norm in ("l1", "l2"):
        known = {
            r["row"]: r["upper"]
            for r in records
            if r["model"] == f"{name}_unrobust" and r["norm"] == norm and r["source"] == "LT-attack"
        }
        rows = sorted(known)[:6]
        options = RobustOptions(rows=rows, norm=norm, range=(Fraction(0), Fraction(1)), time_limit=30)
        for row in robustness(Asking((model,), table, options)).result.rows:
            assert row.closed
            assert row.distance is not None
            assert row.distance <= known[row.row] * 1.0001
    assert left_over == []
