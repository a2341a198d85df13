"""Shares with `onehot` groups: against sums over the valid inputs alone, each predicted by the library."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.corpus import boosted, margins_of
from tests.extensions.measure.test_learnt import probability
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import FeatureGrid, Grid
from treesens.data.tables import read_table
from treesens.errors import UsageError
from treesens.extensions.measure.counted import counted_of
from treesens.extensions.measure.measure import chow_liu
from treesens.extensions.measure.measures import MeasureName, measure_of
from treesens.extensions.measure.search import CONCERNED, ShareSearch
from treesens.extensions.studies.count import CountOptions
from treesens.extensions.studies.count_search import Unit, ask, units_of
from treesens.extensions.studies.events import gaps_of
from treesens.extensions.studies.study import Asking
from treesens.grammar.parsing.parser import parse
from treesens.grammar.tree import ast
from treesens.python.questions import load
from treesens.records.plain import plain

GROUP = ["red", "green", "blue"]
NAMES = ["age", "green", "hours", "red", "blue"]
"""Members stand apart from each other, and in another order than that of their declaration."""
VALUES = 4
DOMAIN = tuple(item for item in parse("onehot {red, green, blue}\n").declarations if isinstance(item, ast.OneHot))
SIZE = 0.317


def frame_of(random: np.random.Generator, rows: int = 120) -> pd.DataFrame:
    colour = random.integers(0, 3, rows)
    age = (colour + random.integers(0, 3, rows)) % VALUES
    columns = {"age": age, "hours": (age + random.integers(0, 2, rows)) % VALUES}
    columns |= {name: colour == i for i, name in enumerate(GROUP)}
    return pd.DataFrame(columns)[NAMES].astype(np.float64)


def model_of(random: np.random.Generator, frame: pd.DataFrame) -> Any:
    """A booster, and its margins of rows."""
    label = (frame.to_numpy() @ random.normal(size=len(NAMES)) + random.normal(size=len(frame)) > 0).astype(int)
    booster = boosted(frame, label, int(random.integers(2, 6)), base_score=0.5, eta=0.9)
    return load(booster), lambda rows: margins_of(booster, pd.DataFrame(rows, columns=NAMES))


def row(age: float, hours: float, colour: int) -> list[float]:
    values = {"age": age, "hours": hours, **{name: float(i == colour) for i, name in enumerate(GROUP)}}
    return [values[name] for name in NAMES]


def flips(margins: Any, choices: list[list[float]]) -> bool | None:
    """Whether some choice is high and another one low; None if rounding could decide it."""
    found = margins(np.array(choices))
    sure = [bool((found >= s).any() and (found <= -s).any()) for s in (SIZE - 1e-4, SIZE + 1e-4)]
    return sure[0] if sure[0] == sure[1] else None


def concerned(margins: Any, varied: tuple[str, ...]) -> dict[tuple[int, int, int], bool | None]:
    """By (age, hours, colour), whether the varied features flip it; the others are as they are."""
    found = {}
    for age, hours, colour in product(range(VALUES), range(VALUES), range(3)):
        ages = range(VALUES) if "age" in varied else [age]
        colours = range(3) if set(GROUP) <= set(varied) else [colour]
        found[age, hours, colour] = flips(margins, [row(a, hours, c) for a in ages for c in colours])
    return found


def unit_of(model: Any, frame: pd.DataFrame, varied: tuple[str, ...], **options: Any) -> Unit:
    settings = CountOptions(domain=DOMAIN, **options)
    return units_of(model, read_table(frame), [list(varied)], gaps_of([], [str(SIZE)]), settings)[0]


def shares_of(frame: pd.DataFrame, measure: MeasureName, grid: Grid) -> dict[tuple[int, int, int], float]:
    """The probability of every valid input, from the table alone; the group is one column of colours."""
    colour = frame[GROUP].to_numpy().argmax(axis=1)
    columns = [frame["age"].astype(int), frame["hours"].astype(int), colour]
    places = list(product(range(VALUES), range(VALUES), range(3)))
    if measure == "uniform":
        return {p: 1 / len(places) for p in places}
    if measure == "marginals":
        return {p: float(np.prod([np.mean(c == v) for c, v in zip(columns, p, strict=True)])) for p in places}
    # A tree is learnt of cells: those of the model's thresholds, and a cell per colour.
    grids = [grid[NAMES.index(name)] for name in ("age", "hours")]
    cells = [of.cell_of(np.arange(float(VALUES))).tolist() for of in grids]
    rows = np.stack([*(np.take(c, column) for c, column in zip(cells, columns, strict=False)), colour], axis=1)
    colours = FeatureGrid("colour", NumberType.FLOAT32, np.zeros(0), categories=2)
    learnt = chow_liu(rows.astype(np.int32), Grid((*grids, colours)))
    return {
        (a, h, c): probability(learnt, (cells[0][a], cells[1][h], c))
        / (cells[0].count(cells[0][a]) * cells[1].count(cells[1][h]))
        for a, h, c in places
    }


SETS = [("age",), ("red",), tuple(GROUP), ("age", *GROUP), ("green", "hours")]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled
def test_shares_are_those_of_valid_inputs(seed: int) -> None:
    random = np.random.default_rng(seed)
    frame = frame_of(random)
    model, margins = model_of(random, frame)
    asked = 0
    for varied in SETS[:4]:
        found = concerned(margins, varied)
        if None in found.values():
            continue
        unit = unit_of(model, frame, varied)
        counted = counted_of(unit.question.query)
        for measure in ("uniform", "marginals", "chow-liu"):
            truth = sum(
                p for place, p in shares_of(frame, measure, unit.question.query.space.grid).items() if found[place]
            )  # type: ignore[arg-type]
            mass = measure_of(measure, unit.question)
            for boxes in (1, 2, 5, 10**6):
                search = ShareSearch(counted.trees, counted.sides, mass)  # type: ignore[arg-type]
                search.run(30.0, most_boxes=boxes)
                masses = search.masses()
                assert masses.lower - 1e-9 <= truth <= masses.upper + 1e-9
            assert masses.upper - masses.lower < 1e-9
            asked += 1
    assert asked


@pytest.mark.parametrize("seed", range(4))
def test_rows_and_draws_are_valid(seed: int) -> None:
    """Rows that break the group are left out, and what is drawn keeps to it."""
    random = np.random.default_rng(50 + seed)
    frame = frame_of(random)
    model, margins = model_of(random, frame)
    broken = pd.concat([frame, frame.iloc[:7].assign(red=1.0, green=1.0)], ignore_index=True)
    settings = CountOptions(measure="rows", vary=[["age"]], margin=[str(SIZE)], domain=DOMAIN)
    (record,) = map(plain, ask(Asking((model,), read_table(broken), settings)).records)
    found = concerned(margins, ("age",))
    colour = frame[GROUP].to_numpy().argmax(axis=1)
    places = zip(frame["age"].astype(int), frame["hours"].astype(int), colour.tolist(), strict=True)
    assert (record["rows"], record["rows_outside"]) == (len(frame), 7)
    assert record["rows_concerned"] == sum(bool(found[p]) for p in places)
    unit = unit_of(model, frame, ("age",))
    counted = counted_of(unit.question.query)
    search = ShareSearch(counted.trees, counted.sides, measure_of("chow-liu", unit.question))
    search.run(10.0, most_boxes=2)
    hits = counted.groups.unfolded_rows(search.sample(500, 3, 500).hits)
    grid = unit.question.query.space.grid
    ones = [grid[NAMES.index(n)].cell_of(np.array([1.0]))[0] for n in GROUP]
    members = hits[:, [NAMES.index(n) for n in GROUP]] == ones
    assert (members.sum(axis=1) == 1).all()
    folded = counted.groups.folded_rows(hits)
    assert (search.answers(folded) == CONCERNED).all()


def test_a_group_is_varied_as_a_whole() -> None:
    random = np.random.default_rng(3)
    frame = frame_of(random)
    model, _ = model_of(random, frame)
    with pytest.raises(UsageError, match="a whole `onehot` group") as told:
        counted_of(unit_of(model, frame, ("red", "blue")).question.query)
    assert "`red`, `green`, `blue`" in told.value.remedy


def test_a_member_alone_changes_nothing_and_other_features_still_do() -> None:
    random = np.random.default_rng(8)
    frame = frame_of(random)
    model, _ = model_of(random, frame)
    options = CountOptions(vary=[["red"], ["green", "hours"], ["hours"]], margin=["0.01"], domain=DOMAIN)
    records = [plain(one) for one in ask(Asking((model,), read_table(frame), options)).records]
    assert records[0]["upper"] == 0.0
    assert (records[1]["lower"], records[1]["upper"]) == (records[2]["lower"], records[2]["upper"])
    assert records[2]["lower"] > 0


def test_boxes_name_members_as_they_are() -> None:
    """Every valid input inside the words of a full box is concerned."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        frame = frame_of(random)
        model, margins = model_of(random, frame)
        options = CountOptions(vary=[["age"]], margin=[str(SIZE)], domain=DOMAIN)
        (record,) = map(plain, ask(Asking((model,), read_table(frame), options)).records)
        boxes = [box for box in record["boxes"] if set(box["where"]) & set(GROUP)]
        if not boxes:
            continue
        found = concerned(margins, ("age",))
        for box in boxes:
            inside = [p for p in found if _inside(box["where"], dict(zip(NAMES, row(*p), strict=True)))]
            assert inside
            assert all(found[p] is not False for p in inside)
            assert box["share"] == pytest.approx(len(inside) / len(found))
        return
    raise AssertionError("no box names a member")


def _inside(where: dict[str, str], values: dict[str, float]) -> bool:
    for name, words in where.items():
        relation, text = words.split(" ", 1)
        low, high = (float(t) for t in text.strip("[]").split(", ")) if relation == "in" else (float(text),) * 2
        value = values[name]
        if not {">=": value >= low, "<=": value <= high, "=": value == low, "in": low <= value <= high}[relation]:
            return False
    return True
