"""The answer of a question by brute force over the complete domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.oracle.language import Node
from tests.oracle.meaning import Points, Rows, Setting, holds, quantity
from tests.oracle.spaces import Space

MOST_PAIRS = 1_500_000
CHEAP = ("compare", "class", "classes", "category", "abs", "missing")
"""Constraints that are judged first, since they touch few features."""


class TooManyPairs(Exception):
    """The question has more pairs than are judged."""


@dataclass
class World:
    """Everything that the questions of one batch are about."""

    space: Space
    points: Mapping[str, Points]
    """By name of the model: the complete domain, evaluated."""
    tables: Mapping[str, Rows]
    groups: dict[tuple[str, ...], np.ndarray] = field(default_factory=dict)
    known: dict[bytes, int] | None = None

    def place(self, values: Sequence[int]) -> int | None:
        """The place of a point among all, by the places of its values; None if a one-hot group excludes it."""
        if self.known is None:
            self.known = {row.tobytes(): place for place, row in enumerate(self.space.grid)}
        return self.known.get(np.asarray(values, np.int32).tobytes())

    def group(self, free: Sequence[str]) -> np.ndarray:
        """int[points]: the same number for points that agree on all features but the free ones."""
        key = tuple(sorted(free))
        if key not in self.groups:
            kept = [i for i, f in enumerate(self.space.features) if f.name not in free]
            if kept:
                _, number = np.unique(self.space.grid[:, kept], axis=0, return_inverse=True)
                self.groups[key] = number.reshape(-1)
            else:
                self.groups[key] = np.zeros(self.space.size, np.int64)
        return self.groups[key]


@dataclass
class Truths:
    """All pairs (or points) that may satisfy a question, which of them do for sure, and their objective."""

    setting: Setting
    sure: np.ndarray
    objective: np.ndarray | None
    band: float

    @property
    def count(self) -> int:
        return len(self.sure)


def left_out(question: dict[str, Any]) -> frozenset[str]:
    """The sensitive features: those after `a = b except` where the points must be equal otherwise."""
    free: set[str] = set()
    for node in question["constraints"]:
        if node[0] == "equal":
            free |= set(node[3])
    return frozenset(free)


def mentioned(node: Node) -> set[str]:
    """The points that a constraint speaks of."""
    if isinstance(node, list):
        return set().union(*(mentioned(n) for n in node)) if node else set()
    return {node} if node in ("a", "b") else set()


def judge_all(
    world: World, question: dict[str, Any], only: np.ndarray | None = None, *, exact: bool = False,
    rational: bool = False,
) -> Truths:  # fmt: skip
    """Every pair that may satisfy the question; `only` (places of points) restricts `a`; `exact` takes the library's word,
    `rational` that of exact sums.
    """
    names = [p for p, _ in question["points"]]
    points = {p: world.points[m] for p, m in question["points"]}
    everything = np.arange(world.space.size)
    places = {p: everything if only is None or p != "a" else only for p in names}
    certain = {p: np.ones(world.space.size, bool) for p in names}
    out = left_out(question)
    together = []
    for node in (*question["constraints"], *present(question)):
        who = mentioned(node) & set(names)
        if len(who) > 1:
            together.append(node)
            continue
        p = next(iter(who), names[0])
        alone = Setting(
            world.space.features, {p: points[p]}, {p: places[p]}, world.tables, out, exact=exact, rational=rational
        )
        sure, may = holds(node, alone)
        certain[p][places[p][~sure]] = False
        places[p] = places[p][may]
    at = {"a": places["a"]} if len(names) == 1 else pairs(world, places, together)
    sure = np.logical_and.reduce([certain[p][x] for p, x in at.items()])
    for node in sorted(together, key=lambda n: n[0] not in CHEAP):
        s = Setting(world.space.features, points, at, world.tables, out, exact=exact, rational=rational)
        yes, maybe = holds(node, s)
        sure, at = (sure & yes)[maybe], {p: x[maybe] for p, x in at.items()}
    s = Setting(world.space.features, points, at, world.tables, out, exact=exact, rational=rational)
    objective, band = objective_of(question, s) if question.get("objective") else (None, 0.0)
    return Truths(s, sure, objective, band)


def present(question: dict[str, Any]) -> list[Node]:
    """A sum of features is maximised over inputs of which none of them is missing (docs/language.md, objectives)."""
    terms = question["objective"][1] if question.get("objective") else []
    return [["not", ["missing", term[1], term[2]]] for _, term in terms if term[0] == "feature"]


def objective_of(question: dict[str, Any], s: Setting) -> tuple[np.ndarray, float]:
    """The objective per pair: a likelihood as its logarithm, as reports have it."""
    terms = question["objective"][1]
    if terms[0][1][0] == "likelihood":
        return np.log(quantity(s, terms[0][1])[0]), 1e-8
    parts = [(float(c), *quantity(s, t)) for c, t in terms]
    value = np.sum([c * x for c, x, _ in parts], axis=0)
    return value, sum(abs(c) * band for c, _, band in parts) + 1e-9


def pairs(world: World, places: Mapping[str, np.ndarray], together: Sequence[Node]) -> dict[str, np.ndarray]:
    """All pairs of the places, but for those that an equality of the two points excludes."""
    x, y = places["a"], places["b"]
    equal = next((n for n in together if n[0] == "equal"), None)
    if equal is None:
        if len(x) * len(y) > MOST_PAIRS:
            raise TooManyPairs
        return {"a": np.repeat(x, len(y)), "b": np.tile(y, len(x))}
    group = world.group(equal[3])
    order = np.argsort(group[y], kind="stable")
    y, keys = y[order], group[y][order]
    first, last = np.searchsorted(keys, group[x], "left"), np.searchsorted(keys, group[x], "right")
    lengths = last - first
    if lengths.sum() > MOST_PAIRS:
        raise TooManyPairs
    start = np.repeat(first - np.concatenate([[0], np.cumsum(lengths)[:-1]]) if len(lengths) else first, lengths)
    return {"a": np.repeat(x, lengths), "b": y[start + np.arange(lengths.sum())]}


def best(truths: Truths, sense: str) -> tuple[float | None, float | None]:
    """The optimum over what holds for sure, and over all that may hold."""
    if truths.objective is None or not truths.count:
        return None, None
    take = np.max if sense == "maximize" else np.min
    sure = truths.objective[truths.sure]
    return (float(take(sure)) if len(sure) else None), float(take(truths.objective))


def regions(question: dict[str, Any], truths: Truths) -> np.ndarray | None:
    """int[pairs]: the leaves that each pair reaches in all trees, as one number; None if a library does not tell."""
    parts = []
    for p, _ in question["points"]:
        points = truths.setting.points[p]
        if points.leaves is None:
            return None
        _, numbers = np.unique(points.leaves, axis=0, return_inverse=True)
        parts.append(numbers.reshape(-1)[truths.setting.at[p]])
    return parts[0] if len(parts) == 1 else parts[0] * (parts[1].max(initial=0) + 1) + parts[1]


def count_rows(world: World, question: dict[str, Any]) -> tuple[int, int, int]:
    """(rows that answer for sure, that may answer, that lie outside the domain)."""
    rows = world.tables[question["count"]]
    sure = may = 0
    asked: dict[int, tuple[bool, bool]] = {}
    for row in np.nonzero(rows.inside)[0]:
        place = world.place(rows.places[row])
        assert place is not None
        if place not in asked:
            truths = judge_all(world, question, np.array([place]))
            asked[place] = bool(truths.sure.any()), truths.count > 0
        sure += asked[place][0]
        may += asked[place][1]
    return sure, may, int((~rows.inside).sum())
