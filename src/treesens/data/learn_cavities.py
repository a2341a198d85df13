"""Maximal boxes without rows around a point, learnt where a search has met them."""

from __future__ import annotations

import numpy as np

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.query.cavities import Box, Cavities

MOST = 100
"""Boxes that are learnt at one point."""
_SETS = 400
"""Sets of features that are tried for them."""


def learn_at(cavities: Cavities, cells: Int32Array) -> int:
    """Learns the largest maximal boxes of few features that hold a point, int32[features]; how many were new."""
    sets = cavities.separating(cells, _SETS)
    boxes = {grown(cavities, cells, order) for chosen in sets for order in (chosen, chosen[::-1])}
    largest = sorted(boxes, key=lambda box: (-_size(cavities, box), box))[:MOST]
    return sum(cavities.learn(box) for box in largest)


def grown(cavities: Cavities, cells: Int32Array, order: tuple[int, ...]) -> Box:
    """The box of a point on features on which no row agrees with it, every side moved outwards until it meets a row.

    The features are widened in their order, so that the first ones become the widest.
    """
    column = {int(f): place for place, f in enumerate(cavities.features)}
    values = {f: cavities.rows[:, column[f]] for f in order}
    low = {f: int(cells[f]) for f in order}
    high = dict(low)
    for f in order:
        inside = np.ones(len(cavities.rows), bool)
        for other in order:
            if other != f:
                inside &= (values[other] >= low[other]) & (values[other] <= high[other])
        met = values[f][inside]
        met = met[met >= 0]
        low[f] = int(met[met < low[f]].max(initial=-1)) + 1
        high[f] = int(met[met > high[f]].min(initial=int(cavities.n_cells[f]))) - 1
    return tuple((f, low[f], high[f]) for f in sorted(order))


def _size(cavities: Cavities, box: Box) -> float:
    """The share of all combinations of cells that lie in a box."""
    return float(np.prod([(high - low + 1) / int(cavities.n_cells[f]) for f, low, high in box]))
