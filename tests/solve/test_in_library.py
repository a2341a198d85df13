"""`--confirm library`: a confirmed `none` has no input that the library itself scores past the bound, over the whole domain."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import treesens as ts

xgboost = pytest.importorskip("xgboost")
GRID = np.array(list(product(range(4), repeat=3)), dtype=np.float32)


def trained(folder: Path, seed: int) -> tuple[Path, np.ndarray]:
    """A model over 64 inputs, and the library's margins of all of them."""
    rng = np.random.default_rng(seed)
    y = (GRID.sum(axis=1) + rng.normal(0, 2, len(GRID)) > 4.5).astype(int)
    data = xgboost.DMatrix(GRID, y, feature_names=["x", "y", "z"])
    booster = xgboost.train({"objective": "binary:logistic", "max_depth": 3, "seed": seed, "nthread": 1}, data, 30)
    path = folder / "m.json"
    booster.save_model(path)
    return path, booster.predict(data, output_margin=True)


def answer(path: Path, constraint: str, confirm: str | None, backend: str = "native") -> ts.Answer:
    lines = [f'model m from "{path.name}"', *(f"feature {f}: integer in [0, 3]" for f in "xyz")]
    file = path.with_name("q.sens")
    file.write_text("\n".join([*lines, f"query q: find a such that {constraint}"]) + "\n")
    return ts.check(file, backend=backend, time_limit=10, confirm=confirm)["q"]


def decimal(value: float) -> str:
    """A float in decimals, exactly."""
    places = Fraction(float(value)).denominator.bit_length() - 1
    return f"{float(value):.{max(places, 1)}f}"


@pytest.mark.parametrize("seed", range(3))
def test_a_confirmed_none_is_none_in_the_library(tmp_path: Path, seed: int) -> None:
    path, margins = trained(tmp_path, seed)
    top, bottom = margins.max(), margins.min()
    asked = [(">=", value) for value in (top, np.nextafter(top, np.float32(9)), top + np.float32(1e-6), top + 0.01)]
    asked += [("<=", value) for value in (bottom, np.nextafter(bottom, np.float32(-9)), bottom - 0.01)]
    confirmed = 0
    for operator, value in asked:
        some = (margins >= value).any() if operator == ">=" else (margins <= value).any()
        said = answer(path, f"margin(a) {operator} {decimal(value)}", "library")
        if said.verdict == "none" and said.result.confirmed_by == "library":
            confirmed += 1
            assert not some, (operator, value)
        if said.verdict == "found":
            assert some, (operator, value)
    assert confirmed >= 2  # a hundredth beyond what the library reaches


def test_a_none_that_the_library_rounds_into_an_answer_is_unknown(tmp_path: Path) -> None:
    """In exact arithmetic nothing reaches the largest margin of the library, because that was rounded up."""
    for seed in range(20):
        path, margins = trained(tmp_path, seed)
        question = f"margin(a) >= {decimal(margins.max())}"
        if answer(path, question, None).verdict == "none":
            break
    else:
        pytest.fail("every sum was exact")
    said = answer(path, question, "library")
    assert said.verdict == "unknown"
    assert "numerical band" in said.result.reason


def test_what_is_found_stays(tmp_path: Path) -> None:
    path, margins = trained(tmp_path, 0)
    assert answer(path, f"margin(a) >= {decimal(margins.max() - 0.01)}", "library").verdict == "found"


@pytest.mark.parametrize("backend", ["auto", "z3"])
def test_other_backends_are_asked_the_easier_question_too(tmp_path: Path, backend: str) -> None:
    path, margins = trained(tmp_path, 1)
    said = answer(path, f"margin(a) >= {decimal(margins.max() + 0.01)}", "library", backend)
    assert (said.verdict, said.result.confirmed_by) == ("none", "library")
