"""`decision(P) = OUTCOME`: the ordered constraints of a declared decision, about one point.

A decision is the outcome of the first case whose constraint holds. So `decision(P) = O` is a formula: the constraint of some
case of O holds, and all earlier constraints fail. Apart from the display of answers, only this file handles decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from treesens.binder.formulas import formula
from treesens.binder.inputs import all_of, any_of
from treesens.binder.scope import Pending, Scope
from treesens.compiler.base.diagnostics import Span, did_you_mean
from treesens.compiler.query import query as q
from treesens.grammar.constructs.decided import Decided, DecidedAlike
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import nodes_in


def bind(scope: Scope, node: Decided | DecidedAlike, positive: bool) -> Pending:
    return _is_one_of(scope, node, positive) if isinstance(node, Decided) else _alike(scope, node, positive)


def outcomes(node: ast.Decision) -> list[str]:
    """The distinct outcomes of a decision, in file order."""
    return list(dict.fromkeys([*(case.outcome.text for case in node.cases), node.otherwise.text]))


def _is_one_of(scope: Scope, node: Decided, positive: bool) -> Pending:
    decision, inner = about(scope, node.point, node.decision, node.span)
    known = outcomes(decision)
    for name in node.outcomes:
        if name.text not in known:
            remedy = did_you_mean(name.text, known) or f"its outcomes are {', '.join(f'`{o}`' for o in known)}"
            message = f"`{decision.name.text}` has no outcome `{name.text}`"
            raise scope.fail("E119", message, name.span, remedy)
    return _reached(inner, decision, frozenset(name.text for name in node.outcomes), positive)


def _alike(scope: Scope, node: DecidedAlike, positive: bool) -> Pending:
    """Requires that two decisions have the same outcome, or different outcomes. Different decisions may share a point."""
    sides = ((node.left, node.left_decision), (node.right, node.right_decision))
    (one, inner), (other, beside) = scope.every(lambda side: about(scope, *side, node.span), sides)
    if one is other and inner.aliases == beside.aliases:
        message = "a decision is compared with itself"
        raise scope.fail("E213", message, node.span, "name another point, or another decision")
    theirs = set(outcomes(other))
    parts = []
    for name in outcomes(one):
        wanted = frozenset([name])
        if name in theirs or not positive:
            parts.append(
                all_of([_reached(inner, one, wanted, True), _reached(beside, other, wanted & theirs, positive)])
            )
    return any_of(parts)


def about(scope: Scope, name: ast.Name, decision: ast.Name | None, span: Span) -> tuple[ast.Decision, Scope]:
    """The queried decision, and the scope that maps the decision's point to the question's point."""
    if scope.aliases:
        raise scope.fail("E220", "a decision refers to another decision", span, "write its constraint instead")
    point, found = scope.point(name), scope.found.decision(decision, span)
    model = found.point.model
    if model is not None:
        scope.found.model(model)
        if model.text != scope.model_names[scope.point_models[point]]:
            message = (
                f"`{found.name.text}` is a decision of `{model.text}`, and `{name.text}` is an input of another model"
            )
            remedy = f"write `{name.text} in {model.text}`, or leave the model out of the decision"
            raise scope.fail("E216", message, span, remedy)
    return found, scope.inside({found.point.name.text: point})


def _reached(scope: Scope, decision: ast.Decision, names: frozenset[str], positive: bool) -> Pending:
    """The decision is one of the outcomes `names` or, with `positive=False`, none of them.

    The formula is built from the last case back: a case holds and has a wanted outcome, or a later case gives such an outcome.
    """
    if not positive:
        names = frozenset(outcomes(decision)) - names
    counts = decision.otherwise.text in names
    rest: Pending | None = None  # None stands for the constant `counts`
    for case in reversed(decision.cases):
        mine = case.outcome.text in names
        if rest is None and mine == counts:
            continue
        side = formula(scope, case.condition, positive=mine)
        rest = side if rest is None else (any_of if mine else all_of)([side, rest])
    if rest is None:
        return all_of([]) if counts else any_of([])
    return rest


def shown(scope: Scope, constraints: Iterable[ast.Formula]) -> list[Callable[[q.Space], q.DecidedPoint]]:
    """Each decision that a question uses, with its cases, for display with an answer."""
    asked: dict[tuple[str, str | None], tuple[ast.Name, ast.Name | None, Span]] = {}
    for node in nodes_in(tuple(constraints)):
        sides: list[tuple[ast.Name, ast.Name | None]] = []
        if isinstance(node, Decided):
            sides = [(node.point, node.decision)]
        elif isinstance(node, DecidedAlike):
            sides = [(node.left, node.left_decision), (node.right, node.right_decision)]
        for point, name in sides:
            asked.setdefault((point.text, None if name is None else name.text), (point, name, node.span))
    return [_cases(scope, *item) for item in asked.values()]


def _cases(scope: Scope, point: ast.Name, name: ast.Name | None, span: Span) -> Callable[[q.Space], q.DecidedPoint]:
    decision, inner = about(scope, point, name, span)
    number = scope.point(point)
    waiting = [(case.outcome.text, formula(inner, case.condition)) for case in decision.cases]

    def build(space: q.Space) -> q.DecidedPoint:
        cases = tuple((outcome, condition(space)) for outcome, condition in waiting)
        return q.DecidedPoint(decision.name.text, number, cases, decision.otherwise.text)

    return build
