"""Evaluates a question exactly on many inputs at once, like `evaluate.py`, but for all rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, Int64Array, IntegerArray
from treesens.compiler.base.dyadic import ScaledIntegers, to_scaled
from treesens.compiler.query.evaluate import avoids, difference_holds
from treesens.compiler.query.probabilities import reaches_on_rows
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
    OneHot,
    ProbabilitySum,
    Query,
    SameExcept,
)
from treesens.compiler.query.values import DistanceTerm, ValueSum
from treesens.errors import InternalError
from treesens.values.relations import at_scores

_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class ManyInputs:
    """Concrete points of many inputs: `values` float64[points, rows, features] (NaN is missing), `cells` of the same shape, and
    for each point the raw sums before averaging, [rows, outputs]; exact, or from a library.
    """

    values: FloatArray
    cells: Int32Array
    scores: tuple[ScaledIntegers, ...]

    def __len__(self) -> int:
        return int(self.values.shape[1])

    def take(self, rows: Int64Array) -> ManyInputs:
        """A subset of the inputs."""
        return ManyInputs(self.values[:, rows], self.cells[:, rows], tuple(s[rows] for s in self.scores))


def many_inputs(query: Query, values: FloatArray, cells: Int32Array) -> ManyInputs:
    """The inputs with their exact scores."""
    scores = [
        sums_of_cells(query, point.model, np.ascontiguousarray(cells[number]))
        for number, point in enumerate(query.points)
    ]
    return ManyInputs(values, cells, tuple(scores))


def sums_of_cells(query: Query, model: int, cells: Int32Array) -> ScaledIntegers:
    """The exact raw sums [rows, outputs] of a model at `cells`, int32[rows, features]."""
    found = query.models[model]
    parts = [
        found.ensemble.sums_exact(found.leaves(cells[start : start + _CHUNK]))
        for start in range(0, max(1, len(cells)), _CHUNK)
    ]
    shift = max(part.shift for part in parts)
    return ScaledIntegers(np.concatenate([part.rescaled(shift).values.astype(object) for part in parts]), shift)


def with_margins(query: Query, x: ManyInputs, margins: Sequence[NDArray[Any]]) -> ManyInputs:
    """The same inputs with a library's margins [rows, outputs] per point; the averaging of forests is undone."""
    scores = []
    for point, of_point in zip(query.points, margins, strict=True):
        exact = to_scaled(np.asarray(of_point, np.float64).reshape(len(x), -1))
        average = query.models[point.model].ensemble.average
        scores.append(ScaledIntegers(exact.values.astype(object) * average, exact.shift))
    return ManyInputs(x.values, x.cells, tuple(scores))


def form_values(form: LinearForm, x: ManyInputs) -> tuple[IntegerArray, int, int]:
    """A linear form at every row: integers [rows], with (shift, multiplier); the form is value / multiplier * 2**-shift."""
    whole = lcm(1, *(t.coefficient.denominator for t in form.scores))
    units = [c.shift for c in form.costs] + [p.shift for p in form.pairs]
    units += [level.shift for level in form.levels] + [tree.shift for tree in form.forests]
    shift = max([x.scores[t.point].shift for t in form.scores] + units, default=0)
    total = np.zeros(len(x), object)
    for term in form.scores:
        score = x.scores[term.point]
        factor = int(term.coefficient * whole) << (shift - score.shift)
        total += score.values[:, term.output].astype(object) * factor
    for cost in form.costs:
        total += cost.costs[x.cells[cost.point, :, cost.feature]].astype(object) * (whole << (shift - cost.shift))
    for change in form.changes:
        if change.most:
            raise InternalError("the number of features that can differ is a bound, not a value")
        features = list(change.features)
        differ = (x.cells[change.left][:, features] != x.cells[change.right][:, features]).sum(axis=1)
        total += differ.astype(object) * (change.coefficient * whole << shift)
    for pair in form.pairs:
        (left, f), (right, g) = pair.left, pair.right
        total += pair.costs[x.cells[left, :, f], x.cells[right, :, g]].astype(object) * (whole << (shift - pair.shift))
    for level in form.levels:
        counts = np.zeros(len(x), bool)
        if level.below is not None:
            counts = ~holds_on_rows(level.below, x)
        elif level.above is not None:
            counts = holds_on_rows(level.above, x)
        total += counts.astype(object) * (level.cost * whole << (shift - level.shift))
    for tree in form.forests:
        of_rows = tree.scores(np.ascontiguousarray(x.cells[tree.point])).astype(object)
        total += of_rows * (tree.coefficient * whole << (shift - tree.shift))
    return total, shift, whole


def holds_everywhere(constraints: Sequence[Constraint], x: ManyInputs) -> BoolArray:
    """True for rows that satisfy all constraints, bool[rows]; costly constraints are evaluated on the remaining rows only."""
    alive: Int64Array = np.arange(len(x))
    for constraint in sorted(constraints, key=_effort):
        alive = alive[holds_on_rows(constraint, x.take(alive))]
    result = np.zeros(len(x), bool)
    result[alive] = True
    return result


def _effort(constraint: Constraint) -> int:
    match constraint:
        case CellSet() | SameExcept() | OneHot():
            return 0
        case AtLeast():
            return 1
        case ProbabilitySum():
            return 2
        case AllOf() | AnyOf():
            return max((_effort(part) for part in constraint.parts), default=0)
        case Difference() | ValueSum():
            return 2
        case AvoidBoxes():
            return 3
        case AvoidCavities():
            return 4
        case _:
            assert_never(constraint)


def holds_on_rows(constraint: Constraint, x: ManyInputs) -> BoolArray:
    """True for rows that satisfy a constraint in exact arithmetic, bool[rows]."""
    match constraint:
        case SameExcept():
            keep = [f for f in range(x.values.shape[2]) if f not in constraint.varied]
            left, right = x.values[constraint.left][:, keep], x.values[constraint.right][:, keep]
            return np.asarray(((left == right) | (np.isnan(left) & np.isnan(right))).all(axis=1), bool)
        case CellSet():
            return np.asarray(constraint.mask[x.cells[constraint.point, :, constraint.feature]], bool)
        case AtLeast() if constraint.values:
            total, shift, whole = form_values(LinearForm(constraint.form.scores), x)
            return _sums_hold([at_scores(constraint, Fraction(int(t), whole << shift)) for t in total], x)
        case AtLeast():
            total, shift, whole = form_values(constraint.form, x)
            least = (constraint.bound * Fraction(whole)).ceil(shift, strict=constraint.strict)
            return np.asarray(total >= least, bool)
        case ProbabilitySum():
            return reaches_on_rows(constraint, dict(enumerate(x.scores)), len(x))
        case Difference():
            left = x.values[constraint.left, :, constraint.feature]
            right = x.values[constraint.right, :, constraint.other]
            return np.array([difference_holds(constraint, a, b) for a, b in zip(left, right, strict=True)], bool)
        case ValueSum() if all(isinstance(t, DistanceTerm) and t.unordered for t in constraint.terms):
            return _sum_of_changes(constraint, x)
        case ValueSum():
            return _sums_hold([constraint] * len(x), x)
        case AvoidBoxes():
            return np.array([avoids(constraint, cells) for cells in x.cells[constraint.point]], bool)
        case AvoidCavities():
            return np.array([constraint.holds(cells) for cells in x.cells[constraint.point]], bool)
        case OneHot():
            ones = [holds_on_rows(member, x).astype(np.int64) for member in constraint.members]
            return np.asarray(np.sum(ones, axis=0) == 1, bool)
        case AllOf():
            return holds_everywhere(constraint.parts, x)
        case AnyOf():
            result = np.zeros(len(x), bool)
            for part in constraint.parts:
                result |= holds_on_rows(part, x)
            return result
        case _:
            assert_never(constraint)


def _sums_hold(relations: Sequence[ValueSum], x: ManyInputs) -> BoolArray:
    """True for rows that satisfy their relation, bool[rows]; all relations have the same places."""
    places = relations[0].places if relations else ()
    columns = {place: x.values[place[0], :, place[1]].tolist() for place in places}
    held = [one.holds({at: of[i] for at, of in columns.items()}.__getitem__) for i, one in enumerate(relations)]
    return np.array(held, bool)


def _sum_of_changes(relation: ValueSum, x: ManyInputs) -> BoolArray:
    """True for rows that satisfy a relation whose terms are 0 if two values are equal (missing equals missing)."""
    total = np.full(len(x), Fraction(0), object)
    for term in relation.terms:
        assert isinstance(term, DistanceTerm)
        one = x.values[term.point, :, term.feature]
        other = np.full(len(x), term.row) if term.other is None else x.values[term.other, :, term.feature]
        differ = (one != other) & ~(np.isnan(one) & np.isnan(other))
        total[differ] += term.factor
    return np.asarray([relation.allows(v) for v in total], bool)
