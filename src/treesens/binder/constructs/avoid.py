"""`P, Q avoid cavities(D, width = w)`: boxes of the models' own cells that contain no row.

Boxes of at most three features are listed, up to the limit. Wider boxes, or every box with `limit = all`, are learnt when a
search reaches them.
"""

from __future__ import annotations

import numpy as np

from treesens.binder.inputs import all_of, any_of
from treesens.binder.listed_cavities import boxes_of_file
from treesens.binder.scope import Pending, Scope
from treesens.compiler.base.arrays import Int32Array, frozen, indptr_of
from treesens.compiler.query import query as q
from treesens.compiler.query.cavities import Cavities
from treesens.data.cavities import WIDEST, Boxes, maximal_empty_boxes
from treesens.data.rows import coarse_cells, fine_runs
from treesens.grammar.constructs.avoid import Avoid, AvoidListed

DEFAULT_LIMIT = 1500
"""Default number of listed cavities."""


def bind(scope: Scope, node: Avoid | AvoidListed, positive: bool) -> Pending:
    """No point lies in one of the boxes."""
    if isinstance(node, Avoid):
        return _without_rows(scope, node, positive)
    points = scope.every(scope.point, node.points)
    boxes = boxes_of_file(scope, node.path)

    def build(point: int) -> Pending:
        return lambda space: (_avoid_boxes if positive else _inside)(space, boxes(space), point)

    return (all_of if positive else any_of)(build(point) for point in points)


def _without_rows(scope: Scope, node: Avoid, positive: bool) -> Pending:
    """The point avoids every box of at most `width` features that contains no row. Boxes consist of the models' own cells."""
    points = scope.every(scope.point, node.points)
    if node.width.value < 1:
        raise scope.fail("E212", "a cavity bounds at least one feature", node.width.span, "write `width = 1` or more")
    cells = scope.cells(node.data)
    if node.every or (node.limit is None and node.width.value > WIDEST):
        if not positive:
            remedy = f"write `limit = {DEFAULT_LIMIT}` to list at most this many"
            raise scope.fail("E224", "`not` needs a list of cavities", node.span, remedy)
        return all_of(_all_cavities(scope, node, cells, point) for point in points)
    limit = node.limit.value if node.limit else DEFAULT_LIMIT
    key = ("cavities", node.data.text, node.width.value, limit)
    if key not in scope.inputs.cache:
        scope.inputs.cache[key] = maximal_empty_boxes(cells, scope.inputs.base.n_cells, node.width.value, limit)
    boxes: Boxes = scope.inputs.cache[key]  # type: ignore[assignment]

    def build(point: int) -> Pending:
        return lambda space: (_avoid_boxes if positive else _inside)(space, _on(scope, space, boxes), point)

    return (all_of if positive else any_of)(build(point) for point in points)


def _all_cavities(scope: Scope, node: Avoid, cells: Int32Array, point: int) -> Pending:
    """The point avoids boxes of at most `width` features without a row; questions about the table share learnt boxes."""
    scope.found.service("answers", node.span)
    n_cells = scope.inputs.base.n_cells
    key = ("all cavities", node.data.text, min(node.width.value, len(n_cells)))
    if key not in scope.inputs.cache:
        scope.inputs.cache[key] = Cavities(cells, n_cells, node.width.value)
    cavities: Cavities = scope.inputs.cache[key]  # type: ignore[assignment]

    def build(space: q.Space) -> q.AvoidCavities:
        owners = [coarse_cells(coarse, fine) for coarse, fine in zip(scope.inputs.base, space.grid, strict=True)]
        start = indptr_of([len(owner) for owner in owners])[:-1]
        return q.AvoidCavities(point, cavities, frozen(np.concatenate(owners)), frozen(start))

    return build


def _on(scope: Scope, space: q.Space, boxes: Boxes) -> Boxes:
    """Boxes of the models' cells, converted to the refined grid."""
    low, high = np.array(boxes.low), np.array(boxes.high)
    for f in np.unique(boxes.feature):
        mine = boxes.feature == f
        first, last = fine_runs(scope.inputs.base[int(f)], space.grid[int(f)])
        low[mine], high[mine] = first[low[mine]], last[high[mine]]
    return Boxes(boxes.indptr, boxes.feature, low, high)


def _avoid_boxes(_: q.Space, on: Boxes, point: int) -> q.AvoidBoxes:
    return q.AvoidBoxes(point, frozen(on.indptr), frozen(on.feature), frozen(on.low), frozen(on.high))


def _inside(space: q.Space, on: Boxes, point: int) -> q.AnyOf:
    parts = []
    for start, end in zip(on.indptr[:-1], on.indptr[1:], strict=True):
        sides = []
        for i in range(start, end):
            mask = np.zeros(space.grid[int(on.feature[i])].n_cells, bool)
            mask[on.low[i] : on.high[i] + 1] = True
            sides.append(q.CellSet(point, int(on.feature[i]), frozen(mask, bool)))
        parts.append(q.AllOf(tuple(sides)))
    return q.AnyOf(tuple(parts))
