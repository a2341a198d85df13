"""Whether a statement is true, by brute force over values, with leaves from XGBoost and nothing from the checker.

Every number that the model or the statement names, its neighbours in float32, and the ends of the line stand for all floats:
between two of them nothing that is asked changes. Whole numbers next to each are added for domains of whole numbers. Of values
of a feature that all sets, costs and splits treat alike one is looked at, but for features whose values are compared.
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


class NotJudged(Exception):
    """There are too many inputs to look at, or a score is too close to a logarithm."""


class Truth:
    """The statements about one model. `sums` [number of trees][box between cuts] are whole units of 1 / `scale`."""

    def __init__(self, booster: xgboost.Booster, features: int) -> None:
        self.booster, self.features = booster, features
        found: list[set[float]] = [set() for _ in range(features)]
        self.leaf_value: list[dict[int, Fraction]] = []
        for text in booster.get_dump(dump_format="json"):
            self.leaf_value.append({})
            self._walk(json.loads(text), found)
        self.cuts = [np.array(sorted(cuts), np.float64) for cuts in found]
        self.scale = math.lcm(*(value.denominator for leaves in self.leaf_value for value in leaves.values()))
        self.sums = self._all_sums()

    def _walk(self, node: dict[str, Any], found: list[set[float]]) -> None:
        if "leaf" in node:
            self.leaf_value[-1][node["nodeid"]] = Fraction(float(np.float32(node["leaf"])))
            return
        names = self.booster.feature_names or [f"f{i}" for i in range(self.features)]
        found[names.index(node["split"])].add(float(np.float32(node["split_condition"])))
        for child in node["children"]:
            self._walk(child, found)

    def _all_sums(self) -> list[list[int]]:
        """The sums of leaves that XGBoost reaches in every box between cuts, after no tree, one tree, and so on.

        It is asked at the least and at the greatest float of every box, and has to reach the same leaves.
        """
        least = [[-LARGEST, *cuts.tolist(), math.nan] for cuts in self.cuts]
        below = [np.nextafter(cuts.astype(np.float32), np.float32(-np.inf)).tolist() for cuts in self.cuts]
        reached = self._leaves(least)
        assert np.array_equal(reached, self._leaves([[*ends, LARGEST, math.nan] for ends in below]))
        sums = [[0] * len(reached)]
        for t, leaves in enumerate(self.leaf_value):
            whole = {n: int(value * self.scale) for n, value in leaves.items()}
            sums.append([total + whole[n] for total, n in zip(sums[-1], reached[:, t].tolist(), strict=True)])
        return sums

    def _leaves(self, values: list[list[float]]) -> Any:
        grid = np.array(list(itertools.product(*values)), np.float32)
        data = xgboost.DMatrix(grid, feature_names=self.booster.feature_names)
        return np.asarray(self.booster.predict(data, pred_leaf=True), np.int64).reshape(len(grid), -1)

    def has_solution(self, statement: dict[str, Any], most: float = math.inf) -> bool:
        """Whether some inputs satisfy the statement. Raises `NotJudged`, for one beyond `most` pairs."""
        points = range(len(statement["points"]))
        values = [self._unlike(statement, f, self._values(statement, f)) for f in range(self.features)]
        if math.prod(map(len, values)) > most:
            raise NotJudged
        grid = np.stack(np.meshgrid(*values, indexing="ij"), -1).reshape(-1, self.features)
        sums = self.sums[statement["models"][0]["trees"]]
        total = [sums[box] for box in self._boxes(grid).tolist()]
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

    def values_of(self, statement: dict[str, Any], feature: int, sets: list[dict[str, Any]]) -> list[float]:
        """Values that stand for all others: all that the statement or further sets of the feature name, and what is near."""
        asked = [*statement["domain"], *([0, feature, s] for s in sets)]
        return self._values({**statement, "domain": asked}, feature)

    def inside(self, allowed: dict[str, Any], values: list[float]) -> list[bool]:
        """Whether values lie in a set."""
        return [bool(one) for one in self._inside(allowed, np.array(values))]

    def _pairs(self, statement: dict[str, Any], grid: Any, left: Any, right: Any, most: float) -> list[Any]:
        """All pairs of allowed points with the same values of the features that they share."""
        varied = statement["same_except"]
        shared = [] if varied is None else [f for f in range(self.features) if f not in varied]
        key = np.zeros(len(grid), np.int64)
        for f in shared:
            unlike, place = np.unique(grid[:, f], return_inverse=True)
            key = key * len(unlike) + place
        count = np.bincount(key[right], minlength=key.max() + 1)
        partners = count[key[left]]
        if partners.sum() > most:
            raise NotJudged
        ordered = right[np.argsort(key[right], kind="stable")]
        first = (np.cumsum(count) - count)[key[left]]
        rank = np.arange(partners.sum()) - np.repeat(np.cumsum(partners) - partners, partners)
        return [np.stack([np.repeat(left, partners), ordered[np.repeat(first, partners) + rank]], axis=1)]

    def _boxes(self, grid: Any) -> Any:
        """The number of the box between cuts that every point lies in."""
        number = np.zeros(len(grid), np.int64)
        for f, cuts in enumerate(self.cuts):
            number = number * (len(cuts) + 2) + self._cell(grid[:, f], cuts)
        return number

    @staticmethod
    def _cell(x: Any, cuts: Any) -> Any:
        return np.where(np.isnan(x), len(cuts) + 1, np.searchsorted(cuts, x, side="right"))

    def _unlike(self, statement: dict[str, Any], feature: int, values: list[float]) -> Any:
        """One value of all those that no split, set or cost tells apart; all of them if an order compares them."""
        x = np.array(values)
        # The first of every kind, in the order of the values.
        first = {kind: place for place, kind in reversed([*enumerate(self.kinds(statement, feature, values))])}
        return x[np.sort([*first.values()])]

    def kinds(self, statement: dict[str, Any], feature: int, values: list[float]) -> list[Any]:
        """Of every value what splits, sets and costs tell of it: an answer with one has all others of its kind, too."""
        if any(f == feature for _, _, f in statement["orders"]):
            return ["missing" if math.isnan(x) else x for x in values]
        x = np.array(values)
        seen = [self._cell(x, self.cuts[feature])]
        sets = [*statement["domain"], *(part for clause in statement["clauses"] for part in clause)]
        seen += [self._inside(s, x) for _, f, s in sets if f == feature]
        costs = [steps for row in statement["rows"] for _, f, steps, _ in row["costs"] if f == feature]
        seen += [self._cell(x, np.array(sorted(s for s, _ in steps if s is not None))) for steps in costs]
        return list(zip(*(one.tolist() for one in seen), strict=True))

    def _values(self, statement: dict[str, Any], feature: int) -> list[float]:
        numbers = {-LARGEST, LARGEST, 0.0, *self.cuts[feature]}
        sets = [s for _, f, s in statement["domain"] if f == feature]
        sets += [s for clause in statement["clauses"] for _, f, s in clause if f == feature]
        for s in sets:
            numbers |= {float(x) for run in s.get("runs", []) for x in run if x is not None}
            numbers |= {float(x) for x in s.get("values", [])}
        for row in statement["rows"]:
            numbers |= {float(x) for _, f, steps, _ in row["costs"] if f == feature for x, _ in steps if x is not None}
        near = np.clip(np.array([*numbers], np.float64), -LARGEST, LARGEST).astype(np.float32)
        with np.errstate(over="ignore"):
            beside = [np.nextafter(near, np.float32(end)) for end in (np.inf, -np.inf)]
        around = np.concatenate([near, *beside, np.floor(near), np.ceil(near)]).astype(np.float64)
        finite = sorted({x + 0.0 for x in around.tolist() if abs(x) <= LARGEST})
        missing = any(s.get("missing") for s in sets)
        return [*finite, math.nan] if missing else finite

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

    def _row(self, row: dict[str, Any], index: Any, total: list[int], base: Fraction, grid: Any) -> Any:
        """Exact in whole numbers of 1 / (scale * the denominators of the row)."""
        coefficients = [(Fraction(c), p) for c, p, _ in row["terms"]]
        prices = [Fraction(c) for _, _, steps, other in row["costs"] for c in [*(c for _, c in steps), other]]
        unit = math.lcm(base.denominator, *(c.denominator for c, _ in coefficients), *(c.denominator for c in prices))
        whole = unit * base.denominator * self.scale
        start = int(base * base.denominator * self.scale)
        sums = [x * base.denominator + start for x in total]
        value: Any = np.zeros(len(index), np.int64)
        for c, p in coefficients:
            factor = int(c * unit)
            value = value + whole_numbers([x * factor for x in sums])[index[:, p]]
        for p, f, steps, other in row["costs"]:
            unlike, place = np.unique(grid[:, f], return_inverse=True)
            priced = [(start, int(Fraction(c) * whole)) for start, c in steps]
            missing = int(Fraction(other) * whole)
            cost = whole_numbers([self._cost(priced, missing, x) for x in unlike.tolist()])
            value = value + cost[place[index[:, p]]]
        bound = Fraction(row["bound"]["rational"])
        logs = [(Fraction(c), Fraction(a)) for c, a in row["bound"]["logs"]]
        if logs:
            level = (float(bound) + sum(float(c) * math.log(a) for c, a in logs)) * whole
            near = value.astype(float)
            if len(near) and abs(near - level).min() <= 1e-9 * self.scale:
                raise NotJudged
            return near > level
        least = math.floor(bound * whole) + 1 if row["strict"] else math.ceil(bound * whole)
        return np.asarray(value >= least, bool)

    @staticmethod
    def _cost(steps: list[tuple[float | None, int]], missing: int, x: float) -> int:
        if math.isnan(x):
            return missing
        return [c for start, c in steps if start is None or start <= x][-1]


def whole_numbers(numbers: list[int]) -> Any:
    """An array of integers, of 64 bits if ten such numbers can be added up in them."""
    small = not numbers or max(map(abs, numbers)) < 1 << 59
    return np.array(numbers, np.int64 if small else object)
