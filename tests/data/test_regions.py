"""Widened regions of tiny questions, whole: every pair inside is an answer, and no side could go further."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.questions import every_input, random_query
from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.query.evaluate import Inputs, holds, scores_of_cells
from treesens.compiler.query.query import Query
from treesens.compiler.result import Region
from treesens.extensions.answers.regions import RegionFinder


def answers(query: Query) -> list[Int32Array]:
    """The cells of every pair that satisfies the constraints."""
    return [x.cells for x in every_input(query) if all(holds(c, x) for c in query.constraints)]


def pairs_of(region: Region) -> list[Int32Array]:
    """The cells of every pair of a region, shared features equal."""
    sides = [[np.flatnonzero(mask) for mask in box] for box in region.boxes]
    found = []
    for upper in product(*sides[0]):
        choices = [[upper[f]] if f in region.shared else sides[1][f] for f in range(len(upper))]
        found += [np.array([upper, lower], np.int32) for lower in product(*choices)]
    return found


def satisfies(query: Query, cells: Int32Array) -> bool:
    x = Inputs(cells.astype(float), cells, scores_of_cells(query, cells))
    return all(holds(c, x) for c in query.constraints)


def neighbours(region: Region, query: Query) -> list[tuple[int, int, int]]:
    """Legal cells just outside of a run of ordered cells: point, feature, cell."""
    found = []
    for point, box in enumerate(region.boxes):
        for f, mask in enumerate(box):
            grid = query.space.grid[f]
            legal = np.flatnonzero(query.space.legal[f][: grid.present_cells])
            inside = np.flatnonzero(mask[: grid.present_cells])
            if grid.categories or len(inside) == 0 or (f in region.shared and point > 0):
                continue
            below, above = legal[legal < inside[0]], legal[legal > inside[-1]]
            found += [(point, f, int(c)) for c in (*below[-1:], *above[:1])]
    return found


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.sampled
def test_regions_hold_everywhere_and_are_widest_where_there_is_one_tree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    seen = 0
    for _ in range(40):
        query = random_query(rng)
        finder = RegionFinder(query)
        for cells in answers(query)[:2]:
            leaf, wide = finder.leaf_region(cells), finder.region(cells)
            if leaf is None or wide is None:
                assert (leaf is None) == (wide is None)
                continue
            seen += 1
            for region in (leaf, wide):
                assert all(region.boxes[p][f][c] for p in range(2) for f, c in enumerate(cells[p]))
                pairs = pairs_of(region)
                for i in rng.permutation(len(pairs))[:60]:
                    assert satisfies(query, pairs[i])
            assert all(
                (b >= a).all()
                for one, two in zip(leaf.boxes, wide.boxes, strict=True)
                for a, b in zip(one, two, strict=True)
            )
            if query.models[0].n_trees == 1 and len(query.models[0].ensemble.base) == 1:
                check_sides(query, wide)
    assert seen >= 3


def check_sides(query: Query, region: Region) -> None:
    """With one tree and one output bounds are exact: a further cell on any side brings a pair that is no answer."""
    for point, f, cell in neighbours(region, query):
        boxes = [list(box) for box in region.boxes]
        for p in range(2) if f in region.shared else [point]:
            boxes[p][f] = boxes[p][f].copy()
            boxes[p][f][cell] = True
        wider = Region(tuple(tuple(box) for box in boxes), region.shared)
        assert not all(satisfies(query, pair) for pair in pairs_of(wider))
