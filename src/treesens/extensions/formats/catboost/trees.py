"""Converts the trees of a CatBoost model to nodes.

An input that satisfies a split goes right, and the split's bit of the leaf number in a symmetric tree is 1. A split over a
combination of features becomes several nodes, one per feature, with a copy of the subtree for each outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from treesens.errors import ModelError
from treesens.extensions.formats.catboost.questions import Above, Among, Bools, Question, Table
from treesens.frontends.columns import Growing, Nodes
from treesens.frontends.documents import Field

MAX_DEPTH = 20
MAX_NODES = 1 << 18
"""The maximum number of nodes of a tree with splits over combinations of features."""


@dataclass(frozen=True)
class State:
    """The facts known at a node: possible codes by column, and for numbers the greatest border below and least border above."""

    codes: dict[int, Bools] = field(default_factory=dict)
    numbers: dict[int, tuple[float, float]] = field(default_factory=dict)

    def outcome(self, question: Above | Among) -> bool | None:
        """The outcome of the split; None if the facts do not determine the outcome."""
        if isinstance(question, Above):
            low, high = self.numbers.get(question.column, (-np.inf, np.inf))
            return True if low >= question.border else False if high <= question.border else None
        allowed = self.codes.get(question.column)
        met = question.yes if allowed is None else question.yes[allowed]
        return bool(met[0]) if met.all() or not met.any() else None

    def after(self, question: Above | Among, yes: bool) -> State:
        """The facts after one more outcome."""
        if isinstance(question, Above):
            low, high = self.numbers.get(question.column, (-np.inf, np.inf))
            new = (max(low, question.border), high) if yes else (low, min(high, question.border))
            return State(self.codes, self.numbers | {question.column: new})
        marked = question.yes if yes else ~question.yes
        allowed = self.codes.get(question.column)
        return State(self.codes | {question.column: marked if allowed is None else marked & allowed}, self.numbers)


def oblivious(splits: Sequence[Question], values: NDArray[np.float64], nan_left: Bools) -> Nodes:
    """A symmetric tree with leaf values `values`, [leaves, W]. Split k gives bit k of a leaf's number."""
    simple = [split for split in splits if not isinstance(split, Table)]
    if len(simple) == len(splits):
        return _levels(simple, values, nan_left)
    growing = _Growing(nan_left, values.shape[1], combinations=True)

    def below(level: int, leaf: int, state: State) -> int:
        if level == len(splits):
            return growing.leaf(values[leaf], leaf)
        return growing.split(splits[level], state, lambda yes, then: below(level + 1, leaf | yes << level, then))

    below(0, 0, State())
    return growing.nodes()


def _levels(splits: Sequence[Above | Among], values: NDArray[np.float64], nan_left: Bools) -> Nodes:
    """A symmetric tree, one feature per split. Node j of level k is node 2**k - 1 + j; j's bits are the k outcomes above."""
    depth = len(splits)
    level = np.repeat(np.arange(depth), 1 << np.arange(depth))
    within = np.arange(len(level)) - ((1 << level) - 1)
    left = (2 << level) - 1 + within
    leaves = np.full(1 << depth, -1)
    feature = np.array([split.column for split in splits], dtype=np.int64)[level]
    border = np.array([split.border if isinstance(split, Above) else 0.0 for split in splits], dtype=np.float64)[level]
    sets = {k: ~split.yes for k, split in enumerate(splits) if isinstance(split, Among)}
    return Nodes(
        tree_offset=np.array([0, len(level) + len(leaves)]),
        left=np.concatenate([left, leaves]),
        right=np.concatenate([left + (1 << level), leaves]),
        feature=np.concatenate([feature, leaves]),
        threshold=np.concatenate([border, np.zeros(len(leaves))]),
        default_left=np.concatenate([nan_left[feature], leaves > 0]),
        leaf_value=np.concatenate([np.zeros((len(level), values.shape[1])), values]),
        leaf_id=np.concatenate([np.full(len(level), -1), np.arange(1 << depth)]),
        left_sets={node: sets[k] for node, k in enumerate(level.tolist()) if k in sets},
    )


def _inner(tree: Field) -> Iterator[Field]:
    """The inner nodes of a tree, from the root down."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if "split" in node:
            yield node
            todo += [node["right"], node["left"]]


def nested_leaves(tree: Field) -> list[float]:
    """The leaf values of a tree that is not symmetric, in the library's order, from left to right."""
    found: list[float] = []
    todo = [tree]
    while todo:
        node = todo.pop()
        if "split" in node:
            todo += [node["right"], node["left"]]
        else:
            found += _values(node["value"]).tolist()
    return found


def _values(given: Field) -> NDArray[np.float64]:
    """The values of a leaf, which the file stores as a list for several scores."""
    listed = given.value if isinstance(given.value, list) else [given.value]
    return Field(listed, given.place, given.path).floats()


def nested(tree: Field, question: Callable[[Field], Question], outputs: int, nan_left: Bools) -> Nodes:
    """A tree that is not symmetric, from nested objects."""
    splits = [question(node["split"]) for node in _inner(tree)]
    growing = _Growing(nan_left, outputs, combinations=any(isinstance(split, Table) for split in splits))

    def below(node: Field, depth: int, state: State) -> int:
        if depth > MAX_DEPTH:
            raise node.error("the tree is nested too deeply")
        if "split" in node:
            asked = question(node["split"])
            return growing.split(
                asked, state, lambda yes, then: below(node["right" if yes else "left"], depth + 1, then)
            )
        given = node["value"]
        value = _values(given)
        if len(value) != outputs:
            raise given.error(f"{len(value)} values for {outputs} outputs")
        return growing.leaf(value, -1)

    below(tree, 0, State())
    return growing.nodes()


class _Growing(Growing):
    """A tree under construction; the root comes first.

    Subtrees below a combination are copied, without splits whose outcome is already known. Trees without `combinations` keep
    all nodes, because thresholds define the cells of the model.
    """

    def __init__(self, nan_left: Bools, outputs: int, *, combinations: bool) -> None:
        super().__init__(outputs)
        self.nan_left, self.combinations = nan_left, combinations

    def inner(self, feature: int, threshold: float, *, missing_left: bool) -> int:
        if len(self) >= MAX_NODES:
            raise ModelError(
                f"combinations of features turn one tree into more than {MAX_NODES} nodes",
                remedy="train with max_ctr_complexity=1, or with fewer levels",
            )
        return super().inner(feature, threshold, missing_left=missing_left)

    def split(self, question: Question, state: State, below: Callable[[bool, State], int]) -> int:
        """Adds the nodes of the split and the subtrees of both outcomes; returns the first node."""
        if isinstance(question, Table):
            return self._table(question, question.yes, 0, state, below)
        return self._one(question, state, below)

    def _one(self, question: Above | Among, state: State, below: Callable[[bool, State], int]) -> int:
        known = state.outcome(question) if self.combinations else None
        if known is not None:
            return below(known, state)
        border = question.border if isinstance(question, Above) else 0.0
        node = self.inner(question.column, border, missing_left=bool(self.nan_left[question.column]))
        if isinstance(question, Among):
            self.sets[node] = ~question.yes
        self.left[node] = below(False, state.after(question, False))
        self.right[node] = below(True, state.after(question, True))
        return node

    def _table(self, table: Table, yes: Bools, axis: int, state: State, below: Callable[[bool, State], int]) -> int:
        """Splits on the features of a combination in turn; `yes` is the rest of the table after `axis` axes."""
        if yes.all() or not yes.any():
            return below(bool(yes.flat[0]), state)
        if axis < len(table.categories):
            return self._categories(table, yes, axis, state, below)
        condition = table.conditions[axis - len(table.categories)]
        if np.array_equal(yes[0], yes[1]):
            return self._table(table, yes[0], axis + 1, state, below)
        return self._one(condition, state, lambda met, then: self._table(table, yes[int(met)], axis + 1, then, below))

    def _categories(
        self, table: Table, yes: Bools, axis: int, state: State, below: Callable[[bool, State], int]
    ) -> int:
        """Groups categories with equal rows of the table, and separates the groups in turn."""
        column = table.categories[axis]
        allowed = state.codes.get(column, np.ones(len(yes), dtype=np.bool_))
        flat = yes.reshape(len(yes), -1)
        rows = [flat[k].tobytes() if allowed[k] else b"" for k in range(len(yes))]
        groups = list(dict.fromkeys(row for row, here in zip(rows, allowed, strict=True) if here))
        first = Among(
            column, np.array([row == groups[0] and bool(here) for row, here in zip(rows, allowed, strict=True)])
        )
        own = yes[int(np.flatnonzero(first.yes)[0])]
        if len(groups) == 1:
            return self._table(table, own, axis + 1, state, below)

        def side(met: bool, then: State) -> int:
            if met:
                return self._table(table, own, axis + 1, then, below)
            return self._categories(table, yes, axis, then, below)

        return self._one(first, state, side)
