"""Cases and rows of costs: every input of a question answers one of its cases, and satisfies every row beside it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.extensions.certify.made import query_of
from tests.extensions.certify.models import train
from treesens.compiler.query.query import AtLeast, CellSet, Query, SameExcept
from treesens.compiler.query.values import ValueSum
from treesens.extensions.certify.cases import MOST, cases_of
from treesens.extensions.certify.produce import refutation
from treesens.extensions.certify.statement import statement_of
from treesens.extensions.certify.sums import with_cell_rows
from treesens.values.stated_changes import least_changes

HEAD = (
    'model m from "m.json"\ndata d from "d.csv"\n'
    "feature f0: real in [0, 2]\nfeature f1: real in [0, 2] or missing\nfeature f2: real in [0, 4]\nquery q: "
)
ROW, OTHER = (0.5, 1.0, 1.5), (0.0, 0.0, 0.0)
Point = Sequence[float]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cases")
    train(4, made / "m.json")
    (made / "d.csv").write_text("f0,f1,f2\n0.5,1,1.5\n0,0,0\n")
    return made


def points(count: int, size: int) -> list[list[float]]:
    """Random float32 inputs of a few points, equal in some features, with missing values."""
    random = np.random.default_rng(11)
    found = []
    for _ in range(count):
        x = random.integers(0, 33, (size, 3)) / 16 * np.array([1, 1, 2])
        x[:, 1][random.random(size) < 0.2] = math.nan
        for f in range(3):
            if size == 2 and random.random() < 0.5:
                x[1, f] = x[0, f]
        found.append([float(v) for v in x.ravel()])
    return found


def apart(x: float, y: float) -> bool:
    return not (x == y or (math.isnan(x) and math.isnan(y)))


def changed(x: Point) -> int:
    return sum(apart(x[f], x[3 + f]) for f in range(3))


@pytest.mark.parametrize(
    ("text", "count", "most"),
    [
        ("changes(a, b) <= 1", 3, 1),
        ("changes(a, b) <= 2", 3, 2),
        ("changes(a, b) < 2", 3, 1),
        ("changes(a, b) <= 0", 1, 0),
        ("a = b except {f0, f2}; changes(a, b) <= 1", 2, 1),
    ],
)
def test_changes_are_the_sets_of_features_that_may_vary(text: str, count: int, most: int, folder: Path) -> None:
    query = query_of(f"{HEAD}find a, b in m such that {text}; margin(a) >= 0", folder)
    cases = [case for case, _ in cases_of(query) or []]
    free = [{f for link in _links(case) for f in link.varied} for case in cases]
    assert len(cases) == count
    for x in points(400, 2):
        asked = changed(x) <= most and ("except" not in text or not apart(x[1], x[4]))
        assert asked == any(all(f in one or not apart(x[f], x[3 + f]) for f in range(3)) for one in free)


def _links(query: Query) -> list[SameExcept]:
    return [c for c in query.constraints if isinstance(c, SameExcept)]


def test_a_disjunction_is_all_of_its_parts(folder: Path) -> None:
    text = "margin(a) >= 1 or a.f0 <= 0.5 or margin(a) <= -1; margin(a) >= 2 or margin(a) <= -2 or a.f2 >= 3"
    query = query_of(f"{HEAD}find a in m such that {text}", folder)
    cases = [statement_of(case).text for case, _ in cases_of(query) or []]
    said = {json.dumps([[(row["terms"], row["bound"]) for row in one["rows"]], one["domain"]]) for one in cases}
    assert len(cases) == 9 == len(said)
    assert all(len(one["rows"]) + len(one["domain"]) == 3 + 2 for one in cases)


def test_too_many_cases_are_none(folder: Path) -> None:
    many = "; ".join(f"margin(a) >= {n} or a.f0 + a.f2 <= {n}" for n in range(1, 8))
    assert MOST < 2**7
    assert cases_of(query_of(f"{HEAD}find a in m such that {many}", folder)) is None
    assert cases_of(query_of(f"{HEAD}find a in m such that margin(a) >= 1", folder)) is None


FINE = "".join(f"; (a.f{f} <= {x} or a.f{f} > {x})" for f in range(3) for x in (0.25, 0.75, 1.25, 1.75))
"""Says nothing, but cuts cells at these values."""

RELATIONS: dict[str, Callable[[Point], bool]] = {
    "a.f0 + a.f2 <= 1.5": lambda x: x[0] + x[2] <= 1.5,
    "a.f0 + a.f2 < 1.5": lambda x: x[0] + x[2] < 1.5,
    "2 * a.f0 - a.f2 >= 0.75": lambda x: 2 * x[0] - x[2] >= 0.75,
    "a.f0 - a.f1 <= -1.25": lambda x: x[0] - x[1] <= -1.25,
    "distance(a, row 0 of d, l1) <= 0.5": lambda x: sum(_distances(x)) <= Fraction(1, 2),
    "distance(a, row 0 of d, l1) < 0.5": lambda x: sum(_distances(x)) < Fraction(1, 2),
    "distance(a, row 0 of d, l1) < distance(a, row 1 of d, l1)": lambda x: (
        sum(_distances(x)) < sum(_distances(x, OTHER))
    ),
    "distance(a, row 0 of d, l2) <= 0.5": lambda x: sum(v * v for v in _distances(x)) <= Fraction(1, 4),
    "distance(a, row 0 of d, l2) > 0.75": lambda x: sum(v * v for v in _distances(x)) > Fraction(9, 16),
    "a.f0 + a.f1 >= a.f2 + 1": lambda x: x[0] + x[1] >= x[2] + 1,
}


PAIRS: dict[str, Callable[[Point], bool]] = {
    "distance(a, b, l1) <= 0.5": lambda x: sum(_between(x)) <= Fraction(1, 2),
    "distance(a, b, l1) < 0.5": lambda x: sum(_between(x)) < Fraction(1, 2),
    "distance(a, b, l2) <= 0.5": lambda x: sum(v * v for v in _between(x)) <= Fraction(1, 4),
    "distance(a, b, l1) >= 2.375": lambda x: sum(_between(x)) >= Fraction(19, 8),
    "distance(a, b, l2) > 1.5": lambda x: sum(v * v for v in _between(x)) > Fraction(9, 4),
    "distance(a, b, l1) + distance(a, row 0 of d, l1) <= 0.75": (
        lambda x: sum(_between(x)) + sum(_distances(x[:3])) <= Fraction(3, 4)
    ),
}


APART: dict[str, Callable[[Point], bool]] = {
    "distance(a, b, l1) > 0": lambda x: sum(_between(x)) > 0,
    "distance(a, b, l1) >= 0.125": lambda x: sum(_between(x)) >= Fraction(1, 8),
    "distance(a, b, l2) > 0": lambda x: sum(v * v for v in _between(x)) > 0,
    "distance(a, b, l2) >= 0.25": lambda x: sum(v * v for v in _between(x)) >= Fraction(1, 16),
    "distance(a, b, l0) > 0": lambda x: changed(x) > 0,
    "distance(a, b, l0) >= 0.5": lambda x: changed(x) >= 1,
    "2 * distance(a, b, l1) - distance(a, row 0 of d, l1) > 0": lambda x: (
        2 * sum(_between(x)) - sum(_distances(x[:3])) > 0
    ),
    "2 * distance(a, b, l1) - distance(a, row 0 of d, l1) >= 0.25": (
        lambda x: 2 * sum(_between(x)) - sum(_distances(x[:3])) >= Fraction(1, 4)
    ),
}
MAY_AGREE: dict[str, Callable[[Point], bool]] = {
    "distance(a, b, l1) >= 0": lambda x: sum(_between(x)) >= 0,
    "distance(a, b, l2) >= 0": lambda x: sum(v * v for v in _between(x)) >= 0,
    "distance(a, b, l1) < 0.5": lambda x: sum(_between(x)) < Fraction(1, 2),
    "distance(a, b, l1) - distance(a, row 0 of d, l1) >= -0.25": (
        lambda x: sum(_between(x)) - sum(_distances(x[:3])) >= Fraction(-1, 4)
    ),
    "distance(a, b, l1) + distance(a, row 0 of d, l1) > 0": (lambda x: sum(_between(x)) + sum(_distances(x[:3])) > 0),
}


def equal_points(count: int) -> list[list[float]]:
    return [[*x, *x] for x in points(count, 1)]


@pytest.mark.parametrize("text", APART)
def test_points_whose_distance_is_above_0_do_not_agree(text: str, folder: Path) -> None:
    """So the case that they do is left out, and none in which one feature may vary."""
    assert not any(APART[text](x) for x in equal_points(400))
    assert any(APART[text](x) for x in points(400, 2))
    asked = f"{HEAD}find a, b in m such that {text}; margin(a) >= 0; changes(a, b) <= "
    assert cases_of(query_of(f"{asked}0", folder)) == []
    varied = {
        frozenset(link.varied) for case, _ in cases_of(query_of(f"{asked}1", folder)) or [] for link in _links(case)
    }
    assert varied == {frozenset({f}) for f in range(3)}


@pytest.mark.parametrize("text", MAY_AGREE)
def test_points_whose_distance_may_be_0_are_not_left_out(text: str, folder: Path) -> None:
    assert any(MAY_AGREE[text](x) for x in equal_points(400))
    cases = (
        cases_of(query_of(f"{HEAD}find a, b in m such that {text}; margin(a) >= 0; changes(a, b) <= 0", folder)) or []
    )
    assert [frozenset(link.varied) for case, _ in cases for link in _links(case)] == [frozenset()]


def test_points_differ_in_the_features_that_a_distance_counts(folder: Path) -> None:
    """Points that differ in f1 alone have a distance of 0 if it does not count f1."""
    text = "distance(a, b, l1) > 0; margin(a) >= 0; changes(a, b) <= 1"
    query = query_of(f"{HEAD}find a, b in m such that {text}", folder)
    (sums,) = (c for c in query.constraints if isinstance(c, ValueSum) and c.name == "distance")
    two = replace(sums, terms=tuple(t for t in sums.terms if t.feature != 1))
    assert least_changes(sums) == (frozenset({0, 1, 2}), 1)
    assert least_changes(two) == (frozenset({0, 2}), 1)
    link = SameExcept(0, 1, frozenset({1}))
    for relation, cases in ((sums, [[frozenset({1})]]), (two, [])):
        kept = tuple(relation if c is sums else c for c in (*query.constraints, link))
        found = cases_of(replace(query, constraints=kept))
        assert [[one.varied for one in _links(case)] for case, _ in found or []] == cases


@pytest.mark.parametrize("text", ["distance(a, b, l1) < 0", "distance(a, b, l2) < 0", "distance(a, b, l1) <= 0"])
def test_no_distance_is_below_0(text: str, folder: Path) -> None:
    """So the statement says `false`, by a clause of no parts; a distance of 0 is one."""
    query = query_of(f"{HEAD}find a, b in m such that {text}; margin(a) >= 0", folder)
    assert ([] in statement_of(with_cell_rows(query)).text["clauses"]) == ("<= 0" not in text)
    if "<= 0" not in text:
        assert refutation(query).document["nodes"] == [[]]


def _between(x: Point) -> list[Fraction]:
    """The distances of two points, in widths of the domains; a missing value is one width away from any other."""
    found = []
    for one, other, width in zip(x[:3], x[3:], (2, 2, 4), strict=True):
        if math.isnan(one) or math.isnan(other):
            found.append(Fraction(int(math.isnan(one) != math.isnan(other))))
        else:
            found.append(abs(Fraction(one) - Fraction(other)) / width)
    return found


def _distances(x: Point, row: Point = ROW) -> list[Fraction]:
    """To a row, in widths of the domains; a missing value is one width away."""
    widths = (2, 2, 4)
    return [
        Fraction(1) if math.isnan(value) else abs(Fraction(value) - Fraction(own)) / width
        for value, own, width in zip(x, row, widths, strict=True)
    ]


@pytest.mark.parametrize("text", RELATIONS)
def test_a_row_of_costs_has_every_input_of_its_relation(text: str, folder: Path) -> None:
    """The cost of a value is looked up by its place among the cuts of the grid."""
    query = query_of(f"{HEAD}find a in m such that {text}; margin(a) >= 0{FINE}", folder)
    with_rows = with_cell_rows(query)
    rows = [c for c in with_rows.constraints if isinstance(c, AtLeast) and c.form.costs]
    assert rows
    sets = [c for c in with_rows.constraints if isinstance(c, CellSet) and c not in query.constraints]
    assert len(with_rows.constraints) == len(query.constraints) + len(rows) + len(sets)
    # A missing value satisfies no linear relation, and no other value is left out.
    missing = query.space.grid[1].missing_cell
    assert [(one.feature, np.flatnonzero(~one.mask).tolist()) for one in sets] == [(1, [missing])] * ("a.f1" in text)
    assert not any(math.isnan(x[1]) and RELATIONS[text](x) for x in points(3000, 1) if "a.f1" in text)
    refused = inside = 0
    inputs = points(3000, 1)
    for x, holds in zip(inputs, _hold(query, rows, inputs), strict=True):
        if RELATIONS[text](x):
            inside += 1
            assert all(holds), (x, text)
        refused += not all(holds)
    assert inside
    assert refused


@pytest.mark.parametrize("text", PAIRS)
def test_rows_of_costs_have_every_pair_of_their_relation(text: str, folder: Path) -> None:
    """Distances of two points, which are bounded from below by their differences."""
    query = query_of(f"{HEAD}find a, b in m such that {text}; margin(a) >= 0{FINE}", folder)
    rows = [c for c in with_cell_rows(query).constraints if isinstance(c, AtLeast) and c.form.costs]
    assert rows
    refused = inside = 0
    inputs = points(3000, 2)
    for x, holds in zip(inputs, _hold(query, rows, inputs), strict=True):
        if PAIRS[text](x):
            inside += 1
            assert all(holds), (x, text)
        refused += not all(holds)
    assert inside
    assert refused


def _hold(query: Query, rows: Sequence[AtLeast], given: list[list[float]]) -> np.ndarray:
    """Which rows hold at which points, (points, rows): whole numbers of any size, in the finest unit of the row's costs."""
    values, found = np.array(given), []
    for row in rows:
        shift = max(cost.shift for cost in row.form.costs)
        totals = np.zeros(len(given), object)
        for cost in row.form.costs:
            grid, column = query.space.grid[cost.feature], values[:, 3 * cost.point + cost.feature]
            missing = np.isnan(column)
            cells = np.searchsorted(grid.cuts, np.where(missing, 0.0, column), side="right")
            if missing.any():
                cells[missing] = grid.missing_cell
            units = np.array([int(c) << (shift - cost.shift) for c in cost.costs], object)
            totals += units[cells]
        least = row.bound.rational * Fraction(2) ** shift
        found.append([total >= least for total in totals])
    return np.array(found, bool).T
