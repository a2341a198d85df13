"""Questions with more cases than are proved one by one: a part answers many of them, and no case is left."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.certify.made import parts_of, query_of
from tests.extensions.certify.models import train
from treesens.binder.file import bind
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query
from treesens.compiler.result import Certified, Verdict
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify.answers import certified_none
from treesens.extensions.certify.cases import MOST, cases_of, proved_in_parts
from treesens.extensions.certify.command import run_checker
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer_question

HEAD = (
    'model m from "m.json"\n'
    "feature f0: real in [0, 2]\nfeature f1: real in [0, 2] or missing\nfeature f2: real in [0, 4]\nquery q: "
)
MANY = "; ".join(f"(margin(a) >= {n / 8} or margin(b) >= {n / 16})" for n in range(1, 9))
NONE = f"find a, b in m such that a = b except {{f0}}; margin(a) <= 0; margin(b) < 0; {MANY}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tree")
    train(4, made / "m.json")
    return made


def manifest(text: str, folder: Path, out: Path) -> tuple[Path, dict[str, Any], list[dict[str, Any]]]:
    made = certified_none(query_of(f"{HEAD}{text}\n", folder), out, budget=Budget.of(20))
    assert [one.reason for one in made] == [""] * len(made)
    (path,) = out.glob("*.manifest.json")
    document = json.loads(path.read_text())
    parts = parts_of(path)
    (claim,) = document["claims"]
    return path, claim, parts


def test_two_rows_that_contradict_each_other_answer_all_cases_with_both(folder: Path, tmp_path: Path) -> None:
    """256 cases, each of which asks for a margin above 0 that is at most 0: the first alternatives are enough."""
    assert cases_of(query_of(f"{HEAD}{NONE}\n", folder)) is None
    path, claim, parts = manifest(NONE, folder, tmp_path)
    assert len(parts) == 2
    assert [len(part["statement"]["rows"]) for part in parts] == [2, 2]
    assert run_checker([path], [folder / "m.json"], {}) == 0
    data = [(folder / "m.json").read_bytes()]
    for kept in ([0], [1], []):
        with pytest.raises(checker.Rejected, match="answered by no part"):
            checker.together({**claim, "parts": kept}, parts, lambda stated: checker.core.model_of(stated, data))


def test_a_question_with_an_answer_is_not_proved(folder: Path, tmp_path: Path) -> None:
    """In one of 256 cases: margin(a) is above 1 at some inputs."""
    text = NONE.replace("margin(a) <= 0; ", "")
    (asked,) = bind(parse(f"{HEAD}{text}\n", "<test>"), folder).queries
    assert answer_question(asked, Options(time_limit=20, regions=False)).verdict is Verdict.FOUND
    made = certified_none(asked.query, tmp_path, budget=Budget.of(20))
    assert [one.path for one in made] == [""]
    assert made[0].reason
    assert not [*tmp_path.glob("*.manifest.json")]


def test_scores_that_contradict_each_other_only_with_a_third_are_proved_by_the_engine(
    folder: Path, tmp_path: Path
) -> None:
    """m(a) >= n / 8, m(b) - m(a) >= 0.5, and m(b) <= 0.5: no two of them are enough."""
    many = "; ".join(f"(margin(a) >= {n / 8} or margin(b) >= {0.5 + n / 16})" for n in range(1, 9))
    text = f"find a, b in m such that a = b except {{f0}}; margin(b) - margin(a) >= 0.5; margin(b) <= 0.5; {many}"
    path, _, parts = manifest(text, folder, tmp_path)
    assert len(parts) == 2
    assert run_checker([path], [folder / "m.json"], {}) == 0


def walk(query: Query, accepted: set[int]) -> tuple[int, list[Certified] | None]:
    """How many parts are tried if a proof needs so many constraints."""
    tried = itertools.count()

    def prove(case: tuple[Query, Any]) -> Certified:
        next(tried)
        return Certified("none", path="made" if len(case[0].constraints) in accepted else "", reason="no")

    found = proved_in_parts(query, (), prove, Budget.of(60))
    return next(tried), found


def test_a_walk_ends(folder: Path) -> None:
    """256 parts that are all needed are too many, and so are those of which none is proved."""
    text = NONE.replace("margin(a) <= 0; margin(b) < 0; ", "")
    query = query_of(f"{HEAD}{text}\n", folder)
    count = len(query.constraints)
    tried, found = walk(query, {count})
    assert (tried, found) == (2, [Certified("none", path="made", reason="no")] * 2)
    tried, found = walk(query, set())
    assert (tried, found) == (8, None)
    more = "(a.f0 <= 1 or margin(a) >= 2); (a.f0 >= 1 or margin(b) >= 2)"
    deep = query_of(f"{HEAD}{text}; {more}\n", folder)
    tried, found = walk(deep, {len(deep.constraints) + 1})
    assert found is None
    assert tried <= 2 * MOST + 16


def test_a_set_of_a_feature_without_one_is_not_below_a_part(folder: Path) -> None:
    """Features without a set are never missing: a part without it would say less than the case."""
    head = HEAD.replace("feature f1: real in [0, 2] or missing\n", "")
    text = f"{NONE}; (a.f1 <= 1 or margin(a) >= 3)"
    assert (
        proved_in_parts(
            query_of(f"{head}{text}\n", folder), (), lambda _: Certified("none", path="made"), Budget.of(60)
        )
        is None
    )
    assert proved_in_parts(
        query_of(f"{HEAD}{text}\n", folder), (), lambda _: Certified("none", path="made"), Budget.of(60)
    )
