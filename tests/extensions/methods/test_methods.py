"""Every method of the list, asked alone on a question that it fits: against all inputs, judged by the library itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.solve.test_split_disjunction import ROW, VALUES, World, world_of
from treesens.binder.file import bind
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result, Verdict
from treesens.frontends.registry import load
from treesens.grammar.parsing.parser import parse
from treesens.solve import fits
from treesens.solve.conclude import leave_open
from treesens.solve.method import Method, OpenQuestion
from treesens.solve.methods.registry import all_methods
from treesens.solve.options import Options
from treesens.solve.question import answer, as_asked, ask_methods, methods_for

Mask = NDArray[np.bool_]
Values = NDArray[np.float64]
OPTIONS = Options(backend="native", regions=False, tolerance=0.0)
BY_NAME = {method.name: method for method in all_methods()}


@dataclass(frozen=True)
class Kind:
    """A question about its first point: its text, which inputs it admits, and what it optimises."""

    text: str
    admits: Callable[[World], Mask]
    value: Callable[[World], Values] | None = None
    best: Callable[[Values], float] = np.min
    points: str = "a"


def away(world: World, order: float) -> Values:
    """The distance of every input from the row, in widths of the domains."""
    return np.asarray(np.linalg.norm((world.inputs - world.row) / (VALUES - 1), order, axis=1))


def of_rows(world: World) -> Values:
    """The l1 distance of every input from its nearest row."""
    rows = np.loadtxt(world.folder / "d.csv", delimiter=",", skiprows=1)[:, :-1]
    apart = np.abs(world.inputs[:, None, :] - rows[None, :, :]).sum(axis=2) / (VALUES - 1)
    return np.asarray(apart.min(axis=1))


def is_row(world: World) -> Mask:
    """Of all features together: outside of all cavities lie the cells of rows alone."""
    rows = np.loadtxt(world.folder / "d.csv", delimiter=",", skiprows=1)[:, :-1]
    grid = load(world.folder / "m.json").ensemble.grid()
    kept = {tuple(row) for row in grid.cells(rows.astype(np.float32)).tolist()}
    return np.array([tuple(cells) in kept for cells in grid.cells(world.inputs.astype(np.float32)).tolist()])


def prob(world: World) -> Values:
    return np.asarray(1 / (1 + np.exp(-world.margins)))


def gap(world: World) -> Values:
    """The largest difference to any input."""
    return prob(world) - prob(world).min()


def steps_to_low(world: World) -> Values:
    """In how many features every input differs at least from one of a low score."""
    low = world.inputs[world.margins <= -top(world)]
    return np.asarray((world.inputs[:, None, :] != low[None, :, :]).sum(axis=2).min(axis=1))


HIGH = Kind("margin(a) >= {t}", lambda w: w.margins >= top(w))
NONE = Kind("margin(a) >= 90", lambda w: w.margins >= 90)
EITHER = Kind("margin(a) >= {t} or margin(a) <= -90", lambda w: w.margins >= top(w))
NEITHER = Kind("margin(a) >= 90 or margin(a) <= -90", lambda w: w.margins >= 90)
NEAR_L1 = Kind(f"margin(a) >= {{t}} minimize distance(a, row {ROW} of d, l1)", HIGH.admits, lambda w: away(w, 1))
NEAR_LINF = Kind(
    f"margin(a) >= {{t}} minimize distance(a, row {ROW} of d, linf)", HIGH.admits, lambda w: away(w, np.inf)
)
BEST = Kind("a.f0 <= 1 maximize margin(a)", lambda w: w.inputs[:, 0] <= 1, lambda w: w.margins, np.max)
ORDERED = Kind("margin(a) >= {t}; a.f0 < a.f1", lambda w: (w.margins >= top(w)) & (w.inputs[:, 0] < w.inputs[:, 1]))

QUESTIONS: dict[str, list[Kind]] = {
    "contradiction": [Kind("changes(a, b) = 3; changes(a, b) != 3", lambda w: w.margins > np.inf, points="a, b")],
    "all cavities": [
        Kind("margin(a) >= {t}; a avoid cavities(d, width = 4)", lambda w: HIGH.admits(w) & is_row(w)),
        Kind("a avoid cavities(d, width = 4) maximize margin(a)", lambda w: is_row(w), lambda w: w.margins, np.max),
    ],
    "best probability": [
        Kind("a.f0 <= 1 maximize prob(a)", lambda w: w.inputs[:, 0] <= 1, prob, np.max),
        Kind("a.f0 <= 1 maximize prob(a) - prob(b)", lambda w: w.inputs[:, 0] <= 1, gap, np.max, points="a, b"),
        Kind("margin(b) >= 90 maximize prob(a) - prob(b)", NONE.admits, points="a, b"),
    ],
    "brief search, small domain": [HIGH, NONE, NEAR_L1, BEST],
    "combinations": [HIGH, NONE, NEAR_L1, BEST, ORDERED],
    "brief search, few changes": [
        Kind(
            "margin(a) >= {t}; margin(b) <= -{t}; changes(a, b) <= 2",
            lambda w: HIGH.admits(w) & (steps_to_low(w) <= 2),
            points="a, b",
        ),
        Kind("margin(a) >= 90; margin(b) <= 0; changes(a, b) <= 3", NONE.admits, points="a, b"),
    ],
    "fewest changes": [
        Kind(
            "margin(a) >= {t}; margin(b) <= -{t}; changes(a, b) <= 2",
            lambda w: HIGH.admits(w) & (steps_to_low(w) <= 2),
            points="a, b",
        ),
        Kind(
            "margin(a) >= {t}; margin(b) <= -{t}; changes(a, b) <= 1",
            lambda w: HIGH.admits(w) & (steps_to_low(w) <= 1),
            points="a, b",
        ),
        Kind("margin(a) >= {t}; margin(b) <= -{t} minimize changes(a, b)", HIGH.admits, steps_to_low, points="a, b"),
        Kind("margin(a) >= 90; margin(b) <= 0 minimize changes(a, b)", NONE.admits, points="a, b"),
    ],
    "brief search, disjunction": [EITHER, NEITHER],
    "cases": [EITHER, NEITHER],
    "probability rows": [
        Kind("prob(a) - prob(b) >= 0.9", lambda w: prob(w) - prob(w).min() >= 0.9, points="a, b"),
        Kind("prob(a) - prob(b) >= 0.9999", lambda w: prob(w) - prob(w).min() >= 0.9999, points="a, b"),
    ],
    "nearest pair": [Kind("margin(a) >= {t} minimize distance(a, nearest row of d, l1)", HIGH.admits, of_rows)],
    "cheapest cells": [NEAR_L1, replace(NEAR_L1, text=NEAR_L1.text.replace("{t}", "90"), admits=NONE.admits)],
    "least radius": [NEAR_LINF, replace(NEAR_LINF, text=NEAR_LINF.text.replace("{t}", "90"), admits=NONE.admits)],
    "any answer": [replace(NEAR_L1, text=NEAR_L1.text.replace("{t}", "90"), admits=NONE.admits)],
    "refinement": [ORDERED, Kind(NEAR_L1.text.replace("{t}", "{t}; a.f0 < a.f1"), ORDERED.admits, NEAR_L1.value)],
    "trees, large model": [HIGH, NONE, BEST],
    "trees": [HIGH, NONE, EITHER, NEITHER],
    "compiled": [HIGH, NONE, EITHER, NEITHER, BEST],
}
CASES = [(name, number) for name, kinds in QUESTIONS.items() for number in range(len(kinds))]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_of(tmp_path_factory.mktemp("methods"), 4)


def top(world: World) -> float:
    """A margin that few inputs reach, and none exactly."""
    above = np.unique(world.margins)[-20:-18]
    return round(float(above.mean()), 3)


def asked_of(world: World, text: str) -> Query:
    head = "".join(f"feature f{i}: integer in [0, {VALUES - 1}]\n" for i in range(world.row.size))
    head = f'model m from "m.json"\ndata d from "d.csv" label "y"\n{head}query q: '
    return as_asked(bind(parse(head + text.replace("{t}", str(top(world)))), world.folder)["q"].query, Options())


def alone(method: Method, query: Query) -> Result | None:
    """The result of one method; nothing is known before."""
    known = leave_open(query.name, "nothing was asked", backend="native") if method.takes_over else None
    found: Result | None = method.function()(OpenQuestion(query, OPTIONS, answer, known=known), Budget.of(30))
    return found


@pytest.mark.parametrize(("name", "number"), CASES)
def test_a_method_alone_agrees_with_all_inputs(
    world: World, name: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "trees, large model":
        monkeypatch.setattr(fits, "MANY_LEAVES", 0)
    method, kind = BY_NAME[name], QUESTIONS[name][number]
    query = asked_of(world, f"find {kind.points} in m such that {kind.text}")
    assert method.fits(query, OPTIONS), "a question that the method fits"
    result = alone(method, query)
    admitted = kind.admits(world)
    assert result is not None
    assert result.verdict is (Verdict.FOUND if admitted.any() else Verdict.NONE), result.reason
    if result.witness is not None:
        place = np.flatnonzero((world.inputs == result.witness.values[0]).all(axis=1))
        assert admitted[place].all()
    if kind.value is not None and admitted.any():
        best = float(kind.best(kind.value(world)[admitted]))
        assert result.objective is not None
        assert result.objective.value == pytest.approx(best, abs=1e-5)
        assert result.objective.bound == pytest.approx(best, abs=1e-4)


def test_every_method_is_asked_alone() -> None:
    others = {"reason", "trees, typical inputs", "attainable sums"}  # below, and in test_attainable_sums.py
    assert QUESTIONS.keys() | others == BY_NAME.keys()


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("sense", ["minimize", "maximize"])
def test_any_answer_has_the_value_that_it_shows_and_a_bound_of_all(world: World, norm: str, sense: str) -> None:
    text = f"margin(a) >= {{t}}; margin(b) <= -{{t}} {sense} distance(a, b, {norm})"
    query = asked_of(world, f"find a, b in m such that {text}")
    assert BY_NAME["any answer"].fits(query, OPTIONS)
    result = alone(BY_NAME["any answer"], query)
    assert result is not None
    assert result.witness is not None
    assert result.objective is not None
    a, b = result.witness.values
    for point, sign in ((a, 1), (b, -1)):
        assert sign * world.margins[(world.inputs == point).all(axis=1)][0] >= top(world)
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    assert result.objective.value == pytest.approx(np.linalg.norm((a - b) / (VALUES - 1), order), abs=1e-9)
    high, low = (world.inputs[sign * world.margins >= top(world)] / (VALUES - 1) for sign in (1, -1))
    every = np.linalg.norm(high[:, None, :] - low[None, :, :], order, axis=2)
    assert result.objective.bound is not None
    assert result.objective.bound <= every.min() if sense == "minimize" else result.objective.bound >= every.max()


@pytest.mark.parametrize("least", ["{t}", "90"])
def test_typical_inputs_on_trees_alone_as_the_whole_list_without_trees(world: World, least: str) -> None:
    query = asked_of(world, f"find a in m such that margin(a) >= {least}; a typical of d at 90 %")
    method = BY_NAME["trees, typical inputs"]
    assert method.fits(query, OPTIONS)
    result = alone(method, query)
    others = [method for method in all_methods() if not method.name.startswith("trees")]
    whole = ask_methods(OpenQuestion(query, OPTIONS, answer), Budget.of(60), others)
    assert result is not None
    assert result.verdict is whole.verdict


def test_other_backends_are_asked_without_help_of_the_engine(world: World) -> None:
    for text in (HIGH.text, EITHER.text, NEAR_L1.text):
        query = asked_of(world, f"find a in m such that {text}")
        names = [method.name for method in methods_for(query, replace(OPTIONS, backend="highs"))]
        assert names[-1] in {"refinement", "compiled"}
        assert len(names) == 1


def test_the_list_ends_with_a_method_that_fits_everything(world: World) -> None:
    query = asked_of(world, f"find a in m such that {HIGH.text}")
    for backend in ("auto", "native", "highs"):
        assert methods_for(query, replace(OPTIONS, backend=backend))[-1].name == "compiled"
