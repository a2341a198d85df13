"""Converts `explain row N of DATA` to typed questions, one per class; the row itself answers one of these questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from treesens.binder.declarations import Declarations
from treesens.binder.desugar import class_label
from treesens.binder.scope import Inputs, Scope
from treesens.compiler.base.arrays import frozen
from treesens.compiler.query import query as q
from treesens.compiler.query.evaluate import holds, inputs_of
from treesens.grammar.printing.printer import shown_text
from treesens.grammar.tree import ast


def explained(found: Declarations, inputs: Inputs, node: ast.Explain, bind: Callable[[ast.Find], q.Query]) -> q.Query:
    """The typed question, whose constraints require a class other than the row's. `bind` binds a `find`."""
    point = ast.Name("a", span=node.span)
    model = inputs.models[0].ensemble
    if not model.classes:
        raise found.fail(
            "E219", "a regressor has no classes", node.span, "constrain its value: `find a such that value(a) >= ..`"
        )
    scope = Scope(found, inputs, ("a",), (0,))
    row = scope.row(node.row)[None]
    barred = scope.features(node.without)
    _check_inside(scope, node, row)

    def about(formula: ast.Formula) -> q.Query:
        return bind(ast.Find((ast.Point(point, node.model, span=node.span),), (formula,), span=node.span))

    of_class = [about(ast.ClassIs(point, class_label(c, node.span), span=node.span)) for c in model.classes]
    x = inputs_of(of_class[0], row)
    own = next((c for c, asked in enumerate(of_class) if all(holds(part, x) for part in asked.constraints)), None)
    if own is None:
        raise scope.fail(
            "E306", f"`{node.row.span.text}` breaks a `onehot` declaration", node.row.span, "explain another row"
        )
    label = class_label(model.classes[own], node.span)
    other = about(ast.Comparison(ast.ClassOf(point, span=node.span), "!=", label, span=node.span))
    why = q.ExplainedRow(
        node.row.data.text,
        node.row.index.value,
        row,
        frozen(other.space.grid.cells(row)[0], np.int32),
        str(model.classes[own]),
        of_class[own],
        tuple(asked for c, asked in enumerate(of_class) if c != own),
        frozenset(barred),
        node.smallest,
    )
    expect = node.expect.verdict if node.expect else None
    text = node.span.text if node.row.index.span.used is None else shown_text(node)
    return replace(other, explained=why, expect=expect, text=text)


def _check_inside(scope: Scope, node: ast.Explain, row: np.ndarray) -> None:
    """Reports E306 for a row outside the domain, because only the classes of inputs in the domain can be explained."""
    outside = [spec.name for f, spec in enumerate(scope.inputs.specs) if not spec.allows(row[:, f])[0]]
    if outside:
        message = f"row {node.row.index.value} of `{node.row.data.text}` lies outside the domain of `{outside[0]}`"
        raise scope.fail("E306", message, node.row.span, "widen the domain, or explain another row")
