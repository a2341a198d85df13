"""What a study is asked, and what is true of it: decisions, and groups of inputs that agree on all but the varied features.

Written from docs/cli.md, docs/data.md and docs/measures.md; nothing of treesens is here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tests.oracle.brute import World
from tests.oracle.language import Node
from tests.oracle.meaning import Points, Setting, Truth, against, holds
from tests.oracle.models import Model, quoted_class

Wrong = Callable[[str, str], None]
SLACK = 1e-9


@dataclass
class Study:
    """One call of a study: its name, its arguments, and how it is made."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    printed: bool = False
    """Whether it is asked on the command line, with `--json`."""
    frame: Any = None
    """The table, if it is not that of the case."""

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in self.arguments.items())
        return f"{self.name}({shown})" + (" on the command line" if self.printed else "")


@dataclass
class Asked:
    """How a decision is asked for: the unit and the sizes (exact decimals), a cut-off, classes."""

    kind: str
    """gap or margin."""
    sizes: list[str]
    threshold: str | None = None
    classes: list[str] = field(default_factory=list)

    def arguments(self, *, sizes: bool = True) -> dict[str, Any]:
        out: dict[str, Any] = {self.kind: [float(s) for s in self.sizes]} if sizes else {}
        if self.threshold is not None:
            out["threshold"] = float(self.threshold)
        if self.classes:
            out["classes"] = list(self.classes)
        return out


@dataclass
class Decision:
    """Two sides that one point each has to reach (`around`, `between`), or one score of two points that lie apart (`apart`)."""

    model: Model
    form: str
    kind: str
    classes: tuple[str, ...] = ()
    """The class whose score counts, or the two between which changes count."""
    threshold: str | None = None

    def sides(self, size: Fraction) -> tuple[Node, Node]:
        """What the points `a` and `b` have to satisfy."""
        if self.form == "between":
            how = ("margin", str(size)) if size else ("", "")
            return ["class", "a", "=", quoted_class(self.classes[0]), *how], [
                "class", "b", "=", quoted_class(self.classes[1]), *how,
            ]  # fmt: skip
        if size == 0 and self.threshold is None:
            one, other = self.positive, next(c for c in self.model.classes if c != self.positive)
            return ["class", "a", "=", quoted_class(one), "", ""], ["class", "b", "=", quoted_class(other), "", ""]
        centre = Fraction(0) if self.kind == "margin" else Fraction(self.threshold or "1/2")
        terms = [
            ["margin", p, None] if self.kind == "margin" else ["prob", p, quoted_class(self.positive)] for p in "ab"
        ]
        low = "<=" if size else "<"
        return (
            ["compare", [["1", terms[0]]], ">=", [[str(centre + size), ["one"]]]],
            ["compare", [["1", terms[1]]], low, [[str(centre - size), ["one"]]]],
        )

    @property
    def positive(self) -> str:
        return self.classes[0] if self.classes else self.model.classes[1]

    def score(self, points: Points) -> np.ndarray:
        """What swings and gaps are about: a raw score, a forest's probability, a value; of two classes the lead."""
        if self.form == "between":
            one, two = (self.model.class_of(quoted_class(c)) for c in self.classes)
            return np.asarray(points.margins[:, one] - points.margins[:, two])
        if self.model.kind == "regression":
            return points.margins[:, 0]
        place = self.model.class_of(quoted_class(self.positive))
        if points.margins.shape[1] > 1:
            return points.margins[:, place]
        return points.margins[:, 0] if place == 1 else -points.margins[:, 0]

    def centre(self) -> float:
        """The cut-off in the units of the score."""
        if self.model.linear:
            return float(Fraction(self.threshold or "1/2"))
        if self.threshold is None:
            return 0.0
        return math.log(Fraction(self.threshold) / (1 - Fraction(self.threshold)))


def decisions_of(model: Model, asked: Asked) -> list[Decision]:
    """The decisions that a study of this model has a record for, each (docs/cli.md, audit)."""
    if model.kind == "regression":
        return [Decision(model, "apart", asked.kind)]
    if len(model.classes) == 2:
        return [Decision(model, "around", asked.kind, tuple(asked.classes), asked.threshold)]
    if len(asked.classes) == 1:
        form = "apart" if asked.threshold is None else "around"
        return [Decision(model, form, asked.kind, tuple(asked.classes), asked.threshold)]
    names = [c for c in model.classes if not asked.classes or c in asked.classes]
    return [Decision(model, "between", asked.kind, (c, d)) for i, c in enumerate(names) for d in names[i + 1 :]]


def alone(world: World, points: Points, node: Node, p: str) -> Truth:
    """The truth of a constraint on one point, for every input."""
    s = Setting(world.space.features, {p: points}, {p: np.arange(world.space.size)}, world.tables)
    return holds(node, s)


class Groups:
    """Inputs that agree on all but the varied features."""

    def __init__(self, world: World, varied: Sequence[str]) -> None:
        _, number = np.unique(world.group(sorted(varied)), return_inverse=True)
        self.number = number.reshape(-1)
        self.count = int(self.number.max()) + 1

    def any(self, truth: np.ndarray) -> np.ndarray:
        """bool[groups]."""
        return np.bincount(self.number[truth], minlength=self.count) > 0

    def largest(self, values: np.ndarray) -> np.ndarray:
        """float64[groups]."""
        out = np.full(self.count, -np.inf)
        np.maximum.at(out, self.number, values)
        return out

    def concerned(self, world: World, points: Points, decision: Decision, size: Fraction) -> Truth:
        """(sure, may): bool[groups] that hold both sides."""
        if decision.form == "apart":
            score = decision.score(points)
            width = self.largest(score) + self.largest(-score)
            slack = 2 * points.band + (SLACK if points.band else 0.0)
            return against(width - float(size), ">=", slack)
        one, two = (alone(world, points, n, p) for n, p in zip(decision.sides(size), "ab", strict=True))
        return self.any(one[0]) & self.any(two[0]), self.any(one[1]) & self.any(two[1])


def largest_gap(world: World, points: Points, decision: Decision, varied: Sequence[str]) -> float:
    """The greatest size for which some group holds both sides (docs/cli.md, gap)."""
    groups = Groups(world, varied)
    if decision.form == "between":
        leads = [points.model.lead(points.margins, points.model.class_of(quoted_class(c))) for c in decision.classes]
        return float(np.minimum(*(groups.largest(lead) for lead in leads)).max())
    score = decision.score(points)
    if decision.form == "apart":
        return float((groups.largest(score) + groups.largest(-score)).max())
    centre = decision.centre()
    return float(np.minimum(groups.largest(score - centre), groups.largest(centre - score)).max())


def gap_of_pair(decision: Decision, a: Points, b: Points) -> float:
    """The size that a pair reaches."""
    if decision.form == "between":
        model = decision.model
        one, two = (model.class_of(quoted_class(c)) for c in decision.classes)
        return float(min(model.lead(a.margins, one)[0], model.lead(b.margins, two)[0]))
    high, low = decision.score(a)[0], decision.score(b)[0]
    if decision.form == "apart":
        return float(high - low)
    return float(min(high - decision.centre(), decision.centre() - low))
