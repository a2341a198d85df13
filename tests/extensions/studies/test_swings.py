"""One optimiser: an audit, the largest gap and a question give the same swing, and it is the library's own.

A search for the largest swing that time ends: the row that swings most is shown in the units of the score.

Scores of forests are means over trees. The sum over trees was shown in their place, as a proved largest swing of a score
that is a probability.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.extensions.studies.asked import found as found_by
from tests.extensions.studies.grids import GRID, NAMES
from tests.solve.test_tolerances import DOMAIN, regressor
from treesens.data.tables import read_table
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.audit_search import audit
from treesens.extensions.studies.events import gaps_of
from treesens.frontends.registry import load

ASK = """model m from "m"
{domain}
query q:
  find a, b such that
    a = b except {name}
  maximize value(a) - value(b)
"""


def test_swings_agree_everywhere() -> None:
    model, scores = regressor(seed=4)
    loaded, table = load(model), read_table(pd.DataFrame(GRID.astype(int), columns=NAMES))
    records = audit(loaded, table, gaps=gaps_of(["0.5"], []), options=AuditOptions(time_limit=30.0, jobs=1)).records
    swings = {record["varied"][0]: record for record in records}
    gaps = {one.varied[0]: one for one in found_by("gap", loaded, table=table, time_limit=30.0, threads=1).result}
    for axis, name in enumerate(NAMES):
        truth = float((scores.max(axis=axis) - scores.min(axis=axis)).max())
        answer = ts.check_text(ASK.format(domain=DOMAIN, name=name), models={"m": model})["q"].to_dict()["objective"]
        values = [swings[name]["max_swing"], gaps[name].value, answer["value"]]
        bounds = [swings[name]["max_swing_bound"], gaps[name].bound, answer["bound"]]
        assert values == pytest.approx([truth] * 3, abs=1e-5)
        assert bounds == pytest.approx(values, rel=1.1e-6)
        assert swings[name]["max_swing_status"] in {"optimal", "within tolerance"}
        assert gaps[name].closed


COLUMNS = [f"f{i}" for i in range(8)]


def fitted() -> tuple[Any, pd.DataFrame]:
    ensemble = pytest.importorskip("sklearn.ensemble")
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.integers(0, 6, (400, 8)), columns=COLUMNS)
    label = (table.f0 * table.f1 + table.f2 * table.f3 + random.normal(0, 4, 400) > 12).astype(int)
    return ensemble.RandomForestClassifier(60, max_depth=7, random_state=0, n_jobs=1).fit(table, label), table


def swings(forest: Any, table: pd.DataFrame, feature: str) -> float:
    """The largest change of the library's probability over the rows and all values of the feature."""
    shown = [forest.predict_proba(table.assign(**{feature: value}))[:, 1] for value in range(6)]
    return float((np.max(shown, axis=0) - np.min(shown, axis=0)).max())


@pytest.mark.fault
def test_the_swing_of_a_row_is_one_of_the_library() -> None:
    forest, table = fitted()
    told = ts.audit(forest, table, vary=["f0", "f1"], gap=0.1, time_limit=0.001).records
    assert {tuple(record["varied"]) for record in told} == {("f0",), ("f1",)}
    for record in told:
        value, bound = record["max_swing"], record["max_swing_bound"]
        assert swings(forest, table, record["varied"][0]) - 1e-9 <= value <= bound <= 1.0 + 1e-12
