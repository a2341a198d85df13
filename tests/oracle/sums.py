"""Exact sums of leaves, and constraints on scores judged by them: whole numbers in place of floats, no band.

The exact value of an input is read from the file that the library wrote, by the leaves that the library says it reaches.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tests.oracle.meaning import Points, Setting

LONGEST = 300
"""Digits of a constant."""


def whole(values: Sequence[float]) -> tuple[list[int], int]:
    """Floats as whole numbers in units of 2^-shift."""
    fractions = [Fraction(float(v)) for v in values]
    shift = max((f.denominator.bit_length() - 1 for f in fractions), default=0)
    return [int(f * 2**shift) for f in fractions], shift


def sums_of(leaves: np.ndarray, tables: Sequence[Sequence[float]], base: float = 0.0) -> tuple[np.ndarray, int]:
    """The exact sum per row: object[rows] of whole numbers and the shift; `leaves` int[rows, trees] index the tables."""
    flat, shift = whole([base, *(v for table in tables for v in table)])
    total = np.full(len(leaves), flat[0], dtype=object)
    start = 1
    for t, table in enumerate(tables):
        values = np.array(flat[start : start + len(table)], dtype=object)
        total = total + values[leaves[:, t]]
        start += len(table)
    return total, shift


def xgboost_leaves(learner: dict[str, Any]) -> list[list[float]]:
    """Per tree the value of every node as the file has it; inner nodes have some number that no row reaches."""
    booster = learner["learner"]["gradient_booster"]
    booster = booster.get("gbtree", booster)
    return [[float(np.float32(v)) for v in tree["split_conditions"]] for tree in booster["model"]["trees"]]


def lightgbm_leaves(text: str) -> list[list[float]]:
    return [[float(v) for v in line.split()] for line in re.findall(r"(?m)^leaf_value=(.*)$", text)]


def spread(rng: np.random.Generator, value: float, decades: int) -> float:
    """A leaf of another order of magnitude; one in three stays."""
    return value if rng.random() < 0.33 else value * 10.0 ** int(rng.integers(-decades, decades + 1))


def text_of_sum(number: int, shift: int) -> str | None:
    """number / 2^shift as an exact decimal; None if it is too long."""
    while number % 2 == 0 and shift > 0 and number:
        number, shift = number // 2, shift - 1
    digits = str(abs(number) * 5**shift).rjust(shift + 1, "0")
    if len(digits) > LONGEST:
        return None
    body = digits[: len(digits) - shift] + ("." + digits[len(digits) - shift :] if shift else "")
    return ("-" if number < 0 else "") + body


def known(s: Setting, terms: Sequence[tuple[Fraction, Any]]) -> bool:
    """Whether all terms are scores whose exact sums are known."""
    return all(
        t[0] in ("margin", "value") and s.points[t[1]].exact is not None and s.points[t[1]].model.link != "exp"
        for _, t in terms
    )


def compared(s: Setting, terms: Sequence[tuple[Fraction, Any]], op: str, limit: Fraction) -> tuple[Any, Any]:
    """(by exact sums, by the library's scores): bool[pairs] of `sum of terms OP limit`."""
    return tuple(_compared(s, terms, op, limit, exact=exact) for exact in (True, False))  # type: ignore[return-value]


def _compared(
    s: Setting, terms: Sequence[tuple[Fraction, Any]], op: str, limit: Fraction, *, exact: bool
) -> np.ndarray:
    parts = [(c, *_scores(s.points[t[1]], exact=exact), s.at[t[1]]) for c, t in terms]
    shift = max(n for _, _, n, _ in parts)
    scale = math.lcm(*(c.denominator for c, _, _, _ in parts))
    total = np.zeros(len(parts[0][3]), dtype=object)
    for c, values, n, at in parts:
        total = total + (values * (int(c * scale) << (shift - n)))[at]
    bound = limit * scale * 2**shift
    if op == "=":
        return np.asarray(total == int(bound), bool) & (bound.denominator == 1)
    if op in ("<", "<="):
        return np.asarray(total <= (math.floor(bound) if op == "<=" else math.ceil(bound) - 1), bool)
    return np.asarray(total >= (math.ceil(bound) if op == ">=" else math.floor(bound) + 1), bool)


def _scores(points: Points, *, exact: bool) -> tuple[np.ndarray, int]:
    if exact:
        assert points.exact is not None
        return points.exact, points.shift
    if points.reported is None:
        values, shift = whole(points.margins[:, 0].tolist())
        points.reported = (np.array(values, dtype=object), shift)
    return points.reported
