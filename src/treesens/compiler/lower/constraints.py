"""Lowers the constraints and the objective of a question to rows of the module."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import assert_never

import numpy as np

from treesens.compiler.base.arrays import Int32Array, IntegerArray
from treesens.compiler.base.budget import steadily
from treesens.compiler.base.dyadic import Unit, exact_product
from treesens.compiler.ir import FALSE, TRUE, Linear, Objective
from treesens.compiler.lower.builder import Builder
from treesens.compiler.lower.differences import lower_changes, lower_difference
from treesens.compiler.lower.sums import lower_levels, lower_pair, row_of_sum
from treesens.compiler.lower.trees import forest_unit
from treesens.compiler.model.scores import leaf_values
from treesens.compiler.query import query as q
from treesens.compiler.query.forest import ForestTerm
from treesens.compiler.query.known_cavities import known_boxes
from treesens.compiler.query.probabilities import relaxed
from treesens.compiler.query.values import ValueSum
from treesens.errors import InternalError

_INT64_SAFE = 2**61


@dataclass(frozen=True)
class Form:
    """An exact linear form over variables, in integer units of 2**-shift, plus a constant in the same units.

    The form is `multiplier` times the question's form; the multiplier clears denominators that are not powers of two.
    """

    variables: Int32Array
    coefficients: IntegerArray
    constant: int
    shift: int
    multiplier: int


def lower_constraint(builder: Builder, constraint: q.Constraint, when: int = TRUE) -> None:
    """Adds a constraint; if `when` is a literal, the constraint is enforced only if that literal is true."""
    match constraint:
        case q.SameExcept():
            _same(builder, constraint, when)
        case q.CellSet():
            if when == TRUE:
                builder.require_cells(constraint.point, constraint.feature, constraint.mask)
            else:
                inside = builder.inside(constraint.point, constraint.feature, constraint.mask)
                builder.clause([when ^ 1, inside])
        case q.AtLeast():
            _at_least(builder, constraint, when)
        case q.ProbabilitySum():
            lower_constraint(builder, relaxed(constraint), when)
        case q.Difference():
            lower_difference(builder, constraint, when)
        case ValueSum():
            row = row_of_sum(builder, constraint, when)
            if row is not None:
                _at_least(builder, row, when)
        case q.AvoidBoxes():
            _avoid(builder, constraint, when)
        case q.AvoidCavities():
            _avoid(builder, known_boxes(constraint), when)
        case q.OneHot():
            _one_hot(builder, constraint, when)
        case q.AllOf():
            for part in steadily(constraint.parts):
                lower_constraint(builder, part, when)
        case q.AnyOf():
            _any_of(builder, constraint, when)
        case _:
            assert_never(constraint)


def _same(builder: Builder, constraint: q.SameExcept, when: int) -> None:
    """eq. same: the predicates of every feature outside F are equal in both copies."""
    for feature in range(len(builder.query.space.names)):
        if feature in constraint.varied:
            continue
        left = builder.order(feature, constraint.left).variables * np.int32(2)
        right = builder.order(feature, constraint.right).variables * np.int32(2)
        if when == TRUE:
            builder.equal(left, right)
            continue
        for a, b in zip(left, right, strict=True):
            builder.clause([when ^ 1, int(a) ^ 1, int(b)])
            builder.clause([when ^ 1, int(a), int(b) ^ 1])


def _avoid(builder: Builder, constraint: q.AvoidBoxes, when: int) -> None:
    """Adds a clause per box (eq. clause-template): in some feature, the point is below or above the box."""
    p = constraint.point
    for row in steadily(range(len(constraint.indptr) - 1)):
        literals = [when ^ 1] if when != TRUE else []
        for i in range(constraint.indptr[row], constraint.indptr[row + 1]):
            f = int(constraint.feature[i])
            literals.append(builder.at_most(p, f, int(constraint.low[i]) - 1))
            literals.append(builder.at_most(p, f, int(constraint.high[i])) ^ 1)
        builder.clause(literals)


def _one_hot(builder: Builder, constraint: q.OneHot, when: int) -> None:
    literals = [builder.inside(m.point, m.feature, m.mask) for m in constraint.members]
    guard = [when ^ 1] if when != TRUE else []
    builder.clause([*guard, *literals])
    for i, left in enumerate(literals):
        for right in literals[:i]:
            builder.clause([*guard, left ^ 1, right ^ 1])


def _any_of(builder: Builder, constraint: q.AnyOf, when: int) -> None:
    """Adds a disjunction: a part that is a literal enters the clause directly, any other part is implied by a fresh literal."""
    clause = [when ^ 1] if when != TRUE else []
    for part in constraint.parts:
        if isinstance(part, q.CellSet):
            clause.append(builder.inside(part.point, part.feature, part.mask))
            continue
        literal = builder.reified()
        lower_constraint(builder, part, literal)
        clause.append(literal)
    builder.clause(clause)


def _at_least(builder: Builder, constraint: q.AtLeast, when: int) -> None:
    """eq. Gap-bin, Gap-multi: an exact integer row. The bound is rounded up to a multiple of the sums' common unit."""
    form = linear_form(builder, constraint.form)
    bound = (constraint.bound * form.multiplier).ceil(form.shift, strict=constraint.strict) - form.constant
    if len(form.variables) == 0:
        if bound > 0:
            builder.fact(when ^ 1 if when != TRUE else FALSE)
        return
    builder.linear(Linear(constraint.name, form.variables, form.coefficients, bound, form.shift, when))


def lower_objective(builder: Builder, objective: q.Objective) -> Objective:
    """The lowered objective, which is always maximised."""
    sign = 1 if objective.maximize else -1
    form = linear_form(builder, objective.form, sign)
    if form.multiplier != 1:
        raise InternalError("an objective requires dyadic coefficients")
    return Objective(form.variables, form.coefficients * sign, form.constant * sign, form.shift)


def linear_form(builder: Builder, form: q.LinearForm, sense: int = 1) -> Form:
    """A form as one exact integer row in which like terms are combined. `sense` is 1 if the form must be large, -1 if small."""
    multiplier = 1
    for term in form.scores:
        odd = term.coefficient.denominator
        while odd % 2 == 0:
            odd //= 2
        multiplier = multiplier * odd // gcd(multiplier, odd)
    parts: list[tuple[Int32Array, IntegerArray, int]] = []  # variables, coefficients, shift
    constant = Fraction(0)
    for term in form.scores:
        constant += _score(builder, term, multiplier, parts)
    for cost in form.costs:
        constant += _cost(builder, cost, multiplier, parts)
    for change in form.changes:
        constant += lower_changes(builder, change, multiplier, parts)
    for pair in form.pairs:
        constant += lower_pair(builder, pair, multiplier, sense, parts)
    for tree in form.forests:
        _forest(builder, tree, multiplier, parts)
    for constraint, literal in lower_levels(builder, form.levels, multiplier, parts):
        lower_constraint(builder, constraint, literal)
    shift = max([part[2] for part in parts], default=0)
    # A shift may be negative, and the constant is a dyadic number.
    shift = max(shift, constant.denominator.bit_length() - 1)
    return _merge(parts, constant, shift, multiplier)


def _score(
    builder: Builder, term: q.ScoreTerm, multiplier: int, parts: list[tuple[Int32Array, IntegerArray, int]]
) -> Fraction:
    point = builder.query.points[term.point]
    model = builder.query.models[point.model].ensemble
    unit = builder.units[term.point]
    contribution = model.scaled_contributions
    vector = contribution.values.shape[1] > 1
    mine = np.ones(len(unit.leaf), bool) if vector else model.tree_output[model.leaf_tree[unit.leaf]] == term.output
    variables = unit.variables[mine]
    values = contribution.values[unit.leaf[mine], term.output if vector else 0]
    factor = term.coefficient * multiplier
    shift, numerator = contribution.shift, factor.numerator
    denominator = factor.denominator
    while denominator > 1:
        denominator //= 2
        shift += 1
    parts.append((variables, exact_product(values, numerator), shift))
    return factor * model.average * Fraction(float(model.base[term.output]))


def _forest(
    builder: Builder, term: ForestTerm, multiplier: int, parts: list[tuple[Int32Array, IntegerArray, int]]
) -> None:
    unit = forest_unit(builder, term)
    values, shift, _ = leaf_values(term.trees, 0)
    parts.append((unit.variables, exact_product(values[unit.leaf], term.coefficient * multiplier), shift))


def _size(values: IntegerArray) -> float:
    """The sum of absolute int64 numbers, in floats: its relative error is far below the margin of the limit."""
    return float(np.abs(values.astype(float)).sum())


def _cost(
    builder: Builder, cost: q.CellCost, multiplier: int, parts: list[tuple[Int32Array, IntegerArray, int]]
) -> Fraction:
    """eq. obj-data-aware: adds a cost per cell, as a telescoping sum over predicates, and returns its constant:

    cost(cell) = cost[last] + sum over k of (cost[k] - cost[k+1]) * [cell <= k].
    """
    block = builder.order(cost.feature, cost.point)
    values = exact_product(cost.costs, multiplier)
    if len(block.variables):
        parts.append((block.variables, values[:-1] - values[1:], cost.shift))
    return Unit(cost.shift).value(values[-1])


def _merge(parts: list[tuple[Int32Array, IntegerArray, int]], constant: Fraction, shift: int, multiplier: int) -> Form:
    scaled = [exact_product(c, 1 << (shift - s)) for _, c, s in parts]
    if not parts:
        empty = np.zeros(0, np.int32)
        return Form(empty, np.zeros(0, np.int64), Unit(shift).ceil(constant), shift, multiplier)
    wide = any(c.dtype == object for c in scaled) or sum(_size(c) for c in scaled) >= _INT64_SAFE
    variables, inverse = np.unique(np.concatenate([v for v, _, _ in parts]), return_inverse=True)
    sums: IntegerArray = np.zeros(len(variables), object if wide else np.int64)
    np.add.at(sums, inverse, np.concatenate([c.astype(object) if wide else c for c in scaled]))
    if wide and sum(abs(int(v)) for v in sums) < _INT64_SAFE:
        sums = sums.astype(np.int64)
    nonzero = sums != 0
    return Form(variables[nonzero].astype(np.int32), sums[nonzero], Unit(shift).ceil(constant), shift, multiplier)
