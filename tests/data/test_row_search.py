"""The search around rows against every pair of cells: nearest pairs, their distances, and bounds when it is cut short."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.questions import every_input, gap, random_ensemble, random_space
from treesens._engine import NearestPairs
from treesens.compiler.base.arrays import FloatArray, Int32Array
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.evaluate import holds
from treesens.compiler.query.query import AtLeast, LinearForm, NearestRows, Point, Query, SameExcept, ScoreTerm
from treesens.data.flips import flip_question
from treesens.extensions.answers import pair_search
from treesens.extensions.answers.clusters import Rows
from treesens.extensions.answers.location import unordered
from treesens.extensions.answers.pair_search import RowSearch

NORMS = ("l0", "l1", "l2", "linf")


def question(seed: int, *, rounds: bool = False) -> tuple[Query, Rows]:
    """A question about flips or about a swing, and rows that lie in cells, outside of the domain, or are missing.

    With `rounds` some leaves are so small that whole numbers of 64 bits do not hold the sums, and it asks for what the best
    pair just reaches.
    """
    rng = np.random.default_rng(seed)
    ensemble = random_ensemble(rng, features=int(rng.integers(2, 4)), trees=int(rng.integers(3, 9)))
    if rounds:
        small = rng.random(ensemble.leaf_value.shape) < 0.5
        ensemble = replace(ensemble, leaf_value=np.where(small, ensemble.leaf_value * 2.0**-60, ensemble.leaf_value))
    space = random_space(rng, ensemble)
    count = len(space.names)
    rows = int(rng.integers(1, 4))
    varied = frozenset(rng.choice(count, size=int(rng.integers(1, count)), replace=False).tolist())
    margin = LogRational(Fraction(int(rng.integers(1, 7)), 8))
    if rng.random() < 0.3:
        swing = LinearForm((ScoreTerm(0, 0, Fraction(1)), ScoreTerm(1, 0, Fraction(-1))))
        asked = [AtLeast(swing, margin)]
    else:
        asked = gap(1, margin)[:: int(rng.choice([-1, 1]))]
    query = Query(
        "q", space, (ensemble.on(space.grid),), (Point("a", 0), Point("b", 0)), (SameExcept(0, 1, varied), *asked)
    )
    if rounds:
        query = replace(query, constraints=(query.constraints[0], *most_of(query, len(asked) > 1)))
    features = tuple(f for f in range(count) if f not in varied)
    columns: list[FloatArray] = []
    for f in features:
        column = (
            rng.integers(0, 3, size=rows).astype(float)
            if space.grid[f].categories
            else rng.uniform(-0.2, 1.3, size=rows)
        )
        column = np.float32(column).astype(np.float64)
        columns.append(np.where(rng.random(rows) < 0.15, np.nan, column))
    nearest = NearestRows(
        0,
        features,
        np.stack(columns, axis=1),
        rng.choice([0.5, 1.0, 2.0], size=len(features)),
        np.array([unordered(space, f) for f in features]),
        np.arange(rows),
        str(rng.choice(NORMS)),
    )
    return query, Rows(space, nearest)


def most_of(query: Query, is_flip: bool) -> list[AtLeast]:
    """The largest gap, or the largest swing, that a pair of the domain reaches, in exact sums."""
    pairs = replace(query, constraints=query.constraints[:1])
    scores = [x.scores for x in every_input(pairs) if good(pairs, x)]
    if is_flip:
        return gap(1, LogRational(max(min(s[0][0], -s[1][0]) for s in scores)))
    swing = LinearForm((ScoreTerm(0, 0, Fraction(1)), ScoreTerm(1, 0, Fraction(-1))))
    return [AtLeast(swing, LogRational(max(s[0][0] - s[1][0] for s in scores)))]


def cost(rows: Rows, row: int, cells: Int32Array) -> float:
    """The distance of cells int32[features] to a row."""
    parts = [d[cells[f]] for d, f in zip(rows.distances(np.array([row])), rows.features, strict=True)]
    match rows.norm:
        case "l2":
            return math.sqrt(sum(p * p for p in parts))
        case "linf":
            return float(max(parts))
        case _:
            return float(sum(parts))


class Known:
    """Takes the pairs that a search offers."""

    def __init__(self, query: Query, rows: Rows) -> None:
        self.query, self.rows = query, rows
        self.pairs = {inputs.cells.tobytes() for inputs in every_input(query) if good(query, inputs)}
        self.value = math.inf

    def offer(self, cells: Int32Array, row: int) -> None:
        assert cells.tobytes() in self.pairs
        self.value = min(self.value, cost(self.rows, row, cells[0]))

    def best(self) -> list[float]:
        """The distance of the nearest pair to every row, by trying all of them."""
        shape = (2, len(self.query.space.names))
        pairs = [np.frombuffer(pair, np.int32).reshape(shape) for pair in self.pairs]
        return [min((cost(self.rows, r, p[0]) for p in pairs), default=math.inf) for r in range(len(self.rows.values))]


def good(query: Query, inputs: object) -> bool:
    return all(holds(constraint, inputs) for constraint in query.constraints)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(80))
@pytest.mark.sampled
def test_the_pair_is_the_nearest_of_all(seed: int) -> None:
    query, rows = question(seed)
    shape = flip_question(query)
    assert shape is not None
    assert shape.only
    search = RowSearch(query, shape, rows)
    assert search.possible
    known = Known(query, rows)
    bound = search.run(np.arange(len(rows.values)), lambda: known.value, known.offer, lambda: 60.0)
    expected = known.best()
    assert known.value == pytest.approx(min(expected), rel=1e-12)
    assert bound == pytest.approx(min(expected), rel=1e-8)
    assert all(proved <= best * (1 + 1e-12) for proved, best in zip(search.proven, expected, strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_bounds_hold_when_the_search_is_cut_short(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few looks at the clock, with few boxes per row."""
    monkeypatch.setattr("treesens.extensions.answers.pair_search._BOXES", 4)
    query, rows = question(1000 + seed)
    shape = flip_question(query)
    assert shape is not None
    search = RowSearch(query, shape, rows)
    known = Known(query, rows)
    expected = known.best()
    looks = iter(range(seed % 12))

    def left() -> float:
        return 60.0 if next(looks, None) is not None else 0.0

    bound = search.run(np.arange(len(rows.values))[::-1].copy(), lambda: known.value, known.offer, left)
    assert known.value >= min(expected) * (1 - 1e-12)
    assert bound <= min(expected) * (1 + 1e-12)
    assert all(proved <= best * (1 + 1e-12) for proved, best in zip(search.proven, expected, strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_sums_that_are_rounded_prove_nothing_that_is_not_so(seed: int) -> None:
    query, rows = question(2000 + seed, rounds=True)
    shape = flip_question(query)
    assert shape is not None
    search = RowSearch(query, shape, rows)
    assert search.slack > 0
    known = Known(query, rows)
    expected = known.best()
    looks = iter(range(30))

    def left() -> float:
        return 60.0 if next(looks, None) is not None else 0.0

    bound = search.run(np.arange(len(rows.values)), lambda: known.value, known.offer, left)
    assert bound <= min(expected) * (1 + 1e-12)
    assert all(proved <= best * (1 + 1e-12) for proved, best in zip(search.proven, expected, strict=True))


def test_the_questions_are_not_trivial() -> None:
    """Distances of 0, positive ones, and no pair at all occur often."""
    best = [min(Known(*question(seed)).best()) for seed in range(60)]
    assert min(sum(b == 0 for b in best), sum(0 < b < math.inf for b in best), sum(b == math.inf for b in best)) >= 5


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("norm", lambda _: 4, "no such norm"),
        ("leaf_value", lambda v: v[:-1], "a leaf is out of range"),
        ("leaf_value", lambda v: np.full_like(v, 1 << 59), "sum to no score"),
        ("varied", np.zeros_like, "no feature is varied"),
        ("own", lambda v: v[:-1], "differ in their rows"),
        ("top", lambda _: (1 << 60) + 1, "a goal is too large"),
        ("legal", lambda v: v[:-1], "cell arrays differ"),
        ("unit", lambda v: v[:-1], "feature arrays differ"),
        ("has_sides", lambda _: False, "nothing is asked"),
    ],
)
def test_the_engine_refuses_arrays_that_do_not_fit(
    name: str, change: Callable[[Any], Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, rows = next((q, r) for q, r in map(question, range(50)) if len(q.constraints) == 3 and len(r.values) > 1)
    shape = flip_question(query)
    assert shape is not None
    made: dict[str, Any] = {}

    def kept(**arrays: Any) -> None:
        made.update(arrays)

    with monkeypatch.context() as patch:
        patch.setattr(pair_search, "NearestPairs", kept)
        RowSearch(query, shape, rows)
    NearestPairs(**made)
    with pytest.raises(ValueError, match=message):
        NearestPairs(**{**made, name: change(made[name])})
