"""Bounds on the grid of their own sums, as the engine counts them.

A checker has one unit for all scores of all points. If costs, learnt trees or another model stand beside scores, it is finer
than the sums of a row need, and a strict bound in it would say less than it does on the grid of the row.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import lcm

from treesens.compiler.base.units import Unit
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.query import AtLeast, LinearForm, Query


def on_own_grid(query: Query, row: AtLeast) -> AtLeast:
    """A row with its bound raised to the next sum that it can have: the same inputs satisfy it."""
    if row.bound.logs and not row.form.scores:
        return row  # a logarithm of a likelihood is better said as it is
    factor, unit = _grid_of(query, row.form)
    level = unit.value((row.bound * factor).ceil(unit.shift, strict=row.strict)) / factor
    return replace(row, bound=LogRational(level), strict=False)


def _grid_of(query: Query, form: LinearForm) -> tuple[int, Unit]:
    """A whole number and a unit: the sums of a form, times the number, are whole in the unit."""
    factor = lcm(1, *(_odd(t.coefficient.denominator) for t in form.scores))
    shifts = [*(cost.shift for cost in form.costs), *(term.shift for term in form.forests)]
    for term in form.scores:
        model = query.models[query.points[term.point].model].ensemble
        share = term.coefficient * factor
        base = share * model.average * Fraction(float(model.base[term.output]))
        shifts += [model.scaled_contributions.shift + _twos(share), _twos(base)]
    return factor, Unit(max(shifts, default=0))


def _odd(number: int) -> int:
    return number // (number & -number)


def _twos(value: Fraction) -> int:
    """How often the denominator of a dyadic number is halved."""
    return value.denominator.bit_length() - 1
