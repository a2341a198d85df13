"""Scores of 0 times a factor beyond int64: numpy cannot multiply even 0 by it (found by the oracle).

An explainable boosting machine whose cuts help nothing has terms of zeros, and an intercept that needs the factor.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import treesens as ts
from treesens.compiler.base.dyadic import exact_product

pytestmark = pytest.mark.fault

TINY = -4.3445810444136885e-17


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes, no cut, and the greatest score for the second class on every input."""
    path = tmp_path_factory.mktemp("ebm") / "m.json"
    output = {"task": "classification", "classes": [0, 1, 2], "link": "mlogit", "link_param": "nan"}
    features = [{"name": name, "type": "continuous", "cuts": [[]]} for name in ("x", "y")]
    terms = [{"term_features": [name], "scores": [[0.0] * 3] * 3} for name in ("x", "y")]
    ebm = {"outputs": [output], "intercept": [TINY, 0.0, -0.04652], "features": features, "terms": terms}
    path.write_text(json.dumps({"version": "1.0", "ebm": ebm}))
    return path


@pytest.mark.parametrize("pipeline", ["kant", "default", "bounded", "ensense"])
@pytest.mark.parametrize("backend", ["native", "cpsat"])
@pytest.mark.parametrize("label", [0, 1, 2])
@pytest.mark.sampled
def test_scores_of_zeros_beside_a_tiny_intercept(model: Path, pipeline: str, backend: str, label: int) -> None:
    file = model.with_suffix(f".{label}.sens")
    file.write_text(f'model m from "{model.name}"\nquery q: find a in m such that class(a) = {label} by factor 1\n')
    answer = ts.check(file, backend=backend, pipeline=pipeline, replay="emulated", time_limit=20)["q"]
    assert answer.verdict == ("found" if label == 1 else "none")


@pytest.mark.parametrize("power", [0, 1, 20, 61, 62, 63, 64, 100, 1100])
@pytest.mark.parametrize("odd", [1, 3, -1, -5])
def test_products_are_those_of_python(power: int, odd: int) -> None:
    factor = odd << power
    for values in ([0, 0], [], [1, -1, 0], [2**61, -(2**61)], [2**62 - 1], [-(2**63)], [3**30, 7]):
        for kind in (np.int64, object):
            given = np.array(values, kind)
            assert exact_product(given, factor).tolist() == [v * factor for v in values]
    assert exact_product(np.array(3), factor).tolist() == 3 * factor, "a single number keeps its shape"


def test_a_product_that_fits_stays_in_int64() -> None:
    assert exact_product(np.array([1, 2**40]), 2**20).dtype == np.int64
    assert exact_product(np.array([1, 2**40]), 2**22).dtype == object
    assert Fraction(TINY).denominator > 2**63, "the factor of this model's intercept is beyond int64"


def test_answers_say_what_they_are_called(model: Path) -> None:
    file = model.with_suffix(".sens")
    file.write_text(f'model m from "{model.name}"\nquery q: find a in m such that class(a) = 1\n')
    answers = ts.check(file, replay="emulated", time_limit=20)
    for wrong in (0, "p"):
        with pytest.raises(KeyError, match="the names are q"):
            answers[wrong]  # type: ignore[index]
    assert answers.get("p") is None
