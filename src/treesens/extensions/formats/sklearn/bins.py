"""Splits on one-hot bins of a number: splits on the number of the bin, of which a bin in the middle needs two.

The subtree of all other bins follows on both sides of such a bin. In each copy, splits that the path decides are left out, so that
a tree with F binned columns of B bins has at most B**F leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from treesens.compiler.model import Ensemble, Feature
from treesens.errors import ModelError
from treesens.extensions.formats.sklearn.columns import Column, Function

_MOST_NODES = 2_000_000
"""Maximum number of nodes after copying."""
_Within = dict[int, tuple[int, int]]
"""The first and the last possible level of each column of bins; unlisted columns may have any level."""


def split_bins(e: Ensemble, columns: Sequence[Column], place: str) -> tuple[Ensemble, list[Column]]:
    """An equivalent ensemble without splits on one-hot bins, and its columns: `columns`, and a column for each binned number.

    Raises ModelError if copies of subtrees take too many nodes.
    """
    every, binned = _numbered(columns)
    if not binned:
        return e, every
    origin: list[int] = []
    feature: list[int] = []
    threshold: list[float] = []
    sides: tuple[list[int], list[int]] = ([], [])
    offset = [0]
    for root in e.tree_offset[:-1].tolist():
        waiting: list[tuple[int, _Within, list[int], int]] = [(root, {}, [0], 0)]
        while waiting:
            node, within, side, parent = waiting.pop()
            f, cut = int(e.node_feature[node]), 0.0
            children = ((int(e.left[node]), within), (int(e.right[node]), within))
            if f in binned:
                levels, number = every[f].picks, binned[f]
                assert levels is not None
                first, last = within.get(number, (0, len(levels) - 1))
                left = e.number_type.cast(levels[first : last + 1]) < e.node_cut[node]
                changes = np.flatnonzero(left[1:] != left[:-1])
                if not len(changes):
                    waiting.append((*children[0 if left[0] else 1], side, parent))
                    continue
                middle = first + int(changes[0])
                f, cut = number, middle + 0.5
                children = (
                    (node, {**within, number: (first, middle)}),
                    (node, {**within, number: (middle + 1, last)}),
                )
            made = side[parent] = len(origin)
            if made >= _MOST_NODES:
                message = f"splits on one-hot bins are more than {_MOST_NODES:,} splits on numbers"
                raise ModelError(
                    message, place=place, remedy="use encode='ordinal': trees split on the numbers of bins, too"
                )
            origin.append(node)
            feature.append(f)
            threshold.append(cut)
            for own in sides:
                own.append(-1)
            if f >= 0:
                waiting += [(*child, own, made) for child, own in zip(children, sides, strict=True)]
        offset.append(len(origin))
    old, features = np.array(origin, np.int64), np.array(feature, np.int32)
    leaf = e.node_leaf[old[features < 0]]
    numbers, by_number = np.full(len(old), -1, np.int32), features >= len(columns)
    numbers[features < 0] = np.arange(len(leaf))
    trees = np.repeat(np.arange(e.n_trees, dtype=np.int32), np.diff(offset))
    return replace(
        e,
        features=(*e.features, *(Feature(f"bins {i}") for i in range(len(columns), len(every)))),
        tree_offset=np.array(offset),
        node_feature=features,
        threshold=np.where(by_number, threshold, e.threshold[old]),
        left=np.array(sides[0]),
        right=np.array(sides[1]),
        default_left=e.default_left[old],
        node_leaf=numbers,
        leaf_value=e.leaf_value[leaf],
        leaf_tree=trees[features < 0],
        leaf_node=e.leaf_node[leaf],
        category_set=np.where(by_number, -1, e.category_set[old]),
        zero_missing=e.zero_missing[old],
    ), every


def _numbered(columns: Sequence[Column]) -> tuple[list[Column], dict[int, int]]:
    """The columns, and a column of bin numbers for each binned number; the index of the latter by one-hot column."""
    every, binned = list(columns), dict[int, int]()
    of_number: dict[tuple[int, Function], int] = {}
    for f, column in enumerate(columns):
        if column.picks is not None:
            key = (column.source, column.present)
            if key not in of_number:
                of_number[key] = len(every)
                every.append(replace(column, picks=None))
            binned[f] = of_number[key]
    for number in of_number.values():
        # A missing value is in the bin that all of its one-hot columns name; without a bin, the library refuses it.
        own = [columns[f] for f, made in binned.items() if made == number]
        same = np.all([column.picks == column.missing for column in own], axis=0)
        every[number] = replace(every[number], missing=float(same.argmax()) if same.any() else float("nan"))
    return every, binned
