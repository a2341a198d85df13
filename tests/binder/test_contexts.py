"""Every construct of the language in every context that may hold it, on all inputs of a small domain.

The meaning of a constraint is written here from docs/language.md, over the library's own predictions. For constraints learnt
from rows (cavities, typical inputs, likelihoods) the truth is the rows that a `count` of the plain constraint names, so that
contexts are compared. A context that takes no such constraint says so by an error that the reference lists.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.trials import THOROUGH
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.grammar.constructs.registry import constructs, functions
from treesens.grammar.messages.catalogue import CATALOGUE
from treesens.grammar.parsing.parser import parse
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import nodes_in

pytestmark = pytest.mark.extensions

GRID = pd.DataFrame(
    list(itertools.product(range(3), range(3), (0.0, 1.0, np.nan), range(2))), columns=list("xymc")
).astype(float)
WIDTHS = {"x": 2, "y": 2, "m": 1, "c": 1}
ROW, SIZE = 5, len(GRID)
HEAD = """
feature x: integer in [0, 2]
feature y: integer in [0, 2]
feature m: integer in [0, 1] or missing
feature c: category {A = 0, B = 1}
measure even: uniform
"""
BASE = "decision base of w: yes when w.x >= 1 and prob(w) >= 0.5 else no\n"
DOCUMENTED = set(CATALOGUE)


@functools.cache
def library() -> Any:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(4)
    rows = GRID.sample(600, replace=True, random_state=4)
    score = rows.x - rows.y * (rows.c - 0.5) + rows.m.fillna(2) * (rows.x == 1) + rng.normal(0, 0.7, len(rows))
    model = lightgbm.LGBMClassifier(n_estimators=12, num_leaves=6, min_child_samples=5, n_jobs=1, verbose=-1)
    return model.fit(rows, (score > 1.2).astype(int))


@dataclass(frozen=True)
class Pairs:
    """All pairs of inputs: `i`, `j` int[pairs] are the places of `a` and `b`; distances leave the `varied` features out."""

    varied: frozenset[str] = frozenset()

    @property
    def i(self) -> np.ndarray:
        return np.repeat(np.arange(SIZE), SIZE)

    @property
    def j(self) -> np.ndarray:
        return np.tile(np.arange(SIZE), SIZE)

    def a(self, name: str) -> np.ndarray:
        return GRID[name].to_numpy()[self.i]

    def b(self, name: str) -> np.ndarray:
        return GRID[name].to_numpy()[self.j]

    def row(self, name: str) -> np.ndarray:
        return np.full(SIZE * SIZE, GRID[name].iloc[ROW])

    def differ(self, name: str, other: str) -> np.ndarray:
        x, y = self.a(name), self.b(name) if other == "b" else self.row(name)
        return ~((x == y) | (np.isnan(x) & np.isnan(y)))

    def equal(self, other: str, *free: str) -> np.ndarray:
        return ~np.logical_or.reduce([self.differ(name, other) for name in WIDTHS if name not in free])

    def changes(self) -> np.ndarray:
        return np.sum([self.differ(name, "b") for name in WIDTHS], axis=0)

    def distance(self, other: str, norm: str) -> np.ndarray:
        parts = []
        for name, width in WIDTHS.items():
            if name not in self.varied:
                y = self.b(name) if other == "b" else self.row(name)
                away = np.abs(self.a(name) - y) / width
                parts.append(np.where(self.differ(name, other), np.where(np.isnan(away), 1.0, away), 0.0))
        each = np.stack(parts)
        if norm == "linf":
            return each.max(axis=0)
        return {"l0": (each > 0).sum(axis=0), "l1": each.sum(axis=0), "l2": np.sqrt((each**2).sum(axis=0))}[norm]

    def margin(self, point: str) -> np.ndarray:
        return library().predict(GRID, raw_score=True)[self.i if point == "a" else self.j]

    def prob(self, point: str) -> np.ndarray:
        return library().predict_proba(GRID)[:, 1][self.i if point == "a" else self.j]

    def label(self, point: str) -> np.ndarray:
        return library().predict(GRID)[self.i if point == "a" else self.j]

    def base(self, point: str) -> np.ndarray:
        return ((self.a("x") if point == "a" else self.b("x")) >= 1) & (self.prob(point) >= 0.5)


Truth = Callable[[Pairs], np.ndarray]
ROWS: dict[str, Truth | None] = {
    "{a} = {b} except {{x}}": lambda s: s.equal("b", "x"),
    "{a} = row 5 of d": lambda s: s.i == ROW,
    "{a} = row 5 of d except {{x, y}}": lambda s: s.equal("row", "x", "y"),
    "prob({a}) >= 0.6": lambda s: s.prob("a") >= 0.6,
    "prob({a}) - prob({b}) > 0.3": lambda s: s.prob("a") - s.prob("b") > 0.3,
    "margin({a}) > 0.2": lambda s: s.margin("a") > 0.2,
    "margin({a}) - margin({b}) >= 1": lambda s: s.margin("a") - s.margin("b") >= 1,
    "value({a}) >= 0.5": lambda s: s.prob("a") >= 0.5,
    "class({a}) = 1": lambda s: s.label("a") == 1,
    "class({a}) = 0 by factor 1.5": lambda s: (1 - s.prob("a")) >= 1.5 * s.prob("a"),
    "class({a}) = 1 by margin 0.4": lambda s: s.margin("a") >= 0.4,
    "class({a}) != class({b})": lambda s: s.label("a") != s.label("b"),
    "{a}.x >= 1": lambda s: s.a("x") >= 1,
    "{a}.c = A": lambda s: s.a("c") == 0,
    "{a}.m != 1": lambda s: s.a("m") != 1,
    "{a}.x in [1, 2)": lambda s: s.a("x") == 1,
    "{a}.x in {{0, 2}}": lambda s: s.a("x") != 1,
    "{a}.c not in {{A}}": lambda s: s.a("c") == 1,
    "missing({a}.m)": lambda s: np.isnan(s.a("m")),
    "present({a}.m)": lambda s: ~np.isnan(s.a("m")),
    "{a}.x + {a}.y >= 3": lambda s: s.a("x") + s.a("y") >= 3,
    "{a}.m < {a}.x": lambda s: s.a("m") < s.a("x"),
    "{a}.x <= {b}.y - 1": lambda s: s.a("x") <= s.b("y") - 1,
    "{a}.m = {b}.m": lambda s: s.a("m") == s.b("m"),
    "{a}.x + {b}.y - {a}.y > 2": lambda s: s.a("x") + s.b("y") - s.a("y") > 2,
    "abs({a}.x - {b}.x) >= 2": lambda s: np.abs(s.a("x") - s.b("x")) >= 2,
    "abs({a}.x - {a}.y) <= 0": lambda s: s.a("x") == s.a("y"),
    "distance({a}, row 5 of d, l0) <= 1": lambda s: s.distance("row", "l0") <= 1,
    "distance({a}, row 5 of d, l1) <= 0.5": lambda s: s.distance("row", "l1") <= 0.5,
    "distance({a}, row 5 of d, l2) < 1": lambda s: s.distance("row", "l2") < 1,
    "distance({a}, row 5 of d, linf) > 0.5": lambda s: s.distance("row", "linf") > 0.5,
    "distance({a}, {b}, l1) <= 0.5": lambda s: s.distance("b", "l1") <= 0.5,
    "distance({a}, {b}, l0) >= 4": lambda s: s.distance("b", "l0") >= 4,
    "changes({a}, {b}) = 2": lambda s: s.changes() == 2,
    "decision({a}, base) = yes": lambda s: s.base("a"),
    "decision({a}, base) != decision({b}, base)": lambda s: s.base("a") != s.base("b"),
    # A box of the file: x >= 1 and y < 1.
    '{a} avoid cavities("FILE")': lambda s: (s.a("x") < 1) | (s.a("y") >= 1),
    "{a} avoid cavities(few, width = 2)": None,
    "{a} typical of d at 70 %": None,
    "typicality({a}, few) >= -4": None,
    "likelihood({a}, few) >= 0.01": None,
}


@dataclass(frozen=True)
class Context:
    """A place for a constraint. `text` has `{c}` for it, `{n}` for its number and `{points}`; `holds` computes the truth of the
    whole question from that of the constraint and all pairs. `linked`: the points are equal except for `x`; `inside`: a
    decision; `single`: one point alone.
    """

    text: str
    holds: Callable[[Pairs, np.ndarray], np.ndarray] = lambda _pairs, truth: truth
    linked: bool = False
    inside: bool = False
    single: bool = False


FIND = "query q{n}: find {points} such that "
LINK = FIND + "a = b except {{x}}; "
DECISION = "decision d{n} of p: yes when {c} else no @"


def beside_y(holds: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[[Pairs, np.ndarray], np.ndarray]:
    """With `a.y = 0`: a connective of a constraint and `a.x = 2`."""
    return lambda s, truth: (s.a("y") == 0) & holds(truth, s.a("x") == 2)


CONTEXTS = {
    "plain": Context(FIND + "{c}"),
    "negation": Context(FIND + "not ({c})", lambda _, t: ~t),
    "two negations": Context(FIND + "not (not ({c}) or a.x = 2); a.y = 0", beside_y(lambda t, two: t & ~two)),
    "disjunction": Context(FIND + "a.y = 0; {c} or a.x = 2", beside_y(lambda t, two: t | two)),
    "implication": Context(FIND + "a.y = 0; {c} implies a.x = 2", beside_y(lambda t, two: ~t | two)),
    "varied": Context(LINK + "{c}", lambda s, t: s.equal("b", "x") & t, linked=True),
    "decision": Context(DECISION + FIND + "decision(a, d{n}) = yes", inside=True),
    "other outcome": Context(DECISION + FIND + "decision(a, d{n}) = no", lambda _, t: ~t, inside=True),
    "decisions of a pair": Context(
        DECISION + LINK + "decision(a, d{n}) != decision(b, d{n})",
        lambda s, t: s.equal("b", "x") & (t != t.reshape(SIZE, SIZE).T.ravel()),
        linked=True,
        inside=True,
    ),
    "several": Context(FIND + "{c} top 2 diverse"),
    "best": Context(FIND + "{c} maximize a.y"),
    "best score": Context(FIND + "{c} minimize margin(a)"),
    "rows": Context("query q{n}: count rows of d as {points} such that {c}"),
    "rows not": Context("query q{n}: count rows of d as {points} such that not ({c})", lambda _, t: ~t),
    "share": Context(FIND + "{c} share of even", single=True),
}


def test_every_construct_has_a_row() -> None:
    text = "\n".join(f"query q{n}: find a, b such that {row.format(a='a', b='b')}" for n, row in enumerate(ROWS))
    nodes = list(nodes_in(parse(text)))
    kinds = {kind for found in constructs().values() for kind in found.nodes}
    kinds |= {ast.PointsEqual, ast.PointIsRow, ast.ClassIs, ast.Comparison, ast.Not}
    assert kinds <= {type(node) for node in nodes}
    assert all(f"{word}(" in text for word in functions())


def asked(lines: dict[int, str], boxes: str) -> tuple[dict[int, Any], dict[int, set[str]]]:
    """Answers by the number of a row, and the codes of those that are refused."""
    tables = {"d": GRID, "few": GRID[(GRID.x != 1) | (GRID.y == 1)][:30]}
    declared = 'model m from "m"\ndata d from "d"\ndata few from "few"\n' + HEAD + BASE
    text = "".join(line.replace("FILE", boxes).replace("@", "\n") + "\n" for line in lines.values())
    answers = ts.check_text(declared + text, models={"m": library()}, data=tables, seed=1, time_limit=20)
    found, refused = dict[int, Any](), dict[int, set[str]]()
    for n in lines:
        try:
            found[n] = answers[f"q{n}"]
        except DiagnosticsError as error:
            refused[n] = {one.code for one in error.diagnostics if one.severity == "error"}
    return found, refused


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("boxes") / "boxes.json"
    path.write_text(json.dumps([[["x", "<", 1], ["y", ">=", 1]]]), "utf-8")
    return str(path)


@pytest.fixture(scope="module")
def learnt(boxes: str) -> dict[str, np.ndarray]:
    """The inputs that a constraint which is learnt from rows allows, bool[inputs]: the rows that it leaves of all of them."""
    lines = {
        n: f"query q{n}: count rows of d as a such that {c.format(a='a')}"
        for n, c in enumerate(ROWS)
        if ROWS[c] is None
    }
    answers, refused = asked(lines, boxes)
    assert not refused
    found = {list(ROWS)[n]: np.isin(np.arange(SIZE), answer.count.rows) for n, answer in answers.items()}
    assert all(x.any() and not x.all() for x in found.values()), found
    return found


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.extensions) if name == "share" else name for name in CONTEXTS]
)
def test_a_construct_means_the_same_in_every_context(name: str, boxes: str, learnt: dict[str, np.ndarray]) -> None:
    context, lines = CONTEXTS[name], dict[int, str]()
    for n, row in enumerate(ROWS):
        points = "a, b" if context.linked or ("{b}" in row and not context.inside) else "a"
        if context.single and points == "a, b":
            continue
        place = "p" if context.inside else "a"
        lines[n] = context.text.format(c=row.format(a=place, b="b"), n=n, points=points)
    answers, refused = asked(lines, boxes)
    assert set[str]().union(*refused.values()) <= DOCUMENTED
    assert len(answers) > len(lines) / 2, refused
    for n, answer in answers.items():
        row = list(ROWS)[n]
        # Distances leave out the features that the question varies; a decision is a function of one input.
        pairs = Pairs(frozenset("x") if context.linked and not context.inside else frozenset())
        meaning = ROWS[row]
        truth = np.repeat(learnt[row], SIZE) if meaning is None else meaning(pairs)
        judge(name, f"{name}: {lines[n]}", answer, context.holds(pairs, truth))


def judge(name: str, what: str, answer: Any, holds: np.ndarray) -> None:
    """An answer against the pairs (a, b) bool[pairs] that the question allows."""
    first = holds.reshape(SIZE, SIZE).any(axis=1)
    if name.startswith("rows"):
        assert list(answer.count.rows) == np.flatnonzero(first).tolist(), what
        assert len(answer.count.undecided) == 0, what
        return
    assert str(answer.verdict) == ("found" if holds.any() else "none"), what
    record = answer.to_dict()
    if name == "share":
        found = answer.result.share
        present = ~GRID.m.isna().to_numpy()  # missing values have no share of `uniform` (docs/measures.md)
        assert found.lower - 1e-9 <= first[present].mean() <= found.upper + 1e-9, what
    if not holds.any():
        return
    places = {p: place(values) for p, values in record["points"].items()}
    assert holds.reshape(SIZE, SIZE)[places["a"]][places["b"] if "b" in places else slice(None)].any(), what
    if name == "best":
        assert record["objective"]["value"] == GRID.y[first].max(), what
    if name == "best score":
        assert record["objective"]["value"] == pytest.approx(library().predict(GRID, raw_score=True)[first].min()), what


def place(values: dict[str, Any]) -> int:
    """The number of a printed input."""
    code = "AB".index(values["c"]) if isinstance(values["c"], str) else values["c"]
    wanted = [values["x"], values["y"], np.nan if values["m"] is None else values["m"], code]
    return int(np.flatnonzero([np.array_equal(row, wanted, equal_nan=True) for row in GRID.to_numpy()])[0])


LIMITS: list[dict[str, Any]] = [
    {},
    {"fixed": ["y"]},
    {"direction": {"x": "up"}},
    {"permitted": {"x": (0, 1)}},
    {"without": ["m"]},
    {"permitted": {"c": [1], "m": (1, 1)}},
    {"direction": {"y": "down", "m": "up"}, "fixed": ["c"]},
    {"without": ["x", "c"], "permitted": {"y": (1, 2)}},
]
"""What changes may do, as options of `why` say it."""


def agree(row: int, names: Iterable[str]) -> np.ndarray:
    """The inputs with the values of a row in some features, bool[inputs]."""
    values, own = GRID[[*names]].to_numpy(), GRID[[*names]].iloc[row].to_numpy()
    return ((values == own) | (np.isnan(values) & np.isnan(own))).all(axis=1)


def may_become(row: int, limits: dict[str, Any]) -> np.ndarray:
    """The inputs that a row may become, bool[inputs]. A missing value has no direction and no end: it stays."""
    allowed = agree(row, [*limits.get("fixed", ()), *limits.get("without", ())])
    for name, way in limits.get("direction", {}).items():
        own, values = GRID[name].iloc[row], GRID[name].to_numpy()
        moved = values >= own if way == "up" else values <= own
        allowed &= agree(row, [name]) if np.isnan(own) else moved
    for name, what in limits.get("permitted", {}).items():
        values = GRID[name].to_numpy()
        inside = (values >= what[0]) & (values <= what[1]) if isinstance(what, tuple) else np.isin(values, what)
        allowed &= agree(row, [name]) | (inside & ~np.isnan(GRID[name].iloc[row]))
    return allowed


def judge_reason(record: dict[str, Any], outcome: np.ndarray, without: Sequence[str], what: str) -> None:
    """A reason: inputs that agree with the row on it have its outcome, bool[inputs], and each of its features is needed."""
    row = record["row"]
    others = outcome != outcome[row]
    if record["sufficient"] is None:
        assert (others & agree(row, [n for n in WIDTHS if n not in without])).any(), what
        return
    kept = [*record["sufficient"]]
    assert not (others & agree(row, kept)).any(), what
    assert not {*kept} & {*without}, what
    assert all((others & agree(row, [n for n in kept if n != name])).any() for name in kept), what


def judge_change(record: dict[str, Any], outcome: np.ndarray, limits: dict[str, Any], what: str) -> None:
    """A change: another outcome, bool[inputs], by these features alone, as far as limits allow; none only if there is none."""
    row = record["row"]
    there = (outcome != outcome[row]) & may_become(row, limits)
    if limits and "changeable" in record:
        assert record["changeable"] == there.any(), what
    assert (record["contrast"] is not None) == there.any(), what
    if record["contrast"] is not None:
        assert (there & agree(row, [n for n in WIDTHS if n not in record["contrast"]]))[place(record["point"])], what


@pytest.mark.extensions
def test_a_decision_of_a_study_means_the_same(tmp_path: Path, boxes: str, learnt: dict[str, np.ndarray]) -> None:
    """The class of a row, its reason and its change: every construct under one or two of the limits."""
    rows, seen, refused = [0, ROW, 20, 33, 53], set[str](), set[str]()
    for number, (row, meaning) in enumerate(ROWS.items()):
        path = tmp_path / "d.sens"
        path.write_text(
            f"decision d of p: yes when {row.format(a='p', b='b').replace('FILE', boxes)} else no\n", "utf-8"
        )
        for limits in (LIMITS[number % len(LIMITS)], LIMITS[(3 * number + 1) % len(LIMITS)])[: 2 if THOROUGH else 1]:
            try:
                found = ts.why(library(), GRID, rows=rows, decision=path, time_limit=5, **limits).records
            except ts.errors.UsageError:
                break
            except DiagnosticsError as error:
                refused |= {found.code for found in error.diagnostics}
                break
            truth = learnt[row] if meaning is None else meaning(Pairs()).reshape(SIZE, SIZE)[:, 0]
            assert [record["class"] for record in found] == ["yes" if truth[n] else "no" for n in rows], row
            for record in found:
                what = f"{row} under {limits}: row {record['row']}"
                judge_reason(record, truth, limits.get("without", ()), what)
                judge_change(record, truth, limits, what)
            seen.add(row)
    assert refused <= DOCUMENTED
    assert len(seen) > 15


def test_an_explanation_takes_no_constraint() -> None:
    for row in ROWS:
        with pytest.raises(DiagnosticsError) as error:
            parse(f"query q: explain row 5 of d in m such that {row.format(a='a', b='b')}")
        assert {one.code for one in error.value.diagnostics} == {"S001"}, row


def test_an_explanation_is_that_of_the_library() -> None:
    barred = [names for size in range(4) for names in itertools.combinations(WIDTHS, size)]
    asks = {n: ([0, ROW, 20, 33, 53][n % 5], names, " smallest" * (n % 2)) for n, names in enumerate(barred)}
    lines = {
        n: f"query q{n}: explain row {row} of d in m without {{{', '.join(names)}}}{few}".replace(" without {}", "")
        for n, (row, names, few) in asks.items()
    }
    answers, refused = asked(lines, "")
    assert not refused
    outcome = Pairs().label("a").reshape(SIZE, SIZE)[:, 0]
    for n, (row, names, few) in asks.items():
        told = answers[n].to_dict()["explanation"]
        assert told["row"] == row
        judge_reason(told, outcome, names, lines[n])
        if told["sufficient"] is not None:
            judge_change(told, outcome, {"without": names}, lines[n])
        if few and told["sufficient"]:
            fewer = itertools.combinations([n for n in WIDTHS if n not in names], len(told["sufficient"]) - 1)
            assert all(((outcome != outcome[row]) & agree(row, one)).any() for one in fewer), lines[n]
