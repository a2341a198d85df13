"""What features choose together: a feature by itself each of its options, a one-hot group one of its members to be one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple, TypeVar

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array
from treesens.compiler.query.query import OneHot, Query

Key = TypeVar("Key")


class Member(NamedTuple):
    """The options of a feature int32[k]; `ones` bool[k] says which of them are "is one", None outside of a group."""

    options: Int32Array
    ones: BoolArray | None = None


def count_choices(block: Mapping[Key, Member]) -> int:
    """How many rows `list_choices` has."""
    return sum(prod(len(options) for options in case) for case in _cases(block))


def list_choices(block: Mapping[Key, Member]) -> Int32Array:
    """All choices of the features of a block, int32[N, features]: of a group exactly one feature is one."""
    parts = []
    for case in _cases(block):
        mesh = np.meshgrid(*case, indexing="ij")
        parts.append(np.stack([axis.reshape(-1) for axis in mesh], axis=1))
    return np.concatenate(parts).astype(np.int32)


def count_inputs(query: Query, point: int) -> int:
    """Combinations of legal cells of a point that its one-hot groups leave."""
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
    """Options per feature whose products, together, are the choices: one case for each member that may be one."""
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
