"""Constraints on inputs beyond a statement on cells: sums of values and of probabilities, and alternatives, all by value."""

import math
from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from itertools import chain

from .numbers import exp_bounds, fraction, is_value, ln_bounds, require


def holds(allowed, x, largest):
    """True if a set holds a value; a missing one is NaN."""
    if math.isnan(x):
        return bool(allowed.get("missing"))
    inside = any((low is None or low <= x) and (high is None or x <= high) for low, high in allowed.get("runs", []))
    return x in allowed.get("values", []) or (
        inside and abs(x) <= largest and (not allowed.get("whole") or x == int(x))
    )


def values_of(problem, inputs):
    """Inputs (null: missing) by point and feature, as the models store them; NaN is missing."""
    x = [[math.nan if value is None else float(value) for value in point] for point in inputs]
    shape = [len(problem.features)] * len(problem.points)
    require([len(point) for point in x] == shape, "the inputs have a wrong shape")
    require(all(abs(v) <= problem.largest for point in x for v in point if v == v), "a value is not finite")
    exact = all(is_value(v, problem.number) for point in x for v in point if v == v)
    require(exact, f"a value is no {problem.number}")
    return x


class Given:
    """Inputs x, by point and feature: NaN is missing. An undecided enclosure counts as false if it has to be `sure`, and as
    true otherwise.
    """

    def __init__(self, problem, x, sure=True):
        self.problem, self.x, self.sure, self.known = problem, x, sure, {}

    def satisfies(self, asked):
        """True if all constraints hold."""
        return (
            all(self.within(part) for part in asked.get("domain", []))
            and all(any(map(self.within, clause)) for clause in asked.get("clauses", []))
            and all(self.x[p][f] <= self.x[q][f] for p, q, f in asked.get("orders", []))
            and all(map(self.row, asked.get("rows", [])))
            and all(self.differ(limit["features"]) <= limit["most"] for limit in asked["changes"])
            and all(self.differ(limit["features"]) >= limit["least"] for limit in asked["apart"])
            and all(map(self.relation, asked.get("values", [])))
            and all(map(self.chance, asked.get("chances", [])))
            and not any(map(self.lies_in, asked.get("cavities", [])))
            and all(any(map(self.satisfies, alternatives)) for alternatives in asked["either"])
        )

    def within(self, part):
        p, f, allowed = part
        return holds(allowed, self.x[p][f], self.problem.largest)

    def differ(self, features):
        one, other = self.x
        return sum(one[f] != other[f] and not (math.isnan(one[f]) and math.isnan(other[f])) for f in features)

    def row(self, row):
        total = sum(fraction(c) * self.score(p, o) for c, p, o in row["terms"])
        total += sum(self.cost(*cost) for cost in row["costs"])
        choose, bound = max if self.sure else min, row["bound"]
        logs = (choose(fraction(c) * end for end in ln_bounds(fraction(a))) for c, a in bound["logs"])
        level = fraction(bound["rational"]) + sum(logs)
        return total > level if row["strict"] else total >= level

    def cost(self, p, f, steps, missing):
        x = self.x[p][f]
        return fraction(missing if math.isnan(x) else steps[bisect_right([s for s, _ in steps[1:]], x)][1])

    def score(self, p, o):
        """The exact output of a point."""
        if (p, o) not in self.known:
            model, total = self.problem.points[p], Fraction(0)
            for tree, outputs in zip(model.trees, model.outputs):
                if o in outputs:
                    total += sum(Fraction(v) for v, output in zip(self.leaf(p, tree.nodes), outputs) if output == o)
            self.known[p, o] = Fraction(model.base[o]) + total / model.average
        return self.known[p, o]

    def leaf(self, p, nodes):
        at = 0
        while len(nodes[at]) > 1:
            f, test, missing, left, right = nodes[at]
            x = self.x[p][f]
            goes_left = missing if math.isnan(x) else x in test if isinstance(test, frozenset) else x < test
            at = left if goes_left else right
        return nodes[at][0]

    def lies_in(self, cavities):
        """True if for some features, at most `width`, no row has the values in its cells of all of them."""
        x = self.x[cavities["point"]]
        inside = [
            {i for i, allowed in enumerate(sets) if holds(allowed, x[f], self.problem.largest)}
            for f, sets in zip(cavities["features"], cavities["cells"])
        ]
        rows = cavities["rows"]
        apart = {frozenset(k for k, mine in enumerate(inside) if row[k] not in mine) for row in rows}
        return can_hit(apart, cavities["width"])

    def relation(self, relation):
        """A sum of values and scores; a term of a missing value has no value."""
        values = [self.value(*term) for term in relation["terms"]]
        if None in values:
            return False
        values.append(self.sum_of(relation.get("scores", [])))
        total, most = sum(values), fraction(relation["most"])
        return total < most if relation["strict"] else total <= most

    def value(self, factor, p, f, other=None, unit=None, power=1):
        x = self.x[p][f]
        if other is None:
            return None if math.isnan(x) else fraction(factor) * Fraction(x)
        y = self.x[other["point"]][f] if "point" in other else other["value"]
        gone = [math.isnan(x), y is None or math.isnan(y)]
        if any(gone) or unit is None:
            away = Fraction(int(not all(gone) and (any(gone) or x != y)))
        else:
            away = abs(Fraction(x) - Fraction(y)) / fraction(unit)
        return fraction(factor) * away**power

    def chance(self, chance):
        """A sum of probabilities, by its lower end, or by its upper end if it need not be sure."""
        choose = min if self.sure else max
        total = sum(choose(fraction(factor) * end for end in self.ends(*term)) for factor, *term in chance["terms"])
        least = fraction(chance["least"])
        return total > least or (not chance["strict"] and total == least)

    def ends(self, terms, *curve):
        """Rationals around 1 / (1 + powers of e), or around a function of a sum of scores."""
        if not curve:
            return share([fraction(constant) + self.sum_of(scores) for scores, constant in terms])
        (curve,), x = curve, self.sum_of(terms)
        if curve is None:
            return [x]
        ends = share([-x]) if curve["of_probability"] else [x]
        if "slope" in curve:
            slope, intercept = fraction(curve["slope"]), fraction(curve["intercept"])
            return [end for x in ends for end in share([slope * x + intercept])]
        return [on_lines(curve["knots"], x) for x in ends]

    def sum_of(self, scores):
        return sum((fraction(c) * self.score(p, o) for c, p, o in scores), Fraction(0))


def can_hit(sets, count):
    """True if at most `count` items hit each set."""
    if not sets:
        return True
    often = Counter(chain.from_iterable(sets)).most_common(count)
    if sum(times for _, times in often) < len(sets):
        return False
    return any(can_hit([one for one in sets if item not in one], count - 1) for item in min(sets, key=len))


def share(exponents):
    """Rationals around 1 / (1 + powers of e)."""
    powers = [exp_bounds(x) for x in exponents]
    lows, highs = zip(*powers) if powers else ((), ())
    return [1 / (1 + sum(lows)), Fraction(0) if None in highs else 1 / (1 + sum(highs))]


def on_lines(knots, x):
    """The value of lines from knot to knot at a number; the ends beyond the first and the last knot."""
    known = [(fraction(at), fraction(value)) for at, value in knots]
    place = bisect_right([at for at, _ in known], x)
    if place in (0, len(known)):
        return known[min(place, len(known) - 1)][1]
    (left, low), (right, high) = known[place - 1 : place + 1]
    return low + (high - low) * (x - left) / (right - left)
