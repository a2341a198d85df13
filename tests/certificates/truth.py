"""Whether a statement is true, by brute force over values, with leaves from XGBoost and nothing from the checker.

Every number that the model or the statement names, its neighbours in float32, and the ends of the line stand for all floats:
between two of them nothing that is asked changes. Whole numbers next to each are added for domains of whole numbers.
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import xgboost

LARGEST = float(np.finfo(np.float32).max)
SCALE = 1 << 60
"""Leaf values of these models are whole multiples of its inverse."""


class TooMany(Exception):
    """There are too many inputs to look at."""


class Truth:
    """The statements about one model. `leaf_value` [tree][leaf id] are exact."""

    def __init__(self, booster: xgboost.Booster, features: int) -> None:
        self.booster, self.features = booster, features
        self.cuts: list[set[float]] = [set() for _ in range(features)]
        self.leaf_value: list[dict[int, Fraction]] = []
        for text in booster.get_dump(dump_format="json"):
            self.leaf_value.append({})
            self._walk(json.loads(text))
        self.known: dict[str, Any] = {}

    def _walk(self, node: dict[str, Any]) -> None:
        if "leaf" in node:
            self.leaf_value[-1][node["nodeid"]] = Fraction(float(np.float32(node["leaf"])))
            return
        names = self.booster.feature_names or [f"f{i}" for i in range(self.features)]
        self.cuts[names.index(node["split"])].add(float(np.float32(node["split_condition"])))
        for child in node["children"]:
            self._walk(child)

    def has_solution(self, statement: dict[str, Any], most: float = math.inf) -> bool:
        """Whether some inputs satisfy the statement. Raises `TooMany` if there are more than `most` pairs to look at."""
        points = range(len(statement["points"]))
        values = [self._values(statement, f) for f in range(self.features)]
        grid = np.array(list(itertools.product(*values)), np.float64)
        total = self._sums(grid, statement["models"][0]["trees"])
        base = Fraction(statement["models"][0]["base"][0])
        allowed = [self._allowed(statement, p, grid) for p in points]
        rows = [[np.flatnonzero(allowed[p])] for p in points]
        pairs = (
            [rows[0][0][:, None]] if len(points) == 1 else self._pairs(statement, grid, rows[0][0], rows[1][0], most)
        )
        if not len(pairs[0]):
            return False
        index = pairs[0]
        holds = np.ones(len(index), bool)
        for row in statement["rows"]:
            holds &= self._row(row, index, total, base, grid)
        for p, q, f in statement["orders"]:
            holds &= grid[index[:, p], f] <= grid[index[:, q], f]
        for clause in statement["clauses"]:
            one = np.zeros(len(index), bool)
            for p, f, s in clause:
                one |= self._inside(s, grid[index[:, p], f])
            holds &= one
        return bool(holds.any())

    def _pairs(self, statement: dict[str, Any], grid: Any, left: Any, right: Any, most: float) -> list[Any]:
        varied = statement["same_except"]
        shared = [] if varied is None else [f for f in range(self.features) if f not in varied]
        by_key: dict[bytes, list[int]] = {}
        for j in right:
            by_key.setdefault(grid[j, shared].tobytes(), []).append(j)
        if sum(len(by_key.get(grid[i, shared].tobytes(), ())) for i in left) > most:
            raise TooMany
        found = [(i, j) for i in left for j in by_key.get(grid[i, shared].tobytes(), [])]
        return [np.array(found, np.int64).reshape(-1, 2)]

    def _values(self, statement: dict[str, Any], feature: int) -> list[float]:
        numbers = {-LARGEST, LARGEST, 0.0, *self.cuts[feature]}
        sets = [s for _, f, s in statement["domain"] if f == feature]
        sets += [s for clause in statement["clauses"] for _, f, s in clause if f == feature]
        for s in sets:
            numbers |= {float(x) for run in s.get("runs", []) for x in run if x is not None}
            numbers |= {float(x) for x in s.get("values", [])}
        for row in statement["rows"]:
            numbers |= {float(x) for _, f, steps, _ in row["costs"] if f == feature for x, _ in steps if x is not None}
        around: set[float] = set()
        for x in numbers:
            near = np.float32(max(-LARGEST, min(LARGEST, x)))
            with np.errstate(over="ignore"):
                steps = [np.nextafter(near, np.float32(end)) for end in (np.inf, -np.inf)]
            around |= {float(v) for v in (near, *steps, np.floor(near), np.ceil(near))}
        finite = sorted(x + 0.0 for x in around if abs(x) <= LARGEST)
        missing = any(s.get("missing") for s in sets)
        return [*finite, math.nan] if missing else finite

    def _sums(self, grid: Any, trees: int) -> list[Fraction]:
        reached = self.booster.predict(
            xgboost.DMatrix(grid.astype(np.float32), feature_names=self.booster.feature_names), pred_leaf=True
        )
        reached = np.asarray(reached, np.int64).reshape(len(grid), -1)[:, :trees]
        return [sum((self.leaf_value[t][int(n)] for t, n in enumerate(row)), Fraction(0)) for row in reached]

    def _allowed(self, statement: dict[str, Any], point: int, grid: Any) -> Any:
        result = np.ones(len(grid), bool)
        listed = {f for p, f, _ in statement["domain"] if p == point}
        for p, f, s in statement["domain"]:
            if p == point:
                result &= self._inside(s, grid[:, f])
        for f in set(range(self.features)) - listed:
            result &= ~np.isnan(grid[:, f])
        return result

    @staticmethod
    def _inside(allowed: dict[str, Any], x: Any) -> Any:
        result = np.zeros(len(x), bool)
        for low, high in allowed.get("runs", []):
            inside = (x >= (-LARGEST if low is None else low)) & (x <= (LARGEST if high is None else high))
            result |= inside & (x == np.floor(x)) if allowed.get("whole") else inside
        for value in allowed.get("values", []):
            result |= x == value
        return result | np.isnan(x) if allowed.get("missing") else result

    def _row(self, row: dict[str, Any], index: Any, total: list[Fraction], base: Fraction, grid: Any) -> Any:
        """Exact in whole numbers of 1 / (SCALE * the denominators of the row)."""
        coefficients = [(Fraction(c), p) for c, p, _ in row["terms"]]
        prices = [Fraction(c) for _, _, steps, other in row["costs"] for c in [*(c for _, c in steps), other]]
        unit = math.lcm(*(c.denominator for c, _ in coefficients), *(c.denominator for c in prices))
        sums = np.array([int((x + base) * SCALE) for x in total], object)
        value = np.zeros(len(index), object)
        for c, p in coefficients:
            value += sums[index[:, p]] * int(c * unit)
        for p, f, steps, other in row["costs"]:
            cost = {x: int(self._cost(steps, other, x) * SCALE * unit) for x in {float(v) for v in grid[:, f]}}
            value += np.array([cost[float(v)] for v in grid[index[:, p], f]], object)
        bound = Fraction(row["bound"]["rational"])
        logs = [(Fraction(c), Fraction(a)) for c, a in row["bound"]["logs"]]
        if logs:  # nothing in these models comes closer to a logarithm than a float tells
            level = (float(bound) + sum(float(c) * math.log(a) for c, a in logs)) * SCALE * unit
            assert not len(value) or abs(value.astype(float) - level).min() > 1e-9 * SCALE
            return value.astype(float) > level
        scaled = bound * SCALE * unit
        return value >= (math.floor(scaled) + 1 if row["strict"] else math.ceil(scaled))

    @staticmethod
    def _cost(steps: list[Any], other: str, x: float) -> Fraction:
        if math.isnan(x):
            return Fraction(other)
        return Fraction([c for start, c in steps if start is None or start <= x][-1])
