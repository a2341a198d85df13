"""Binds sums of scores and of features' values: rows in exact arithmetic, and objectives.

    margin(a) - 0.3 a.cost >= 2

is a row over raw sums and stored values. Over cells, it is relaxed to the greatest values that each cell allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

from treesens.binder.domains import FeatureSpec
from treesens.binder.inputs import NEGATED, all_of, any_of, is_missing, no_order
from treesens.binder.scope import Pending, Scope
from treesens.binder.scores import raw_sums, row_name
from treesens.binder.terms import Affine, FeatureAtom, LinkedAtom, ScoreAtom
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.rounding import largest_score
from treesens.compiler.query.values import LinearTerm
from treesens.grammar.tree import ast
from treesens.values.row_costs import best_of_cells, greatest_of_cells


@dataclass(frozen=True)
class _Sum:
    """scores + values + `offset`, on raw sums and stored values, is `scale` times the typed sum."""

    scores: tuple[q.ScoreTerm, ...]
    values: tuple[LinearTerm, ...]
    offset: Fraction
    scale: Fraction
    name: str

    def times(self, factor: Fraction) -> _Sum:
        return _Sum(
            tuple(replace(t, coefficient=t.coefficient * factor) for t in self.scores),
            tuple(replace(t, factor=t.factor * factor) for t in self.values),
            self.offset * factor,
            self.scale * factor,
            self.name,
        )


def is_mixed(form: Affine) -> bool:
    """True if a form is a sum of scores and of features' values, with at least one of each."""
    return {type(atom) for atom, _ in form.terms} == {ScoreAtom, FeatureAtom}


def remedy_for_mixed(scope: Scope, form: Affine) -> str | None:
    """The remedy for a sum of features and of predictions through a nonlinear link; None for other sums."""
    if not {FeatureAtom, LinkedAtom} <= {type(atom) for atom, _ in form.terms}:
        return None
    point = next(scope.points[atom.point] for atom, _ in form.terms if isinstance(atom, LinkedAtom))
    return f"only margins are linear: write `margin({point})` for the prediction, in units of the margin"


def _sum_of(scope: Scope, form: Affine, span: Span) -> _Sum:
    margins = {atom: c for atom, c in form.terms if isinstance(atom, ScoreAtom)}
    scores, scale = raw_sums(scope, margins)
    values, offset = list[LinearTerm](), form.constant * scale
    for atom, c in form.terms:
        if isinstance(atom, FeatureAtom):
            spec = scope.spec(atom.feature)
            if spec.unordered:
                raise no_order(scope, spec, span)
            # typed = (stored - stored(0)) / slope
            values.append(LinearTerm(atom.point, atom.feature, c * scale / spec.slope))
            offset -= values[-1].factor * spec.stored(Fraction(0))
    return _Sum(scores, tuple(values), offset, Fraction(scale), row_name(scope, margins))


def compare_mixed(scope: Scope, form: Affine, operator: ast.Operator, positive: bool, span: Span) -> Pending:
    """The constraint `form operator 0`. A missing value satisfies no relation, and therefore every negated one."""
    if operator == "!=":
        operator, positive = "=", not positive
    up = _sum_of(scope, form, span)
    down = up.times(Fraction(-1))
    match operator if positive else NEGATED[operator]:
        case ">=" | ">" as found:
            sides = [_row(scope, up, strict=found == ">")]
        case "<=" | "<" as found:
            sides = [_row(scope, down, strict=found == "<")]
        case _:
            sides = [_row(scope, side, strict=not positive) for side in (up, down)]
    places = [(t.point, t.feature) for t in up.values if scope.spec(t.feature).missing]
    present = [is_missing(scope, *place, positive=False) for place in places]
    if positive:
        return all_of([*present, *sides])
    return any_of([*(all_of([*present, side]) for side in sides), *(is_missing(scope, *place) for place in places)])


def _row(scope: Scope, total: _Sum, *, strict: bool) -> Pending:
    """The row total >= 0 (> 0, if strict)."""
    sizes = (abs(t.coefficient) * largest_score(scope.model(t.point).ensemble) for t in total.scores)
    largest = sum(sizes, Fraction(0))

    def build(space: q.Space) -> q.Constraint:
        # With this much from the values, the row holds at every score, even if it is tightened by the numerical band.
        costs = greatest_of_cells(space, total.values, 2 * largest - total.offset)
        form = q.LinearForm(total.scores, costs)
        return q.AtLeast(form, LogRational(-total.offset), strict, total.name, values=total.values)

    return build


def mixed_objective(
    scope: Scope, form: Affine, upwards: bool, span: Span, width_of: Callable[[Scope, FeatureSpec, Span], Fraction]
) -> Callable[[q.Space], q.Objective]:
    """The objective; its form has dyadic coefficients of scores, in units near the width of the widest term of a feature."""
    found = _sum_of(scope, form, span)
    whole = lcm(*(term.coefficient.denominator for term in found.scores))
    widest = max(abs(t.factor) * width_of(scope, scope.spec(t.feature), span) for t in found.values) * whole
    unit = Unit(widest.denominator.bit_length() - widest.numerator.bit_length()).size / whole
    scaled = found.times(1 / unit)

    def build(space: q.Space) -> q.Objective:
        best = replace(best_of_cells(space, scaled.values, upwards), scores=scaled.scores)
        return q.Objective(
            best, upwards, "margins and features", 1 / scaled.scale, scaled.offset / scaled.scale, values=scaled.values
        )

    return build
