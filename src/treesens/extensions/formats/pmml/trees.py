"""Converts PMML trees to binary trees; a PMML node has any number of children, each with a predicate.

A node's children are tested in order, and the first child whose predicate is true is taken. `missingValueStrategy` handles
unknown predicates, and `noTrueChildStrategy` handles nodes without a true child (PMML 4.4, TreeModel). The binary tree splits
on one column at a time and tracks the remaining cells on each path, so that no split is repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from treesens.errors import ModelError
from treesens.extensions.formats.additive import MAX_LEAVES
from treesens.extensions.formats.pmml.predicates import (
    Always,
    Joint,
    Outcome,
    Predicate,
    Test,
    Truth,
    outcome,
    tests_of,
)
from treesens.frontends.columns import Growing, Nodes


@dataclass(frozen=True)
class Interval:
    """The cells first..last of a number; `missing` is True if the number may be missing."""

    first: int
    last: int
    missing: bool


Left: TypeAlias = Interval | frozenset[int]
State: TypeAlias = Mapping[int, Left]
"""The values still possible, by column: cells of a number, or codes of a category, then all other codes and missing."""
Then: TypeAlias = Callable[[State], int]
"""A function that builds the rest of the tree for a state, and returns the number of the first node."""


class Grower(Growing):
    """One binary tree under construction, with `width` values at a leaf."""

    def __init__(self, predicates: Sequence[Predicate], width: int, place: str) -> None:
        super().__init__(width)
        self.place = place
        self.cuts: dict[int, list[float]] = {}
        self.start: dict[int, Left] = {}
        tests = [test for predicate in predicates for test in tests_of(predicate)]
        cuts: dict[int, set[float]] = {}
        for test in tests:
            if test.column.categories is None:
                cuts.setdefault(test.column.index, set()).update(test.cuts())
            else:
                self.start[test.column.index] = frozenset(range(len(test.column.categories) + 2))
        for column, found in cuts.items():
            self.cuts[column] = sorted(found)
            self.start[column] = Interval(0, len(found), True)
        self.unpredicted: set[int] = set()
        """Columns that must not be missing, because some inputs without them have no prediction."""
        self._runs: dict[int, list[tuple[int, int, Outcome]]] = {}
        self._truths: dict[int, tuple[Truth, ...]] = {}

    def grown(self, root: Then) -> Nodes:
        """The finished tree; the root is built first."""
        try:
            root(self.start)
        except RecursionError:
            raise ModelError("the tree is too deep", place=self.place, remedy="use a smaller tree") from None
        return self.nodes()

    def missing(self, state: State) -> set[int]:
        """The columns whose value can only be missing, or an unlisted category, in this state."""
        found = set[int]()
        for column, left in state.items():
            if isinstance(left, Interval):
                lost = left.last < left.first
            else:
                lost = left <= {len(self.start[column]) - 2, len(self.start[column]) - 1}  # type: ignore[arg-type]
            if lost:
                found.add(column)
        return found

    def no_prediction(self, state: State) -> int | None:
        """A leaf that is reached only by inputs with missing values; None if other inputs reach this state, too."""
        lost = self.missing(state)
        self.unpredicted |= lost
        return self.leaf([0.0] * self.width) if lost else None

    def inner(self, feature: int, threshold: float, *, missing_left: bool) -> int:
        if len(self) >= 2 * MAX_LEAVES:
            raise ModelError(
                f"the tree has more than {MAX_LEAVES} leaves", place=self.place, remedy="use a smaller tree"
            )
        return super().inner(feature, threshold, missing_left=missing_left)

    def ask(self, predicate: Predicate, state: State, true: Then, false: Then, unknown: Then) -> int:
        """Splits on a predicate, builds the rest of the tree for each truth value, and returns the first node."""
        if isinstance(predicate, Always):
            return (true if predicate.truth else false)(state)
        if isinstance(predicate, Joint):
            return self._ask_joint(predicate, state, true, false, unknown)
        then: dict[Outcome, Then] = {"true": true, "false": false, "unknown": unknown}
        if predicate.column.categories is None:
            return self._ask_number(predicate, state, then)
        return self._ask_codes(predicate, state, then)

    def _ask_joint(self, joint: Joint, state: State, true: Then, false: Then, unknown: Then) -> int:
        first, *others = joint.parts
        rest: Predicate = others[0] if len(others) == 1 else Joint(joint.operator, tuple(others))

        def on(t: Then, f: Then, u: Then) -> Then:
            return t if t is f is u else lambda s: self.ask(rest, s, t, f, u)

        match joint.operator:
            case "and":
                return self.ask(first, state, on(true, false, unknown), false, on(unknown, false, unknown))
            case "or":
                return self.ask(first, state, true, on(true, false, unknown), on(true, unknown, unknown))
            case "xor":
                return self.ask(first, state, on(false, true, unknown), on(true, false, unknown), unknown)
        return self.ask(first, state, true, false, on(true, false, unknown))

    def _ask_codes(self, test: Test, state: State, then: Mapping[Outcome, Then]) -> int:
        column = test.column.index
        left = state[column]
        assert isinstance(left, frozenset)
        truths = self._truths.get(id(test))
        if truths is None:
            truths = self._truths[id(test)] = test.on_codes()
        parts: dict[int, tuple[Then, set[int]]] = {}
        for code in left:
            found = then[outcome(truths[code])]
            parts.setdefault(id(found), (found, set()))[1].add(code)
        return self._split_codes(column, len(truths) - 1, [(t, frozenset(c)) for t, c in parts.values()], state)

    def _split_codes(self, column: int, codes: int, parts: Sequence[tuple[Then, frozenset[int]]], state: State) -> int:
        (first, mine), *others = parts
        if not others:
            return first({**state, column: mine})
        node = self.inner(column, 0.0, missing_left=codes in mine)
        self.sets[node] = np.array([code in mine for code in range(codes)])
        self.left[node] = first({**state, column: mine})
        self.right[node] = self._split_codes(column, codes, others, state)
        return node

    def _ask_number(self, test: Test, state: State, then: Mapping[Outcome, Then]) -> int:
        column = test.column.index
        left = state[column]
        assert isinstance(left, Interval)
        truths = self._truths.get(id(test))
        if truths is None:
            truths = self._truths[id(test)] = test.on_numbers(self.cuts[column])
            self._runs[id(test)] = _runs(truths[:-1])
        runs: list[tuple[int, int, Then]] = []
        for first, last, found in self._runs[id(test)]:
            if last >= left.first and first <= left.last:
                part = (max(first, left.first), min(last, left.last), then[found])
                if runs and runs[-1][2] is part[2]:
                    part = (runs.pop()[0], *part[1:])
                runs.append(part)
        return self._split_number(column, runs, then[outcome(truths[-1])] if left.missing else None, state)

    def _split_number(self, column: int, runs: list[tuple[int, int, Then]], missing: Then | None, state: State) -> int:
        """Splits on runs of cells that have different continuations, and on missing values if `missing` is given."""
        if not runs:
            assert missing is not None
            return missing(state)
        if len(runs) == 1 and missing in (None, runs[0][2]):
            first, last, then = runs[0]
            return then({**state, column: Interval(first, last, missing is not None)})
        if len(runs) == 1 or (missing is not None and all(missing is not then for _, _, then in runs)):
            # No number lies below -infinity: only missing values go left.
            node = self.inner(column, -math.inf, missing_left=True)
            assert missing is not None
            self.left[node] = missing({**state, column: Interval(0, -1, True)})
            self.right[node] = self._split_number(column, runs, None, state)
            return node
        half = len(runs) // 2
        low, high = runs[:half], runs[half:]
        with_low = missing is not None and any(missing is then for _, _, then in low)
        node = self.inner(column, self.cuts[column][high[0][0] - 1], missing_left=with_low)
        self.left[node] = self._split_number(column, low, missing if with_low else None, state)
        self.right[node] = self._split_number(column, high, None if with_low else missing, state)
        return node


def _runs(truths: Sequence[Truth]) -> list[tuple[int, int, Outcome]]:
    """Runs of neighbouring cells with the same truth value, each as (first, last, truth value)."""
    runs: list[tuple[int, int, Outcome]] = []
    for cell, truth in enumerate(truths):
        found = outcome(truth)
        if runs and runs[-1][2] == found:
            runs[-1] = (runs[-1][0], cell, found)
        else:
            runs.append((cell, cell, found))
    return runs
