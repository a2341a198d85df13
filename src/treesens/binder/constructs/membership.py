"""`E in [lo, hi]` and `E in {v1, v2}`: runs of cells for a feature, two comparisons for any other quantity."""

from __future__ import annotations

from fractions import Fraction

from treesens.binder import classes
from treesens.binder import inputs as bind_inputs
from treesens.binder.comparisons import compare
from treesens.binder.feature_specs import interval_ends
from treesens.binder.inputs import all_of, any_of
from treesens.binder.scope import Pending, Scope
from treesens.binder.terms import Affine, FeatureAtom, affine, class_index
from treesens.grammar.constructs.membership import InInterval, InSet
from treesens.grammar.tree import ast


def bind(scope: Scope, node: InInterval | InSet, positive: bool) -> Pending:
    return _in_interval(scope, node, positive) if isinstance(node, InInterval) else _in_set(scope, node, positive)


def _in_interval(scope: Scope, node: InInterval, positive: bool) -> Pending:
    operand, interval = node.operand, node.interval
    if isinstance(operand, ast.FeatureOf):
        atom = FeatureAtom(scope.point(operand.point), scope.feature(operand.feature))
        return bind_inputs.in_interval(scope, atom, interval, positive)
    form = affine(scope, operand)
    low, high = interval_ends(scope.found, interval)
    ends: list[tuple[Fraction, ast.Operator]] = []
    if low is not None:
        ends.append((low, ">" if interval.low_open else ">="))
    if high is not None:
        ends.append((high, "<" if interval.high_open else "<="))
    parts = scope.every(lambda end: compare(scope, form - Affine(end[0]), end[1], positive, node.span), ends)
    return (all_of if positive else any_of)(parts)


def _in_set(scope: Scope, node: InSet, positive: bool) -> Pending:
    operand, values = node.operand, node.values
    if isinstance(operand, ast.FeatureOf):
        atom = FeatureAtom(scope.point(operand.point), scope.feature(operand.feature))
        return bind_inputs.in_set(scope, atom, values, positive)
    if isinstance(operand, ast.ClassOf):
        point = scope.point(operand.point)
        wins = [
            classes.class_wins(scope, point, class_index(scope, point, label), positive=positive)
            for label in values.values
        ]
        return (any_of if positive else all_of)(wins)
    raise scope.fail("E205", "only features and classes may be in a set", node.span, "write an interval `in [lo, hi]`")
