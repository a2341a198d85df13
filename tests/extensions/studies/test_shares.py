"""Shares of inputs against the libraries' own predictions of every input."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.corpus import boosted
from tests.extensions.studies.share_cases import CASES, FEATURES, NAMES, Case, concerned_inputs, crosses
from treesens.data.tables import read_table
from treesens.extensions.measure.counted import counted_of
from treesens.extensions.measure.measures import MeasureName, measure_of
from treesens.extensions.measure.search import ShareSearch
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.audit_search import audit
from treesens.extensions.studies.count import CountOptions
from treesens.extensions.studies.count_search import Unit, ask, units_of
from treesens.extensions.studies.events import gaps_of
from treesens.extensions.studies.study import Asking
from treesens.records.plain import plain

STOPS = (1, 2, 4, 8, 10**6)
"""Boxes after which a search stops: what is proved at any time has to hold the truth."""


def units(case: Case, varied: tuple[int, ...], size: str, **options: Any) -> list[Unit]:
    gaps = gaps_of([size], []) if case.kind == "gap" else gaps_of([], [size])
    table = read_table(case.frame)
    return units_of(case.model, table, [[NAMES[f] for f in varied]], gaps, CountOptions(**options))


def intervals(unit: Unit, measure: MeasureName) -> list[tuple[float, float]]:
    query = unit.question.query
    found, counted = [], counted_of(query)
    for boxes in STOPS:
        search = ShareSearch(counted.trees, counted.sides, measure_of(measure, unit.question))
        search.run(30.0, most_boxes=boxes)
        masses = search.masses()
        found.append((masses.lower, masses.upper))
    return found


def weights_of(case: Case, measure: MeasureName, options: list[Any]) -> list[Any]:
    """The share of every value of a feature."""
    if measure == "uniform":
        return [np.full(len(o), 1 / len(o)) for o in options]
    return [np.array([(case.frame[name] == v).mean() for v in o]) for name, o in zip(NAMES, options, strict=True)]


@pytest.mark.parametrize("make", CASES)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sampled
def test_every_interval_holds_the_share_that_the_library_predicts(make: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    case = make(random)
    options = [np.unique(case.frame[name]) for name in NAMES]
    asked = 0
    for varied in [(f,) for f in range(FEATURES)] + list(combinations(range(FEATURES), 2))[:3]:
        for size in case.sizes:
            for unit, concerned in zip(units(case, varied, size), case.concerned, strict=True):
                found = concerned_inputs(case, options, varied, float(size), concerned)
                if found is None:
                    continue
                places = list(found)
                others = [f for f in range(FEATURES) if f not in varied]
                for measure in ("uniform", "marginals"):
                    weights = weights_of(case, measure, options)
                    truth = sum(
                        np.prod([weights[f][at] for f, at in zip(others, place, strict=True)])
                        for place, is_concerned in places
                        if is_concerned
                    )
                    for low, high in intervals(unit, measure):
                        assert low - 1e-12 <= truth <= high + 1e-12
                    assert high - low < 1e-9
                    asked += 1
    assert asked > 10


def _cell_lengths(case: Case, thresholds: dict[int, Any]) -> tuple[list[Any], list[Any]]:
    """A value inside every cell of the range of each column, and the length of the cell."""
    values, weights = [], []
    for f, name in enumerate(NAMES):
        low, high = case.frame[name].min(), case.frame[name].max()
        inner = sorted({t for t in thresholds.get(f, ()) if low < t < high})
        ends = np.array([low, *inner, high])
        values.append((ends[:-1] + ends[1:]) / 2)
        weights.append(np.diff(ends) / (high - low))
    return values, weights


@pytest.mark.parametrize("seed", range(6))
def test_uniform_on_real_features_is_by_length_and_cells_are_counted(seed: int) -> None:
    """Cells from the thresholds of scikit-learn's own trees; NaN is no input here."""
    from sklearn.ensemble import RandomForestRegressor

    from treesens.python.questions import load

    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.random((80, FEATURES)), columns=NAMES)
    forest = RandomForestRegressor(n_estimators=3, max_depth=3, random_state=seed)
    forest.fit(frame, frame.to_numpy() @ random.normal(size=FEATURES))
    thresholds: dict[int, Any] = {}
    for tree in forest.estimators_:
        for f, t in zip(tree.tree_.feature, tree.tree_.threshold, strict=True):
            if f >= 0:
                thresholds.setdefault(int(f), set()).add(float(t))
    case = Case(
        "real", load(forest), frame, lambda rows: forest.predict(pd.DataFrame(rows, columns=NAMES)).reshape(-1, 1),
        "gap", ["0.1137"], [lambda s, g: bool(s.max() - s.min() >= g)],
    )  # fmt: skip
    values, lengths = _cell_lengths(case, thresholds)
    for varied in ((0,), (1,), (2, 3)):
        (unit,) = units(case, varied, "0.1137")
        found = concerned_inputs(case, values, varied, 0.1137, case.concerned[0])
        if found is None:
            continue
        others = [f for f in range(FEATURES) if f not in varied]
        by_length = by_count = 0.0
        for place, is_concerned in found:
            by_length += is_concerned * np.prod([lengths[f][at] for f, at in zip(others, place, strict=True)])
            by_count += is_concerned / np.prod([len(values[f]) for f in others])
        for measure, truth in (("uniform", by_length), ("cells", by_count)):
            for low, high in intervals(unit, measure):  # type: ignore[arg-type]
                # Thresholds of scikit-learn are float64, its inputs float32: lengths differ in the eighth digit.
                assert low - 1e-6 <= truth <= high + 1e-6


@pytest.mark.parametrize("make", CASES)
def test_rows_are_the_rows_that_the_audit_finds(make: Any) -> None:
    for seed in range(4):
        case = make(np.random.default_rng(100 + seed))
        gaps = gaps_of(case.sizes, []) if case.kind == "gap" else gaps_of([], case.sizes)
        table = read_table(case.frame)
        audited = audit(case.model, table, gaps=gaps, options=AuditOptions(time_limit=20.0, jobs=1)).records
        options = CountOptions(measure="rows", **{case.kind: case.sizes})
        counted = map(plain, ask(Asking((case.model,), table, options)).records)
        flipped = {(tuple(r["varied"]), str(r.get("classes")), r[case.kind]): r["rows_flipped"] for r in audited}
        for record in counted:
            key = tuple(record["varied"]), str(record.get("classes")), record[case.kind]
            assert record["rows_concerned"] == flipped[key]
            assert record["lower"] == record["upper"] == record["rows_concerned"] / record["rows"]


@pytest.mark.parametrize("seed", range(4))
def test_missing_values_have_the_share_that_the_measure_gives_them(seed: int) -> None:
    """xgboost with NaN: by marginals as frequent as in the rows, as a cell of its own, and without any share by uniform."""
    import xgboost as xgb

    from treesens.grammar.parsing.parser import parse
    from treesens.grammar.tree import ast
    from treesens.python.questions import load

    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.integers(0, 4, (150, FEATURES)).astype(float), columns=NAMES)
    label = (frame.sum(axis=1) + random.normal(size=150) > 6).astype(int)
    for name in NAMES[1:]:
        frame.loc[random.random(150) < 0.2, name] = np.nan
    booster = boosted(frame, label, 5, eta=0.8, base_score=0.5)

    def scores(rows: Any) -> Any:
        data = xgb.DMatrix(pd.DataFrame(rows, columns=NAMES))
        return np.asarray(booster.predict(data, output_margin=True), np.float64).reshape(-1, 1)

    case = Case("missing", load(booster), frame, scores, "margin", ["0.123"], [crosses])
    text = "".join(f"feature {name}: integer in [0, 3] or missing\n" for name in NAMES[1:])
    domain = tuple(item for item in parse(text).declarations if isinstance(item, ast.Feature))
    options = [np.arange(4.0)] + [np.array([0.0, 1.0, 2.0, 3.0, np.nan])] * 3
    for varied in ((0,), (1,), (1, 2)):
        (unit,) = units(case, varied, "0.123", domain=domain)
        found = concerned_inputs(case, options, varied, 0.123, crosses)
        if found is None:
            continue
        places, others = list(found), [f for f in range(FEATURES) if f not in varied]
        rows = [np.array([frame[n].isna().mean() if np.isnan(v) else (frame[n] == v).mean() for v in options[f]])
                for f, n in enumerate(NAMES)]  # fmt: skip
        even = [np.full(4, 0.25)] + [np.array([0.25] * 4 + [0.0])] * 3
        for measure, weights in (("marginals", rows), ("uniform", even)):
            truth = sum(
                np.prod([weights[f][at] for f, at in zip(others, place, strict=True)])
                for place, is_concerned in places
                if is_concerned
            )
            for low, high in intervals(unit, measure):  # type: ignore[arg-type]
                assert low - 1e-12 <= truth <= high + 1e-12
            assert high - low < 1e-9


@pytest.mark.parametrize("make", CASES)
@pytest.mark.parametrize("bits", [5, 12, 20])
def test_scores_too_long_for_exact_sums_leave_the_interval_true(
    make: Any, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer bits than a model has: what rounding leaves open stays open, and nothing else changes."""
    monkeypatch.setattr("treesens.extensions.measure.sides.SCORE_BITS", bits)
    open_ones = 0
    for seed in range(4):
        case = make(np.random.default_rng(500 + seed))
        options = [np.unique(case.frame[name]) for name in NAMES]
        for unit, concerned in zip(units(case, (0,), case.sizes[0]), case.concerned, strict=True):
            found = concerned_inputs(case, options, (0,), float(case.sizes[0]), concerned)
            if found is None:
                continue
            weights = weights_of(case, "uniform", options)
            truth = sum(np.prod([weights[f][at] for f, at in enumerate(place, start=1)]) for place, hit in found if hit)
            for low, high in intervals(unit, "uniform"):
                assert low - 1e-12 <= truth <= high + 1e-12
            open_ones += high - low > 1e-9
    assert bits > 5 or open_ones
