"""The rows of a compiled question are those of its statement: none is taken for another one, and none asks for more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extensions.certify.made import query_of
from tests.extensions.certify.models import train
from treesens.binder.file import bind
from treesens.compiler.ir import Linear
from treesens.compiler.pipeline import compile_query
from treesens.compiler.result import Verdict
from treesens.extensions.certify.statement import statement_of
from treesens.extensions.certify.sums import with_cell_rows
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer_question

DATA = 'data d from "d.csv"\n'
HEAD = (
    f'model m from "m.json"\n{DATA}'
    "feature f0: integer in [-3, 1]\nfeature f1: integer in [0, 1]\nfeature f2: integer in [1, 7]\n"
)
QUESTIONS = {
    "a strict bound on whole costs beside scores": (
        "find a in m such that distance(a, row 0 of d, l0) < 2; margin(a) >= 1"
    ),
    "a strict bound that no costs keep": "find a in m such that distance(a, row 0 of d, l0) < 0; margin(a) >= 0.3",
    "a bound between whole costs": "find a in m such that distance(a, row 0 of d, l0) <= 1.5; margin(a) >= 1",
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_rests_on_a_row_has_a_certificate(name: str, tmp_path: Path) -> None:
    train(5, tmp_path / "m.json")
    (tmp_path / "d.csv").write_text("f0,f1,f2\n0,1,2\n0,1,1\n")
    (asked,) = bind(parse(f"{HEAD}query q: {QUESTIONS[name]}\n", "<test>"), tmp_path).queries
    result = answer_question(asked, Options(time_limit=10, certificates=tmp_path / "out", regions=False))
    assert result.verdict is Verdict.NONE
    assert [one.reason for one in result.certificates] == [""]


def test_a_row_of_the_engine_is_known_by_its_name(tmp_path: Path) -> None:
    """The first of three rows of one kind says nothing, and the compiler drops it."""
    train(5, tmp_path / "m.json")
    text = "find a, b in m such that a = b except f0; a.f1 <= b.f1; b.f2 + 2 * a.f2 = 5"
    query = query_of(
        f"{HEAD.replace(DATA, '').replace('integer in [1, 7]', 'real in [0, 2]')}query q: {text}\n", tmp_path
    )
    statement = statement_of(with_cell_rows(query))
    names = [row.name for row in statement.rows]
    kept = [row.name for row in compile_query(statement.query, "native").module.ops_of(Linear)]
    assert len(set(names)) == len(names) == 3
    assert kept == names[1:]


def test_a_count_without_a_row_in_the_domain_says_so(tmp_path: Path) -> None:
    train(5, tmp_path / "m.json")
    (tmp_path / "d.csv").write_text("f0,f1,f2\n9,1,2\n9,1,1\n")
    (asked,) = bind(
        parse(f"{HEAD}query q: count rows of d as a in m such that margin(a) >= 0\n", "<test>"), tmp_path
    ).queries
    result = answer_question(asked, Options(time_limit=10, certificates=tmp_path / "out", regions=False))
    assert result.count is not None
    assert (result.count.at_least, result.count.total) == (0, 2)
    assert [one.reason for one in result.certificates] == [
        "no row lies in the domain, and a claim covers only rows in the domain"
    ]
