"""Uses bounds of single cells to convert relations between values to rows of costs, which statements can express.

Values satisfy sum of terms <= limit only if the sum of the terms' least values in the cells is at most the limit. A distance |x
- y| is at least 0, x - y and y - x (`distance_bounds.py`). So every input that satisfies the relation satisfies the row of
costs; other inputs may satisfy the row, too. A sum of probabilities is represented by the search's initial rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np

from treesens.compiler.base.arrays import frozen
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.probabilities import relaxed
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    CellCost,
    CellSet,
    Constraint,
    Difference,
    LinearForm,
    ProbabilitySum,
    Query,
    Space,
)
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term, ValueSum
from treesens.extensions.certify.cases import flat
from treesens.extensions.certify.distance_bounds import Bounds, CellValues, bounds_of_distance, least_together
from treesens.values.distance_costs import cell_reaches

_BITS = 44
"""Number of bits of the greatest cell cost of a row."""
MOST_ROWS = 405
"""Maximum number of ways to bound all distances of one relation."""


def with_cell_rows(query: Query) -> Query:
    """The question, with rows and sets added for its relations between values and its sums of probabilities."""
    found = tuple(_with_rows(query.space, query.constraints))
    return query if len(found) == len(query.constraints) else replace(query, constraints=found)


def _with_rows(space: Space, constraints: tuple[Constraint, ...]) -> Iterator[Constraint]:
    for constraint in constraints:
        if isinstance(constraint, AllOf):
            yield from _with_rows(space, constraint.parts)
            continue
        yield constraint
        if isinstance(constraint, ValueSum):
            yield from _present(space, [t.places[0] for t in constraint.terms if isinstance(t, LinearTerm)])
            yield from _row_of(space, constraint)
        elif isinstance(constraint, ProbabilitySum):
            rows = flat([relaxed(constraint)])
            yield from (row for row in rows if isinstance(row, AtLeast) and row not in constraints)
        elif isinstance(constraint, Difference):
            yield from _present(space, [(constraint.left, constraint.feature), (constraint.right, constraint.other)])
            for relation in sums_of(constraint):
                yield from _row_of(space, relation)


def _present(space: Space, places: Iterable[Place]) -> Iterator[CellSet]:
    """Requires the values of a linear relation to be present."""
    for point, feature in dict.fromkeys(places):
        missing = space.grid[feature].missing_cell
        if space.grid[feature].missing and space.legal[feature][missing]:
            yield CellSet(point, feature, frozen(np.arange(len(space.legal[feature])) != missing, bool))


def sums_of(relation: Difference) -> Iterator[ValueSum]:
    """Yields the upper and the lower limit of a relation, each as a sum with an upper limit."""
    one = LinearTerm(relation.left, relation.feature, relation.left_factor)
    other = LinearTerm(relation.right, relation.other, -relation.right_factor)
    if relation.high is not None:
        yield ValueSum((one, other), relation.high, relation.high_strict)
    if relation.low is not None:
        turned = (replace(one, factor=-one.factor), replace(other, factor=-other.factor))
        yield ValueSum(turned, -relation.low, relation.low_strict)


def _row_of(space: Space, relation: ValueSum) -> Iterator[AtLeast | AnyOf]:
    """The rows that bound a sum by single cells: one row per way to bound the distances between two points.

    A sum of distances between two points is never negative, so a relation with a negative limit has no solution.
    """
    known, together = list[CellValues](), dict[Place, list[Term]]()
    added, taken = list[Bounds](), list[Bounds]()
    for term in relation.terms:
        if not isinstance(term, DistanceTerm) or term.other is None:
            together.setdefault(term.places[0], []).append(term)
        else:
            bounds = bounds_of_distance(space, term, relation.limit, len(relation.terms))
            (added if term.factor > 0 else taken).append(bounds)
    for place, terms in together.items():
        known.append(least_together(place, terms, cell_reaches(space, place[1]), space.legal[place[1]]))
    if not known and not taken and not relation.allows(Fraction(0)):
        yield AnyOf(())
    for values in _chosen(added, taken):
        row = least_row(relation, [*known, *values])
        if row is not None:
            yield row


def _chosen(added: list[Bounds], taken: list[Bounds]) -> Iterator[list[CellValues]]:
    """Yields combinations of lower bounds on distances. Distances in `added` are also at least 0; above MOST_ROWS, each
    combination bounds at most one such distance. Distances in `taken` are subtracted, so each of these distances needs a bound.
    """
    if prod(map(len, taken)) > MOST_ROWS:
        return
    ways = prod(len(bounds) + 1 for bounds in added) * prod(map(len, taken))
    for least in product(*taken):
        sets: list[list[list[CellValues]]] = [[], *([bound] for one in added for bound in one)]
        if ways <= MOST_ROWS:
            sets = [[*more] for more in product(*([[], *one] for one in added))]
        for more in sets:
            yield [values for bound in (*least, *more) for values in bound]


def least_row(relation: ValueSum, values: Sequence[CellValues]) -> AtLeast | None:
    """The row of costs stating that the sum of the least values is within the limit; None if a term has no bound."""
    known = [[v for v in least if v is not None] for _, least in values]
    if not values or not all(known):
        return None
    most = max(abs(v) for mine in known for v in mine)
    unit = Unit(_BITS - max(1, most.__ceil__().bit_length()))
    costs = []
    for ((point, feature), least), present in zip(values, known, strict=True):
        # Costs are rounded up, so that no input is lost. Cells without a value are excluded by the relation, not by its row.
        whole = [unit.ceil(-(min(present) if v is None else v)) for v in least]
        costs.append(CellCost(point, feature, frozen(np.array(whole, np.int64)), unit.shift))
    wanted = -relation.limit
    count = (
        unit.floor(wanted) + 1 if relation.strict and unit.floor(wanted) == unit.count(wanted) else unit.ceil(wanted)
    )
    bound = LogRational(Fraction(count) * unit.size)
    return AtLeast(LinearForm(costs=tuple(costs)), bound, name=f"{relation.name}.cells")
