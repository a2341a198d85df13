"""`avoid cavities("FILE")`: against every input, judged by the clauses themselves and by the library's own scores."""

from __future__ import annotations

import json
import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.solve.test_split_disjunction import VALUES, World, world_of
from treesens.binder.file import bind
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.compiler.query.evaluate import holds, inputs_of
from treesens.compiler.query.query import Query
from treesens.compiler.result import Verdict
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer

SIGNS = {"<": operator.lt, ">=": operator.ge}
Clauses = list[list[list[Any]]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_of(tmp_path_factory.mktemp("listed"), 4)


def clauses_of(seed: int) -> Clauses:
    """Clauses of one to three literals, at thresholds and beside them, some that hold anyway."""
    rng = np.random.default_rng(seed)
    numbers = [-1, 0, 0.5, 1, 1.25, 2, 2.5, 3, 3.75, 4, 9]
    return [
        [
            [f"f{rng.integers(4)}", str(rng.choice(["<", ">="])), float(rng.choice(numbers))]
            for _ in range(int(rng.integers(2, 4)))
        ]
        for _ in range(int(rng.integers(1, 12)))
    ]


def satisfy(inputs: NDArray[Any], clauses: Clauses) -> NDArray[np.bool_]:
    good = np.ones(len(inputs), bool)
    for clause in clauses:
        good &= np.any([SIGNS[sign](inputs[:, int(f[1:])], number) for f, sign, number in clause], axis=0)
    return good


def query_of(world: World, text: str, *, missing: bool = False) -> Query:
    also = " or missing" if missing else ""
    features = "".join(f"feature f{i}: integer in [0, {VALUES - 1}]{also}\n" for i in range(4))
    return bind(parse(f'model m from "m.json"\n{features}query q: find {text}'), world.folder)["q"].query


@pytest.mark.parametrize("seed", range(12))
def test_the_best_input_that_satisfies_all_clauses(world: World, seed: int) -> None:
    clauses = clauses_of(seed)
    (world.folder / "c.json").write_text(json.dumps(clauses))
    good = satisfy(world.inputs, clauses)
    result = answer(query_of(world, 'a such that a avoid cavities("c.json") maximize margin(a)'), Options())
    assert result.verdict is (Verdict.FOUND if good.any() else Verdict.NONE)
    if result.objective is not None:
        assert result.objective.value == pytest.approx(world.margins[good].max(), abs=1e-5)
    denied = answer(query_of(world, 'a such that not a avoid cavities("c.json") maximize margin(a)'), Options())
    assert denied.verdict is (Verdict.NONE if good.all() else Verdict.FOUND)
    if denied.objective is not None:
        assert denied.objective.value == pytest.approx(world.margins[~good].max(), abs=1e-5)


def test_a_missing_value_lies_in_no_box(world: World) -> None:
    (world.folder / "c.json").write_text('[[["f0", "<", 2], ["f1", ">=", 1]]]')
    query = query_of(world, 'a such that a avoid cavities("c.json")', missing=True)
    (constraint,) = query.constraints
    for values, expected in ([3, 0, 0, 0], False), ([np.nan, 0, 0, 0], True), ([3, np.nan, 0, 0], True):
        assert holds(constraint, inputs_of(query, np.array([values], float))) is expected


def test_a_number_is_rounded_as_a_threshold_of_the_model(world: World) -> None:
    """0.1 is no float32: the nearest one is a little above it, and `x < 0.1` is about that one."""
    (world.folder / "c.json").write_text('[[["f0", "<", 0.1]]]')
    text = 'model m from "m.json"\nfeature f0: real in [0, 1]\nquery q: find a such that a avoid cavities("c.json")'
    query = bind(parse(text), world.folder)["q"].query
    near = float(np.float32(0.1))
    below = float(np.nextafter(np.float32(0.1), np.float32(0)))
    for value, expected in (near, False), (below, True):
        assert holds(query.constraints[0], inputs_of(query, np.array([[value, 0, 0, 0]], float))) is expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[[]]", "at least one literal"),
        ("{}", "not contain a list of clauses"),
        ("[[[1, 2]]]", 'a literal is a feature, "<" or ">="'),
        ('[[["f0", "<=", 1]]]', "clause 0, literal 0"),
        ('[[["f0", "<", 1e999]]]', "clause 0, literal 0"),
        ('[[["f0", "<", true]]]', "clause 0, literal 0"),
        ('[[["f9", "<", 1]]]', "no feature `f9`"),
        ('[[["f0", "<", 1]', "ends in the middle"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_file_that_is_none_is_a_message_with_its_place(world: World, content: str, message: str) -> None:
    (world.folder / "bad.json").write_text(content)
    with pytest.raises(DiagnosticsError, match=message.replace("[", r"\[")):
        query_of(world, 'a such that a avoid cavities("bad.json")')


def test_no_file(world: World) -> None:
    assert not (Path(world.folder) / "none.json").exists()
    with pytest.raises(DiagnosticsError, match="cannot be read"):
        query_of(world, 'a such that a avoid cavities("none.json")')
