"""`P, Q avoid cavities("FILE")`: boxes from a file, in the model's stored numbers."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isinf

import numpy as np

from treesens.binder.scope import Scope
from treesens.compiler.base.arrays import indptr_of
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.model.grid import FeatureGrid
from treesens.compiler.query import query as q
from treesens.data.cavities import Boxes, broken_box, read_clauses
from treesens.errors import DataError
from treesens.grammar.tree import ast

Sides = list[tuple[int, float, float]]


def boxes_of_file(scope: Scope, path: ast.Text) -> Callable[[q.Space], Boxes]:
    """The boxes over the question's cells, which are cut at the ends of the boxes; numbers are rounded to the model's type."""
    try:
        clauses = read_clauses(scope.found.base / path.value)
    except DataError as error:
        where = f"{error.place}: " if error.place and error.place != str(scope.found.base / path.value) else ""
        raise scope.fail(error.code, f"{where}{error.message}", path.span, error.remedy) from None
    boxes = [_sides(scope, box, path) for clause in clauses if (box := broken_box(clause)) is not None]
    boxes = [sides for sides in boxes if all(low < high for _, low, high in sides)]
    for sides in boxes:
        for feature, low, high in sides:
            scope.cut(feature, *(end for end in (low, high) if not isinf(end)))

    def on(space: q.Space) -> Boxes:
        flat = [(f, *_run(space.grid[f], low, high)) for sides in boxes for f, low, high in sides]
        feature, first, last = np.array(flat, np.int32).reshape(-1, 3).T
        return Boxes(indptr_of([len(sides) for sides in boxes]), feature, first, last)

    return on


def _sides(scope: Scope, box: dict[str, tuple[float, float]], path: ast.Text) -> Sides:
    sides: Sides = []
    for name, ends in box.items():
        if name not in scope.index:
            remedy = did_you_mean(name, scope.index)
            raise scope.fail("E103", f"the model has no feature `{name}`, which the file names", path.span, remedy)
        feature = scope.index[name]
        if scope.spec(feature).coded:
            message = f"the file compares `{name}`, whose values have no order"
            raise scope.fail("E206", message, path.span, "remove its clauses from the file")
        low, high = (float(scope.inputs.number_type.cast(np.array([end]))[0]) for end in ends)
        sides.append((feature, low, high))
    return sides


def _run(grid: FeatureGrid, low: float, high: float) -> tuple[int, int]:
    """The first and the last cell of the values low <= x < high; the cell of missing values is excluded."""
    first = 0 if low == -inf else int(grid.cell_of(low))
    last = grid.present_cells - 1 if high == inf else int(grid.cell_of(high)) - 1
    return first, last
