"""Rows that relations between values imply together: no input of all of them is lost, and answers have certificates by them."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.extensions.certify.made import query_of
from tests.extensions.certify.models import train
from treesens.binder.file import bind
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.query.query import AtLeast, Query
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Term, ValueSum
from treesens.compiler.result import Result, Verdict
from treesens.extensions.certify import combined_rows
from treesens.extensions.certify.combined_rows import with_combined_rows
from treesens.extensions.certify.command import run_checker
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer_question

HEAD = (
    'model m from "m.json"\ndata d from "d.csv"\n'
    "feature f0: integer in [0, 4]\nfeature f1: real in [0, 2] or missing\nfeature f2: real in [0, 2]\nquery q: "
)
VALUES = ((0.0, 1.0, 2.0, 4.0), (0.0, 1.25, 2.0, np.nan), (0.0, 0.25, 0.5, 1.0, 2.0))
"""The ends of most cells among them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("combined")
    train(4, made / "m.json")
    (made / "d.csv").write_text("f0,f1,f2\n0,0,0\n2,1,1\n4,2,0.5\n")
    return made


def term(dice: random.Random) -> Term:
    point, feature, factor = (
        dice.randrange(2),
        dice.randrange(3),
        Fraction(dice.choice((-2, -1, 1, 3)), dice.choice((1, 2))),
    )
    if dice.random() < 0.5:
        return LinearTerm(point, feature, factor)
    other, row = dice.choice(((None, dice.choice((0.0, 1.0, 1.5))), (1 - point, 0.0)))
    width, power = Fraction(dice.choice((1, 2, 4))), dice.choice((1, 2))
    return DistanceTerm(point, feature, other, row, width, power, unordered=dice.random() < 0.2, factor=factor)


def relation(dice: random.Random, points: np.ndarray) -> ValueSum:
    """One that some points are just within, if they have a value."""
    terms = tuple(term(dice) for _ in range(dice.randint(1, 3)))
    values = [one.value([points[place] for place in one.places]) for one in terms]
    return ValueSum(terms, sum((value or Fraction(0) for value in values), Fraction(0)))


def left_over(query: Query, row: AtLeast, points: np.ndarray) -> Fraction:
    """The sum of the costs of a row minus its bound."""
    grid = query.space.grid
    cells = [[int(grid[f].cell_of(x)) for f, x in enumerate(point)] for point in points.tolist()]
    total = sum((Unit(c.shift).value(c.costs[cells[c.point][c.feature]]) for c in row.form.costs), Fraction(0))
    return total - row.bound.rational


@pytest.mark.parametrize("count", [2, 3])
def test_no_input_of_all_relations_is_lost(count: int, folder: Path) -> None:
    """By value: every row holds at all inputs that satisfy the relations."""
    dice = random.Random(3)
    query = query_of(f"{HEAD}find a, b in m such that margin(a) >= margin(b)", folder)
    looked_at = tight = 0
    for _ in range(1500):
        points = np.array([[dice.choice(values) for values in VALUES] for _ in range(2)])
        relations = tuple(relation(dice, points) for _ in range(count))
        more = with_combined_rows(replace(query, constraints=relations))
        if more is None or not all(one.holds(points.__getitem__) for one in relations):
            continue
        least = min(left_over(query, row, points) for row in more.constraints if isinstance(row, AtLeast))
        assert least >= 0, (relations, points)
        looked_at, tight = looked_at + 1, tight + (least < Fraction(1, 4))
    assert looked_at > 200
    assert tight > 20


QUESTIONS = {
    "a sum and the nearest row": "find a in m such that margin(a) >= 0.1; a.f1 + a.f2 >= 2.5 "
    "minimize distance(a, row 0 of d, l1)",
    "two points that are near and far": "find a, b in m such that distance(a, b, l2) <= 0.5; a.f0 - b.f0 >= 3",
    "near and far, in cases": "find a, b in m such that distance(a, b, l2) <= 0.5; abs(a.f0 - b.f0) >= 3",
    "three values": "find a in m such that a.f0 - 2 * a.f2 + a.f1 >= 1.5; 2 * a.f2 - a.f0 - a.f1 >= -1.25",
}
OF_THREE = {
    "round in a circle": "find a, b in m such that a.f1 - a.f2 >= 0.5; a.f2 - b.f1 >= 0.25; b.f1 - a.f1 >= -0.5",
    "sums of two each": "find a, b in m such that a.f1 + b.f1 <= 1; b.f1 + a.f2 <= 1.5; a.f1 + 2 * b.f1 + a.f2 >= 2.75",
    "two steps and the nearest row": "find a, b in m such that a.f1 - b.f1 >= 0.5; b.f1 - a.f2 >= 0.5 "
    "minimize distance(a, row 0 of d, l1)",
}


def ask(folder: Path, question: str, name: str) -> Result:
    (asked,) = bind(parse(f"{HEAD}{question}\n", "<test>"), folder).queries
    return answer_question(asked, Options(time_limit=20, certificates=folder / name, regions=False))


@pytest.mark.parametrize("kind", [*QUESTIONS, *OF_THREE])
def test_what_no_relation_says_alone_has_a_certificate(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has none without the rows, or without those of three relations, and one that the command accepts with them."""
    question = (QUESTIONS | OF_THREE)[kind]
    claim = "bound" if "minimize" in question else "none"
    name = kind.replace(" ", "_").replace(",", "")
    result = ask(folder, question, name)
    assert (result.verdict is Verdict.NONE) == (claim == "none")
    mine = [one for one in result.certificates if one.claim == claim]
    assert mine
    assert all(one.path for one in mine), mine
    assert run_checker([Path(one.path) for one in mine], [folder / "m.json"], {}) == 0
    if kind in OF_THREE:
        by_two = combined_rows._solved
        monkeypatch.setattr(combined_rows, "_solved", lambda es: by_two(es) if len(es) == 1 else None)
    else:
        for place in ("produce", "whole"):
            monkeypatch.setattr(f"treesens.extensions.certify.{place}.with_combined_rows", lambda *_: None)
    without = ask(folder, question, f"{name}_without").certificates
    assert not all(one.path for one in without if one.claim == claim)
