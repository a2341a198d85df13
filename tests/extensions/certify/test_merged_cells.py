"""Proofs of compiled questions, in which cells are merged that no split parts under the values of other features."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.corpus import boosted, margins_of
from tests.extensions.certify.made import query_of
from treesens.extensions.certify import produce
from treesens.extensions.certify.statement import statement_of

NAMES = ["x", "y", "z"]
AGES = np.arange(18, 80)


def test_proofs_about_rows_are_accepted(tmp_path: Path) -> None:
    """XGBoost says how far `x` alone moves each row; beyond that there is no pair. The engine's proof names merged cells by the
    last of them, and was rejected for some rows if a split between them matters elsewhere.
    """
    random, n = np.random.default_rng(2), 400
    rows = np.stack([random.integers(18, 80, n), random.integers(0, 6, n), random.integers(0, 4, n)], axis=1)
    label = np.sin(rows[:, 0] / 6 + rows[:, 1]) + rows[:, 2] * (rows[:, 0] > 40) / 3 + random.normal(0, 0.3, n) > 0.5
    booster = boosted(rows, label, 14, names=NAMES, path=tmp_path / "m.json", eta=0.5, base_score=0.5)
    proved = 0
    for y, z in ((y, z) for y in range(6) for z in range(4)):
        inputs = np.stack([AGES, np.full(len(AGES), y), np.full(len(AGES), z)], axis=1)
        margins = margins_of(booster, inputs)
        beyond = (float(margins.max()) + 0.01, float(margins.min()) - 0.01)
        text = (
            'model m from "m.json"\nfeature x: integer in [18, 79]\nfeature y: integer in [0, 5]\n'
            f"feature z: integer in [0, 3]\nquery q: find a, b in m such that a = b except x; a.y = {y}; a.z = {z}\n"
            f"  margin(a) - margin(b) >= {beyond[0] - beyond[1]:.6f}\n"
        )
        statement = statement_of(query_of(text, tmp_path))
        problem = produce._problem(statement)
        document = produce._document(statement, statement.query, "none")
        made = produce._checked(document | produce._prove_compiled(statement, problem, 20), statement.files, 0.0)
        proved += bool(made.document["nodes"][0])
    assert proved == 24
