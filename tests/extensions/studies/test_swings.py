"""One optimiser: an audit, the largest gap and a question give the same swing, and it is the library's own."""

from __future__ import annotations

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
