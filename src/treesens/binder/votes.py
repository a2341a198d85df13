"""Votes for classes as a formula about what each member predicts.

Which classes elect which one is a table of all combinations, [classes] * members, that the library's own addition of weights
has filled. The formula goes through the members one after the other. Behind a class of a member is what the others must say,
and classes that lead to more than another one may stand in for it, so that a majority needs no word about those who lost:

    wins = or over what is left, f:  (member i predicts one of {c : f implies what c leaves}) and f
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from treesens.binder.inputs import all_of, any_of
from treesens.binder.scope import Pending
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.model.blend import Blend

Predicts = Callable[[int, int, bool], Pending]
"""(member, class, whether it does) -> the constraint that the member predicts the class, or that it does not."""


def elected(blend: Blend, classes: int, wanted: int, positive: bool, predicts: Predicts) -> Pending:
    """Class `wanted` has the most votes, or (`positive` False) another one has."""
    shape = (classes,) * len(blend.members)
    votes = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
    table = ((blend.elected(votes, classes) == wanted) == positive).reshape(shape)
    if table.all() or not table.any():
        return all_of(()) if table.all() else any_of(())
    return _formula(table, 0, predicts)


def _formula(table: BoolArray, member: int, predicts: Predicts) -> Pending:
    """What the members from this one on must predict, of a table that is neither true nor false everywhere."""
    parts: list[Pending] = []
    for rest in {left.tobytes(): left for left in table if left.any()}.values():
        allowed = [bool(left[rest].all()) for left in table]
        needed = [] if all(allowed) else [_one_of(member, allowed, predicts)]
        parts.append(all_of((*needed, *([] if rest.all() else [_formula(rest, member + 1, predicts)]))))
    return any_of(parts)


def _one_of(member: int, allowed: list[bool], predicts: Predicts) -> Pending:
    """The member predicts one of the allowed classes, told by those that it does or does not predict, whichever are fewer."""
    positive = 2 * sum(allowed) <= len(allowed)
    named = [predicts(member, c, positive) for c, fine in enumerate(allowed) if fine is positive]
    return (any_of if positive else all_of)(named)
