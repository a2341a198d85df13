"""Disjunctions that are answered case by case: against every pair of inputs, whose scores the library itself predicts."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.corpus import boosted, margins_of
from treesens.binder.file import bind
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.cases import cases_of_one
from treesens.compiler.query.query import Query
from treesens.compiler.result import Proof, Result, Verdict
from treesens.grammar.parsing.parser import parse
from treesens.solve.methods.steps import answer_by_cases
from treesens.solve.options import Options
from treesens.solve.question import answer

VALUES, ROW = 5, 3
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """A model in a file, and what the library says of all inputs."""

    folder: Path
    inputs: Matrix
    margins: Matrix
    row: Matrix

    @property
    def changes(self) -> NDArray[np.int64]:
        """In how many features every two inputs differ."""
        return (self.inputs[:, None, :] != self.inputs[None, :, :]).sum(axis=2)

    def query(self, text: str) -> Query:
        names = [f"f{i}" for i in range(self.row.size)]
        features = "".join(f"feature {name}: integer in [0, {VALUES - 1}]\n" for name in names)
        head = f'model m from "m.json"\ndata d from "d.csv" label "y"\n{features}\nquery q:\n  find a, b such that\n'
        return bind(parse(head + text), self.folder)["q"].query


def world_of(folder: Path, n_features: int) -> World:
    rng = np.random.default_rng(5)
    x = rng.integers(0, VALUES, (300, n_features)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] - 2 * x[:, 2] + x[:, 3] > 2).astype(np.int64)
    names = [f"f{i}" for i in range(n_features)]
    booster = boosted(x, y, 8, names=names, path=folder / "m.json", base_score=0.5, eta=0.5)
    lines = [
        ",".join([*names, "y"]),
        *(",".join(map(str, [*map(int, row), label])) for row, label in zip(x, y, strict=True)),
    ]
    (folder / "d.csv").write_text("\n".join(lines))
    inputs = np.array(list(itertools.product(range(VALUES), repeat=n_features)), np.float32)
    margins = margins_of(booster, inputs)
    return World(folder, inputs.astype(float), np.asarray(margins, float), x[ROW].astype(float))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_of(tmp_path_factory.mktemp("cases"), 4)


def by_cases(query: Query) -> Result:
    """The answer from the cases alone, without a search over the whole question."""
    options = Options(backend="native", regions=False)
    cases = cases_of_one(query)
    assert len(cases) == 2
    return answer_by_cases(query, options, cases, lambda case, part: answer(case, options, part), Budget.of(60))


def l1(world: World) -> Matrix:
    """The distance of every input from the row, in widths of the domains."""
    return np.asarray(np.abs(world.inputs - world.row).sum(axis=1) / (VALUES - 1))


@pytest.mark.parametrize("low", [-9, -1])
def test_the_best_answer_of_the_cases_is_that_of_all_pairs(world: World, low: int) -> None:
    query = world.query(
        f"    changes(a, b) = 0 or margin(a) <= {low}\n    margin(b) >= 1\n  maximize distance(b, row {ROW} of d, l1)\n"
    )
    result = by_cases(query)
    pairs = ((world.changes == 0) | (world.margins <= low)[:, None]) & (world.margins >= 1)[None, :]
    best = l1(world)[pairs.any(axis=0)].max()
    assert result.objective is not None
    assert result.objective.value == pytest.approx(best, abs=1e-9)
    assert result.objective.bound == pytest.approx(best, abs=1e-4)


def test_there_is_no_answer_if_no_case_has_one(world: World) -> None:
    query = world.query("    changes(a, b) = 0 or margin(a) <= -9\n    margin(b) - margin(a) >= 0.5\n")
    assert world.margins.min() > -9
    assert by_cases(query).verdict is Verdict.NONE
    assert by_cases(query).proof is Proof.EXACT


@pytest.mark.parametrize("gap", [1, 4])
def test_one_case_that_holds_is_enough(world: World, gap: int) -> None:
    query = world.query(f"    margin(a) <= -9 or changes(a, b) <= 1\n    margin(b) - margin(a) >= {gap}\n")
    differs = world.margins[None, :] - world.margins[:, None] >= gap
    expected = bool((differs & (world.changes <= 1)).any())
    result = by_cases(query)
    assert (result.verdict is Verdict.FOUND) == expected
    assert (result.verdict is Verdict.NONE) != expected
    if result.witness is not None:
        a, b = result.witness.values
        assert (a != b).sum() <= 1


def test_cases_are_searched_for_if_the_whole_is_left_open(tmp_path: Path) -> None:
    """A search over all 9,765,625 pairs at once found none in 20 s."""
    query = world_of(tmp_path, 5).query(
        f"    changes(a, b) = 0 or margin(a) <= -9\n  maximize distance(b, row {ROW} of d, l0)\n"
    )
    result = answer(query, Options(backend="native", regions=False), Budget.of(20))
    assert result.objective is not None
    assert (result.objective.value, result.objective.bound) == (5, 5)


def test_a_case_that_is_left_open_leaves_no_bound(world: World) -> None:
    query = world.query(f"    changes(a, b) = 0 or margin(a) <= 0\n  maximize distance(b, row {ROW} of d, l1)\n")
    options = Options(backend="native", regions=False)
    first, second = cases_of_one(query)

    def one(case: Query, part: Budget) -> Result:
        return Result("q", Verdict.UNKNOWN, "time") if case is second else answer(case, options, part)

    result = answer_by_cases(query, options, [first, second], one, Budget.of(60))
    assert result.verdict is Verdict.FOUND
    assert result.objective is not None
    assert result.objective.bound is None
