"""Cavities: boxes of a few features that contain no row of a table (paper, section 4, "clause summaries").

The paper finds cavities one by one with an SMT solver; the solver starts with clauses of one feature, and each clause has the
lowest lower guard and the highest upper guard. Here cavities are taken from the joint histogram of cells: a box is maximal if
no side can be extended by a cell without reaching a row. As in the paper, boxes are ordered by the number of features, and then
by size (cells, summed over the features).

For boxes of up to two features, the enumeration is complete. For boxes of three features, features with many cells are first
coarsened to groups of cells with similar numbers of rows, so that the work per triple is bounded; boxes of groups are then
extended to maximal boxes of cells. Boxes of more than three features are not searched for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array, indptr_of
from treesens.compiler.base.files import MOST_TEXT_BYTES, read_regular
from treesens.compiler.query.cavities import Box, Cavities
from treesens.errors import DataError, ModelError
from treesens.frontends.documents import parse_document

WIDEST = 3
"""Maximum number of features of a box."""

_GROUPS = 12
"""Number of groups of cells per feature in the search for boxes of three features."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes as CSR: box i restricts `feature[k]` to cells `low[k]`..`high[k]` for k in indptr[i]..indptr[i+1]."""

    indptr: Int64Array
    feature: Int32Array
    low: Int32Array
    high: Int32Array

    def __len__(self) -> int:
        return len(self.indptr) - 1


_Box = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]
"""Features, and the run of cells of each feature."""


def maximal_empty_boxes(cells: Int32Array, n_cells: Int32Array, width: int, limit: int) -> Boxes:
    """The first `limit` maximal empty boxes of at most `width` features; boxes of fewer features first, then larger boxes.

    `cells` are int32[rows, features], where -1 is in no box. Features with a single cell are ignored.
    """
    features = [f for f in range(cells.shape[1]) if n_cells[f] > 1]
    found: list[_Box] = []
    for count in range(1, min(width, WIDEST) + 1):
        if len(found) >= limit:
            break
        level = sorted(_of_width(cells, n_cells, features, count), key=_order)
        found += level[: limit - len(found)]
    return Boxes(
        indptr_of([len(fs) for fs, _ in found]),
        np.array([f for fs, _ in found for f in fs], np.int32),
        np.array([low for _, runs in found for low, _ in runs], np.int32),
        np.array([high for _, runs in found for _, high in runs], np.int32),
    )


def _order(box: _Box) -> tuple[int, _Box]:
    """The key that sorts boxes by size, largest first, with a fixed order for ties."""
    return -sum(high - low + 1 for low, high in box[1]), box


def _of_width(cells: Int32Array, n_cells: Int32Array, features: list[int], count: int) -> Iterator[_Box]:
    for chosen in combinations(features, count):
        columns = cells[:, chosen]
        columns = columns[(columns >= 0).all(axis=1)]
        sizes = tuple(int(n_cells[f]) for f in chosen)
        if count == 1:
            counts = np.bincount(columns[:, 0], minlength=sizes[0])
            yield from (((chosen[0],), ((low, high),)) for low, high in _runs(counts == 0))
        elif count == 2:
            yield from ((chosen, runs) for runs in _rectangles(_histogram(columns, sizes)))
        else:
            yield from ((chosen, runs) for runs in _bricks(columns, sizes))


def _histogram(columns: Int32Array, sizes: tuple[int, ...]) -> BoolArray:
    """Marks joint cells that contain a row, bool[sizes]."""
    occupied = np.zeros(sizes, bool)
    occupied[tuple(columns.T)] = True
    return occupied


def _runs(mask: BoolArray) -> list[tuple[int, int]]:
    """The first and the last cell of each maximal run of true cells."""
    edges = np.diff(np.concatenate(([0], mask.astype(np.int8), [0])))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def _rectangles(occupied: BoolArray) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yields maximal empty rectangles that bound both features and are not within a completely empty row or column.

    For every first row, all last rows are considered. Runs consist of the columns that are free in all rows from the first to
    the last; a run is maximal if neither adjacent row is free over the whole run. One array operation handles all last rows.
    """
    rows, columns = occupied.shape
    if rows > columns:
        yield from ((right, left) for left, right in _rectangles(occupied.T))
        return
    # Empty rows and columns are cavities of one feature; without them every rectangle is maximal in both features.
    below = np.cumsum(np.pad(occupied, ((1, 0), (0, 0))), axis=0, dtype=np.int32)
    across = np.cumsum(np.pad(occupied, ((0, 0), (1, 0))), axis=1, dtype=np.int32)
    for top in range(rows):
        free = below[top + 1 :] == below[top]  # [last row, column]
        edges = np.diff(np.pad(free, ((0, 0), (1, 1))).astype(np.int8), axis=1)
        last, left = np.nonzero(edges == 1)
        right = np.nonzero(edges == -1)[1] - 1
        bottom = last + top
        closed_below = bottom == rows - 1
        next_row = np.minimum(bottom + 1, rows - 1)
        closed_below |= across[next_row, right + 1] > across[next_row, left]
        closed_above = across[top - 1, right + 1] > across[top - 1, left] if top else np.ones(len(left), bool)
        proper = (right - left + 1 < columns) & ((bottom > top - 1) & (bottom - top + 1 < rows))
        for i in np.flatnonzero(closed_below & closed_above & proper):
            yield (top, int(bottom[i])), (int(left[i]), int(right[i]))


def _bricks(columns: Int32Array, sizes: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yields maximal empty boxes of three features, which are found on groups of cells and extended on cells."""
    edges = [_groups(columns[:, i], size) for i, size in enumerate(sizes)]
    grouped = np.stack([np.searchsorted(e, columns[:, i], side="right") - 1 for i, e in enumerate(edges)], axis=1)
    counts = tuple(len(e) - 1 for e in edges)
    occupied = _histogram(grouped.astype(np.int32), counts)
    fine = _histogram(columns, sizes)
    seen: set[tuple[tuple[int, int], ...]] = set()
    flat = np.cumsum(np.pad(occupied, ((1, 0), (0, 0), (0, 0))), axis=0, dtype=np.int32)
    for top in range(counts[0]):
        for bottom in range(top, counts[0]):
            if bottom - top + 1 == counts[0]:
                continue
            slab = flat[bottom + 1] > flat[top]
            for second, third in _rectangles(slab):
                box = tuple(
                    (int(edges[i][low]), int(edges[i][high + 1]) - 1)
                    for i, (low, high) in enumerate(((top, bottom), second, third))
                )
                grown = _grown(fine, box)
                if grown not in seen and all(high - low + 1 < n for (low, high), n in zip(grown, sizes, strict=True)):
                    seen.add(grown)
                    yield grown


def _groups(column: Int32Array, size: int) -> Int64Array:
    """The first cells of at most _GROUPS groups with about equal numbers of rows, and `size` at the end."""
    if size <= _GROUPS:
        return np.arange(size + 1)
    counts = np.cumsum(np.bincount(column, minlength=size))
    wanted = counts[-1] * np.arange(1, _GROUPS) / _GROUPS
    return np.unique(np.concatenate(([0], np.searchsorted(counts, wanted) + 1, [size])))


def _grown(occupied: BoolArray, box: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """The box with every side extended outwards until it reaches a row, feature by feature."""
    runs = list(box)
    for axis in range(len(runs)):
        slices = tuple(slice(None) if i == axis else slice(low, high + 1) for i, (low, high) in enumerate(runs))
        others = tuple(i for i in range(len(runs)) if i != axis)
        hit = np.flatnonzero(occupied[slices].any(axis=others))
        low, high = runs[axis]
        before, after = hit[hit < low], hit[hit > high]
        runs[axis] = (
            int(before[-1]) + 1 if len(before) else 0,
            int(after[0]) - 1 if len(after) else occupied.shape[axis] - 1,
        )
    return tuple(runs)


MOST = 100
"""Maximum number of boxes learnt at one point."""
_SETS = 400
"""Maximum number of sets of features that are tried for these boxes."""


def learn_at(cavities: Cavities, cells: Int32Array) -> int:
    """Learns the largest maximal boxes of few features around a point, int32[features]; returns the number of new boxes."""
    sets = cavities.separating(cells, _SETS)
    boxes = {grown(cavities, cells, order) for chosen in sets for order in (chosen, chosen[::-1])}
    largest = sorted(boxes, key=lambda box: (-_size(cavities, box), box))[:MOST]
    return sum(cavities.learn(box) for box in largest)


def grown(cavities: Cavities, cells: Int32Array, order: tuple[int, ...]) -> Box:
    """The box around a point, bounded on features in which no row agrees with the point; all sides are extended up to a row.

    The features are extended in order, so that the first features become the widest.
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
    """The share of all combinations of cells that are in a box."""
    return float(np.prod([(high - low + 1) / int(cavities.n_cells[f]) for f, low, high in box]))


Literal: TypeAlias = tuple[str, bool, float]
"""A feature; True if the value must be below the number, False if it must be at least the number; and the number."""
Clause: TypeAlias = tuple[Literal, ...]
"""At least one of the literals must hold."""
_LARGEST = 1e300
_REMEDY = 'a clause is a list of literals such as ["age", "<", 0.5]'


def read_clauses(path: Path) -> tuple[Clause, ...]:
    """The clauses in a JSON file that the paper's tool writes: the inputs that violate a clause form a box, which is a cavity.

    Cavities are not compared with rows of a table. Raises DataError with the location of the first error.
    """
    try:
        document = parse_document(read_regular(path, MOST_TEXT_BYTES), str(path))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", place=str(path)) from None
    except ModelError as error:
        raise DataError(error.message, place=error.place, remedy=_REMEDY) from None
    if not isinstance(document, list):
        raise DataError("the file does not contain a list of clauses", place=str(path), remedy=_REMEDY)
    return tuple(_clause(item, f"{path}: clause {number}") for number, item in enumerate(document))


def _clause(item: Any, place: str) -> Clause:
    if not isinstance(item, list) or not item:
        raise DataError("a clause is a list of at least one literal", place=place, remedy=_REMEDY)
    return tuple(_literal(part, f"{place}, literal {number}") for number, part in enumerate(item))


def _literal(part: Any, place: str) -> Literal:
    match part:
        case [str(feature), "<" | ">=" as sign, int() | float() as number] if not isinstance(number, bool):
            if -_LARGEST <= number <= _LARGEST:
                return feature, sign == "<", float(number)
    raise DataError('a literal is a feature, "<" or ">=", and a number', place=place, remedy=_REMEDY)


def broken_box(clause: Sequence[Literal]) -> dict[str, tuple[float, float]] | None:
    """The box of values that violate a clause, low <= value < high by feature; None if no value violates the clause."""
    box: dict[str, tuple[float, float]] = {}
    for feature, below, number in clause:
        low, high = box.get(feature, (-math.inf, math.inf))
        box[feature] = (max(low, number), high) if below else (low, min(high, number))
    return box if all(low < high for low, high in box.values()) else None
