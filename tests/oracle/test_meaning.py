"""The oracle's own reading of the reference, against truths worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.oracle.language import constraint, text_of
from tests.oracle.meaning import Points, Rows, Setting, exactly, holds, quantity
from tests.oracle.spaces import Feature, complete, represented

NAN = float("nan")
X = Feature(
    "x",
    "integer",
    (0, 1, 2, 3, 4, None),
    (0, 1, 2, 3, 4, NAN),
    (0, 1, 2, 3, 4, NAN),
    4.0,
    "integer in [0, 4] or missing",
)
C = Feature("c", "category", ("A", "B"), (0.0, 1.0), (0.0, 1.0), 1.0, "category {A = 0, B = 1}")


def pair(a: tuple[float, float], b: tuple[float, float]) -> Setting:
    def points(value: tuple[float, float]) -> Points:
        return Points(np.array([value], float), np.zeros((1, 1)), np.zeros(1, int), np.zeros((1, 2), int), 0.0, None)

    rows = Rows("D", np.array([[2.0, 1.0], [NAN, 0.0]]), np.zeros((2, 2), int), {}, np.ones(2, bool))
    at = {"a": np.zeros(1, int), "b": np.zeros(1, int)}
    return Setting((X, C), {"a": points(a), "b": points(b)}, at, {"D": rows})


FEATURE = {"a": [["1", ["feature", "a", "x"]]], "b": [["1", ["feature", "b", "x"]]]}


@pytest.mark.parametrize(
    ("node", "a", "b", "truth"),
    [
        (["compare", FEATURE["a"], "=", FEATURE["b"]], (NAN, 0), (NAN, 0), False),
        (["compare", FEATURE["a"], "!=", FEATURE["b"]], (NAN, 0), (NAN, 0), True),
        (["compare", FEATURE["a"], "<=", [["3", ["one"]]]], (NAN, 0), (0, 0), False),
        (["compare", FEATURE["a"], "!=", [["3", ["one"]]]], (NAN, 0), (0, 0), True),
        (["equal", "a", "b", []], (NAN, 0), (NAN, 0), True),
        (["equal", "a", "b", ["x"]], (1, 0), (3, 0), True),
        (["equal", "a", "b", ["x"]], (1, 0), (3, 1), False),
        (["changes", "a", "b", "=", "1"], (NAN, 0), (3, 0), True),
        (["changes", "a", "b", "=", "0"], (NAN, 0), (NAN, 0), True),
        (["within", "a", "x", "1", "3", "[)", False], (3, 0), (0, 0), False),
        (["within", "a", "x", "1", "3", "[)", True], (NAN, 0), (0, 0), True),
        (["category", "a", "c", "!=", "A"], (0, 1), (0, 0), True),
        (["abs", "a", "x", "b", ">=", "0"], (NAN, 0), (1, 0), False),
        (["pin", "a", "D", 1, []], (NAN, 0), (0, 0), True),
        (["not", ["and", [["missing", "a", "x"], ["missing", "b", "x"]]]], (NAN, 0), (1, 0), True),
    ],
)
def test_constraints(node, a, b, truth) -> None:
    assert [bool(x[0]) for x in holds(node, pair(a, b))] == [truth, truth], constraint(node)


@pytest.mark.parametrize(
    ("norm", "a", "b", "value"),
    [
        ("l0", (1, 0), (1, 1), 1.0),
        ("l1", (1, 0), (3, 1), 1.5),
        ("l2", (1, 0), (3, 1), 1.25**0.5),
        ("linf", (1, 0), (3, 0), 0.5),
        ("linf", (NAN, 0), (3, 0), 1.0),
        ("l1", (NAN, 0), (NAN, 0), 0.0),
    ],
)
def test_distances(norm, a, b, value) -> None:
    assert quantity(pair(a, b), ["distance", "a", "b", norm])[0][0] == value


def test_the_nearest_row() -> None:
    assert quantity(pair((3, 1), (0, 0)), ["nearest", "a", "D", "l1"])[0][0] == 0.25
    assert quantity(pair((NAN, 1), (0, 0)), ["nearest", "a", "D", "l1"])[0][0] == 1.0


def test_comparisons_are_exact() -> None:
    x = np.array([0.1, 0.25])
    assert exactly(x, "<=", Fraction(1, 10)).tolist() == [False, False]  # the float is above one tenth
    assert exactly(x, "=", Fraction(1, 4)).tolist() == [False, True]
    assert exactly(np.array([NAN]), ">=", Fraction(0)).tolist() == [False]


def test_complete_domains_keep_one_hot_groups() -> None:
    bits = [Feature(n, "integer", (0, 1), (0.0, 1.0), (0.0, 1.0), 1.0, None, group=0) for n in "pq"]
    assert complete([*bits, C]).size == 4


def test_real_features_are_represented_by_neighbours() -> None:
    made = represented(
        Feature("r", "real", (0.0, 1.0), (0.0, 1.0), (0.0, 1.0), 1.0, "real in [0, 1]"), [0.5], np.float32
    )
    assert {0.0, 1.0, 0.5, float(np.nextafter(np.float32(0.5), np.float32(1)))} <= set(made.typed)
    assert all(v == np.float32(v) for v in made.typed)


def test_text() -> None:
    question = {
        "name": "q 1",
        "points": [["a", "m"], ["b", "m"]],
        "constraints": [["equal", "a", "b", ["x", "c-d"]], ["class", "a", "=", "1", "factor", "2"]],
        "objective": ["maximize", [["1", ["margin", "a", None]], ["-1", ["margin", "b", None]]]],
        "top": 2,
        "diverse": True,
    }
    assert text_of(question).split("\n")[:6] == [
        "query `q 1`:",
        "  find a, b in m such that",
        "    a = b except {x, `c-d`}",
        "    class(a) = 1 by factor 2",
        "  maximize margin(a) - margin(b)",
        "  top 2 diverse",
    ]
