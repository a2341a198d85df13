"""Finds the answers to `top N`: the best answer, then the best answer outside its region, and so on; each answer is verified.

The region of an answer is the set of inputs that reach the same leaves. Regions of different answers are disjoint, and their
number is finite, so a solver can prove that only k answers exist. With `diverse`, later answers also lie outside the widened
regions of earlier answers (extensions/answers/regions.py), in which every pair is an answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from treesens.compiler.base.arrays import frozen
from treesens.compiler.base.budget import LEAST, Budget
from treesens.compiler.query.query import AnyOf, CellSet, Constraint, Query, SameExcept
from treesens.compiler.result import Masks, Ranked, Result, Verdict
from treesens.extensions.answers.regions import RegionFinder, box_of_leaves
from treesens.values.verify import Witness


def answer_top(
    query: Query,
    one: Callable[[Query, Budget], Result],
    budget: Budget,
) -> Result:
    """The first of the `query.top` answers; its field `ranked` holds all answers.

    `one` solves a question with one answer. All answers share the time limit. Each search may use an equal share of the
    remaining time, so that the proof of the first answer's optimality does not prevent other answers.
    """
    start = time.monotonic()
    typed = replace(query, top=1, diverse=False)
    apart = Apart(typed)
    found: list[Result] = []
    last: Result | None = None
    reason, patient = "", typed.objective is None
    while len(found) < query.top:
        if last is not None and not budget.worthwhile:
            reason = budget.reason
            break
        part = budget if patient else budget.share(1 / (query.top - len(found)))
        last = one(apart.question(), part.at_least(LEAST))
        if last.verdict is Verdict.FOUND and last.witness is not None:
            found.append(last)
            apart.add(last.witness, diverse=query.diverse)
            patient = typed.objective is None
        elif last.verdict is Verdict.UNKNOWN and not patient:
            patient = True  # this share of the time was too small: use all remaining time
        else:
            break
    assert last is not None
    complete = last.verdict is Verdict.NONE
    if complete:
        reason = f"there are only {len(found)}" if found else "there is none"
    elif len(found) == query.top:
        reason = f"{len(found)} found"
    else:
        reason = reason or last.reason
    found = by_value(found, query)
    ranked = Ranked(tuple(found), query.top, complete, reason, last.proof if complete else None)
    first = found[0] if found else last
    seconds = {**first.seconds, "further": max(0.0, time.monotonic() - start - sum(first.seconds.values()))}
    return replace(first, ranked=ranked, seconds=seconds)


def by_value(found: list[Result], query: Query) -> list[Result]:
    """The answers, sorted by value. If an earlier search was stopped, a later search may find a better answer. In this case
    only the bound of the first search, which excluded no region, is valid for all answers.
    """
    goal = query.objective
    values = [one.objective.value for one in found if one.objective is not None]
    if goal is None or len(values) < len(found):
        return found
    order = sorted(range(len(found)), key=values.__getitem__, reverse=goal.maximize)
    if order == list(range(len(found))):
        return found
    first = found[0].objective
    bound = None if first is None else first.bound
    ranked = [found[i] for i in order]
    return [replace(r, objective=replace(r.objective, bound=bound)) if r.objective else r for r in ranked]


class Apart:
    """The constraints that keep answers out of the regions of earlier answers."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.boxes = [model.leaf_boxes() for model in query.models]
        links = [c for c in query.constraints if isinstance(c, SameExcept)]
        self.links = [c for c in links if {c.left, c.right} == {0, 1}]
        self.constraints: tuple[Constraint, ...] = ()

    def add(self, witness: Witness, *, diverse: bool) -> None:
        """Excludes the region of a witness."""
        region = RegionFinder(self.question()).region(witness.cells) if diverse else None
        leaves: list[Masks] = []
        for number, point in enumerate(self.query.points):
            reached = self.query.models[point.model].leaves(witness.cells[number : number + 1])[0]
            leaves.append(tuple(box_of_leaves(self.boxes[point.model], reached)))
        self.constraints += (self._outside(tuple(leaves)),)
        if region is not None:
            self.constraints += (self._outside(region.boxes),)

    def question(self) -> Query:
        """The question with the constraints that exclude the known regions."""
        return replace(self.query, constraints=(*self.query.constraints, *self.constraints))

    def _outside(self, boxes: tuple[Masks, ...]) -> AnyOf:
        """The constraint that some point is outside its box in some feature; features shared by the points are counted once."""
        parts: list[CellSet] = []
        for point, box in enumerate(boxes):
            for feature, mask in enumerate(box):
                shared = any(feature not in link.varied for link in self.links)
                if shared and point > 0:
                    continue
                inside = mask & boxes[1][feature] if shared else mask
                if (self.query.space.legal[feature] & ~inside).any():
                    parts.append(CellSet(point, feature, frozen(~inside, bool)))
        return AnyOf(tuple(parts))
