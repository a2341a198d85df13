"""The nearest row of a question about one input: a row that is an answer itself ends the search, whatever the norm."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import treesens as ts
from tests.solve.test_split_disjunction import VALUES, World, world_of
from treesens.binder.file import bind
from treesens.compiler.base.budget import Budget
from treesens.compiler.result import Result
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer

ORDERS = {"l0": 0, "l1": 1, "l2": 2, "linf": np.inf}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_of(tmp_path_factory.mktemp("rows"), 4)


def rows_of(world: World) -> NDArray[np.float64]:
    return np.loadtxt(world.folder / "d.csv", delimiter=",", skiprows=1)[:, :-1]


def nearest(world: World, constraint: str, norm: str) -> Result:
    features = "".join(f"feature f{i}: integer in [0, {VALUES - 1}]\n" for i in range(world.row.size))
    asked = f"query q: find a in m such that {constraint} minimize distance(a, nearest row of d, {norm})"
    text = f'model m from "m.json"\ndata d from "d.csv" label "y"\n{features}{asked}'
    query = bind(parse(text), world.folder)["q"].query
    return answer(query, Options(backend="native", regions=False, tolerance=0.0), Budget.of(60))


@pytest.mark.parametrize("norm", ORDERS)
@pytest.mark.parametrize("place", [-1, -40, -200])
def test_of_many_thresholds_the_nearest_input_is_that_of_brute_force(world: World, norm: str, place: int) -> None:
    ordered = np.unique(world.margins)
    least = float(ordered[place] - ordered[place - 1]) / 2 + float(ordered[place - 1])
    apart = (world.inputs[:, None, :] - rows_of(world)[None, :, :]) / (VALUES - 1)
    distances = np.linalg.norm(np.where(apart == 0, 0, 1) if norm == "l0" else apart, ORDERS[norm] or 1, axis=2)
    expected = distances.min(axis=1)[world.margins >= least].min()
    result = nearest(world, f"margin(a) >= {least!r}", norm)
    assert result.objective is not None
    assert result.objective.value == pytest.approx(expected, abs=1e-6)
    assert result.objective.bound == pytest.approx(expected, abs=1e-6)
    if expected == 0:
        assert result.backend == "rows"
        assert result.witness is not None
        assert (rows_of(world) == result.witness.values[0]).all(axis=1).any()


def test_constraints_on_the_input_hold_for_the_row(world: World) -> None:
    result = nearest(world, "margin(a) >= 0; a.f0 + a.f1 <= 3; not (a.f2 = 1)", "l1")
    assert result.backend == "rows"
    assert result.witness is not None
    row = result.witness.values[0]
    assert row[0] + row[1] <= 3
    assert row[2] != 1
    assert world.margins[(world.inputs == row).all(axis=1)] >= 0
    assert (rows_of(world) == row).all(axis=1).any()


def test_the_objective_is_that_of_the_shown_points(world: World) -> None:
    """Points of a question with a table may move towards a row."""
    features = "".join(f"feature f{i}: integer in [0, {VALUES - 1}]\n" for i in range(world.row.size))
    asked = "query q: find a, b in m such that a = b except f0; margin(a) - margin(b) >= 1 maximize a.f0 - 2 * b.f0"
    text = f'model m from "m"\ndata d from "d" label y\n{features}{asked}'
    files = {"models": {"m": world.folder / "m.json"}, "data": {"d": world.folder / "d.csv"}}
    result = ts.check_text(text, **files)["q"].result
    by_first = world.margins.reshape(VALUES, -1)
    gaps = by_first[:, None] - by_first[None, :]
    reached = (gaps >= 1).any(axis=2)
    assert result.objective is not None
    assert result.objective.value == max(a - 2 * b for a, b in np.argwhere(reached).tolist())
