"""Why a row has its class, from the decisions about it: a reason, several, the box around it, what would change the class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from treesens.compiler.base.arrays import BoolArray
from treesens.solve.reasons.decisions import Features, Other, RowDecisions, TimeUp


@dataclass(frozen=True)
class Wanted:
    """Which reasons: as few features as possible if `smallest`; the smallest ones if `most` is above 1; none with features of
    `barred`; with a `box` around the first. Of minimal reasons the one is found that does without the features that come first
    in `order`. No change is one of `barred` or `held` features.
    """

    order: Sequence[int]
    smallest: bool = False
    most: int = 1
    barred: Features = frozenset()
    held: Features = frozenset()
    box: bool = False


@dataclass(frozen=True, eq=False)
class RowReason:
    """What is known. `several` are reasons, the first of which is the answer; `complete` if there are no others, `smallest`
    if no fewer features decide the class. `contrast` has the features whose change gives another class, at `other`; None if
    no change that is allowed does, and then `other` is an input that needs one that is not. `within` is an input of another
    class that agrees with the row on all features that may be used: there is no reason. `box` holds cells of the features of
    the first reason, bool[n_cells] each.
    """

    several: tuple[Features, ...] = ()
    complete: bool = False
    smallest: bool = False
    contrast: Features | None = None
    other: Other | None = None
    within: Other | None = None
    box: dict[int, BoolArray] | None = None
    open: bool = False
    """Whether the time was up before all was known that was asked for."""


def reason_of(judge: RowDecisions, wanted: Wanted, changes: RowDecisions | None = None) -> RowReason:
    """Why a row has its class. `changes` decides about the row if changes have to fulfil more than that features stay."""
    every = frozenset(wanted.order)
    usable, held = every - wanted.barred, wanted.barred | wanted.held
    reason = RowReason()
    try:
        free = judge.other(())
        if free is not None:
            reason = replace(reason, other=free)
            allowed = changes or judge
            change = free if allowed is judge and not held else allowed.other(held)
            if change is not None:
                contrast, other = allowed.contrastive(every - held, every, change)
                reason = replace(reason, contrast=contrast, other=other)
        if wanted.barred and (within := judge.other(usable)) is not None:
            return replace(reason, within=within)
        if free is None:
            reason = replace(reason, several=(frozenset(),), complete=True, smallest=True)
        elif wanted.most > 1 or wanted.smallest:
            reason = _smallest(judge, usable, wanted.most, reason)
        else:
            first = judge.without_each([f for f in wanted.order if f in usable])
            reason = replace(reason, several=(first,))
    except TimeUp:
        return replace(reason, open=True)
    if wanted.box and reason.several:
        reason = replace(reason, box=judge.widened(reason.several[0]))
    return reason


def _smallest(judge: RowDecisions, usable: Features, most: int, reason: RowReason) -> RowReason:
    """The smallest reasons; when the time is up, those that are known."""
    found: list[Features] = []
    search = judge.smallest(usable)
    try:
        while len(found) < most and (one := next(search, None)) is not None:
            found.append(one)
        complete = most > 1 and (len(found) < most or next(search, None) is None)
    except TimeUp:
        complete, reason = False, replace(reason, open=len(found) < most)
    return replace(reason, several=tuple(found), complete=complete, smallest=bool(found))
