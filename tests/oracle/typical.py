"""Which inputs are typical of a table, from docs/language.md alone ("Typical inputs").

Bins, tree and smoothing are written down again here. Ties between the strengths of two pairs of features, and logarithms that
lie between two whole units, are left undecided.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

UNIT = 2.0**-16
CLOSE = 1e-6


class Undecided(Exception):
    """The reference leaves open, to the precision of floats, what the score is."""


def typical(cells: np.ndarray, rows: np.ndarray, level: Fraction, way: str) -> tuple[np.ndarray, np.ndarray]:
    """(sure, may) of cells int[points, features], from the cells of the rows that are inputs of the question."""
    order = np.random.default_rng(0).permutation(len(rows))
    half = (len(rows) + 1) // 2
    learn, rest = rows[order[:half]], rows[order[half:]]
    k = math.floor((1 - level) * (len(rest) + 1))
    assert k >= 1, "the question is drawn such that there are rows enough"
    try:
        score = score_of(learn, way)
        least = np.sort(score(rest))[k - 1]
        different, number = np.unique(cells, axis=0, return_inverse=True)
        truth = np.asarray(score(different) >= least)[number.reshape(-1)]
    except Undecided:
        return np.zeros(len(cells), bool), np.ones(len(cells), bool)
    return truth, truth


def typicality(cells: np.ndarray, rows: np.ndarray, way: str) -> np.ndarray | None:
    """The scores of cells int[points, features] as numbers; None if they are left open."""
    order = np.random.default_rng(0).permutation(len(rows))
    learn = rows[order[: (len(rows) + 1) // 2]]
    try:
        score = score_of(learn, way)
    except Undecided:
        return None
    different, number = np.unique(cells, axis=0, return_inverse=True)
    return np.asarray(score(different), float)[number.reshape(-1)] * UNIT


def score_of(learn: np.ndarray, way: str) -> Any:
    """The score that is learnt from cells of rows; the questions of a case mostly share it."""
    return _score_of(np.ascontiguousarray(learn).tobytes(), learn.shape, learn.dtype.str, way)


@lru_cache(maxsize=16)
def _score_of(cells: bytes, shape: tuple[int, ...], kind: str, way: str) -> Any:
    learn = np.frombuffer(cells, kind).reshape(shape)
    return isolation(learn) if way == "isolation" else chow_liu(learn)


def enough(count: int, level: Fraction) -> bool:
    """Whether so many rows have a region of this level."""
    return math.floor((1 - level) * (count // 2 + 1)) >= 1


# --- a tree of pairs ----------------------------------------------------------------------------------------------------------


def bins(column: list[int]) -> dict[int, int]:
    """The bin of every cell up to the highest one with rows: runs of cells with about as many rows each."""
    count = Counter(column)
    share = max(1.0, len(column) / 16)
    found, number, filled = {}, 0, 0
    for cell in range(max(column) + 1):
        rows = count[cell]
        if filled and rows and filled + rows / 2 > share:
            number, filled = number + 1, 0
        found[cell] = number
        filled += rows
    return found


def units(share: Fraction) -> int:
    exact = (math.log(share.numerator) - math.log(share.denominator)) / UNIT
    if abs(exact - math.floor(exact) - 0.5) < CLOSE:
        raise Undecided
    return round(exact)


def chow_liu(learn: np.ndarray, coded: frozenset[int] = frozenset()) -> Any:
    """The scores of rows of cells. Missing values have to be marked as -1 here; `coded` features have no order."""
    count, width = learn.shape
    groups = [_groups(learn[:, f].tolist(), coded=f in coded) for f in range(width)]
    table = np.array([[groups[f](c) for f, c in enumerate(row)] for row in learn.tolist()])
    parent = _tree(table)
    entries: list[dict[tuple[int, int], int]] = []
    for f in range(width):
        own = Counter(table[:, f].tolist())
        if parent[f] < 0:
            entries.append({(0, g): units(Fraction(n, count)) for g, n in own.items()})
            continue
        above = Counter(table[:, parent[f]].tolist())
        both = Counter(zip(table[:, parent[f]].tolist(), table[:, f].tolist(), strict=True))
        entries.append(
            {
                (u, g): units((both[u, g] + Fraction(m * n, count**2)) / (m + Fraction(m, count)))
                for u, m in above.items() for g, n in own.items()
            }
        )  # fmt: skip
    lost = 1 - sum(min(e.values()) for e in entries)

    def of_row(row: list[int]) -> int:
        own = [groups[f](c) for f, c in enumerate(row)]
        total = 0
        for f, g in enumerate(own):
            u = 0 if parent[f] < 0 else own[parent[f]]
            total += -lost if g is None else 0 if u is None else entries[f][u, g]
        return total

    return lambda rows: np.array([of_row(row) for row in rows.tolist()])


def _groups(column: list[int], *, coded: bool) -> Any:
    """From a cell to its bin: missing is one of its own, None if no row lacks the value. So is each category that rows have."""
    present = [c for c in column if c >= 0]
    kinds = sorted(set(present))
    assert not coded or len(kinds) <= 32, "more categories share bins"
    known = {c: i for i, c in enumerate(kinds)} if coded else bins(present) if present else {}
    last = max(known.values(), default=0)
    lacking = len(present) < len(column)

    def group(cell: int) -> int | None:
        if cell < 0:
            return (last + 1 if present else 0) if lacking else None
        return known.get(cell) if coded else known.get(cell, last)

    return group


def _strength(table: np.ndarray, one: int, two: int) -> float:
    """Mutual information, in nats; nothing with a feature of one bin."""
    if min(len(set(table[:, f].tolist())) for f in (one, two)) == 1:
        return 0.0
    count = len(table)
    first, second = Counter(table[:, one].tolist()), Counter(table[:, two].tolist())
    both = Counter(zip(table[:, one].tolist(), table[:, two].tolist(), strict=True))
    return math.fsum(n / count * math.log(n * count / (first[u] * second[v])) for (u, v), n in both.items())


def _tree(table: np.ndarray) -> list[int]:
    """The parent of every feature, -1 of the first one: the spanning tree of greatest mutual information, if there is one."""
    width = table.shape[1]
    parent, inside = [-1] * width, [0]
    several = [len(set(table[:, f].tolist())) > 1 for f in range(width)]
    while len(inside) < width:
        options = [(_strength(table, u, v), u, v) for u in inside for v in range(width) if v not in inside]
        most = max(strength for strength, _, _ in options)
        near = [(strength, u, v) for strength, u, v in options if strength > most - 1e-9]
        if len(near) > 1 and any(several[u] and several[v] for _, u, v in near):
            raise Undecided  # rounding may choose
        _, u, v = min(near, key=lambda o: (o[2], inside.index(o[1])))
        parent[v] = u
        inside.append(v)
    return parent


# --- an isolation forest ------------------------------------------------------------------------------------------------------


def isolation(learn: np.ndarray) -> Any:
    """The score by scikit-learn's forest, leaf by leaf; cells are numbered, missing last."""
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(n_estimators=100, random_state=0).fit(learn.astype(float))
    trees = []
    for member in forest.estimators_:
        t = member.tree_
        depth = t.compute_node_depths() - 1
        trees.append(
            (t, np.array([_units(depth[i] + mean_depth(int(t.n_node_samples[i]))) for i in range(t.node_count)]))
        )

    def score(rows: np.ndarray) -> np.ndarray:
        x = np.asarray(rows, np.float32)
        return sum(values[t.apply(x)] for t, values in trees)

    return score


def _units(length: float) -> int:
    exact = float(length) / UNIT
    if abs(exact - math.floor(exact) - 0.5) < CLOSE:
        raise Undecided
    return round(exact)


def mean_depth(rows: int) -> float:
    """The mean depth of a random binary tree of so many rows (scikit-learn: `_average_path_length`)."""
    if rows <= 1:
        return 0.0
    if rows == 2:
        return 1.0
    return 2.0 * (math.log(rows - 1.0) + float(np.euler_gamma)) - 2.0 * (rows - 1.0) / rows
