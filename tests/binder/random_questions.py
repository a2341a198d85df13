"""Random well-typed questions as text, over random small models, and their answers by trying every value.

Domains hold few values, so that the oracle can go through all of them and read the constraints as plainly as `meaning.py`
does: no cells, no grids, no solver. Some domains are intervals; there the oracle tries samples and speaks for `found` only.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from tests.binder.meaning import World, evaluate, holds
from tests.questions import random_ensemble
from treesens.binder.file import ResolvedFile, ResolvedQuestion, bind
from treesens.compiler.base.floats import next_down, next_up
from treesens.compiler.model import Ensemble, FeatureKind, Task
from treesens.data.tables import Table
from treesens.errors import DataError, ModelError
from treesens.frontends.base import LoadedModel
from treesens.grammar.parsing.parser import parse
from treesens.grammar.tree import ast
from treesens.links import Identity

ROWS = 4
NORMS = ("l0", "l1", "l2", "linf")


@dataclass(frozen=True)
class Range:
    """A feature of a question: what it is declared as, the values that the oracle tries, and whether these are all."""

    declared: str
    values: tuple[float, ...]
    kind: str
    width: Fraction | None
    complete: bool = True


@dataclass(frozen=True)
class Question:
    """One question of a file with everything that its answer depends on."""

    text: str
    models: dict[str, Ensemble]
    point_models: dict[str, str]
    ranges: dict[str, Range]
    rows: dict[str, np.ndarray]
    onehot: tuple[str, ...]

    def bound_all(self, text: str | None = None) -> ResolvedFile:
        file = parse(text or self.text, "r.sens")
        return bind(file, Path(), load_model=self._model, load_table=self._table)

    def bound(self) -> ResolvedQuestion:
        return self.bound_all().queries[0]

    def _model(self, path: Path, format: str | None) -> LoadedModel:
        if path.name not in self.models:
            raise ModelError("there is no such model", place=str(path), remedy="check the path")
        ensemble = self.models[path.name]
        return LoadedModel(ensemble, "test", ensemble.margins_emulated)

    def _table(self, path: Path, label: str | None, rows: int | None) -> Table:
        if path.name != "rows":
            raise DataError("there is no such table", place=str(path))
        if label is not None and label not in self.rows:
            raise DataError(f"the table has no column `{label}`", place=str(path), remedy="leave it out")
        return replace(Table("rows", self.rows, ROWS), label=label)

    @property
    def complete(self) -> bool:
        return all(r.complete for r in self.ranges.values())

    def world(self, points: dict[str, dict[str, float]], bound: ResolvedQuestion) -> World:
        names = list(self.ranges)
        grid = bound.query.space.grid
        listed = [{f: float(np.float32(self.rows[f][i])) for f in names} for i in range(ROWS)]
        return World(
            ensembles={p: self.models[m] for p, m in self.point_models.items()},
            values=points,
            rows={"rows": listed},
            units={},
            whole=frozenset(),
            categories={f: {} for f in names},
            widths={f: r.width for f, r in self.ranges.items()},
            varied=frozenset(bound.query.varied),
            grids=dict(zip(names, grid, strict=True)),
        )

    def satisfied(self, points: dict[str, dict[str, float]], bound: ResolvedQuestion) -> bool:
        assert isinstance(bound.find, ast.Find)
        for point in points.values():
            if self.onehot and sorted(point[f] for f in self.onehot) != [0.0] * (len(self.onehot) - 1) + [1.0]:
                return False
        world = self.world(points, bound)
        return all(holds(world, formula) for formula in bound.find.constraints)

    def objective(self, points: dict[str, dict[str, float]], bound: ResolvedQuestion) -> Fraction:
        assert isinstance(bound.find, ast.Find)
        assert bound.find.objective is not None
        return Fraction(evaluate(self.world(points, bound), bound.find.objective.expression))

    def oracle(self, bound: ResolvedQuestion) -> tuple[bool, Fraction | None]:
        """Whether some values satisfy the question, and the best objective (squared for l2)."""
        assert isinstance(bound.find, ast.Find)
        goal = bound.find.objective
        names = list(self.ranges)
        inputs = [
            dict(zip(names, values, strict=True))
            for values in itertools.product(*(self.ranges[f].values for f in names))
        ]
        best: Fraction | None = None
        some = False
        for chosen in itertools.product(inputs, repeat=len(self.point_models)):
            points = dict(zip(self.point_models, chosen, strict=True))
            if not self.satisfied(points, bound):
                continue
            some = True
            if goal is None:
                return True, None
            value = self.objective(points, bound)
            if best is None or (value > best if goal.sense == "maximize" else value < best):
                best = value
        return some, best


def random_question(seed: int) -> Question:
    """A question that type-checks for nearly all seeds (it may contradict itself, which the binder may see)."""
    rng = np.random.default_rng(seed)
    features = int(rng.choice([2, 2, 3]))
    kind = str(rng.choice(["binary", "binary", "multi", "regressor"]))
    names = [f"f{i}" for i in range(features)]
    count = 1 if rng.random() < 0.75 else 2
    models = {f"m{i}": _model(rng, kind, features) for i in range(count)}
    if count == 2 and models["m0"].features != models["m1"].features:
        models["m1"] = models["m0"]
    points = ["a", "b"] if rng.random() < 0.75 else ["a"]
    first = models["m0"]
    onehot = tuple(names[:2]) if features == 3 and rng.random() < 0.2 else ()
    ranges = {f: _range(rng, first, i, f in onehot, features) for i, f in enumerate(names)}
    owners = {p: f"m{i % count}" for i, p in enumerate(points)}
    rows = {f: rng.choice([v for v in r.values if not isnan(v)], size=ROWS) for f, r in ranges.items()}
    writer = _Writer(rng, kind, points, ranges)
    lines = [f'model {m} from "{m}"' for m in models] + ['data rows from "rows"']
    lines += [f"feature {f}: {r.declared}" for f, r in ranges.items() if r.declared]
    lines += [f"onehot {{{', '.join(onehot)}}}"] if onehot else []
    shown = ", ".join(f"{p} in {owners[p]}" for p in points) if count == 2 else ", ".join(points) + " in m0"
    lines += ["query q:", f"  find {shown} such that", *(f"    {c}" for c in writer.constraints())]
    lines += writer.objective()
    return Question("\n".join(lines) + "\n", models, owners, ranges, rows, onehot)


def _model(rng: np.random.Generator, kind: str, features: int) -> Ensemble:
    made = random_ensemble(rng, outputs=3 if kind == "multi" else 1, features=features, trees=int(rng.integers(1, 5)))
    if kind == "regressor":
        made = replace(made, link=Identity(), task=Task.REGRESSION, classes=()).validate()
    return made


def _range(rng: np.random.Generator, model: Ensemble, feature: int, onehot: bool, features: int) -> Range:
    """Thresholds lie at 0.25, 0.5, 0.75 and 1."""
    if model.features[feature].kind is FeatureKind.CATEGORICAL:
        return Range("", (0.0, 1.0, 2.0), "category", None)
    if onehot:
        return Range("integer in [0, 1]", (0.0, 1.0), "number", Fraction(1))
    missing = rng.random() < 0.25
    lost = (float("nan"),) if missing else ()
    word = " or missing" if missing else ""
    choice = rng.random()
    if choice < 0.3:
        return Range("category {0, 0.5, 1}" + word, (0.0, 0.5, 1.0, *lost), "category", None)
    if choice < 0.75 or features == 3:
        high = int(rng.integers(1, 3))
        values = tuple(float(v) for v in range(-1, high + 1))
        return Range(f"integer in [-1, {high}]{word}", (*values, *lost), "number", Fraction(high + 1))
    kind = model.number_type
    ends = [-0.5, next_down(0.25, kind), 0.25, 0.5, next_down(0.75, kind), 0.75, next_up(1.0, kind), 1.5]
    return Range(f"real in [-0.5, 1.5]{word}", (*ends, *lost), "number", Fraction(2), complete=False)


@dataclass
class _Writer:
    """Constraints and objectives as text."""

    rng: np.random.Generator
    kind: str
    points: Sequence[str]
    ranges: dict[str, Range]

    def constraints(self) -> list[str]:
        first = [self._same()] if len(self.points) == 2 and self.rng.random() < 0.3 else []
        return first + [self._formula(2) for _ in range(int(self.rng.integers(1, 4)))]

    def objective(self) -> list[str]:
        if self.rng.random() < 0.5:
            return []
        sense = self._one(["maximize", "minimize"])
        two = len(self.points) == 2
        row = f"row {self.rng.integers(ROWS)} of rows"
        options = [f"distance(a, {row}, {self._one(NORMS)})", f"distance(a, {row}, {self._one(NORMS)})"]
        if two:
            options += [f"distance(a, b, {self._one(NORMS)})", f"distance(a, b, {self._one(NORMS)})", "changes(a, b)"]
        options.append(f"{self._margin('a')} - {self._margin(self.points[-1])} + 1" if two else self._margin("a"))
        return [f"  {sense} {self._one(options)}"]

    def _one(self, items: Sequence[str]) -> str:
        return str(items[int(self.rng.integers(len(items)))])

    def _number(self, low: int = -4, high: int = 9) -> str:
        return str(float(Fraction(int(self.rng.integers(low, high)), 4)))

    def _operator(self, equality: bool = True) -> str:
        return self._one(["<", "<=", ">", ">=", "=", "!="] if equality else ["<", "<=", ">", ">="])

    def _same(self) -> str:
        free = [f for f in self.ranges if self.rng.random() < 0.6]
        return "a = b" + (f" except {{{', '.join(free)}}}" if free else "")

    def _formula(self, depth: int) -> str:
        if depth and self.rng.random() < 0.3:
            left, right = self._formula(depth - 1), self._formula(depth - 1)
            return self._one(
                [f"({left}) or ({right})", f"not ({left})", f"({left}) implies ({right})", f"({left}) and ({right})"]
            )
        options = [self._score, self._feature, self._distance, self._relation, self._row]
        if len(self.points) == 2:
            options += [self._two, self._between]
        return options[int(self.rng.integers(len(options)))]()

    def _margin(self, point: str) -> str:
        if self.kind == "multi":
            return f"margin({point}, {self.rng.integers(3)})"
        return f"value({point})" if self.kind == "regressor" and self.rng.random() < 0.5 else f"margin({point})"

    def _score(self) -> str:
        p, q = self._one(self.points), self._one(self.points)
        options = [f"{self._margin(p)} {self._operator(False)} {self._number()}"]
        if p != q:
            options.append(f"{self._margin(p)} - {self._margin(q)} {self._operator(False)} {self._number()}")
        if self.kind == "binary":
            options += [f"prob({p}) {self._operator(False)} 0.{self.rng.integers(2, 9)}", f"class({p}) = 1"]
        if self.kind == "multi":
            options += [f"class({p}) = {self.rng.integers(3)} by margin 0.1", f"class({p}) = {self.rng.integers(3)}"]
        return self._one(options)

    def _numbers(self) -> list[str]:
        return [f for f, r in self.ranges.items() if r.kind == "number"]

    def _feature(self) -> str:
        p, f = self._one(self.points), self._one(list(self.ranges))
        if "missing" in self.ranges[f].declared and self.rng.random() < 0.4:
            return f"missing({p}.{f})"
        if self.ranges[f].kind == "category":
            present = [v for v in self.ranges[f].values if not isnan(v)]
            return f"{p}.{f} {self._one(['=', '!='])} {self._one([f'{v:g}' for v in present])}"
        return f"{p}.{f} {self._operator(False)} {self._number(-2, 7)}"

    def _relation(self) -> str:
        """A linear relation over up to four features of the points."""
        known = [f"{p}.{f}" for p in self.points for f in self._numbers()]
        if len(known) < 2:
            return self._score()
        count = int(self.rng.integers(2, min(4, len(known)) + 1))
        chosen = [str(x) for x in self.rng.choice(known, size=count, replace=False)]
        factors = [int(self.rng.choice([-2, -1, 1, 1, 3])) for _ in chosen]
        text = " + ".join(f"{c} * {x}" for c, x in zip(factors, chosen, strict=True))
        if self.rng.random() < 0.2:
            return f"abs({text}) {self._operator(False)} {self._number(0, 9)}"
        return f"{text} {self._operator()} {self._number(-4, 9)}"

    def _distance(self) -> str:
        p, norm = self._one(self.points), self._one(NORMS)
        return f"distance({p}, row {self.rng.integers(ROWS)} of rows, {norm}) {self._limit(norm)}"

    def _limit(self, norm: str) -> str:
        if norm == "l0":
            return f"{self._operator()} {self.rng.integers(0, len(self.ranges) + 1)}"
        return f"{self._operator()} {self._number(0, 6)}"

    def _between(self) -> str:
        norm = self._one(NORMS)
        if self.rng.random() < 0.15:
            return f"changes(a, b) {self._limit('l0')}"
        return f"distance(a, b, {norm}) {self._limit(norm)}"

    def _two(self) -> str:
        f = self._one(list(self.ranges))
        if self.ranges[f].kind == "category":
            return f"a.{f} {self._one(['=', '!='])} b.{f}"
        if self.rng.random() < 0.3:
            return self._same()
        return f"a.{f} {self._operator()} b.{f} + {self._number(-3, 4)}"

    def _row(self) -> str:
        free = [f for f in self.ranges if self.rng.random() < 0.5]
        word = f" except {{{', '.join(free)}}}" if free and len(free) < len(self.ranges) else ""
        return f"{self._one(self.points)} = row {self.rng.integers(ROWS)} of rows{word}"


def witness_points(question: Question, values: Any) -> dict[str, dict[str, float]]:
    """The values of a witness by point and feature."""
    return {
        p: {f: float(values[i, j]) for j, f in enumerate(question.ranges)} for i, p in enumerate(question.point_models)
    }
