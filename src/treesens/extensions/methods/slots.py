"""Slots are the choices for a feature of a small domain: the cells of the feature, or its values if these are few. A joint
choice for features sets exactly one member of each one-hot group to 1.

If each value has its own slot, the slots determine relations between values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, TypeVar

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    Constraint,
    Difference,
    OneHot,
    Query,
    SameExcept,
    Space,
)
from treesens.compiler.query.values import Place, ValueRange, ValueSum
from treesens.values.distance_costs import cell_reaches

FEW = 64
"""Maximum number of values of a feature for which each value has its own slot."""


@dataclass(frozen=True, eq=False)
class Slots:
    """The slots of a feature: their `cells`, int32[n], and legal values, `reaches` (None for missing and for empty cells).

    `split` is True if each value has its own slot.
    """

    cells: Int32Array
    reaches: Sequence[ValueRange | None]
    split: bool = False

    @property
    def wide(self) -> BoolArray:
        """True for slots with several values, bool[n]."""
        return np.array([r is not None and not r.single for r in self.reaches], bool)

    def of_cells(self, mask: BoolArray) -> Int32Array:
        """The slots whose cells are in `mask`, bool[n_cells]."""
        return np.flatnonzero(mask[self.cells]).astype(np.int32)


def slots_of(space: Space, feature: int, *, split: bool) -> Slots:
    """One slot per cell or, if `split` and there are few values, one per value; only legal cells are split."""
    reaches = cell_reaches(space, feature)
    whole = Slots(np.arange(len(reaches), dtype=np.int32), reaches)
    if not split:
        return whole
    cells: list[int] = []
    singles: list[ValueRange | None] = []
    for cell in np.flatnonzero(space.legal[feature]).tolist():
        found = values_of(reaches[cell])
        if found is None or len(singles) + len(found) > FEW:
            return whole
        cells += [cell] * len(found)
        singles += found
    return Slots(np.array(cells, np.int32), singles, split=True)


def values_of(reach: ValueRange | None) -> list[ValueRange | None] | None:
    """Each legal value as a range of its own; None if there are too many. A missing value stays missing."""
    if reach is None or reach.single:
        return [reach]
    if reach.values is not None:
        inside = reach.values[(reach.values >= reach.low) & (reach.values <= reach.high)].tolist()
    elif reach.whole and reach.high - reach.low < FEW:
        inside = [float(v) for v in range(int(reach.low), int(reach.high) + 1)]
    else:
        return None
    return [ValueRange(v, v, reach.number_type) for v in inside] if len(inside) <= FEW else None


def related_features(query: Query) -> set[int]:
    """The features for which not only the cells but also the values matter."""
    found: set[int] = set()
    for constraint in query.constraints:
        found |= {f for _, f in _related(constraint, len(query.space.names))}
    goal = query.objective
    if goal is not None:
        found |= {f for term in goal.values for _, f in term.places}
        found |= {f for change in goal.form.changes for f in change.features}
        found |= set(goal.nearest.features) if goal.nearest is not None else set()
    return found


def _related(constraint: Constraint, features: int, *, firm: bool = True) -> set[Place]:
    match constraint:
        case AllOf(parts):
            return set[Place]().union(*(_related(part, features, firm=firm) for part in parts))
        case AnyOf(parts):
            return set[Place]().union(*(_related(part, features, firm=False) for part in parts))
        case Difference():
            return {(constraint.left, constraint.feature), (constraint.right, constraint.other)}
        case ValueSum():
            return set(constraint.places)
        case AtLeast(values=values):
            return {(term.point, term.feature) for term in values}
        case SameExcept() if not firm:
            return {(constraint.left, f) for f in range(features) if f not in constraint.varied}
        case _:
            return set()


Key = TypeVar("Key")


class Member(NamedTuple):
    """The options of a feature, int32[k]; `ones`, bool[k], marks options of value 1, and is None outside one-hot groups."""

    options: Int32Array
    ones: BoolArray | None = None


def count_choices(block: Mapping[Key, Member]) -> int:
    """The number of rows that `list_choices` returns."""
    return sum(prod(len(options) for options in case) for case in _cases(block))


def list_choices(block: Mapping[Key, Member]) -> Int32Array:
    """All choices for the features of a block, int32[N, features]; in a group, exactly one feature is 1."""
    parts = []
    for case in _cases(block):
        mesh = np.meshgrid(*case, indexing="ij")
        parts.append(np.stack([axis.reshape(-1) for axis in mesh], axis=1))
    return np.concatenate(parts).astype(np.int32)


def count_inputs(query: Query, point: int) -> int:
    """The number of combinations of a point's legal cells that the one-hot groups of the point allow."""
    legal = query.space.legal
    free, total = set(range(len(legal))), 1
    for group in query.constraints:
        if isinstance(group, OneHot) and group.point == point and all(m.feature in free for m in group.members):
            options = {m.feature: np.flatnonzero(legal[m.feature]).astype(np.int32) for m in group.members}
            total *= count_choices(
                {m.feature: Member(options[m.feature], m.mask[options[m.feature]]) for m in group.members}
            )
            free -= options.keys()
    return total * prod(max(1, int(legal[f].sum())) for f in free)


def _cases(block: Mapping[Key, Member]) -> Iterable[list[Int32Array]]:
    """Yields products of options, one list per feature; the products cover all choices. A group has a product per member."""
    members = list(block.values())
    if any(member.ones is None for member in members):
        yield [member.options for member in members]
        return
    for one in members:
        yield [
            member.options[member.ones if member is one else ~member.ones]
            for member in members
            if member.ones is not None
        ]
