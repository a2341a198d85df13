"""Splits on values of a column that are not intervals: one-hot bins, and zeros of a sparse matrix, missing values for XGBoost.

A split on a bin in the middle becomes two splits on the number of the bin, and a split that sends zeros elsewhere than their
neighbours becomes splits on the sign. The subtree of all other values follows on both sides. In each copy, splits that the path
decides are left out, so that a tree with F such columns of B bins has at most B**F leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble, Feature
from treesens.errors import ModelError
from treesens.extensions.formats.links.blend import Weighted
from treesens.extensions.formats.sklearn.columns import Column, Float64, Function

_MOST_NODES = 2_000_000
"""Maximum number of nodes after copying."""
_RIGHT, _LEFT, _BOTH = 0, 1, 2
"""The sides of a split to which the values of a level go."""
_REMEDY = (
    "use encode='ordinal' for bins, since trees split on their numbers, too; and dense one-hot columns for XGBoost"
)
_LOST = np.array([np.nan])
_Within = dict[int, tuple[int, int]]
"""The first and the last possible level of each column of levels; unlisted columns may have any level."""


def split_levels(
    e: Ensemble, columns: Sequence[Column], place: str, *, drops_zeros: bool
) -> tuple[Ensemble, list[Column]]:
    """An equivalent ensemble without such splits, and its columns: `columns`, and columns of levels: the bins of binned numbers
    and, if the library takes zeros for missing values (`drops_zeros`), the signs of all other numbers.

    Raises ModelError if copies of subtrees take too many nodes.
    """
    every, numbered = _levels(columns, drops_zeros, place)
    if not numbered:
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
            if f in numbered:
                number = numbered[f]
                goes = _sides(e, node, columns[f].picks, drops_zeros)
                first, last = within.get(number, (0, len(goes) - 1))
                changes = np.flatnonzero(np.diff(goes[first : last + 1])) + first
                if not len(changes) and goes[first] != _BOTH:
                    waiting.append((*children[0 if goes[first] == _LEFT else 1], side, parent))
                    continue
                if len(changes) and not _has_threshold(goes, first, last):
                    f, cut = number, changes[0] + 0.5
                    lower, upper = (first, int(changes[0])), (int(changes[0]) + 1, last)
                    children = ((node, {**within, number: lower}), (node, {**within, number: upper}))
            made = side[parent] = len(origin)
            if made >= _MOST_NODES:
                message = f"splits on bins or on sparse columns become more than {_MOST_NODES:,} splits on numbers"
                raise ModelError(message, place=place, remedy=_REMEDY)
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
    numbers, by_level = np.full(len(old), -1, np.int32), features >= len(columns)
    numbers[features < 0] = np.arange(len(leaf))
    trees = np.repeat(np.arange(e.n_trees, dtype=np.int32), np.diff(offset))
    blend = e.blend
    if isinstance(blend, Weighted):
        members = [split_levels(m, columns, place, drops_zeros=drops_zeros)[0] for m in blend.members]
        blend = replace(blend, members=tuple(members))
    return replace(
        e,
        blend=blend,
        features=(*e.features, *(Feature(f"level {i}") for i in range(len(columns), len(every)))),
        tree_offset=np.array(offset),
        node_feature=features,
        threshold=np.where(by_level, threshold, e.threshold[old]),
        left=np.array(sides[0]),
        right=np.array(sides[1]),
        default_left=e.default_left[old],
        node_leaf=numbers,
        leaf_value=e.leaf_value[leaf],
        leaf_tree=trees[features < 0],
        leaf_node=e.leaf_node[leaf],
        category_set=np.where(by_level, -1, e.category_set[old]),
        zero_missing=e.zero_missing[old],
    ), every


def _sides(e: Ensemble, node: int, picks: Float64 | None, drops_zeros: bool) -> NDArray[np.int64]:
    """The side of a split to which each level goes; without `picks`, these are negative numbers, zero, and positive numbers."""
    values = np.array([-1.0, 0.0, 1.0]) if picks is None else picks
    goes = np.asarray(e.number_type.cast(values) < e.node_cut[node], np.int64)
    if picks is None:
        goes = np.array([_LEFT, _LEFT, _BOTH] if goes[1] else [_BOTH, _RIGHT, _RIGHT])
    return np.where(drops_zeros & (values == 0), int(e.default_left[node]), goes)


def _has_threshold(goes: NDArray[np.int64], first: int, last: int) -> bool:
    """True if the split separates the numbers of these levels at its threshold, zero included."""
    part, natural = goes[first : last + 1], _LEFT if goes[-1] == _BOTH else _RIGHT
    return bool((part == _BOTH).any() and ((part == _BOTH) | (part == natural)).all())


def _levels(columns: Sequence[Column], drops_zeros: bool, place: str) -> tuple[list[Column], dict[int, int]]:
    """The columns with columns of levels behind them, and the index of the latter for each column whose splits need it."""
    every, numbered = list(columns), dict[int, int]()
    of_number: dict[tuple[int, Function], int] = {}
    for f, column in enumerate(columns):
        if column.picks is None and (not drops_zeros or column.images is not None):
            continue
        if column.picks is None and column.missing == 0 and column.stored and np.isnan(column.stored(_LOST)).all():
            message = "SimpleImputer writes zeros into sparse rows; XGBoost takes only absent zeros for missing values"
            raise ModelError(message, place=place, remedy="impute before the columns become sparse")
        key = (column.source, column.present)
        if column.picks is None or key not in of_number:
            of_number[key] = len(every)
            lost = 1.0 if np.isnan(column.missing) else _sign(np.array([column.missing]))[0]
            every.append(
                Column(column.source, _signs(column.stored or column.present), float(lost))
                if column.picks is None
                else replace(column, picks=None, images=None)
            )
        numbered[f] = of_number[key]
    for number in set(numbered.values()):
        # A missing value is in the bin that all of its one-hot columns name; without a bin, the library refuses it.
        own = [columns[f] for f, made in numbered.items() if made == number]
        if own[0].picks is not None:
            same = np.all([column.picks == column.missing for column in own], axis=0)
            every[number] = replace(every[number], missing=float(same.argmax()) if same.any() else float("nan"))
    return every, numbered


def _sign(values: Float64) -> Float64:
    return (values >= 0).astype(np.float64) + (values > 0)


def _signs(present: Function) -> Function:
    return lambda x: _sign(present(x))
