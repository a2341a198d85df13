"""Decisions: drawn, written as declarations, and judged case by case.

    ["decided", D, op, outcome]   decision(P, D) = OUTCOME    ["alike", D, op, D]   decision(P, D) != decision(Q, E)

A decision D is [name, point, model, [[outcome, constraint], ..], otherwise].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tests.oracle.questions import Draw

Node = list[Any]
Truth = tuple[np.ndarray, np.ndarray]
OUTCOMES = ("approve", "refer", "decline")


def draw_decision(d: Draw, point: list[str], draw: Any) -> Node:
    """Up to three cases, whose constraints `draw` makes of the point alone."""
    cases = [[str(d.pick(OUTCOMES)), draw(d, [point])] for _ in range(int(d.rng.integers(1, 4)))]
    name = f"D{int(d.rng.integers(1 << 30))}"
    return [name, *point, cases, str(d.pick(OUTCOMES))]


def outcomes(decision: Node) -> list[str]:
    """The outcomes of a decision, in the order in which they are named."""
    return list(dict.fromkeys([*(outcome for outcome, _ in decision[3]), decision[4]]))


def draw_decided(d: Draw, points: list[list[str]], draw: Any) -> Node:
    """A comparison with an outcome, or of two decisions."""
    one, op = draw_decision(d, d.pick(points), draw), d.pick(["=", "!="])
    if d.chance(0.4):
        return ["alike", one, op, draw_decision(d, d.pick(points), draw)]
    return ["decided", one, op, str(d.pick(sorted(outcomes(one))))]


def declared(nodes: list[Node]) -> Iterator[Node]:
    """The decisions of some constraints."""
    for node in nodes:
        kind, *rest = node
        if kind in ("and", "or"):
            yield from declared(rest[0])
        elif kind in ("not", "implies"):
            yield from declared(rest)
        elif kind in ("decided", "alike"):
            yield from (part for part in rest if isinstance(part, list))


def declaration(decision: Node, write: Any) -> str:
    """The text of a declaration; `write` is that of a constraint."""
    name, point, model, cases, otherwise = decision
    lines = "".join(f"  {outcome} when {write(node)}\n" for outcome, node in cases)
    return f"decision {name} of {point} in {model}:\n{lines}  else {otherwise}\n"


def text(left: Node, op: str, right: Any) -> str:
    other = right if isinstance(right, str) else f"decision({right[1]}, {right[0]})"
    return f"decision({left[1]}, {left[0]}) {op} {other}"


def truth(decision: Node, outcome: str, holds: Any) -> Truth:
    """Whether a point has an outcome, surely and perhaps: each case that gives it, after all before it have failed."""
    *_, cases, otherwise = decision
    judged = [holds(node) for _, node in cases]
    size = len(judged[0][0])
    sure, may = np.zeros(size, bool), np.zeros(size, bool)
    reached: Truth = np.ones(size, bool), np.ones(size, bool)
    for (named, _), (here, perhaps) in zip(cases, judged, strict=True):
        if named == outcome:
            sure |= reached[0] & here
            may |= reached[1] & perhaps
        reached = reached[0] & ~perhaps, reached[1] & ~here
    if otherwise == outcome:
        sure, may = sure | reached[0], may | reached[1]
    return sure, may


def alike(left: Node, right: Node, holds: Any) -> Truth:
    """Whether two points have one outcome, surely and perhaps."""
    pairs = [(truth(left, o, holds), truth(right, o, holds)) for o in OUTCOMES]
    sure = np.logical_or.reduce([one[0] & other[0] for one, other in pairs])
    return sure, np.logical_or.reduce([one[1] & other[1] for one, other in pairs])
