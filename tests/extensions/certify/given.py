"""Whether inputs satisfy what is asked besides a statement, with leaves from XGBoost and nothing from the checker.

Numbers are fractions; powers of e are decimals of 80 digits, and what these do not tell is not judged.
"""

from __future__ import annotations

import decimal
import itertools
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import xgboost

from tests.extensions.certify.truth import LARGEST, NotJudged

DIGITS = decimal.Context(prec=80, Emax=10**12, Emin=-(10**12))
CLOSE = Fraction(1, 10**50)


class Reached:
    """The numbers of the leaves that XGBoost reaches from a point, tree by tree. It is asked once about every point."""

    def __init__(self, booster: xgboost.Booster) -> None:
        self.booster = booster
        self.values = [dict(_leaves(json.loads(text))) for text in booster.get_dump(dump_format="json")]
        self.known: dict[tuple[float | None, ...], list[Fraction]] = {}

    def leaves(self, point: list[float | None]) -> list[Fraction]:
        key = tuple(point)
        if key not in self.known:
            row = np.array([[math.nan if x is None else x for x in point]], np.float32)
            (reached,) = self.booster.predict(xgboost.DMatrix(row, nthread=1), pred_leaf=True).reshape(1, -1)
            self.known[key] = [tree[int(n)] for tree, n in zip(self.values, reached, strict=True)]
        return self.known[key]


class Inputs:
    """Points of a model with one output; None is missing. A margin is a base and the sum of the leaves that XGBoost reaches."""

    def __init__(
        self, reached: Reached, base: Fraction, points: list[list[float | None]], trees: int | None = None
    ) -> None:
        self.points = points
        self.margins = [base + sum(reached.leaves(point)[:trees], Fraction(0)) for point in points]

    def satisfy(self, asked: dict[str, Any]) -> bool:
        """All that is asked, part by part."""
        parts = [self._inside(p, f, s) for p, f, s in asked.get("domain", [])]
        parts += [any(self._inside(p, f, s) for p, f, s in clause) for clause in asked.get("clauses", [])]
        parts += [self._ordered(*order) for order in asked.get("orders", [])]
        parts += [self._row(row) for row in asked.get("rows", [])]
        parts += [self._differ(one["features"]) <= one["most"] for one in asked["changes"]]
        parts += [self._differ(one["features"]) >= one["least"] for one in asked["apart"]]
        parts += [self._relation(one) for one in asked.get("values", [])]
        parts += [self._chance(one) for one in asked.get("chances", [])]
        parts += [self._lies_in_none(one) for one in asked.get("cavities", [])]
        parts += [any(list(map(self.satisfy, several))) for several in asked["either"]]
        return all(parts)

    def _inside(self, p: int, f: int, allowed: dict[str, Any]) -> bool:
        x = self.points[p][f]
        if x is None:
            return allowed.get("missing", False) is True
        for low, high in allowed.get("runs", []):
            if (-LARGEST if low is None else low) <= x <= (LARGEST if high is None else high):
                return not allowed.get("whole") or float(x).is_integer()
        return x in allowed.get("values", [])

    def _ordered(self, p: int, q: int, f: int) -> bool:
        one, other = self.points[p][f], self.points[q][f]
        return one is not None and other is not None and one <= other

    def _differ(self, features: list[int]) -> int:
        one, other = self.points
        return sum(one[f] != other[f] for f in features)

    def _row(self, row: dict[str, Any]) -> bool:
        total = sum((Fraction(c) * self.margins[p] for c, p, _ in row["terms"]), Fraction(0))
        for p, f, steps, missing in row["costs"]:
            x = self.points[p][f]
            total += Fraction(missing if x is None else [c for start, c in steps if start is None or start <= x][-1])
        logs = [Fraction(c) * Fraction(DIGITS.ln(_decimal(Fraction(a)))) for c, a in row["bound"]["logs"]]
        return _compared(total - Fraction(row["bound"]["rational"]) - sum(logs, Fraction(0)), bool(logs), row["strict"])

    def _lies_in_none(self, cavities: dict[str, Any]) -> bool:
        """Set by set of the features: some row has the cells of the point in all of them."""
        p, features, cells = cavities["point"], cavities["features"], cavities["cells"]
        return all(
            any(
                all(row[k] is not None and self._inside(p, features[k], cells[k][row[k]]) for k in some)
                for row in cavities["rows"]
            )
            for size in range(min(cavities["width"], len(features)) + 1)
            for some in itertools.combinations(range(len(features)), size)
        )

    def _relation(self, relation: dict[str, Any]) -> bool:
        values = [self._value(*term) for term in relation["terms"]]
        known = [value for value in values if value is not None]
        total = sum(known, self._sum(relation.get("scores", [])))
        return len(known) == len(values) and _compared(Fraction(relation["most"]) - total, False, relation["strict"])

    def _value(self, factor: str, p: int, f: int, *distance: Any) -> Fraction | None:
        x = self.points[p][f]
        if not distance:
            return None if x is None else Fraction(factor) * Fraction(x)
        other, unit, power = distance
        y = self.points[other["point"]][f] if "point" in other else other["value"]
        if x is None or y is None or unit is None:
            away = Fraction(int(x != y))
        else:
            away = abs(Fraction(x) - Fraction(y)) / Fraction(unit)
        return Fraction(factor) * away**power

    def _chance(self, chance: dict[str, Any]) -> bool:
        total = -Fraction(chance["least"])
        for factor, terms, *curve in chance["terms"]:
            if curve:
                total += Fraction(factor) * self._curve(self._sum(terms), curve[0])
                continue
            powers = [_power(Fraction(constant) + self._sum(scores)) for scores, constant in terms]
            total += Fraction(factor) / (1 + sum(powers, Fraction(0)))
        return _compared(total, True, chance["strict"])

    def curve_of(self, scores: list[Any], curve: dict[str, Any] | None) -> Fraction:
        """A function of a sum of scores."""
        return self._curve(self._sum(scores), curve)

    def _sum(self, scores: list[Any]) -> Fraction:
        return sum((Fraction(c) * self.margins[p] for c, p, _ in scores), Fraction(0))

    @staticmethod
    def _curve(x: Fraction, curve: dict[str, Any] | None) -> Fraction:
        if curve is None:
            return x
        x = 1 / (1 + _power(-x)) if curve["of_probability"] else x
        if "slope" in curve:
            return 1 / (1 + _power(Fraction(curve["slope"]) * x + Fraction(curve["intercept"])))
        knots = [(Fraction(at), Fraction(value)) for at, value in curve["knots"]]
        if x < knots[0][0]:
            return knots[0][1]
        last = max(place for place, (at, _) in enumerate(knots) if at <= x)
        if last == len(knots) - 1:
            return knots[last][1]
        (left, low), (right, high) = knots[last], knots[last + 1]
        return low + (high - low) * (x - left) / (right - left)


def _power(x: Fraction) -> Fraction:
    """e to the power of a number."""
    return Fraction(DIGITS.exp(_decimal(x)))


def _compared(left: Fraction, rounded: bool, strict: bool) -> bool:
    if rounded and abs(left) < CLOSE:
        raise NotJudged
    return left > 0 if strict else left >= 0


def _decimal(x: Fraction) -> decimal.Decimal:
    return DIGITS.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))


def _leaves(node: dict[str, Any]) -> Iterator[tuple[int, Fraction]]:
    if "leaf" in node:
        yield node["nodeid"], Fraction(float(np.float32(node["leaf"])))
    for child in node.get("children", ()):
        yield from _leaves(child)
