"""`count rows`: against the plain meaning of every constraint, on every row; partners by trying every value that matters."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.binder.meaning import holds as means
from tests.binder.setting import DATA, DOMAINS, NAMES, load_model, load_table, values, world
from tests.binder.test_meaning import CASES
from treesens.binder.declarations import Unbound
from treesens.binder.file import ResolvedQuestion, bind
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.floats import NumberType, next_down, next_up
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result, RowCount, Verdict
from treesens.data.tables import Table
from treesens.extensions.answers.row_counts import count_rows
from treesens.grammar.parsing.parser import parse
from treesens.grammar.tree import ast
from treesens.solve.options import Options
from treesens.solve.question import answer

ROWS = 16
FLOAT = NumberType.FLOAT32


def many(rows: int = ROWS, seed: int = 3) -> list[dict[str, float]]:
    rng = np.random.default_rng(seed)
    listed = [values(rng) for _ in range(rows)]
    listed[7]["x"] = 9.0  # outside the domain
    return [{f: float(FLOAT.cast(np.array([v]))[0]) for f, v in row.items()} for row in listed]


def counting(text: str, models: tuple[str, ...] = ("binary",)) -> ResolvedQuestion:
    declared = "".join(f'model {name} from "{name}"\n' for name in models)
    file = parse(f'{declared}{DATA}data many from "many"\n{DOMAINS}query q: count rows of many as {text}', "t.sens")

    def table(path: Path, label: str | None, limit: int | None) -> Table:
        if path.name != "many":
            return load_table(path, label, limit)
        return Table("many", {f: np.array([row[f] for row in many()]) for f in NAMES}, ROWS)

    return bind(file, Path(), load_model=load_model, load_table=table).queries[0]


def counted(question: ResolvedQuestion, backend: str = "native", time_limit: float = 60) -> RowCount:
    assert question.pinned is not None
    options = Options(backend=backend)
    budget = Budget.of(time_limit)
    result = count_rows(question.query, question.pinned, options, lambda q, part: answer(q, options, part), budget)
    assert result.count is not None
    assert result.count.total == ROWS
    assert result.count.outside == 1
    return result.count


@pytest.mark.parametrize(
    ("model", "text"), [(m, t) for m, t in CASES if "b" not in t.replace("abs", "").replace("prob", "")]
)
def test_a_row_counts_where_the_constraint_holds(model: str, text: str) -> None:
    question = counting(f"a in {model} such that\n {text}", (model,))
    assert isinstance(question.find, ast.Count)
    (formula,) = question.find.constraints
    grid = question.query.space.grid
    truth = {
        i
        for i, row in enumerate(many())
        if i != 7 and means(world({"a": model}, {"a": row}, frozenset(), grid), formula)
    }
    count = counted(question)
    assert set(count.rows) <= truth <= set(count.rows) | set(count.undecided)
    assert len(count.undecided) <= 2


def test_costs_are_those_of_the_row_and_not_of_the_nearest_value_of_its_cell() -> None:
    question = counting("a such that\n distance(a, row 2 of rows, l1) <= 2.5")
    assert isinstance(question.find, ast.Count)
    (formula,) = question.find.constraints
    truth = [i for i, row in enumerate(many()) if i != 7 and means(world({"a": "binary"}, {"a": row}), formula)]
    assert 3 < len(truth) < 55
    assert list(counted(question).rows) == truth


PAIRS = [
    "a = b except sex\n prob(a) >= 0.5\n prob(b) < 0.5",
    "a = b except sex\n margin(a) - margin(b) >= 0.3",
    "a = b except {sex, town}\n prob(b) >= 0.6\n b.town != Bonn\n a.x <= 1",
    "a = b except {x, town}\n prob(b) in [0.45, 0.55]",
    "a = b except {x, y}\n abs(a.x - b.x) <= 0.25\n b.y = 1\n margin(a) - margin(b) >= 0.2",
    "a = b except {x, sex}\n class(a) != class(b)\n changes(a, b) <= 1",
    "a = b except {x, sex}\n class(a) != class(b)\n changes(a, b) >= 2",
    "a = b except {x, gap}\n prob(a) >= 0.5 and prob(b) < 0.5 or missing(b.gap) and b.x >= a.x + 1",
    "a = b except {x, gap}\n distance(b, row 2 of rows, l1) <= 2\n prob(b) > prob(a)",
    "a = b\n prob(a) >= 0.5\n a.x <= 1",
]


def candidates(question: ResolvedQuestion, row: int) -> Iterator[dict[str, float]]:
    """Second points that differ in the sensitive features: every threshold, constant and end, and the float before it."""
    assert question.pinned is not None
    pinned, inputs = question.pinned(row), many()[row]
    choices: list[list[float]] = []
    for feature in question.query.varied:
        f = NAMES.index(feature)
        near = [*pinned.space.grid[f].cuts.tolist(), inputs[feature], -2.0, 0.0, 1.0, 2.0, 4.0]
        near += [float(np.float32(inputs[feature] + step)) for step in (-1.0, -0.25, 0.25, 1.0)]
        beside = [v for x in near if not np.isnan(x) for v in (x, next_down(x, FLOAT), next_up(x, FLOAT))]
        low, high = {"x": (-2, 2), "y": (0, 4), "gap": (0, 1), "sex": (0, 1), "town": (0, 2)}[feature]
        legal = sorted({v for v in beside if low <= v <= high})
        if feature in ("sex", "town"):
            legal = [float(v) for v in range(int(high) + 1)]
        choices.append(legal + ([float("nan")] if feature == "gap" else []))
    for picked in product(*choices):
        yield {**inputs, **dict(zip(question.query.varied, picked, strict=True))}


def partners(question: ResolvedQuestion) -> set[int]:
    """Rows with a partner, by the plain meaning of the constraints."""
    assert isinstance(question.find, ast.Count)
    formulas = question.find.constraints
    assert question.pinned is not None
    found = set()
    for i, row in enumerate(many()):
        if i == 7:
            continue
        try:
            grid = question.pinned(i).space.grid
        except Unbound:
            continue  # the row itself is against a constraint
        varied = frozenset(question.query.varied)
        base = world({"a": "binary", "b": "binary"}, {}, varied, grid)
        for tried in candidates(question, i):
            seen = replace(base, values={"a": row, "b": tried})
            if all(means(seen, formula) for formula in formulas):
                found.add(i)
                break
    return found


@pytest.mark.parametrize("text", PAIRS)
def test_a_row_counts_where_a_partner_exists(text: str) -> None:
    question = counting(f"a, b such that\n {text}")
    truth = partners(question)
    count = counted(question)
    assert set(count.rows) <= truth <= set(count.rows) | set(count.undecided)
    # No values are chosen yet for a relation that holds in one branch of a disjunction only.
    assert not count.undecided or " or " in text
    assert 0 < len(truth) < ROWS - 1, "every row or none: a weak test"


def test_partners_without_equal_features_and_of_another_model() -> None:
    """Without `a = b` every input is a partner; with two models and equal points the row is the only one."""
    free = counted(counting("a, b such that\n prob(a) >= 0.5\n prob(b) < 0.5"))
    assert set(free.rows) == set(counted(counting("a such that prob(a) >= 0.5")).rows)
    both = counting("a in binary, b in raw such that\n a = b\n margin(a) - margin(b) >= 0.2", ("binary", "raw"))
    assert isinstance(both.find, ast.Count)
    truth = {
        i
        for i, row in enumerate(many())
        if i != 7
        and all(means(world({"a": "binary", "b": "raw"}, {"a": row, "b": row}), f) for f in both.find.constraints)
    }
    assert set(counted(both).rows) == truth
    assert truth


@pytest.mark.parametrize("backend", ["auto", "z3"])
def test_backends_count_alike(backend: str) -> None:
    """A question that the sweep leaves open for a few rows only: every other backend is asked row by row."""
    text = "a, b such that\n a = b except {x, sex}\n a.x >= 1.25\n prob(b) in [0.45, 0.55]"
    assert counted(counting(text), backend) == counted(counting(text), "native")


def test_equal_rows_are_asked_about_once() -> None:
    text = "a, b such that\n a = b except {x, y}\n abs(a.x - b.x) <= 0.25\n b.y = 1\n margin(a) - margin(b) >= 0.2"
    question = counting(text)
    assert question.query.rows is not None
    assert question.pinned is not None
    once, few = counted(question, "highs"), question.query.rows
    times, pinned, asked = 20, question.pinned, []
    rows = replace(few, values=np.repeat(few.values, times, axis=0), index=np.arange(times * len(few.index)))

    def one(query: Query, part: Budget) -> Result:
        asked.append(query)
        return answer(query, Options(backend="highs"), part)

    result = count_rows(
        replace(question.query, rows=rows),
        lambda number: pinned(int(few.index[number // times])),
        Options(backend="highs"),
        one,
        Budget.of(60),
    )
    assert result.count is not None
    assert result.count.rows == tuple(i for i, n in enumerate(np.repeat(few.index, times)) if n in once.rows)
    assert 0 < len(asked) <= len(few.index)


def test_the_limit_and_an_interruption_leave_honest_bounds() -> None:
    text = "a, b such that\n a = b except {x, y}\n abs(a.x - b.x) <= 0.25\n b.y = 1\n margin(a) - margin(b) >= 0.2"
    question = counting(text)
    truth = set(counted(question).rows)
    stop = threading.Event()
    stop.set()
    asked: list[Query] = []

    def one(query: Query, part: Budget) -> Result:
        asked.append(query)
        return answer(query, Options(backend="z3"), part)

    assert question.pinned is not None
    for limit, event in ((0.001, None), (60.0, stop)):
        result = count_rows(question.query, question.pinned, Options(backend="z3"), one, Budget.of(limit, event))
        assert result.count is not None
        assert set(result.count.rows) <= truth <= set(result.count.rows) | set(result.count.undecided)
        assert result.count.undecided
        assert result.verdict is (Verdict.FOUND if result.count.rows else Verdict.UNKNOWN)
    assert not asked


def test_exit_codes_and_records_of_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.commands.test_command_line import STUMP
    from treesens.cli import main

    (tmp_path / "model.json").write_text(json.dumps(STUMP))
    (tmp_path / "rows.csv").write_text("age,sex\n1,0\n2,1\n3,1\n4,7\n")
    (tmp_path / "q.sens").write_text(
        'model m from "model.json"\ndata d from "rows.csv"\nfeature sex: category {F = 0, M = 1}\n'
        "query high: count rows of d as a such that margin(a) >= 0.5\n"
        "query flips: count rows of d as a, b such that a = b except sex; margin(a) > 0; margin(b) < 0\n"
        "query never: count rows of d as a such that margin(a) >= 5\n expect none\n"
    )

    def run(*arguments: str) -> tuple[object, str]:
        with pytest.raises(SystemExit) as ended:
            main(["check", str(tmp_path / "q.sens"), *arguments])
        return ended.value.code, capsys.readouterr().out

    code, out = run("--json")
    high, flips, never = json.loads(out)["results"]
    assert code == 0
    assert high["count"] == {
        "at_least": 2,
        "at_most": 2,
        "total": 4,
        "outside": 1,
        "rows": [1, 2],
        "undecided": [],
        "shown": 1,
    }
    assert flips["count"]["rows"] == [1, 2]
    assert flips["points"]["a"]["sex"] == "M"
    assert flips["points"]["b"]["sex"] == "F"
    assert (never["verdict"], never["proof"], never["count"]["at_most"]) == ("none", "exact", 0)
    code, out = run("high")
    assert "2 of 4 rows (1 outside the domain): 1, 2" in out
