"""Fault 23: a disjunction was split by three limits, and nobody was told if it was not split."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from threading import Event

import pytest

from tests.extensions.certify.made import query_of
from tests.extensions.certify.models import train
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.cases import MOST_CASES, cases_of_one, every_case
from treesens.compiler.query.query import AllOf, AnyOf, Query
from treesens.compiler.result import Verdict
from treesens.report.explain import methods_record
from treesens.solve.options import Options
from treesens.solve.question import answer

pytestmark = pytest.mark.fault

DECLARED = "".join(f"feature f{f}: real in [0, 6]\n" for f in range(3))


def text_of(alternatives: int) -> str:
    """A disjunction of differences between features, of so many alternatives."""
    return " or ".join(f"a.f0 - a.f1 >= {5 - number / 100:g}" for number in range(alternatives))


def question(folder: Path, constraints: str) -> Query:
    train(3, folder / "m.json")
    return query_of(f'model m from "m.json"\n{DECLARED}query q: find a in m such that {constraints}', folder)


@pytest.mark.parametrize(
    ("alternatives", "cases"), [(2, 2), (5, 5), (9, 9), (MOST_CASES, MOST_CASES), (MOST_CASES + 1, 0)]
)
def test_one_limit_says_what_is_split(alternatives: int, cases: int, tmp_path: Path) -> None:
    query = question(tmp_path, f"({text_of(alternatives)})")
    assert len(cases_of_one(query)) == cases
    assert len(every_case(query)) == (cases or 1)


@pytest.mark.parametrize("lengths", [(2, 3), (4, 4), (2, 2, 2, 2), (5, 4)])
def test_the_cases_are_all_choices(lengths: tuple[int, ...], tmp_path: Path) -> None:
    query = question(tmp_path, "; ".join(f"({text_of(length)})" for length in lengths))
    cases = every_case(query)
    many = len(list(product(*map(range, lengths))))
    assert len(cases) == (many if many <= MOST_CASES else 1)
    if many <= MOST_CASES:
        assert not any(isinstance(c, AnyOf | AllOf) for case in cases for c in case.constraints)
        assert len({case.constraints for case in cases}) == many


@pytest.mark.parametrize("alternatives", [MOST_CASES, MOST_CASES + 1])
def test_an_open_question_says_that_its_disjunction_is_too_long(alternatives: int, tmp_path: Path) -> None:
    query = question(tmp_path, f"margin(a) >= 0.05; ({text_of(alternatives)})")
    options = Options(backend="highs")
    told = methods_record(query, options)["method_notes"]
    assert [note[:4] for note in told] == (["E502"] if alternatives > MOST_CASES else [])
    stop = Event()
    stop.set()
    found = answer(query, options, Budget.of(60.0, stop))
    assert found.verdict is Verdict.UNKNOWN
    assert [note for note in found.notes if note[:4] == "E502"] == told
    decided = answer(query, Options(backend="native"), Budget.of(60.0))
    assert decided.verdict is Verdict.FOUND
    assert not [note for note in decided.notes if note[:4] == "E502"]
