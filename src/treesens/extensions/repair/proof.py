"""Promises of a repaired model: questions that must have the answer `none` over the whole domain, with certificates."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import cast

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import BoolArray, FloatArray
from treesens.compiler.base.budget import Budget
from treesens.compiler.result import Result
from treesens.errors import UsageError
from treesens.extensions.repair.study import PromiseKind, RepairOptions
from treesens.extensions.studies.decisions import Apart, Asked, Between, Decision, decisions_of, natural_question
from treesens.extensions.studies.events import Gap
from treesens.extensions.studies.questions import bind_study, check_features, declarations_of, pair_of
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.solve.options import Options
from treesens.solve.question import answer_question


@dataclass(frozen=True)
class Promise:
    """A promise about all pairs of inputs that differ only in `varied`: the scores of a pair are not on both sides of the
    decision by `size` or more (`gap` in probability or a regressor's value, `margin` in raw score), or differ by at most `size`
    in raw score (`swing`). For a direction, the score does not fall (rise) by `size` or more if the only varied feature rises.
    """

    varied: tuple[str, ...]
    kind: PromiseKind
    size: Fraction

    @property
    def is_direction(self) -> bool:
        """True if the promise is about the order of scores."""
        return self.kind in ("increasing", "decreasing")

    def words(self) -> str:
        """A short description of the promise."""
        if self.is_direction:
            return f"{self.kind} in {self.varied[0]}"
        return f"{self.kind} {float(self.size):g} of {', '.join(self.varied)}"


@dataclass(frozen=True)
class Decided:
    """The requested decision, defined by a cut-off of the probability or by class names, and the domain."""

    threshold: Fraction | None = None
    classes: tuple[str, ...] = ()
    domain: tuple[ast.Declaration, ...] = ()


def decided_by(options: RepairOptions) -> Decided:
    """The decision according to the options."""
    return Decided(options.threshold, tuple(options.classes), tuple(options.domain))


@dataclass(frozen=True)
class Asking:
    """A promise about one decision of a model, as a question whose answer must be `none`."""

    promise: Promise
    decision: Decision
    question: ResolvedQuestion

    @property
    def weights(self) -> FloatArray:
        """The weight of each margin, float64[outputs], in the quantity that the promise compares between two inputs."""
        weights = np.zeros(self.decision.ensemble.n_outputs)
        if isinstance(self.decision, Between):
            weights[self.decision.first], weights[self.decision.second] = 1.0, -1.0
        else:
            weights[self.decision.output] = 1.0
        return weights

    @property
    def sides(self) -> tuple[float, float] | None:
        """A pair breaks a promise if one score reaches the first side and the other is at most the second. None for swings."""
        size = float(self.promise.size)
        if self.promise.kind == "swing" or self.promise.is_direction or isinstance(self.decision, Apart):
            return None
        if isinstance(self.decision, Between):
            return size, -size
        centre = float(self.decision.centre)
        low, high = centre - size, centre + size
        if self.promise.kind == "gap":
            scores = [self.decision.ensemble.link.score_at(p) for p in (low, high)]
            low, high = (p if score is None else score for p, score in zip((low, high), scores, strict=True))
        return high, low

    @property
    def limit(self) -> float:
        """The difference of scores below which no pair can break the promise."""
        return float(self.promise.size) if self.sides is None else self.sides[0] - self.sides[1]

    def broken(self, high: FloatArray, low: FloatArray) -> BoolArray:
        """True for pairs whose scores `high` and `low`, float64[pairs], may break the promise."""
        apart = np.asarray(high - low >= self.limit, dtype=np.bool_)
        return apart if self.sides is None else apart & (high >= self.sides[0]) & (low <= self.sides[1])


def questions_for(model: LoadedModel, promises: Sequence[Promise], decided: Decided) -> list[Asking]:
    """A question per promise and decision of the model. Raises UsageError for meaningless promises."""
    check_features(model, [promise.varied for promise in promises])
    units: list[tuple[Promise, Decision]] = []
    for promise in promises:
        units += [(promise, decision) for decision in _decisions(model, promise, decided)]
    queries = [
        ast.Query(ast.Name(f"{promise.kind}{n}"), pair_of(promise.varied, _clauses(promise, decision)))
        for n, (promise, decision) in enumerate(units)
    ]
    declared = declarations_of(model, (), has_table=False, domain=decided.domain)
    bound = bind_study(model, None, (*declared, *queries), None)
    return [Asking(*unit, question) for unit, question in zip(units, bound, strict=True)]


def _decisions(model: LoadedModel, promise: Promise, decided: Decided) -> list[Decision]:
    """The decisions to which a promise applies. Raises UsageError for a meaningless promise."""
    if promise.kind == "gap" or promise.kind == "margin":  # noqa: PLR1714 - narrows the type
        found = decisions_of(model.ensemble, Asked(promise.kind, decided.threshold, decided.classes))
    else:
        found = decisions_of(model.ensemble, natural_question(model.ensemble, decided.threshold, decided.classes))
    if promise.is_direction:
        if any(isinstance(decision, Between) for decision in found):
            raise UsageError("--increasing and --decreasing need a single score", remedy="name the class: --classes C")
        name = promise.varied[0]
        if model.ensemble.features[model.ensemble.feature_names.index(name)].categories:
            raise UsageError(f"the values of `{name}` have no order", remedy="name a numeric feature")
        return found
    for decision in found:
        decision.check(promise.size)
    return found


def _order(promise: Promise) -> ast.Formula:
    """The order of the inputs: if the score must not fall, the input with the higher score has the smaller value."""
    a, b = (ast.FeatureOf(ast.Name(point), ast.Name(promise.varied[0])) for point in ("a", "b"))
    return ast.Comparison(a, "<" if promise.kind == "increasing" else ">", b)


def _clauses(promise: Promise, decision: Decision) -> tuple[ast.Formula, ...]:
    if promise.is_direction:
        return _order(promise), ast.Comparison(decision.difference(), ">=", ast.Number(promise.size))
    if promise.kind == "swing":
        return (ast.Comparison(decision.difference(), ">", ast.Number(promise.size)),)
    return decision.event(Gap("gap" if promise.kind == "gap" else "margin", str(promise.size))).clauses


def settle(
    asking: Asking,
    model: LoadedModel,
    *,
    seconds: float,
    stop: threading.Event,
    certificates: Path | None = None,
    final: bool = False,
) -> Result:
    """The answer to a question; if it is `none`, the promise is kept (if `final`, also in the library's arithmetic)."""
    options = Options(
        backend="native", time_limit=seconds, regions=False, certificates=certificates,
        require_certificate=certificates is not None,
        library_predict=[model.replay] if final else None, confirm="library" if final else None,
    )  # fmt: skip
    budget = Budget.of(seconds, stop)
    return answer_question(asking.question, options, budget)


def largest_swing(
    model: LoadedModel, asking: Asking, decided: Decided, *, seconds: float, stop: threading.Event
) -> tuple[float | None, float | None]:
    """The largest score difference between two inputs that differ only in the features of a promise: the value attained and a
    proved bound, each None if unknown.
    """
    objective = ast.Objective("maximize", asking.decision.difference())
    order = (_order(asking.promise),) if asking.promise.is_direction else ()
    query = ast.Query(ast.Name("swing"), pair_of(asking.promise.varied, order, objective))
    declared = declarations_of(model, (), has_table=False, domain=decided.domain)
    (question,) = bind_study(model, None, (*declared, query), None)
    options = Options(backend="native", time_limit=seconds, regions=False)
    found = answer_question(question, options, Budget.of(seconds, stop)).objective
    return (None, None) if found is None else (found.value, found.bound)


def possible_inputs(model: LoadedModel, missing: BoolArray, domain: Sequence[ast.Declaration]) -> list[ast.Declaration]:
    """The declarations of the domain: for unnamed categories, the codes of the model and one further code, which represents all
    other codes; for named categories, every name. `missing`, bool[features], marks features that may be missing.
    """
    stated = {item.name.text for item in domain if isinstance(item, ast.Feature)}
    found: list[ast.Declaration] = []
    for feature, misses in zip(model.ensemble.features, missing.tolist(), strict=True):
        if feature.name in stated:
            continue
        name, kind = ast.Name(feature.name), cast(ast.FeatureType, ast.Numeric("real"))
        if feature.categories and feature.labels:
            if not misses:
                continue
            kind = ast.Category(tuple(ast.CategoryItem(ast.Name(label), None) for label in map(str, feature.labels)))
        elif feature.categories:
            codes = range(feature.categories + 1)
            kind = ast.Category(tuple(ast.CategoryItem(None, ast.Number(Fraction(code))) for code in codes))
        elif not misses:
            continue
        found.append(ast.Feature(name, kind, missing=misses))
    return found
