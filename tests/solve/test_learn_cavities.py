"""`avoid cavities(..., limit = all)` against every input, whose scores the library itself predicts."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.data.test_learn_cavities import in_a_cavity, rows_in
from tests.solve.test_split_disjunction import VALUES, World, world_of
from treesens.binder.file import bind
from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.query.known_cavities import all_cavities_in
from treesens.compiler.query.query import Query
from treesens.compiler.result import Verdict
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer, with_certificates

Mask = NDArray[np.bool_]
OPTIONS = Options(backend="native", regions=False, tolerance=0.0, time_limit=60)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_of(tmp_path_factory.mktemp("cavities"), 5)


def query_of(world: World, rows: int, text: str) -> Query:
    features = "".join(f"feature f{i}: integer in [0, {VALUES - 1}]\n" for i in range(world.row.size))
    head = f'model m from "m.json"\ndata d from "d.csv" label "y" rows {rows}\n{features}query q: find {text}'
    return bind(parse(head), world.folder)["q"].query


def cells_of(world: World, query: Query, rows: int) -> Int32Array:
    """The cells of the model that hold the first rows of the table."""
    table = np.loadtxt(world.folder / "d.csv", delimiter=",", skiprows=1)[:rows, :-1]
    return query.models[0].ensemble.grid().cells(table.astype(np.float32))


def outside(world: World, query: Query, rows: int, width: int) -> Mask:
    """Which inputs lie in no cavity, by their cells, as the definition says."""
    cells = cells_of(world, query, rows)
    points = query.models[0].ensemble.grid().cells(world.inputs.astype(np.float32))
    return np.array([not in_a_cavity(cells, point, width) for point in points])


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("rows", [20, 300])
@pytest.mark.sampled
def test_the_best_input_outside_of_all_cavities(world: World, rows: int, width: int) -> None:
    text = f"a such that a.f0 <= 2; a avoid cavities(d, width = {width}, limit = all) maximize margin(a)"
    query = query_of(world, rows, text)
    admitted = outside(world, query, rows, width) & (world.inputs[:, 0] <= 2)
    result = answer(query, OPTIONS)
    assert result.verdict is Verdict.FOUND
    assert result.objective is not None
    best = world.margins[admitted].max()
    assert result.objective.value == pytest.approx(best, abs=1e-5)
    assert result.objective.bound == pytest.approx(best, abs=1e-4)
    place = np.flatnonzero((world.inputs == result.witness.values[0]).all(axis=1)) if result.witness else []
    assert admitted[place].all()


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("margin", [0.5, 1.5, 2.5, 4.0])
@pytest.mark.sampled
def test_pairs_outside_of_all_cavities(world: World, width: int, margin: float) -> None:
    text = f"a, b such that a = b except f0; margin(a) >= {margin}; margin(b) <= -{margin}; "
    query = query_of(world, 60, text + f"a, b avoid cavities(d, width = {width}, limit = all)")
    free = outside(world, query, 60, width)
    high, low = free & (world.margins >= margin), free & (world.margins <= -margin)
    rest = {tuple(row) for row in world.inputs[high][:, 1:]} & {tuple(row) for row in world.inputs[low][:, 1:]}
    result = answer(query, OPTIONS)
    assert result.verdict is (Verdict.FOUND if rest else Verdict.NONE)
    for constraint in all_cavities_in(query.constraints):
        for box in constraint.cavities.known:
            assert rows_in(cells_of(world, query, 60), box) == 0
    if result.witness is not None:
        a, b = (np.flatnonzero((world.inputs == point).all(axis=1))[0] for point in result.witness.values)
        assert high[a]
        assert low[b]


def test_inside_a_formula(world: World) -> None:
    query = query_of(world, 20, "a such that a avoid cavities(d, width = 5) or margin(a) >= 90 maximize margin(a)")
    result = answer(query, OPTIONS)
    assert result.objective is not None
    assert result.objective.value == pytest.approx(world.margins[outside(world, query, 20, 5)].max(), abs=1e-5)


def test_all_inputs_of_a_whole_table_are_free(world: World, tmp_path: Path) -> None:
    """Where every combination of values is a row there is no cavity."""
    lines = [",".join(f"f{i}" for i in range(5))]
    lines += [",".join(map(str, row)) for row in itertools.product(range(VALUES), repeat=5)]
    (tmp_path / "all.csv").write_text("\n".join(lines))
    text = f'model m from "{world.folder}/m.json"\ndata d from "all.csv"\n'
    text += "query q: find a such that margin(a) >= 0; a avoid cavities(d, width = 5)"
    result = answer(bind(parse(text), tmp_path)["q"].query, OPTIONS)
    assert result.verdict is Verdict.FOUND
    assert not any("learnt" in note for note in result.notes)


def test_bounds_and_proofs_have_certificates(world: World, tmp_path: Path) -> None:
    """Proofs state the cavities that were learnt: one with fewer constraints is one of the question, too. An answer names the
    cells of rows that show it to lie in none.
    """
    options = replace(OPTIONS, certificates=tmp_path, tolerance=0.0)
    avoids = "a avoid cavities(d, width = 4, limit = all)"
    query = query_of(world, 60, f"a such that {avoids} maximize margin(a)")
    best = world.margins[outside(world, query, 60, 4)].max()
    found = with_certificates(query, answer(query, options), options, options.budget())
    assert [bool(c.path) for c in found.certificates] == [True, True], found.certificates
    query = query_of(world, 60, f"a such that {avoids}; margin(a) >= {best + 0.01}")
    none = with_certificates(query, answer(query, options), options, options.budget())
    assert none.verdict is Verdict.NONE
    assert [bool(c.path) for c in none.certificates] == [True], none.certificates
