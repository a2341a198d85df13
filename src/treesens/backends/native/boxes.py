"""The trees of a module for the native engine: groups of leaves, and every leaf's boxes of cells."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from treesens.backends.native.problem import Places
from treesens.compiler.base.arrays import (
    BoolArray,
    Int32Array,
    Int64Array,
    concatenated_ranges,
    groups_of,
    indptr_of,
    runs_of,
)
from treesens.compiler.ir import ExactlyOne, Module
from treesens.compiler.ir.module import leaf_implications
from treesens.errors import BackendError

MAX_BOXES = 4096
"""Maximum number of boxes of a leaf; a module with more boxes per leaf (many categorical guards on one path) is declined."""


@dataclass(frozen=True)
class Groups:
    tree: Int32Array
    offset: Int64Array
    leaf_variable: Int32Array
    """The module variable of every leaf of the problem."""
    counted: BoolArray
    """False for a leaf whose variable already occurs in an earlier group; that group includes the leaf's weight."""


def tree_groups(module: Module) -> Groups:
    numbers: dict[tuple[int, int], int] = {}
    tree: list[int] = []
    counts: list[int] = []
    leaves: list[Int32Array] = []
    for block in module.blocks_of(ExactlyOne):
        tree += [numbers.setdefault((block.model, int(t)), len(numbers)) for t in block.tree]
        counts += np.diff(block.offset).tolist()
        leaves.append(block.variables)
    variable = np.concatenate(leaves) if leaves else np.zeros(0, np.int32)
    counted = np.zeros(len(variable), bool)
    counted[np.unique(variable, return_index=True)[1]] = True
    return Groups(np.array(tree, np.int32), indptr_of(counts), variable, counted)


@dataclass(frozen=True)
class Boxes:
    leaf_offset: Int64Array
    box_offset: Int64Array
    variable: Int32Array
    low: Int32Array
    high: Int32Array
    of: Int64Array
    """int64[module variables, 2]: the range of boxes of a leaf variable."""


def boxes_of(module: Module, places: Places, leaf_variable: Int32Array) -> Boxes:
    """The boxes of every leaf: ranges from order literals, vectorised, and runs from table members, leaf by leaf."""
    leaves, literals = leaf_implications(module)
    variable = literals >> 1
    is_member = np.isin(variable, np.fromiter(places.member, np.int64, len(places.member)))
    count = max(1, len(places.size))
    key = leaves[~is_member].astype(np.int64) * count + places.variable[variable[~is_member]]
    unique, order, starts = groups_of(key)
    size = np.array(places.size, np.int64) if places.size else np.ones(1, np.int64)
    low = np.zeros(len(unique), np.int64)
    high = size[unique % count] - 1
    if len(unique):
        position = places.position[variable[~is_member]].astype(np.int64)[order]
        negative = (literals[~is_member] & 1 == 1)[order]
        low = np.maximum.reduceat(np.where(negative, position + 1, 0), starts)
        high = np.minimum(high, np.minimum.reduceat(np.where(negative, np.iinfo(np.int64).max, position), starts))
    start = np.searchsorted(unique, np.arange(module.variables + 1, dtype=np.int64) * count)
    special: dict[int, list[int]] = {}
    for leaf, literal in zip(leaves[is_member].tolist(), literals[is_member].tolist(), strict=True):
        special.setdefault(leaf, []).append(literal)
    if not special:
        # A leaf whose box is empty has no box.
        empty = np.zeros(module.variables, bool)
        empty[unique[low > high] // count] = True
        alive = ~empty[leaf_variable]
        kept = leaf_variable[alive]
        first, lengths = start[kept], start[kept + 1] - start[kept]
        index = concatenated_ranges(first, lengths)
        box_of = indptr_of(alive)
        of = np.zeros((module.variables, 2), np.int64)
        of[leaf_variable] = np.stack((box_of[:-1], box_of[1:]), axis=1)
        return Boxes(
            box_of,
            indptr_of(lengths),
            (unique[index] % count).astype(np.int32),
            low[index].astype(np.int32),
            high[index].astype(np.int32),
            of,
        )
    return _mixed_boxes(places, leaf_variable, special, unique % count, low, high, start)


@lru_cache(maxsize=4096)
def _runs(mask: bytes) -> list[tuple[int, int]]:
    """Runs of true cells in `mask`, the bytes of a bool[cells]; cached, since many leaves of a model share a mask."""
    first, last = runs_of(np.frombuffer(mask, bool))
    return list(zip(first.tolist(), last.tolist(), strict=True))


def _mixed_boxes(
    places: Places,
    leaf_variable: Int32Array,
    special: dict[int, list[int]],
    variable: Int64Array,
    low: Int64Array,
    high: Int64Array,
    start: Int64Array,
) -> Boxes:
    box_counts: list[int] = []
    literal_counts: list[int] = []
    out: list[tuple[int, int, int]] = []
    of, total = np.zeros((len(places.variable), 2), np.int64), 0
    for leaf in leaf_variable.tolist():
        masks: dict[int, BoolArray] = {}
        for i in range(start[leaf], start[leaf + 1]):
            mask = np.zeros(places.size[variable[i]], bool)
            mask[low[i] : high[i] + 1] = True
            masks[int(variable[i])] = mask
        for literal in special.get(leaf, ()):
            v = literal >> 1
            inside = ~places.member[v] if literal & 1 else places.member[v]
            at = int(places.variable[v])
            masks[at] = masks[at] & inside if at in masks else inside
        names = list(masks)
        runs = [_runs(masks[v].tobytes()) for v in names]
        number = int(np.prod([len(r) for r in runs], dtype=np.int64))
        if number > MAX_BOXES:
            raise BackendError(f"a leaf of this model is a union of {number:,} boxes, too many for the native engine")
        of[leaf] = (total, total + number)
        total += number
        box_counts.append(number)
        for box in itertools.product(*runs):
            literal_counts.append(len(box))
            out.extend((v, int(a), int(b)) for v, (a, b) in zip(names, box, strict=True))
    flat = np.array(out, np.int32).reshape(-1, 3)
    return Boxes(indptr_of(box_counts), indptr_of(literal_counts), flat[:, 0], flat[:, 1], flat[:, 2], of)
