"""Alternatives that contradict a stated sum are dropped, and nothing else: judged by all pairs of a small domain."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

import treesens as ts

VALUES = [0, 1, 2, 3]
PAIRS = list(product(product(VALUES, repeat=2), repeat=2))


def changes(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    return sum(x != y for x, y in zip(a, b, strict=True))


def l1(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    """In widths of the domain."""
    return sum(abs(x - y) for x, y in zip(a, b, strict=True)) / 3


CASES = {
    "changes(a, b) = 1 and changes(a, b) != 1": lambda a, b: False,
    "changes(a, b) = 1 and (changes(a, b) != 1 or a.x > b.x)": lambda a, b: changes(a, b) == 1 and a[0] > b[0],
    "changes(a, b) >= 1 and (changes(a, b) < 1 or changes(a, b) >= 2)": lambda a, b: changes(a, b) == 2,
    "a.x - b.x >= 1 and (b.x - a.x >= 0 or a.y > b.y)": lambda a, b: a[0] - b[0] >= 1 and a[1] > b[1],
    "2 * a.x - 2 * b.x >= 4 and (a.x - b.x < 2 or a.x - b.x > 3)": lambda a, b: False,
    "2 * a.x - 2 * b.x >= 4 and (a.x - b.x <= 2 or a.x - b.x > 3)": lambda a, b: a[0] - b[0] == 2,
    "distance(a, b, l1) <= 0.5 and (distance(a, b, l1) > 0.5 or a.x != b.x)": lambda a, b: (
        l1(a, b) <= 0.5 and a[0] != b[0]
    ),
    "distance(a, b, l1) <= 0.5 and (distance(a, b, linf) > 0.9 or a.x = b.x)": lambda a, b: (
        l1(a, b) <= 0.5 and a[0] == b[0]
    ),
    "a.x > b.x and (a.x < b.x or (b.x >= a.x and a.y = b.y) or a.y = 0)": lambda a, b: a[0] > b[0] and a[1] == 0,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    xgboost = pytest.importorskip("xgboost")
    import numpy as np

    rows = np.array(list(product(VALUES, repeat=2)))
    data = xgboost.DMatrix(rows, rows[:, 0] > rows[:, 1], feature_names=["x", "y"])
    path = tmp_path_factory.mktemp("clash") / "m.json"
    xgboost.train({"objective": "binary:logistic", "max_depth": 2}, data, 3).save_model(path)
    return path


@pytest.mark.parametrize("text", CASES)
def test_what_is_left_has_the_same_answers(model: Path, text: str) -> None:
    lines = [f'model m from "{model.name}"', *(f"feature {f}: integer in [0, 3]" for f in "xy")]
    file = model.with_name("q.sens")
    file.write_text("\n".join([*lines, f"query q: find a, b such that {text}"]) + "\n")
    answer = ts.check(file, backend="native", time_limit=10)["q"]
    true = [pair for pair in PAIRS if CASES[text](*pair)]
    assert answer.verdict == ("found" if true else "none")
    if true:
        points = answer.to_dict()["points"]
        assert tuple((points[p]["x"], points[p]["y"]) for p in "ab") in true


def test_a_contradiction_is_none_before_any_search(model: Path) -> None:
    file = model.with_name("q.sens")
    file.write_text(
        f'model m from "{model.name}"\nquery q: find a, b such that changes(a, b) = 1 and changes(a, b) != 1\n'
    )
    assert ts.check(file, time_limit=10)["q"].result.backend == "compiler"
