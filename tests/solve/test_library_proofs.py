"""A `none` that only the rounded sums of the library justify is of the class `library`, never `exact` (third review: P10)."""

from __future__ import annotations

import itertools
import json
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.corpus import margins_of, regressed

xgboost = pytest.importorskip("xgboost")
pytestmark = pytest.mark.fault

VALUES = range(5)


def train(path: Path, seed: int) -> tuple[Any, dict[str, Any]]:
    """A regressor whose leaves differ from -1 or 1 by a few units in the last place, so that its float sums round."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 5, (120, 3)).astype(np.float32)
    made = regressed(table, rng.normal(size=120), 4, 2, base_score=0.5, eta=1, reg_lambda=0)
    document: dict[str, Any] = json.loads(bytes(made.save_raw("json")))
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        for node, left in enumerate(tree["left_children"]):
            if left < 0:
                tree["split_conditions"][node] = float(rng.choice([-1, 1]) * (1 + rng.integers(-3, 4) * 2.0**-23))
    path.write_text(json.dumps(document))
    return xgboost.Booster(model_file=path), document


def exact_score(document: dict[str, Any], row: tuple[int, ...]) -> Fraction:
    """The sum of the file's leaves and base, as XGBoost documents its trees (less than the threshold goes left)."""
    total = Fraction(1, 2)
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        node = 0
        while tree["left_children"][node] >= 0:
            left = row[tree["split_indices"][node]] < np.float32(tree["split_conditions"][node])
            node = tree["left_children" if left else "right_children"][node]
        total += Fraction(tree["split_conditions"][node])
    return total


def decimal(value: Fraction) -> str:
    """All digits of a fraction whose denominator is a power of two."""
    with localcontext(prec=200):
        return format(Decimal(value.numerator) / Decimal(value.denominator), "f")


def test_only_the_sums_of_the_library_have_none(tmp_path: Path) -> None:
    rows = list(itertools.product(VALUES, repeat=3))
    seen = {"library": 0, "found": 0, "exact": 0}
    for seed in range(12):
        booster, document = train(tmp_path / "m.json", seed)
        scores = {row: exact_score(document, row) for row in rows}
        floats = margins_of(booster, np.array(rows, np.float32))
        most = max(scores.values())
        exact_has = [row for row in rows if scores[row] >= most]
        library_has = [row for row, score in zip(rows, floats, strict=True) if Fraction(float(score)) >= most]
        domain = "".join(f"feature f{i}: integer in [0, 4]\n" for i in range(3))
        (tmp_path / "q.sens").write_text(
            f'model m from "m.json"\n{domain}query reached: find a in m such that margin(a) >= {decimal(most)}\n'
            f"query beyond: find a in m such that margin(a) > {decimal(most + Fraction(1, 2**10))}\n"
        )
        answers = ts.check(tmp_path / "q.sens", backend="native", tolerance=0.0)
        reached, beyond = answers["reached"].to_dict(), answers["beyond"].to_dict()
        if set(exact_has) & set(library_has):
            assert reached["verdict"] == "found"
            seen["found"] += 1
        else:
            assert reached["verdict"] in {"none", "unknown"}
            if reached["verdict"] == "none":
                assert reached["proof"] == "library"
                assert any("exact arithmetic admits" in note for note in reached["notes"])
                seen["library"] += 1
        assert beyond["verdict"] == "none"
        assert beyond["proof"] == "exact"
        seen["exact"] += 1
    assert seen["library"]
    assert seen["found"]
