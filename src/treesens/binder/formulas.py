"""Binds the constraints of a question: formulas, in negation normal form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from treesens.binder import classes
from treesens.binder import inputs as bind_inputs
from treesens.binder.comparisons import comparison
from treesens.binder.constructs.registry import meaning_of
from treesens.binder.inputs import all_of, any_of
from treesens.binder.scope import Pending, Scope
from treesens.grammar.constructs.registry import plugin_of
from treesens.grammar.tree import ast


def asserted(nodes: Iterable[ast.Formula], positive: bool = True) -> Iterator[ast.Formula]:
    """The constraints that every answer satisfies as written: the members of conjunctions at any depth, also under double
    negation.
    """
    for node in nodes:
        match node:
            case ast.Not(operand):
                yield from asserted([operand], not positive)
            case ast.And(items) if positive:
                yield from asserted(items)
            case ast.Or(items) if not positive:
                yield from asserted(items, positive)
            case ast.Implies(premise, conclusion) if not positive:
                yield from asserted([premise])
                yield from asserted([conclusion], positive)
            case _ if positive:
                yield node


def formula(scope: Scope, node: ast.Formula, positive: bool = True) -> Pending:
    """Binds a constraint or its negation, which is pushed down to the atoms."""
    match node:
        case ast.And(items):
            return (all_of if positive else any_of)(scope.every(lambda f: formula(scope, f, positive), items))
        case ast.Or(items):
            return (any_of if positive else all_of)(scope.every(lambda f: formula(scope, f, positive), items))
        case ast.Not(operand):
            return formula(scope, operand, not positive)
        case ast.Implies(premise, conclusion):
            sides = scope.every(lambda s: formula(scope, s[0], s[1]), [(premise, not positive), (conclusion, positive)])
            return (any_of if positive else all_of)(sides)
        case ast.PointsEqual():
            return bind_inputs.points_equal(scope, node, positive)
        case ast.PointIsRow():
            return bind_inputs.point_is_row(scope, node, positive)
        case ast.ClassIs():
            return classes.class_is(scope, node, positive)
        case ast.Comparison():
            return comparison(scope, node, positive)
        case ast.Predicate():
            if (plugin := plugin_of(node)) is not None:
                scope.plugins[plugin] = None
            return meaning_of(node)(scope, node, positive)
        case _:
            assert_never(node)
