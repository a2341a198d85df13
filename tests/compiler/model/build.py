"""Random ensembles of every kind, built by hand: both comparisons and number types, categories, missing values,
ties.
"""

from __future__ import annotations

import numpy as np

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Accumulation, Ensemble, Feature, FeatureKind, ModelSource, Task
from treesens.compiler.model.assemble import order_nodes
from treesens.links import Logistic


def random_ensemble(seed: int, *, trees: int = 5, depth: int = 4, number_type: NumberType | None = None) -> Ensemble:
    """Few distinct thresholds, so that cells are shared; some beyond the finite values; every third feature
    categorical.
    """
    rng = np.random.default_rng(seed)
    kind = number_type or (NumberType.FLOAT32 if seed % 2 else NumberType.FLOAT64)
    features = tuple(
        Feature(f"f{i}", FeatureKind.CATEGORICAL, 4) if i % 3 == 2 else Feature(f"f{i}")
        for i in range(int(rng.integers(1, 5)))
    )
    pool = [-1.0, -0.0, 0.0, 0.1, 1 / 3, 2.0, kind.tiny, -kind.tiny, kind.max, -kind.max, 1e-300, 7.0]
    feature, threshold, left, right, default, category, offset = [], [], [], [], [], [], [0]
    sets = [np.flatnonzero(rng.random(5) < 0.5) for _ in range(3)]
    for _ in range(trees):
        size, open_nodes = 1, [(0, 0)]
        nodes: list[tuple[int, float, int, int, bool, int]] = [(-1, 0.0, -1, -1, False, -1)]
        while open_nodes:
            node, level = open_nodes.pop(int(rng.integers(len(open_nodes))))
            if level == depth or rng.random() < 0.2:
                continue
            f = int(rng.integers(len(features)))
            s = int(rng.integers(3)) if features[f].categories else -1
            nodes[node] = (f, float(rng.choice(pool)), size, size + 1, bool(rng.random() < 0.5), s)
            nodes += [(-1, 0.0, -1, -1, False, -1)] * 2
            open_nodes += [(size, level + 1), (size + 1, level + 1)]
            size += 2
        for column, values in zip(
            (feature, threshold, left, right, default, category), zip(*nodes, strict=True), strict=True
        ):
            column.extend(values)
        offset.append(offset[-1] + size)
    order = order_nodes(np.array(offset), np.array(left), np.array(right))
    leaves = len(order.leaf_tree)
    return Ensemble(
        name=f"random {seed}",
        features=features,
        number_type=kind,
        comparison="<" if seed % 4 < 2 else "<=",
        tree_offset=order.tree_offset,
        node_feature=np.array(feature)[order.node],
        threshold=np.array(threshold)[order.node],
        left=order.left,
        right=order.right,
        default_left=np.array(default)[order.node],
        node_leaf=order.node_leaf,
        leaf_value=np.float32(rng.normal(size=(leaves, 1))),
        leaf_tree=order.leaf_tree,
        leaf_node=order.leaf_id,
        tree_output=np.zeros(trees, np.int32),
        tree_weight=np.float32(rng.choice([1.0, 0.3], trees)),
        base=np.array([0.125]),
        link=Logistic(),
        task=Task.BINARY,
        accumulation=Accumulation.FLOAT32_BASE_FIRST if seed % 2 else Accumulation.FLOAT64_BASE_LAST,
        source=ModelSource("test"),
        category_set=np.array(category)[order.node],
        set_offset=np.concatenate([[0], np.cumsum([len(s) for s in sets])]),
        set_codes=np.concatenate(sets),
        classes=(0, 1),
    ).validate()


def random_rows(ensemble: Ensemble, rows: int, seed: int, *, missing: bool = True) -> np.ndarray:
    """Values on, beside and away from the cuts of each feature; codes in and out of range; NaN where allowed."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, ensemble.n_features))
    for f, grid in enumerate(ensemble.grid()):
        if grid.categories:
            x[:, f] = rng.choice([0, 1, 2, 3, 4, 99, -1, 1.5, -0.5], rows)
        elif len(grid.cuts):
            on = grid.number_type.cast(rng.choice(np.append(grid.cuts, [0.1, -0.0]), rows))
            towards = grid.number_type.dtype.type(rng.choice([-np.inf, np.inf]))
            with np.errstate(over="ignore"):
                off = np.nextafter(on.astype(grid.number_type.dtype), towards)
            picked = np.where(rng.random(rows) < 0.5, on, np.where(np.isinf(off), on, off))
            x[:, f] = np.where(rng.random(rows) < 0.7, picked, x[:, f])
    if missing:
        x[rng.random(x.shape) < 0.15] = np.nan
    return x
