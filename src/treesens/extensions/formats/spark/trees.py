"""Reads trees from the tables of Spark, which have a row for each node, numbered in pre-order.

A number goes left if it is at most the threshold, so NaN goes right. For a category, the file stores the codes that go left.
Spark stores the smaller side, or the left side if both have the same size; all other values, including unlisted codes,
fractions and NaN, go to the side that is not stored (`CategoricalSplit` in Spark 2 to 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from treesens.errors import ModelError
from treesens.extensions.formats.spark.folder import DAMAGED
from treesens.extensions.formats.spark.parquet import Columns, check_columns
from treesens.extensions.formats.spark.stages import Slot
from treesens.extensions.formats.spark.steps import Runs, follow, thresholds_before, unfold
from treesens.frontends.columns import MAX_CATEGORIES, Nodes, check_set_bytes

_NODE = ("id", "prediction", "impurity", "impurityStats", "gain", "leftChild", "rightChild")
_SPLIT = ("split.featureIndex", "split.leftCategoriesOrThreshold", "split.numCategories")
_WHOLE = ("id", "leftChild", "rightChild", "split.featureIndex", "split.numCategories")


@dataclass(frozen=True, eq=False)
class Grown:
    """The nodes of all trees, and the number of categories of each feature with categorical splits."""

    nodes: Nodes
    categories: dict[int, int]


@dataclass(frozen=True, eq=False)
class _Table:
    """Columns with one entry per node, [N], one tree after the other; `offset` holds the first node of each tree."""

    columns: Columns
    prefix: str
    order: NDArray[np.int64]
    offset: NDArray[np.int64]
    place: str

    def number(self, name: str) -> NDArray[np.int64]:
        """A column of integers."""
        return self.columns.values[self.prefix + name][self.order].astype(np.int64)

    def real(self, name: str) -> NDArray[np.float64]:
        """A column of numbers."""
        return self.columns.values[self.prefix + name][self.order].astype(np.float64)

    def lists(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """All numbers in a column of lists, in file order, and the start and length of the list of each row."""
        lengths = self.columns.lengths[self.prefix + name]
        first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)[:-1]
        return self.columns.values[self.prefix + name].astype(np.float64), first[self.order], lengths[self.order]

    def refuse(self, bad: NDArray[np.bool_], message: str) -> None:
        """Raises ModelError at the first node for which `bad` is true."""
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            tree = int(np.searchsorted(self.offset, row, side="right")) - 1
            at = f"{message} (tree {tree}, node {row - self.offset[tree]})"
            raise ModelError(at, place=self.place, remedy=DAMAGED)


def grow(columns: Columns, place: str, *, trees: int | None, classes: int) -> Grown:
    """The trees of a table: `trees` is their number (None: a single tree); each leaf has `classes` values (0: one value).

    Raises ModelError, with the place, for trees that Spark cannot read or that make no prediction in Spark.
    """
    table = _table(columns, place, trees)
    count, size = len(table.order), np.diff(table.offset)
    start = np.repeat(table.offset[:-1], size)
    within = np.arange(count) - start
    left, right = table.number("leftChild"), table.number("rightChild")
    inner = left != -1
    table.refuse(inner != (right != -1), "a node has one child")
    table.refuse(inner & (left != within + 1), "the nodes are not numbered in pre-order")
    ends = start + np.repeat(size, size)
    table.refuse(inner & ((right <= left) | (start + right >= ends)), "a child does not exist")
    table.refuse(_misplaced(start, inner, right), "the nodes are not numbered in pre-order")
    feature = np.where(inner, table.number("split.featureIndex"), -1)
    table.refuse(inner & (feature < 0), "a split uses a feature that does not exist")
    leaf_number = (
        np.cumsum(~inner) - np.repeat(np.cumsum(~inner)[table.offset[:-1]] - ~inner[table.offset[:-1]], size) - 1
    )
    threshold, default_left, sets, categories = _splits(table, inner, feature)
    nodes = Nodes(
        tree_offset=table.offset,
        left=np.where(inner, left, -1),
        right=np.where(inner, right, -1),
        feature=feature,
        threshold=threshold,
        default_left=default_left,
        leaf_value=_shares(table, inner, classes) if classes else table.real("prediction")[:, None],
        leaf_id=np.where(inner, -1, leaf_number),
        left_sets=sets,
    )
    return Grown(nodes, categories)


def _table(columns: Columns, place: str, trees: int | None) -> _Table:
    """The columns of nodes, with the nodes of each tree in numeric order."""
    prefix = "" if trees is None else "nodeData."
    needed = [prefix + name for name in (*_NODE, *_SPLIT)] + ([] if trees is None else ["treeID"])
    check_columns(list(columns.values), needed, place, [f"{prefix}rawCount"])
    lists = {prefix + "impurityStats", prefix + "split.leftCategoriesOrThreshold"}
    wrong = [name for name in needed if (name in columns.lengths) != (name in lists)]
    whole = [prefix + name for name in _WHOLE] + ([] if trees is None else ["treeID"])
    wrong += [name for name in needed if (columns.values[name].dtype.kind == "i") != (name in whole)]
    if wrong:
        raise ModelError(f"the column `{wrong[0]}` has an unexpected type", place=place, remedy=DAMAGED)
    number = columns.values[prefix + "id"].astype(np.int64)
    tree = np.zeros(len(number), np.int64) if trees is None else columns.values["treeID"].astype(np.int64)
    order = np.lexsort((number, tree))
    count = 1 if trees is None else trees
    if len(tree) and not 0 <= int(tree.min()) <= int(tree.max()) < count:
        raise ModelError(f"the number of a tree is beyond the model's {count} trees", place=place, remedy=DAMAGED)
    sizes = np.bincount(tree, minlength=count) if len(tree) else np.zeros(count, np.int64)
    if not sizes.all():
        raise ModelError(f"tree {int(np.argmin(sizes))} has no nodes", place=place, remedy=DAMAGED)
    offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    table = _Table(columns, prefix, order, offset, place)
    expected = np.arange(len(order)) - np.repeat(offset[:-1], sizes)
    table.refuse(number[order] != expected, "the numbers of the nodes have gaps or duplicates")
    return table


def _misplaced(start: NDArray[np.int64], inner: NDArray[np.bool_], right: NDArray[np.int64]) -> NDArray[np.bool_]:
    """True for nodes, [N], whose right child does not immediately follow their left subtree."""
    size, wrong = [1] * len(inner), np.zeros(len(inner), np.bool_)
    beginning, to, branches = start.tolist(), right.tolist(), inner.tolist()
    for node in range(len(size) - 1, -1, -1):
        if branches[node]:
            other = beginning[node] + to[node]
            wrong[node] = other != node + 1 + size[node + 1]
            size[node] += size[node + 1] + size[other]
    return wrong


def _splits(
    table: _Table, inner: NDArray[np.bool_], feature: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], dict[int, NDArray[np.bool_]], dict[int, int]]:
    """By node: thresholds, directions of NaN, and sets of codes that go left; by feature: the number of categories."""
    values, first, length = table.lists("split.leftCategoriesOrThreshold")
    count = table.number("split.numCategories")
    by_category = inner & (count != -1)
    ordered = inner & ~by_category
    table.refuse(ordered & (length != 1), "a split must have exactly one threshold")
    threshold = np.zeros(len(inner))
    threshold[ordered] = values[first[ordered]]
    table.refuse(
        by_category & ((count < 1) | (count > MAX_CATEGORIES)), f"a feature has 0 or over {MAX_CATEGORIES} categories"
    )
    table.refuse(by_category & (length > count), "a split has more categories than its feature")
    check_set_bytes(int(count[by_category].sum()), table.place)
    default_left = np.zeros(len(inner), np.bool_)
    sets: dict[int, NDArray[np.bool_]] = {}
    categories: dict[int, int] = {}
    numeric = set(feature[ordered].tolist())
    for node in np.flatnonzero(by_category).tolist():
        bad = np.zeros(len(inner), np.bool_)
        bad[node] = True
        total, owner = int(count[node]), int(feature[node])
        codes = values[first[node] : first[node] + length[node]]
        if owner in numeric or categories.setdefault(owner, total) != total:
            table.refuse(bad, "the nodes of a feature have different numbers of categories, or some have thresholds")
        if not ((codes >= 0) & (codes < total) & (codes == np.floor(codes))).all() or len(set(codes.tolist())) != len(
            codes
        ):
            table.refuse(bad, "a category does not exist, or is repeated")
        goes_left = np.zeros(total + 1, np.bool_)
        goes_left[codes.astype(np.int64)] = True
        goes_left[total] = default_left[node] = len(codes) > total // 2
        sets[node] = goes_left
    return threshold, default_left, sets, categories


def _shares(table: _Table, inner: NDArray[np.bool_], classes: int) -> NDArray[np.float64]:
    """The class shares of the training rows in each leaf, [N, classes], added and divided in Spark's order."""
    values, first, length = table.lists("impurityStats")
    table.refuse(~inner & (length != classes), f"a leaf does not have {classes} values, one per class")
    counts = np.zeros((len(inner), classes))
    total = np.zeros(len(inner))
    with np.errstate(over="ignore", invalid="ignore"):
        for number in range(classes):
            counts[~inner, number] = values[first[~inner] + number]
            total += counts[:, number]
    table.refuse(~inner & ~((counts >= 0) & np.isfinite(counts)).all(axis=1), "a leaf has an invalid number of rows")
    table.refuse(~inner & ~((total > 0) & np.isfinite(total)), "a leaf has no rows")
    shares: NDArray[np.float64] = counts / np.where(inner, 1.0, total)[:, None]
    # The stored prediction of a single tree is used only by `transform`; in Spark's files, it agrees with the counts.
    best = counts.argmax(axis=1)
    table.refuse(~inner & (table.real("prediction") != best), "the prediction of a leaf contradicts its counts")
    table.refuse(
        ~inner & (shares.argmax(axis=1) != best), "two classes of a leaf differ in count, but not in rounded shares"
    )
    return shares


def by_labels(nodes: Nodes, slots: Sequence[Slot], features: Sequence[int], place: str) -> Nodes:
    """The nodes over the columns of a table; `features` holds the column numbers, by position in the feature vector.

    Splits on numbers that encode labels become label sets. Unlisted and missing labels have the code after the last label's.
    """
    sets, default_left = dict(nodes.left_sets), nodes.default_left.copy()
    named = np.isin(nodes.feature, [number for number, slot in enumerate(slots) if slot.labels is not None])
    check_set_bytes(sum(len(slots[int(f)].labels or ()) + 1 for f in nodes.feature[named]), place)
    numbers = {int(f): slots[int(f)].numbers for f in np.unique(nodes.feature[named])}
    for node in np.flatnonzero(named).tolist():
        asked, listed = numbers[int(nodes.feature[node])], sets.get(node)
        goes_left = asked <= nodes.threshold[node] if listed is None else _in_set(listed, asked)
        sets[node], default_left[node] = goes_left, goes_left[-1]
    column = np.where(nodes.feature >= 0, np.array(features)[np.maximum(nodes.feature, 0)], -1)
    made = replace(nodes, feature=column, left_sets=sets, default_left=default_left)
    runs: dict[int, Runs] = {}
    for number, slot in enumerate(slots):
        at = np.flatnonzero(nodes.feature == number)
        if slot.labels is None and slot.steps and len(at):
            made = _before_steps(made, at, slot, runs, place)
    return unfold(made, runs, place) if runs else made


def _in_set(listed: NDArray[np.bool_], values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """True for numbers that go left at a split on `listed`, bool[categories + 1]; the last entry is for invalid codes."""
    last = len(listed) - 1
    known = (values >= 0) & (values < last) & (values == np.floor(values))
    return listed[np.where(known, values, last).astype(np.int64)]


def _before_steps(nodes: Nodes, at: NDArray[np.int64], slot: Slot, runs: dict[int, Runs], place: str) -> Nodes:
    """The nodes, with splits `at` moved before the steps of `slot`. A set of buckets may need several cuts, added to `runs`."""
    for step in slot.steps:
        if not step.rises:
            raise ModelError(
                f"a split uses `{slot.column[:60]}`, which a stage changes by {step.operation.value} {step.constant:g}",
                place=place,
                remedy="leave out a column that is constant in training; or pass only the tree model",
            )
    missing = follow(slot.steps, np.array([np.nan]))
    threshold, default_left, sets = nodes.threshold.copy(), nodes.default_left.copy(), dict(nodes.left_sets)
    left, right = nodes.left.copy(), nodes.right.copy()
    for node in at.tolist():
        listed = sets.pop(node, None)
        if listed is None:
            default_left[node] = bool(missing[0] <= threshold[node])
            continue
        levels = slot.steps[-1].levels
        if not levels:
            raise ModelError(
                f"a split uses categories of `{slot.column[:60]}`, which an earlier stage has changed",
                place=place,
                remedy="pass the tree model alone",
            )
        goes_left = _in_set(listed, np.arange(levels, dtype=np.float64))
        default_left[node] = bool(_in_set(listed, missing)[0])
        ends = np.flatnonzero(goes_left[1:] != goes_left[:-1])
        threshold[node] = ends[0] if len(ends) else math.inf
        if len(ends) > 1:
            cuts = thresholds_before(slot.steps, ends.astype(np.float64))
            runs[node] = Runs(cuts, goes_left[[*ends, levels - 1]], bool(default_left[node]))
        elif not goes_left[0]:
            # The set lists the codes that go right, so the sides are swapped.
            left[node], right[node] = right[node], left[node]
            default_left[node] = not default_left[node]
    if not (follow(slot.steps, np.array([-np.inf])) <= threshold[at]).all():
        raise ModelError(f"no number goes left at a split on `{slot.column[:60]}`", place=place, remedy=DAMAGED)
    threshold[at] = thresholds_before(slot.steps, threshold[at])
    return replace(nodes, threshold=threshold, default_left=default_left, left_sets=sets, left=left, right=right)
