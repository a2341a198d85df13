"""`P, Q avoid cavities(D, width = w)`: boxes of the models' own cells that hold no row."""

from __future__ import annotations

import numpy as np

from treesens.binder.inputs import all_of, any_of
from treesens.binder.scope import Pending, Scope
from treesens.compiler.base.arrays import frozen
from treesens.compiler.query import query as q
from treesens.data.cavities import Boxes, maximal_empty_boxes
from treesens.data.rows import fine_runs
from treesens.grammar.constructs.avoid import Avoid

DEFAULT_LIMIT = 1500
"""How many cavities are avoided if `limit` is not given."""


def bind(scope: Scope, node: Avoid, positive: bool) -> Pending:
    """No point lies in a box of at most `width` features that holds no row; the boxes are made of the models' own cells."""
    points = scope.every(scope.point, node.points)
    if node.width.value < 1:
        raise scope.fail("E212", "a cavity bounds at least one feature", node.width.span, "write `width = 1` or more")
    limit = node.limit.value if node.limit else DEFAULT_LIMIT
    cells = scope.cells(node.data)
    key = ("cavities", node.data.text, node.width.value, limit)
    if key not in scope.inputs.cache:
        scope.inputs.cache[key] = maximal_empty_boxes(cells, scope.inputs.base.n_cells, node.width.value, limit)
    boxes: Boxes = scope.inputs.cache[key]  # type: ignore[assignment]

    def build(point: int) -> Pending:
        return lambda space: (
            _avoid_boxes(scope, space, boxes, point) if positive else _inside(scope, space, boxes, point)
        )

    return (all_of if positive else any_of)(build(point) for point in points)


def _on(scope: Scope, space: q.Space, boxes: Boxes) -> Boxes:
    """Boxes of the models' cells on the refined grid."""
    low, high = np.array(boxes.low), np.array(boxes.high)
    for f in np.unique(boxes.feature):
        mine = boxes.feature == f
        first, last = fine_runs(scope.inputs.base[int(f)], space.grid[int(f)])
        low[mine], high[mine] = first[low[mine]], last[high[mine]]
    return Boxes(boxes.indptr, boxes.feature, low, high)


def _avoid_boxes(scope: Scope, space: q.Space, boxes: Boxes, point: int) -> q.AvoidBoxes:
    on = _on(scope, space, boxes)
    return q.AvoidBoxes(point, frozen(on.indptr), frozen(on.feature), frozen(on.low), frozen(on.high))


def _inside(scope: Scope, space: q.Space, boxes: Boxes, point: int) -> q.AnyOf:
    on = _on(scope, space, boxes)
    parts = []
    for start, end in zip(on.indptr[:-1], on.indptr[1:], strict=True):
        sides = []
        for i in range(start, end):
            mask = np.zeros(space.grid[int(on.feature[i])].n_cells, bool)
            mask[on.low[i] : on.high[i] + 1] = True
            sides.append(q.CellSet(point, int(on.feature[i]), frozen(mask, bool)))
        parts.append(q.AllOf(tuple(sides)))
    return q.AnyOf(tuple(parts))
