"""What a `.sens` constraint means on concrete inputs, by the plainest possible reading of docs/language.md.

Shares nothing with the binder: no cells, no cuts, no normal forms. Inputs are stored values; numbers are compared exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from treesens.compiler.model import Ensemble
from treesens.compiler.model.grid import FeatureGrid
from treesens.grammar.tree import ast
from treesens.links import Exp, Logistic, Softmax


@dataclass(frozen=True)
class World:
    """Ensembles by point, values by point and feature, and how typed numbers relate to stored ones.

    `units`: typed and stored ends of a feature; `whole`: features whose typed values are whole; `categories`: stored value of
    every name; `widths`: unit of a feature in distances (None: equal or different); `varied`: the sensitive features.
    """

    ensembles: Mapping[str, Ensemble]
    values: Mapping[str, Mapping[str, float]]
    rows: Mapping[str, list[Mapping[str, float]]]
    units: Mapping[str, tuple[Fraction, Fraction, Fraction, Fraction]]
    whole: frozenset[str]
    categories: Mapping[str, Mapping[str, float]]
    widths: Mapping[str, Fraction | None]
    varied: frozenset[str]
    grids: Mapping[str, FeatureGrid] = field(default_factory=dict)
    """Features count as changed where their cells differ: nothing else can be told apart."""
    known: dict[str, list[Fraction]] = field(default_factory=dict, init=False, compare=False)
    """Margins of points that were asked for."""

    def stored(self, point: str, feature: str) -> float:
        return self.values[point][feature]

    def typed(self, point: str, feature: str) -> Fraction | None:
        value = self.stored(point, feature)
        if math.isnan(value):
            return None
        exact = Fraction(value)
        if feature in self.units:
            t0, t1, s0, s1 = self.units[feature]
            exact = t0 + (exact - s0) * (t1 - t0) / (s1 - s0)
            if feature in self.whole:
                exact = Fraction(round(exact))
        return exact

    def margins(self, point: str) -> list[Fraction]:
        if point not in self.known:
            ensemble = self.ensembles[point]
            row = [[self.values[point][name] for name in ensemble.feature_names]]
            self.known[point] = list(ensemble.margins_exact(np.array(row))[0])
        return list(self.known[point])

    def probability(self, point: str, label: int) -> Any:
        ensemble, margins = self.ensembles[point], self.margins(point)
        if isinstance(ensemble.link, Softmax):
            weights = [math.exp(m) for m in margins]
            return weights[label] / sum(weights)
        if isinstance(ensemble.link, Logistic):
            one = 1 / (1 + math.exp(-margins[0]))
            return one if label == 1 else 1 - one
        return margins[label]


MISSING = object()
"""The value of an expression about a missing feature; no comparison with it holds."""


def holds(world: World, node: ast.Formula) -> bool:
    match node:
        case ast.And(items):
            return all(holds(world, item) for item in items)
        case ast.Or(items):
            return any(holds(world, item) for item in items)
        case ast.Not(operand):
            return not holds(world, operand)
        case ast.Implies(premise, conclusion):
            return not holds(world, premise) or holds(world, conclusion)
        case ast.PointsEqual(left, right, varied):
            free = {n.text for n in varied.names} if varied else set()
            return all(_same(world.stored(left.text, f), world.stored(right.text, f)) for f in _features(world) - free)
        case ast.PointIsRow(point, row, varied):
            free = {n.text for n in varied.names} if varied else set()
            wanted = world.rows[row.data.text][row.index.value]
            return all(_same(world.stored(point.text, f), wanted[f]) for f in _features(world) - free)
        case ast.ClassIs(point, label, factor, margin):
            ratio = float(factor.value) if factor else 1.0
            return _wins(
                world, point.text, _class(world, point.text, label), ratio, margin.value if margin else Fraction(0)
            )
        case ast.Comparison():
            return _comparison(world, node)
        case ast.Predicate():
            from tests.grammar.constructs import construct_of

            return bool(construct_of(node).holds(world, node))
    raise AssertionError(node)


def _features(world: World) -> set[str]:
    return set(next(iter(world.values.values())))


def _same(left: float, right: float) -> bool:
    return left == right or (math.isnan(left) and math.isnan(right))


def inside(value: Any, interval: ast.Interval) -> bool:
    low = -math.inf if isinstance(interval.low, ast.Infinity) else interval.low.value
    high = math.inf if isinstance(interval.high, ast.Infinity) else interval.high.value
    return (value > low if interval.low_open else value >= low) and (
        value < high if interval.high_open else value <= high
    )


def _class(world: World, point: str, label: ast.Label) -> int:
    classes = world.ensembles[point].classes
    if isinstance(label, ast.Name):
        return classes.index(label.text)
    return classes.index(int(label.value)) if isinstance(classes[0], int) else int(label.value)


def _wins(world: World, point: str, wanted: int, factor: float, margin: Fraction) -> bool:
    ensemble, margins = world.ensembles[point], world.margins(point)
    if len(margins) == 1:
        margins = [Fraction(0), margins[0]]
    others = [c for c in range(len(margins)) if c != wanted]
    if factor == 1 and margin == 0:
        return margins.index(max(margins)) == wanted  # the first of the best, as these libraries predict
    if ensemble.link.is_linear:
        ratio = all(margins[wanted] >= Fraction(factor) * margins[c] for c in others)
    else:
        ratio = all(margins[wanted] - margins[c] >= math.log(factor) for c in others)
    return ratio and all(margins[wanted] - margins[c] >= margin for c in others)


def _comparison(world: World, node: ast.Comparison) -> bool:
    left, right, operator = node.left, node.right, node.operator
    if isinstance(left, ast.ClassOf):
        return _classes(world, left, operator, right)
    for side, other in ((left, right), (right, left)):
        if isinstance(side, ast.FeatureOf) and isinstance(other, ast.Name):
            value = world.stored(side.point.text, side.feature.text)
            return _compared(value, operator, world.categories[side.feature.text][other.text])
    both_features = isinstance(left, ast.FeatureOf) and isinstance(right, ast.FeatureOf)
    if both_features and operator in ("=", "!=") and left.feature.text == right.feature.text:
        one, two = (world.stored(side.point.text, side.feature.text) for side in (left, right))
        if math.isnan(one) or math.isnan(two):
            return operator == "!="  # no relation holds for a missing value, and `!=` is `not =`
        if not (left.feature.text in world.whole and left.feature.text in world.units):
            return (one == two) is (operator == "=")
    one, two = evaluate(world, left), evaluate(world, right)
    if one is MISSING or two is MISSING:
        # `P.f != c` is `not P.f = c`.
        return operator == "!="
    if isinstance(left, ast.Distance) and left.norm == "l2":
        two = two * two
    return _compared(one, operator, two)


def _classes(world: World, left: ast.ClassOf, operator: str, right: ast.Expression) -> bool:
    point = left.point.text
    if isinstance(right, ast.ClassOf):
        classes = range(len(world.ensembles[point].classes))
        mine = {c for c in classes if _wins(world, point, c, 1, Fraction(0))}
        other = {c for c in classes if _wins(world, right.point.text, c, 1, Fraction(0))}
        pairs = {(i, j) for i in mine for j in other}
        return any((i == j) is (operator == "=") for i, j in pairs)
    assert isinstance(right, ast.Name | ast.Number)
    return _wins(world, point, _class(world, point, right), 1, Fraction(0)) is (operator == "=")


def _compared(left: Any, operator: str, right: Any) -> bool:
    if isinstance(left, float) and math.isnan(left):
        return operator == "!="
    match operator:
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case "=":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case ">=":
            return bool(left >= right)
        case _:
            return bool(left > right)


def evaluate(world: World, node: ast.Expression) -> Any:
    """A Fraction, a float where logarithms take part, or MISSING."""
    match node:
        case ast.Number(value):
            return value
        case ast.FeatureOf(point, feature):
            value = world.typed(point.text, feature.text)
            return MISSING if value is None else value
        case ast.Margin(point, label):
            return world.margins(point.text)[_class(world, point.text, label) if label else 0]
        case ast.Prob(point, label):
            return world.probability(point.text, _class(world, point.text, label) if label else 1)
        case ast.ValueOf(point):
            margin = world.margins(point.text)[0]
            return math.exp(margin) if isinstance(world.ensembles[point.text].link, Exp) else margin
        case ast.Changes(first, second):
            one, two = world.values[first.text], world.values[second.text]
            return sum(not _same(one[f], two[f]) for f in one)
        case ast.Distance(point, target, norm):
            other = (
                world.values[target.text]
                if isinstance(target, ast.Name)
                else world.rows[target.data.text][target.index.value]
            )
            return _distance(world, world.values[point.text], other, norm)
        case ast.Absolute(operand):
            return _lifted(abs, evaluate(world, operand))
        case ast.Negate(operand):
            return _lifted(lambda x: -x, evaluate(world, operand))
        case ast.Sum(terms):
            return _lifted(lambda *parts: sum(parts), *(evaluate(world, t) for t in terms))
        case ast.Product(factors):
            return _lifted(math.prod, [evaluate(world, f) for f in factors])
        case ast.Quotient(numerator, denominator):
            return _lifted(lambda x, y: x / y, evaluate(world, numerator), evaluate(world, denominator))
    raise AssertionError(node)


def _lifted(function: Any, *arguments: Any) -> Any:
    flat = [x for a in arguments for x in (a if isinstance(a, list) else [a])]
    return MISSING if any(x is MISSING for x in flat) else function(*arguments)


def _distance(world: World, left: Mapping[str, float], right: Mapping[str, float], norm: str) -> Fraction:
    parts = []
    for f in sorted(set(left) - world.varied):
        one, two, width = left[f], right[f], world.widths[f]
        if _same(one, two):
            parts.append(Fraction(0))
        elif width is None or norm == "l0" or math.isnan(one) or math.isnan(two):
            parts.append(Fraction(1))
        else:
            parts.append(abs(Fraction(one) - Fraction(two)) / width)
    match norm:
        case "l2":
            return sum((p * p for p in parts), Fraction(0))  # squared: compare with squared numbers
        case "linf":
            return max(parts, default=Fraction(0))
        case _:
            return sum(parts, Fraction(0))
