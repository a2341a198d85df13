"""Counts of sensitive cells as XCount defines them, by the search for shares."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Accumulation, CellEnsemble, Ensemble, Feature, ModelSource, Task
from treesens.extensions.measure.measure import Measure, product
from treesens.extensions.measure.search import ShareSearch
from treesens.extensions.measure.sides import Sides
from treesens.links import Identity

FEATURES = 10


def ensemble_of(trees: list[Any]) -> Ensemble:
    """Trees [feature, threshold, low, high] or numbers as one model: `x < threshold` goes low."""
    columns: dict[str, list[Any]] = {n: [] for n in ("feature", "threshold", "left", "right", "leaf")}
    offset, values, owner, number = [0], [], [], []

    def add(tree: int, node: Any) -> int:
        at = len(columns["feature"])
        inner = isinstance(node, list)
        for name, value in zip(
            columns, (node[0], node[1], 0, 0, -1) if inner else (-1, math.nan, -1, -1, 0), strict=True
        ):
            columns[name].append(value)
        if inner:
            columns["left"][at] = add(tree, node[2])
            columns["right"][at] = add(tree, node[3])
        else:
            columns["leaf"][at] = len(values)
            values.append([node])
            owner.append(tree)
            number.append(at - offset[-1])
        return at

    for tree, root in enumerate(trees):
        add(tree, root)
        offset.append(len(columns["feature"]))
    return Ensemble(
        name="xcount", features=tuple(Feature(f"f{i}") for i in range(FEATURES)), number_type=NumberType.FLOAT64,
        comparison="<", tree_offset=np.array(offset), node_feature=np.array(columns["feature"]),
        threshold=np.array(columns["threshold"]), left=np.array(columns["left"]), right=np.array(columns["right"]),
        default_left=np.zeros(offset[-1], bool), node_leaf=np.array(columns["leaf"]), leaf_value=np.array(values),
        leaf_tree=np.array(owner), leaf_node=np.array(number), tree_output=np.zeros(len(trees)),
        tree_weight=np.ones(len(trees)), base=np.zeros(1), link=Identity(), task=Task.REGRESSION,
        accumulation=Accumulation.FLOAT64_BASE_FIRST, source=ModelSource("xcount", "1", "", ""),
    ).validate()  # fmt: skip


def searches(model: CellEnsemble, feature: int, gap: int, digits: int) -> Iterator[tuple[ShareSearch, int]]:
    """A search per cell of the feature, and how many combinations of the other cells its measure is over.

    A cell counts if it and a neighbour, one step away, differ by the gap: one is rounded up, the other one down.
    """
    unit = 10**digits
    exact = [Fraction(repr(float(v))) * unit for v in model.ensemble.leaf_value[:, 0]]
    values = np.array([[math.ceil(v), math.floor(v)] for v in exact], np.int64)
    cells = model.grid.n_cells
    measure = measure_of(model)
    others = math.prod(int(n) for f, n in enumerate(cells) if f != feature)
    for cell in range(int(cells[feature])):
        near = [c for c in (cell - 1, cell, cell + 1) if 0 <= c < cells[feature]]
        pairs = [[abs(a - b) == 1 and cell in (a, b) for b in near] for a in near]
        sides = Sides(
            np.array([feature], np.int32), np.array(near, np.int32).reshape(-1, 1), values, np.zeros(2, np.int64),
            compared=(0, 1), apart_counts=True, apart=(gap * unit, gap * unit), allowed=np.array(pairs, np.int32),
        )  # fmt: skip
        yield ShareSearch(model, sides, measure), others


def measure_of(model: CellEnsemble) -> Measure:
    return product("cells", [np.ones(int(n), np.int64) for n in model.grid.n_cells])
