"""Inputs that are claimed to exist: everything that the statement asks, by value."""

import math
from bisect import bisect_right

from .numbers import float32, require


def holds(allowed, x, largest):
    """Whether a set holds a value; a missing one is NaN."""
    if math.isnan(x):
        return bool(allowed.get("missing"))
    inside = any((low is None or low <= x) and (high is None or x <= high) for low, high in allowed.get("runs", []))
    return x in allowed.get("values", []) or (
        inside and abs(x) <= largest and (not allowed.get("whole") or x == int(x))
    )


def check_found(problem, inputs):
    """Inputs (null: missing) that satisfy everything: sets, agreement, clauses and orders by value, rows in whole numbers."""
    statement, features = problem.statement, range(len(problem.features))
    x = [[math.nan if value is None else float(value) for value in point] for point in inputs]
    require([len(point) for point in x] == [len(features)] * len(problem.points), "the inputs have a wrong shape")
    require(all(abs(v) <= problem.largest for point in x for v in point if v == v), "a value is not finite")
    exact = problem.number == "float64" or all(float32(repr(v)) == v for point in x for v in point if v == v)
    require(exact, "a value is no float32")
    require(
        all(holds(s, x[p][f], problem.largest) for p, f, s in problem.domains()), "a value lies outside of its domain"
    )
    same = [
        f in (statement["same_except"] or ()) or x[0][f] == x[-1][f] or (math.isnan(x[0][f]) and math.isnan(x[-1][f]))
        for f in features
    ]
    require(not problem.agree or all(same), "the points differ in a feature that they agree on")
    require(
        all(any(holds(s, x[p][f], problem.largest) for p, f, s in c) for c in statement["clauses"]),
        "a clause does not hold",
    )
    require(all(x[p][f] <= x[q][f] for p, q, f in statement["orders"]), "an order does not hold")
    cell = {
        problem.variable[p, f]: len(problem.cuts[f]) + 1 if v != v else bisect_right(problem.cuts[f], v)
        for p, point in enumerate(x) for f, v in enumerate(point)
    }  # fmt: skip
    for total, coefficient, costs in zip(problem.constant, problem.coefficients, problem.costs):
        total += sum(table[cell[v]] for v, table in costs.items())
        for (p, o), c in coefficient.items():
            for t, outputs in enumerate(problem.points[p].outputs):
                at, nodes = 0, problem.tree(p, t)
                while len(nodes[at]) > 1:
                    f, left, *children = nodes[at]
                    at = children[not left >> cell[problem.variable[p, f]] & 1]
                total += sum(c * x for x, output in zip(nodes[at][0], outputs) if output == o)
        require(total >= 0, "a row does not hold")
