"""Exact evaluation of a question on concrete inputs, used to verify witnesses. Slow, simple, and independent of encodings."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray, Int32Array
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.query.probabilities import approximate, reaches
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    AvoidBoxes,
    AvoidCavities,
    CellSet,
    Constraint,
    Difference,
    LinearForm,
    Objective,
    OneHot,
    ProbabilitySum,
    Query,
    SameExcept,
    parts_in,
)
from treesens.compiler.query.values import Place, ValueSum, sum_of
from treesens.errors import InternalError


@dataclass(frozen=True)
class Inputs:
    """Concrete points: `values` float64[points, features] (NaN is missing), their `cells` int32[points, features], and
    `scores[point][output]`: raw sums before averaging, exact or from a library.
    """

    values: FloatArray
    cells: Int32Array
    scores: tuple[tuple[Fraction, ...], ...]

    def at(self, place: Place) -> float:
        return float(self.values[place])


def inputs_of(query: Query, values: FloatArray) -> Inputs:
    """Concrete points with cells and exact scores. Raises DataError if a value has no cell (NaN, where it is not allowed)."""
    cells = query.space.grid.cells(values)
    return Inputs(values, cells, scores_of_cells(query, cells))


def scores_of_cells(query: Query, cells: Int32Array) -> tuple[tuple[Fraction, ...], ...]:
    """The exact raw sums of every point in its model."""
    result = []
    for number, point in enumerate(query.points):
        model = query.models[point.model]
        sums = model.ensemble.sums_exact(model.leaves(np.ascontiguousarray(cells[number : number + 1])))
        result.append(tuple(sums.fraction(0, output) for output in range(model.ensemble.n_outputs)))
    return tuple(result)


def scores_of_margins(query: Query, margins: list[NDArray[Any]]) -> tuple[tuple[Fraction, ...], ...]:
    """Raw sums from a library's margins, one row [outputs] per point: the averaging in forests is undone."""
    return tuple(
        tuple(Fraction(float(m)) * query.models[point.model].ensemble.average for m in row)
        for point, row in zip(query.points, margins, strict=True)
    )


def scores_value(form: LinearForm, x: Inputs) -> Fraction:
    """The exact value of a form's scores."""
    return sum((t.coefficient * x.scores[t.point][t.output] for t in form.scores), Fraction(0))


def form_value(form: LinearForm, x: Inputs) -> Fraction:
    """The exact value of a linear form."""
    total = scores_value(form, x)
    for cost in form.costs:
        total += Unit(cost.shift).value(cost.costs[x.cells[cost.point, cost.feature]])
    for change in form.changes:
        if change.most:
            raise InternalError("the number of features that can differ is a bound, not a value")
        differ = x.cells[change.left, list(change.features)] != x.cells[change.right, list(change.features)]
        total += change.coefficient * int(np.count_nonzero(differ))
    for pair in form.pairs:
        total += Unit(pair.shift).value(pair.costs[x.cells[pair.left], x.cells[pair.right]])
    for level in form.levels:
        counts = not holds(level.below, x) if level.below is not None else level.above and holds(level.above, x)
        total += Unit(level.shift).value(level.cost if counts else 0)
    total += sum((term.value(x.cells[term.point]) for term in form.forests), Fraction(0))
    return total


def objective_form_value(objective: Objective, x: Inputs) -> Fraction:
    """The exact value of an objective's form on concrete inputs; for a sum of probabilities, a number slightly below the value.
    For display, the value is converted with unit and offset, see `solve.bounds.value_of`.
    """
    if objective.probability is not None:
        return approximate(objective.probability, x.scores)
    if not objective.values:
        return form_value(objective.form, x)
    parts = [term.value([x.at(place) for place in term.places]) or Fraction(0) for term in objective.values]
    return max(parts, default=Fraction(0)) if objective.largest else sum(parts, scores_value(objective.form, x))


def slack(constraint: AtLeast, x: Inputs) -> tuple[bool, float]:
    """True if a linear constraint holds in exact arithmetic, and its slack as a float for messages."""
    value, above, (low, high) = _compared(constraint, x)
    return above, float(value - (low + high) / 2)


def _compared(constraint: AtLeast, x: Inputs) -> tuple[Fraction, bool, tuple[Fraction, Fraction]]:
    """The value of the row; whether the value satisfies the bound; and an enclosure of the bound that decides this."""
    value = form_value(constraint.form, x)
    if constraint.values:
        inside = sum_of(constraint.values, x.at)
        if inside is None:
            return value, False, constraint.bound.enclose(128)  # a missing value satisfies no relation
        value = scores_value(constraint.form, x) + inside
    bits = 128
    while True:
        low, high = constraint.bound.enclose(bits)
        above, below = (value > high, value < low) if constraint.strict else (value >= high, value < low)
        if constraint.strict and low == high:
            below = value <= low
        if above or below:
            return value, above, (low, high)
        bits *= 2


def holds(constraint: Constraint, x: Inputs) -> bool:
    """True if a constraint holds in exact arithmetic."""
    match constraint:
        case SameExcept():
            keep = [f for f in range(x.values.shape[1]) if f not in constraint.varied]
            left, right = x.values[constraint.left, keep], x.values[constraint.right, keep]
            return bool(np.array_equal(left, right, equal_nan=True))
        case CellSet():
            return bool(constraint.mask[x.cells[constraint.point, constraint.feature]])
        case AtLeast():
            return _compared(constraint, x)[1]
        case ProbabilitySum():
            return reaches(constraint, x.scores)
        case Difference():
            return difference_holds(
                constraint, x.values[constraint.left, constraint.feature], x.values[constraint.right, constraint.other]
            )
        case ValueSum():
            return constraint.holds(x.at)
        case AvoidBoxes():
            return avoids(constraint, x.cells[constraint.point])
        case AvoidCavities():
            return constraint.holds(x.cells[constraint.point])
        case OneHot():
            return sum(holds(member, x) for member in constraint.members) == 1
        case AllOf():
            return all(holds(part, x) for part in constraint.parts)
        case AnyOf():
            return any(holds(part, x) for part in constraint.parts)
        case _:
            assert_never(constraint)


def difference_holds(relation: Difference, left: float, right: float) -> bool:
    """low <= p * left - q * right <= high in exact arithmetic; a missing value satisfies no relation."""
    if np.isnan(left) or np.isnan(right):
        return False
    difference = relation.value(Fraction(float(left)), Fraction(float(right)))
    if relation.low is not None and (difference < relation.low or (relation.low_strict and difference == relation.low)):
        return False
    return not (
        relation.high is not None
        and (difference > relation.high or (relation.high_strict and difference == relation.high))
    )


def avoids(boxes: AvoidBoxes, cells: Int32Array) -> bool:
    """True if none of the boxes contains `cells`, int32[features]."""
    inside = (cells[boxes.feature] >= boxes.low) & (cells[boxes.feature] <= boxes.high)
    counts = np.add.reduceat(inside.astype(np.int64), boxes.indptr[:-1]) if len(inside) else np.zeros(0, np.int64)
    return not bool(np.any(counts == np.diff(boxes.indptr)))


def linear_constraints(constraints: tuple[Constraint, ...]) -> list[AtLeast]:
    """Every linear constraint, including those inside formulas."""
    return [part for part in parts_in(constraints) if isinstance(part, AtLeast)]


def reads_scores(constraint: Constraint) -> bool:
    """True if a library's rounding can affect a constraint: a row, or a sum of probabilities, also inside formulas."""
    return any(isinstance(part, AtLeast | ProbabilitySum) for part in parts_in((constraint,)))
