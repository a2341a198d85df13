"""Fault P1 of the third review: a bound was computed in floats if the unit of a sum was above 1, and an answer was refuted.

XGBoost's models get leaves of wide range; the expected answers come from all inputs, added up as Fractions.
"""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.corpus import regressed
from treesens.compiler.query.bounds import LogRational

pytestmark = pytest.mark.fault

VALUES, FEATURES = range(5), 3
DECLARED = "".join(f"feature f{i}: integer in [0, 4]\n" for i in range(FEATURES))
Scores = dict[tuple[int, ...], Fraction]


def leaf(style: str, rng: np.random.Generator) -> float:
    sign = rng.choice([-1.0, 1.0])
    if style == "ulp":
        return float(np.float32(sign * (1 + rng.integers(-3, 4) * 2.0**-23)))
    if style == "mixed":
        return float(np.float32(rng.choice([1.0, -1.0, 1e-9, -1e-9, 3e-30, 1e20, -1e20])))
    low, high = {"wide": (-120, 100), "huge": (100, 120), "tiny": (-149, -120), "near 2^64": (58, 68)}[style]
    return float(np.float32(sign * rng.uniform(1, 2) * float(Fraction(2) ** int(rng.integers(low, high)))))


def written(style: str, seed: int, path: Path) -> Scores:
    """A model with leaves of one style, and the exact score of every input."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 5, (120, FEATURES)).astype(np.float32)
    made = regressed(table, rng.normal(size=120), int(rng.integers(2, 6)), base_score=0.5, eta=1, reg_lambda=0)
    model = json.loads(bytes(made.save_raw("json")))
    trees = model["learner"]["gradient_booster"]["model"]["trees"]
    for tree in trees:
        for node, left in enumerate(tree["left_children"]):
            if left == -1:
                tree["split_conditions"][node] = leaf(style, rng)
    path.write_text(json.dumps(model))
    return {point: score(trees, point) for point in itertools.product(VALUES, repeat=FEATURES)}


def score(trees: list[dict[str, Any]], point: tuple[int, ...]) -> Fraction:
    total = Fraction(1, 2)
    for tree in trees:
        at = 0
        while tree["left_children"][at] != -1:
            cut = np.float32(tree["split_conditions"][at])
            left = point[tree["split_indices"][at]] < cut
            at = tree["left_children" if left else "right_children"][at]
        total += Fraction(float(np.float32(tree["split_conditions"][at])))
    return total


def decimal(value: Fraction) -> str:
    """A dyadic number in all its digits."""
    places = value.denominator.bit_length() - 1
    digits = str(abs(value.numerator) * 5**places).rjust(places + 1, "0")
    text = f"{digits[: len(digits) - places]}.{digits[len(digits) - places :]}" if places else digits
    return f"-{text}" if value < 0 else text


@pytest.mark.parametrize("style", ["wide", "huge", "tiny", "near 2^64", "ulp", "mixed"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled
def test_exact_ties_of_leaves_of_any_size(style: str, seed: int, tmp_path: Path) -> None:
    table = written(style, seed, tmp_path / "m.json")
    highest = max(table.values())
    apart = max(table[p] - table[(k, *p[1:])] for p in table for k in VALUES)
    asked = {
        "top": (f"find a in m such that margin(a) >= {decimal(highest)}", True),
        "above": (f"find a in m such that margin(a) > {decimal(highest)}", False),
        "swing": (f"find a, b in m such that a = b except f0; margin(a) - margin(b) >= {decimal(apart)}", True),
        "beyond": (f"find a, b in m such that a = b except f0; margin(a) - margin(b) > {decimal(apart)}", False),
    }
    file = tmp_path / "q.sens"
    text = "".join(f"query {name}:\n  {question}\n" for name, (question, _) in asked.items())
    file.write_text(f'model m from "m.json"\n{DECLARED}{text}')
    plain = ts.check(file, replay="emulated", tolerance=0.0)
    checked = ts.check(file, replay="emulated", tolerance=0.0, certificates=tmp_path / "c")
    for name, (_, exists) in asked.items():
        answer = plain[name].to_dict()
        # What asks for more never changes the answer.
        assert checked[name].to_dict()["verdict"] == answer["verdict"], name
        if not exists:
            assert answer["verdict"] == "none", name
        elif answer["verdict"] == "none":
            # Only the library's rounded sums may say so, and then the answer says that.
            assert answer["proof"] == "library", name


@pytest.mark.parametrize("shift", [-70, -6, -1, 0, 3, 60, 1074])
def test_bounds_are_rounded_to_whole_units_of_any_size(shift: int) -> None:
    for value in (27271021977004879050, -27271021977004879050, Fraction(1, 3), Fraction(-7, 2), 64, 0):
        size = Fraction(1, 2**shift) if shift >= 0 else Fraction(2**-shift)
        least = LogRational(Fraction(value)).ceil(shift)
        assert (least - 1) * size < value <= least * size
        above = LogRational(Fraction(value)).ceil(shift, strict=True)
        assert (above - 1) * size <= value < above * size
