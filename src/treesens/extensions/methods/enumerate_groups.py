"""Enumerates groups of combinations of cells; relations between values may exclude an entire group at once.

Groups with the best bounds come first; among groups with equal bounds, smaller groups come first. A group is checked with only
the values in its ranges, without scores; a group that may contain an improvement is halved.
"""

from __future__ import annotations

import heapq
import itertools
from fractions import Fraction
from typing import Protocol

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int64Array
from treesens.compiler.query.query import Objective, Query
from treesens.compiler.query.values import Place
from treesens.extensions.methods.combinations import Combinations, Exact
from treesens.extensions.methods.decide_values import Inside
from treesens.values.concretise import Alternatives, relaxation_of
from treesens.values.verify import Witness

_SECONDS = 0.3
"""Maximum number of seconds per group; further time is better spent on the halves of the group."""


class Walk(Protocol):
    """The part of a walk through single combinations (`Enumeration`) that a walk through groups uses."""

    query: Query
    combinations: Combinations
    witness: Witness | None
    value: Fraction | None

    def left(self) -> float:
        """The remaining seconds."""

    def better(self, goal: Objective, value: Fraction, than: Fraction | None) -> bool:
        """True if one value of the objective is better than another value."""

    def better_question(self) -> Query:
        """The question for an improvement of the best answer."""

    def decide(self, asked: Alternatives, seconds: float) -> Inside:
        """Decides the values in some cells."""

    def look_at(self, number: int, key: Fraction | None, alive: BoolArray) -> None:
        """Checks one combination."""

    def stays_possible(self, goal: Objective, value: Fraction) -> None:
        """Records the value of a combination that could not be excluded."""


def enumerate_groups(walk: Walk, alive: BoolArray, keys: tuple[Exact, int] | None) -> bool:
    """Checks all remaining combinations that may improve on the best answer; returns False at the time limit."""
    goal, number = walk.query.objective, itertools.count()
    queue: list[tuple[Fraction, int, int, Int64Array]] = []

    def push(group: Int64Array, best: Fraction | None) -> None:
        """Queues a group with the bound of its combinations, or with the parent's bound `best` if that is tighter."""
        if goal is None or keys is None:
            heapq.heappush(queue, (Fraction(0), len(group), next(number), group))
            return
        own = Fraction(int(keys[0][group].max() if goal.maximize else keys[0][group].min()), keys[1])
        bound = own if best is None else min(own, best) if goal.maximize else max(own, best)
        heapq.heappush(queue, (-bound if goal.maximize else bound, len(group), next(number), group))

    push(np.flatnonzero(alive), None)
    while queue:
        priority, _, _, waiting = heapq.heappop(queue)
        best = None if goal is None else -priority if goal.maximize else priority
        if goal is not None and best is not None and not walk.better(goal, best, walk.value):
            return True
        if walk.left() <= 0:
            if goal is not None and best is not None:
                walk.stays_possible(goal, best)
            return False
        group = waiting[alive[waiting]]
        if len(group) == 1:
            walk.look_at(int(group[0]), best, alive)
            if walk.witness is not None and goal is None:
                return True
        elif len(group):
            nothing, mixed = _holds_nothing(walk, group)
            if nothing:
                alive[group] = False
                continue
            for part in _halves(walk, group, mixed):
                push(part, best)
    return True


def _holds_nothing(walk: Walk, group: Int64Array) -> tuple[bool, Place | None]:
    """True if no values in the ranges of a group satisfy the relations, or none of these values improve on the best answer.

    If a place is missing in some combinations of the group but not in all, returns False and this place.
    """
    ranges = walk.combinations.ranges(group)
    if isinstance(ranges, tuple):
        return False, ranges
    relaxed = relaxation_of(walk.better_question(), ranges)
    return walk.decide(relaxed, _SECONDS).none, None


def _halves(walk: Walk, group: Int64Array, mixed: Place | None) -> tuple[Int64Array, Int64Array]:
    """The two halves of a group, split at the place with the most slots, or into present and missing values of `mixed`."""
    chosen = walk.combinations.chosen[group]
    if mixed is not None:
        reaches = walk.combinations.slots[mixed[1]].reaches
        missing = np.array([reaches[s] is None for s in chosen[:, mixed[0], mixed[1]].tolist()], bool)
        return group[missing], group[~missing]
    flat = chosen.reshape(len(group), -1)
    column = flat[:, int(np.argmax([len(np.unique(c)) for c in flat.T]))]
    upper = column > np.sort(column)[(len(column) - 1) // 2]
    if not upper.any():
        upper = column == column.max()
    return group[~upper], group[upper]
