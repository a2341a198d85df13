"""Inputs that are claimed to exist: all constraints of the statement, by value."""

import math
from bisect import bisect_right

from .by_value import Given, holds, values_of
from .numbers import require


def check_found(problem, inputs):
    """Inputs (null: missing) that satisfy everything: sets, agreement, clauses and orders by value, rows in whole numbers."""
    statement, features = problem.statement, range(len(problem.features))
    x = values_of(problem, inputs)
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
    if "further" in statement:
        require(Given(problem, x).satisfies(statement["further"]), "what else is asked does not hold")
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
