"""Likelihoods over many features have rows of many terms: widened regions take them (third review: 18)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import treesens as ts
from tests.corpus import boosted

pytestmark = pytest.mark.fault

ASKED = {
    "one": "find a in m such that likelihood(a, d) >= 1e-30",
    "product": "find a, b in m such that a = b except f0; likelihood(a, d) * likelihood(b, d) >= 1e-60",
    "objective": "find a in m such that margin(a) >= 0 maximize likelihood(a, d)",
    "never": "find a in m such that likelihood(a, d) >= 1",
}


@pytest.mark.parametrize("features", [5, 16, 17, 40])
def test_every_number_of_features_is_answered(features: int, tmp_path: Path) -> None:
    """At least two values of each feature are in the table, so the likelihood of a row is between 2^-70 and 1."""
    rng = np.random.default_rng(features)
    table = rng.integers(0, 2, (60, features))
    names = [f"f{i}" for i in range(features)]
    label = (table.sum(axis=1) + rng.normal(size=60) > features / 2).astype(int)
    boosted(table, label, 25, names=names, path=tmp_path / "m.json", base_score=0.5, colsample_bytree=0.5)
    np.savetxt(tmp_path / "d.csv", table, fmt="%d", delimiter=",", header=",".join(names), comments="")
    questions = "".join(f"query {name}: {text}\n" for name, text in ASKED.items())
    head = 'model m from "m.json"\ndata d from "d.csv"\ndomain from d\n'
    (tmp_path / "q.sens").write_text(head + questions)
    answers = {name: one.to_dict() for name, one in ts.check(tmp_path / "q.sens", time_limit=30).items()}
    for name in ("one", "product", "objective"):
        assert answers[name]["verdict"] == "found", answers[name]
        assert not any("error[" in note for note in answers[name].get("notes", [])), answers[name]["notes"]
    assert answers["never"]["verdict"] == "none"
