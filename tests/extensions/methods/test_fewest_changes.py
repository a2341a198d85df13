"""The fewest features in which two inputs differ: against every input, by the library's own predictions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.corpus import boosted, margins_of
from treesens.binder.file import bind
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Changes, LinearForm, Query
from treesens.compiler.result import Proof, Result, Verdict
from treesens.extensions.methods.fewest_changes import FewestChanges
from treesens.grammar.parsing.parser import parse
from treesens.solve.conclude import leave_open
from treesens.solve.options import Options
from treesens.solve.question import answer, methods_for

WIDTH = 14
NAMES = [f"f{i}" for i in range(WIDTH)]
OPTIONS = Options(backend="native", regions=False, tolerance=0.0)
Ask = Callable[[Query, Budget], Result]


def asked(query: Query, budget: Budget) -> Result:
    return answer(query, OPTIONS, budget)


def search(query: Query, ask: Ask = asked) -> Result:
    """The answer of the method alone."""
    return FewestChanges(query, OPTIONS, ask, Budget.of(60)).run()


class Bits:
    """A model of fourteen features that are 0 or 1: all inputs, and what the library says of them."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(11)
        x = rng.integers(0, 2, (600, WIDTH)).astype(np.float32)
        y = (x @ rng.normal(size=WIDTH) + x[:, 0] * x[:, 1] + rng.normal(0, 0.4, 600) > 0.5).astype(int)
        booster = boosted(x, y, 14, names=NAMES, path=folder / "m.json", base_score=0.5, eta=0.5)
        self.folder = folder
        self.inputs = np.array(list(itertools.product((0, 1), repeat=WIDTH)), np.float32)
        margins = margins_of(booster, self.inputs)
        self.margins = np.asarray(margins, float)

    def query(self, text: str) -> Query:
        features = "".join(f"feature {name}: integer in [0, 1]\n" for name in NAMES)
        head = f'model m from "m.json"\n{features}\nquery q:\n  find a, b in m such that\n'
        return bind(parse(head + text), self.folder)["q"].query

    def between(self, part: float) -> tuple[float, float]:
        """Two scores, of which this part of all inputs has lower ones, and higher ones; no score is one of them."""
        low, high = np.quantile(self.margins, [part, 1 - part])
        return float(np.ceil(low * 1000) / 1000 + 1e-4), float(np.floor(high * 1000) / 1000 - 1e-4)

    def steps(
        self,
        start: NDArray[np.bool_],
        end: NDArray[np.bool_],
        free: range = range(WIDTH),
        uncounted: range = range(0),
    ) -> int | None:
        """The fewest bits between an input of one set and one of the other: a step at a time, over the cube of all inputs.

        Bits outside of `free` stay as they are, and `uncounted` ones are no step.
        """
        reached = start.reshape((2,) * WIDTH)
        for number in range(WIDTH + 1):
            for axis in uncounted:
                reached = reached | np.flip(reached, axis)
            if (reached.ravel() & end).any():
                return number
            reached = np.logical_or.reduce([reached, *(np.flip(reached, axis) for axis in free)])
        return None


@pytest.fixture(scope="module")
def bits(tmp_path_factory: pytest.TempPathFactory) -> Bits:
    return Bits(tmp_path_factory.mktemp("bits"))


@pytest.mark.parametrize("part", [0.45, 0.3, 0.15, 0.02])
def test_the_fewest_bits_between_high_and_low_scores(bits: Bits, part: float) -> None:
    low, high = bits.between(part)
    expected = bits.steps(bits.margins >= high, bits.margins <= low)
    assert expected is not None
    result = search(bits.query(f"margin(a) >= {high}; margin(b) <= {low} minimize changes(a, b)"))
    assert result.verdict is Verdict.FOUND
    assert result.objective is not None
    assert (result.objective.value, result.objective.bound) == (expected, expected)


def test_the_farthest_scores_need_several_changes(bits: Bits) -> None:
    low, high = bits.between(0.0005)
    expected = bits.steps(bits.margins >= high, bits.margins <= low)
    assert expected is not None
    assert expected >= 3
    result = search(bits.query(f"margin(a) >= {high}; margin(b) <= {low} minimize changes(a, b)"))
    assert result.objective is not None
    assert (result.objective.value, result.objective.bound) == (expected, expected)


def test_features_that_are_equal_do_not_change(bits: Bits) -> None:
    low, high = bits.between(0.2)
    free = range(4, WIDTH)
    expected = bits.steps(bits.margins >= high, bits.margins <= low, free)
    assert expected is not None
    vary = ", ".join(NAMES[f] for f in free)
    text = f"a = b except {{{vary}}}; margin(a) >= {high}; margin(b) <= {low} minimize changes(a, b)"
    result = search(bits.query(text))
    assert result.objective is not None
    assert (result.objective.value, result.objective.bound) == (expected, expected)
    assert result.witness is not None
    assert (result.witness.values[0][:4] == result.witness.values[1][:4]).all()


@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_features_that_are_not_counted_differ_at_no_cost(bits: Bits, first: int) -> None:
    low, high = bits.between(0.0002)
    query = bits.query(f"margin(a) >= {high}; margin(b) <= {low} minimize changes(a, b)")
    goal = query.objective
    assert goal is not None
    values = tuple(term for term in goal.values if term.feature >= first)
    form = LinearForm(changes=(Changes(0, 1, tuple(range(first, WIDTH))),))
    expected = bits.steps(bits.margins >= high, bits.margins <= low, range(first, WIDTH), range(first))
    assert expected is not None
    result = search(replace(query, objective=replace(goal, form=form, values=values)))
    assert result.objective is not None
    assert (result.objective.value, result.objective.bound) == (expected, expected)


@pytest.mark.parametrize("part", [0.3, 0.15, 0.02, 0.0005])
def test_a_limit_is_enough_or_not(bits: Bits, part: float) -> None:
    low, high = bits.between(part)
    expected = bits.steps(bits.margins >= high, bits.margins <= low)
    assert expected is not None
    for most in range(expected + 2):
        result = search(bits.query(f"margin(a) >= {high}; margin(b) <= {low}; changes(a, b) <= {most}"))
        assert result.verdict is (Verdict.FOUND if most >= expected else Verdict.NONE)
        assert result.proof is (None if most >= expected else Proof.EXACT)
        if result.witness is not None:
            assert (result.witness.values[0] != result.witness.values[1]).sum() <= most


def test_a_number_of_changes_is_met_exactly(bits: Bits) -> None:
    low, high = bits.between(0.02)
    expected = bits.steps(bits.margins >= high, bits.margins <= low)
    assert expected is not None
    for wanted in (expected - 1, expected + 1):
        result = search(bits.query(f"margin(a) >= {high}; margin(b) <= {low}; changes(a, b) = {wanted}"))
        assert result.verdict is (Verdict.FOUND if wanted >= expected else Verdict.NONE)
        if result.witness is not None:
            assert (result.witness.values[0] != result.witness.values[1]).sum() == wanted


def test_nothing_fits(bits: Bits) -> None:
    over = float(bits.margins.max()) + 0.01
    result = search(bits.query(f"margin(a) >= {over}; margin(b) <= 0 minimize changes(a, b)"))
    assert (result.verdict, result.proof) == (Verdict.NONE, Proof.EXACT)


def stopped(every: int) -> Ask:
    """Every so many questions, from the second on, are stopped before they begin, as on a busy machine."""
    number = itertools.count()

    def ask(query: Query, budget: Budget) -> Result:
        return answer(query, OPTIONS, Budget.of(0.0) if next(number) % every == 1 else budget)

    return ask


@pytest.mark.parametrize("every", [3, 5])
def test_sets_that_stay_open_leave_the_bound_below_the_optimum(bits: Bits, every: int) -> None:
    low, high = bits.between(0.0005)
    expected = bits.steps(bits.margins >= high, bits.margins <= low)
    result = search(bits.query(f"margin(a) >= {high}; margin(b) <= {low} minimize changes(a, b)"), stopped(every))
    assert result.objective is not None
    assert result.objective.bound is not None
    assert expected is not None
    assert result.objective.bound <= expected <= result.objective.value
    for most in range(0, WIDTH, every):
        text = f"margin(a) >= {high}; margin(b) <= {low}; changes(a, b) <= {most}"
        limited = search(bits.query(text), stopped(every))
        assert limited.verdict is not (Verdict.NONE if most >= expected else Verdict.FOUND)


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_answers_that_are_lost_leave_the_bound_below_the_optimum(bits: Bits, kept: int) -> None:
    """Only the first answers are kept; the sets of features that have the others stay open."""
    low, high = bits.between(0.0005)
    expected, number = bits.steps(bits.margins >= high, bits.margins <= low), itertools.count()

    def ask(query: Query, budget: Budget) -> Result:
        result = answer(query, OPTIONS, budget)
        lost = result.verdict is Verdict.FOUND and next(number) >= kept
        return leave_open(query.name, "stopped") if lost else result

    result = search(bits.query(f"margin(a) >= {high}; margin(b) <= {low} minimize changes(a, b)"), ask)
    assert expected is not None
    assert result.objective is not None
    assert result.objective.bound is not None
    assert result.objective.bound <= expected <= result.objective.value


REALS = """\
model m from "m.json"
feature f0: real in [0, 1]
feature f1: real in [0, 1] or missing
feature f2: real in [0, 1]
feature f3: integer in [0, 9]
"""


@pytest.fixture(scope="module")
def reals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reals")
    rng = np.random.default_rng(3)
    x = np.column_stack([*rng.uniform(0, 1, (3, 400)), rng.integers(0, 10, 400)])
    y = (x[:, 0] + x[:, 1] + x[:, 2] + x[:, 3] / 9 > 2).astype(int)
    boosted(x, y, 20, 4, names=[f"f{i}" for i in range(4)], path=folder / "m.json")
    return folder


@pytest.mark.parametrize(
    ("text", "fewest"),
    [
        ("a.f0 != b.f0", 1),
        ("a.f2 != b.f2; a.f0 != b.f0", 2),
        ("a.f1 != b.f1; a.f0 != b.f0", 1),  # two missing values are no relation, and no change
        ("missing(a.f1); present(b.f1); a.f2 - b.f2 >= 1/4", 2),
        ("missing(a.f1); missing(b.f1)", 0),
        ("distance(a, b, linf) >= 1/2; a.f3 = b.f3", 1),
        ("margin(a) - margin(b) > 0", 1),
        ("a.f0 - b.f1 >= 1/2; b.f0 = b.f1; a.f1 = a.f0", 2),
    ],
)
def test_values_differ_inside_of_cells_and_missing_ones_are_equal(reals: Path, text: str, fewest: int) -> None:
    query = bind(parse(f"{REALS}query q: find a, b in m such that {text} minimize changes(a, b)"), reals)["q"].query
    result = search(query)
    assert result.objective is not None
    assert (result.objective.value, result.objective.bound) == (fewest, fewest)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("changes(a, b) <= 0; a.f0 != b.f0", Verdict.NONE),
        ("changes(a, b) <= 1; a.f0 != b.f0; a.f2 != b.f2", Verdict.NONE),
        ("changes(a, b) <= 2; a.f0 != b.f0; a.f2 != b.f2", Verdict.FOUND),
        ("changes(a, b) < 0", Verdict.NONE),
        ("a = b; changes(a, b) <= 0", Verdict.FOUND),
        ("a = b except {f0}; changes(a, b) <= 0; margin(a) - margin(b) > 0", Verdict.NONE),
    ],
)
def test_a_limit_that_the_other_constraints_decide(reals: Path, text: str, verdict: Verdict) -> None:
    """No set was asked about, and the weakest of no proofs was an internal error."""
    query = bind(parse(f"{REALS}query q: find a, b in m such that {text}"), reals)["q"].query
    for result in (search(query), answer(query, OPTIONS, Budget.of(60))):
        assert result.verdict is verdict, result.reason
        assert result.proof is (Proof.EXACT if verdict is Verdict.NONE else None)


def test_a_difference_in_a_feature_that_is_not_counted_is_no_bound(reals: Path) -> None:
    query = bind(parse(f"{REALS}query q: find a, b in m such that a.f0 != b.f0 minimize changes(a, b)"), reals)[
        "q"
    ].query
    goal = query.objective
    assert goal is not None
    values = tuple(term for term in goal.values if term.feature > 0)
    form = LinearForm(changes=(Changes(0, 1, (1, 2, 3)),))
    result = search(replace(query, objective=replace(goal, form=form, values=values)))
    assert result.objective is not None
    assert (result.objective.value, result.objective.bound) == (0, 0)


def test_a_counterfactual_of_few_features_is_proved_by_the_whole_list(bits: Bits) -> None:
    """A search over cells that minimises the count of changes left its bound at 0 here for as long as it ran."""
    low, high = bits.between(0.1)
    query = bits.query(f"margin(a) >= {high}; margin(b) <= {low} minimize changes(a, b)")
    assert "fewest changes" in [method.name for method in methods_for(query, OPTIONS)]
    result = answer(query, OPTIONS, Budget.of(60))
    expected = bits.steps(bits.margins >= high, bits.margins <= low)
    assert result.objective is not None
    assert (result.objective.value, result.objective.bound) == (expected, expected)
