"""Fault 34: on domains of a few hundred inputs optima stayed open where relations and distances depend on values inside cells.

Contradictions between them were looked for by choosing values one after the other, cell by cell, until the time was up; and
combinations that a `onehot` or a constraint about one point excludes counted towards the most that are gone through. The
expected values come from trying every value; the models come from scikit-learn and look at next to nothing.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.asking import ask

pytestmark = pytest.mark.fault

NAMES = ["x", "y", "z", "w"]
LOW, HIGH = np.array([3, -2, 0, 2]), np.array([6, -1, 5, 7])
DECLARED = "\n".join(f"feature {n}: integer in [{a}, {b}]" for n, a, b in zip(NAMES, LOW, HIGH, strict=True))
EVERY = np.array(list(itertools.product(*(range(a, b + 1) for a, b in zip(LOW, HIGH, strict=True)))), float)


@pytest.fixture(scope="module")
def model() -> Any:
    tree = pytest.importorskip("sklearn.tree")
    pandas = pytest.importorskip("pandas")
    return tree.DecisionTreeRegressor(max_depth=1).fit(pandas.DataFrame(EVERY, columns=NAMES), EVERY[:, 2])


def best(objective: str, keep: Any) -> float:
    """The greatest (least) distance of all pairs that are kept."""
    a, b = EVERY[:, None], EVERY[None]
    apart = np.abs(a - b) / (HIGH - LOW)
    sense, norm = objective.split()
    values = {"l0": (apart > 0).sum(axis=2), "l1": apart.sum(axis=2), "l2": np.sqrt((apart**2).sum(axis=2))}[norm]
    kept = values[keep(a, b, apart)]
    return float(kept.max() if sense == "maximize" else kept.min())


CASES = [
    ("maximize l0", "changes(a, b) < 4", lambda a, b, d: (d > 0).sum(axis=2) < 4),
    (
        "maximize l0",
        "abs(a.x - b.x) = 0; 2 * b.z - b.y - a.z <= -2",
        lambda a, b, d: (d[..., 0] == 0) & (2 * b[..., 2] - b[..., 1] - a[..., 2] <= -2),
    ),
    (
        "maximize l2",
        "a.x + b.z - a.w <= 1; distance(a, b, l2) > 0.5",
        lambda a, b, d: (a[..., 0] + b[..., 2] - a[..., 3] <= 1) & ((d**2).sum(axis=2) > 0.25),
    ),
    (
        "minimize l1",
        "distance(a, b, l1) > 0; a.z + b.z = 5",
        lambda a, b, d: (d.sum(axis=2) > 0) & (a[..., 2] + b[..., 2] == 5),
    ),
]


@pytest.mark.parametrize(("objective", "where", "keep"), CASES)
def test_the_best_distance_is_closed(model: Any, objective: str, where: str, keep: Any) -> None:
    sense, norm = objective.split()
    expected = best(objective, keep)
    question = f"find a, b such that\n {where.replace('; ', chr(10))}\n {sense} distance(a, b, {norm})"
    goal = ask(model, question, DECLARED, backend="native", time_limit=10).result.objective
    assert goal.value == pytest.approx(expected, abs=1e-9)
    assert goal.bound == pytest.approx(expected, abs=1e-9)


def test_no_pair_lies_between_two_steps(model: Any) -> None:
    """The least step of any feature is a fifth of its width."""
    question = "find a, b such that\n distance(a, b, l1) > 0\n distance(a, b, l1) < 0.2\n abs(a.x - b.x) <= 9"
    answer = ask(model, question, DECLARED, backend="native", time_limit=10)
    assert answer.verdict == "none", answer.result.reason


def test_a_one_hot_group_makes_few_combinations(model: Any) -> None:
    """16 inputs of a group of 16 features, 256 pairs; without the group they would be 2^32 combinations of cells."""
    tree = pytest.importorskip("sklearn.tree")
    pandas = pytest.importorskip("pandas")
    group = [f"g{i}" for i in range(16)]
    table = pandas.DataFrame(np.eye(16), columns=group)
    one = tree.DecisionTreeRegressor(max_depth=2).fit(table, np.arange(16) % 5)
    declared = "\n".join(f"feature {g}: integer in [0, 1]" for g in group) + f"\nonehot {{{', '.join(group)}}}"
    question = "find a, b such that\n a.g0 + b.g1 + a.g2 >= 1\n maximize distance(a, b, l1)"
    goal = ask(one, question, declared, backend="native", time_limit=10).result.objective
    assert (goal.value, goal.bound) == (2.0, 2.0)
