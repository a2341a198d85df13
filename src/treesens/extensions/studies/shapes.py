"""In which features a score rises or falls: two optima per feature, bounded by the trees first and then by a search.

A score is increasing in a feature if no pair that agrees elsewhere falls while the feature rises: then the largest fall is 0.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.budget import Budget, OutOfTime, working_within
from treesens.compiler.base.diagnostics import Diagnostics, did_you_mean
from treesens.compiler.model import Ensemble
from treesens.compiler.query.dependencies import scores_in
from treesens.compiler.query.domain import ValueDomain
from treesens.compiler.query.query import Curve, ProbabilitySum, Query, Quotient, Summand
from treesens.compiler.result import Result, Verdict, answered
from treesens.data.tables import align_table
from treesens.errors import UsageError
from treesens.extensions.studies.decisions import check_votes, label_of_class
from treesens.extensions.studies.halving import largest_difference
from treesens.extensions.studies.questions import bind_study, check_features, declarations_of, pair_of
from treesens.extensions.studies.reversals import Reversal, points_and_scores, shape_of
from treesens.extensions.studies.running import as_finished, library_of
from treesens.extensions.studies.shape import ShapeOptions, ShapeRecord
from treesens.extensions.studies.study import Asking, Found
from treesens.extensions.studies.tree_shapes import TreeShapes, tree_shapes, widest_shapes
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.records.plain import ABSENT
from treesens.solve.options import Options
from treesens.solve.question import answer

_A, _B = ast.Name("a"), ast.Name("b")
_NO_ORDER = "the values of a category have no order"


def outputs_of(ensemble: Ensemble, classes: Sequence[str]) -> list[int]:
    """The scores that are asked about: of two classes that of the second one, of several one each. UsageError for a class that
    the model does not have.
    """
    check_votes(ensemble, "a shape")
    known = [str(c) for c in ensemble.classes]
    for name in classes:
        if name not in known:
            raise UsageError(f"the model has no class `{name}`", remedy=did_you_mean(name, known))
    if ensemble.n_outputs == 1 and not ensemble.link.averages:
        return [0]
    if classes:
        return [known.index(name) for name in classes]
    if len(known) == 2:
        return [1]
    return list(range(len(known) if ensemble.link.averages else ensemble.n_outputs))


def declared_of(model: LoadedModel, options: ShapeOptions) -> dict[str, int]:
    """The directions that the model declares and that the options claim, 1 or -1 by feature. UsageError for both at once."""
    check_features(model, [options.increasing, options.decreasing, options.features])
    if both := sorted(set(options.increasing) & set(options.decreasing)):
        raise UsageError(f"`{both[0]}` is claimed to be increasing and decreasing", remedy="leave one out")
    claimed = {**dict.fromkeys(options.increasing, 1), **dict.fromkeys(options.decreasing, -1)}
    return {**model.monotone, **claimed}


def ask(asked: Asking[ShapeOptions]) -> Found[ShapeRecord]:
    """The shape of every feature and score."""
    options, model = asked.options, asked.model
    ensemble, diagnostics = model.ensemble, Diagnostics()
    declared = declared_of(model, options)
    table = None if asked.table is None else align_table(model, asked.table)
    names = list(options.features) or ensemble.used_features
    outputs = outputs_of(ensemble, options.classes)
    stated = declarations_of(model, options.real, has_table=table is not None, domain=options.domain)
    plain = bind_study(model, table, (*stated, ast.Query(ast.Name("all"), pair_of(names, ()))), diagnostics)
    domains = dict(zip(plain[0].query.space.names, plain[0].query.space.domains, strict=True))
    categories = {feature.name for feature in ensemble.features if feature.categories}
    categories |= {d.name.text for d in stated if isinstance(d, ast.Feature) and isinstance(d.type, ast.Category)}
    ordered = [name for name in names if name not in categories and _has_order(domains[name])]
    units = [(name, output) for name in ordered for output in outputs]
    queries = [q for number, unit in enumerate(units) for q in _queries(number, ensemble, *unit)]
    bound = iter(bind_study(model, table, (*stated, *queries), None))
    pairs = [(next(bound), next(bound)) for _ in units]
    study = _Shapes(model, options, declared, asked.stop, pairs[0][0] if pairs else plain[0])
    tasks = [partial(study.of, *unit, *pair) for unit, pair in zip(units, pairs, strict=True)]
    done: dict[int, ShapeRecord] = {}
    for number, record in as_finished(tasks, options.jobs):
        if record is not None:
            done[number] = record
            asked.advance(record)
    records = [done[number] for number in sorted(done)]
    records += [study.unordered(name, output) for name in names if name not in ordered for output in outputs]
    records.sort(key=lambda one: names.index(one.feature))
    warnings = tuple(item.render() for item in diagnostics)
    decided = all(one.shape != "unknown" for one in records)
    proved = [(done[i], [one.query for one in pairs[i]], study.results[units[i]]) for i in sorted(done)]
    return Found(records, warnings, asked.stop.is_set(), decided, proved)


def total(asked: Asking[ShapeOptions]) -> int:
    """How many records there will be."""
    ensemble = asked.model.ensemble
    return len(asked.options.features or ensemble.used_features) * len(outputs_of(ensemble, asked.options.classes))


def _has_order(domain: Any) -> bool:
    return not (isinstance(domain, ValueDomain) and any(isinstance(label, str) for label in domain.labels))


def _queries(number: int, ensemble: Ensemble, feature: str, output: int) -> tuple[ast.Query, ast.Query]:
    """The largest fall and the largest rise of a score, `a` having the smaller value of the feature."""
    label = label_of_class(ensemble, output) if ensemble.n_outputs > 1 and ensemble.classes else None
    if ensemble.n_outputs > 1 and not ensemble.classes:
        label = ast.Number(Fraction(output))
    averaged = ensemble.link.averages
    score = ast.Prob if averaged else ast.Margin
    low, high = score(_A, label_of_class(ensemble, output) if averaged else label), score(_B, label)
    value_a, value_b = (ast.FeatureOf(point, ast.Name(feature)) for point in (_A, _B))
    order = ast.Comparison(value_a, "<=", value_b)
    found = []
    for kind, apart in (("f", ast.Sum((low, ast.Negate(high)))), ("r", ast.Sum((high, ast.Negate(low))))):
        # An averaged probability is no objective: it is asked how far its difference can be raised above 0.
        more = (ast.Comparison(apart, ">=", ast.Number(Fraction(0))),) if averaged else ()
        goal = None if averaged else ast.Objective("maximize", apart)
        found.append(ast.Query(ast.Name(f"{kind}{number}"), pair_of((feature,), (order, *more), goal)))
    return found[0], found[1]


def terms_of_first(query: Query) -> list[Summand]:
    """The terms about the point `a` of a question that compares two probabilities."""
    (wanted,) = (c for c in query.constraints if isinstance(c, ProbabilitySum))
    return [term for term in wanted.terms if {score.point for score in scores_in(term)} == {0}]


class _Shapes:
    """What all units of one study share: the options, and the bounds of the trees."""

    def __init__(
        self,
        model: LoadedModel,
        options: ShapeOptions,
        declared: dict[str, int],
        stop: threading.Event,
        question: ResolvedQuestion,
    ) -> None:
        # Over the domain of the question: before it has one a model may have no cells.
        self.ensemble = question.models[0].ensemble
        self.options, self.declared, self.stop = options, declared, stop
        self.averaged = self.ensemble.link.averages
        self.space = question.query.space
        self.cells = self.ensemble.on(self.space.grid)
        self.base = Options(
            backend="native",
            seed=options.seed,
            time_limit=options.time_limit,
            library_predict=library_of(model, options.replay),
            regions=False,
        )
        self.results: dict[tuple[str, int], tuple[Result | None, Result | None]] = {}
        """Of each feature and score what was searched for: the largest fall and the largest rise."""
        self._bounds: dict[int, TreeShapes] = {}
        self._lock = threading.Lock()

    def bounds(self, output: int) -> TreeShapes:
        """What the trees prove of one score."""
        with self._lock:
            if output not in self._bounds:
                self._bounds[output] = self._of_trees(output)
            return self._bounds[output]

    def _of_trees(self, output: int) -> TreeShapes:
        """The falls and rises of every tree, if there is time for them: for all features as much as the searches have."""
        seconds = self.options.time_limit * max(1, self.ensemble.n_features)
        try:
            with working_within(Budget.of(seconds, self.stop)):
                return tree_shapes(self.cells, output, self.space.legal)
        except OutOfTime:
            return widest_shapes(self.cells, output)

    def of(self, feature: str, output: int, falling: ResolvedQuestion, rising: ResolvedQuestion) -> ShapeRecord | None:
        """The record of one feature and score; None after an interruption."""
        if self.stop.is_set():
            return None
        start, number = time.perf_counter(), self.ensemble.feature_names.index(feature)
        most_fall, most_rise = self._known(number, output, falling, rising)
        budget = Budget.of(self.options.time_limit, self.stop)
        first = budget.share(0.5) if most_fall and most_rise else budget
        fall = self._searched(feature, falling, most_fall, first, Reversal(0.0, None, output, True, self.averaged))
        rise = self._searched(feature, rising, most_rise, budget, Reversal(0.0, None, output, False, self.averaged))
        self.results[feature, output] = fall.result, rise.result
        return self._record(feature, output, fall, rise, (falling, rising), time.perf_counter() - start)

    def _known(
        self, number: int, output: int, falling: ResolvedQuestion, rising: ResolvedQuestion
    ) -> tuple[Fraction, Fraction]:
        """What the trees prove of the largest fall and rise in a feature; of a probability only that there is none."""
        if not self.averaged:
            known = self.bounds(output)
            return known.falls[number], known.rises[number]
        found = []
        for question in (falling, rising):
            moves = [self._moves_up(term, number) for term in terms_of_first(question.query)]
            found.append(Fraction(int(not moves or any(moves))))
        return found[0], found[1]

    def _moves_up(self, term: Summand, feature: int) -> bool:
        """True if a term of the point with the smaller value may be the greater one of the two, by what the trees say."""
        if isinstance(term, Quotient):
            return any(self._moves_part(term, number, feature) for number in range(len(term.parts)))
        # A curve never decreases in its score, and a share 1 / (1 + the sum of e**exponent) never increases in an exponent.
        factor = term.factor if isinstance(term, Curve) else -term.factor
        for score in scores_in(term):
            known, up = self.bounds(score.output), factor * score.coefficient > 0
            if (known.falls if up else known.rises)[feature]:
                return True
        return False

    def _moves_part(self, term: Quotient, number: int, feature: int) -> bool:
        """The same of one function of a quotient: it helps if it grows, unless its weight is the least, and if it falls, unless
        that is the greatest.
        """
        weights = [term.factor * w for w in term.weights]
        (score,) = term.parts[number].scores
        known, grows = self.bounds(score.output), score.coefficient > 0
        falls, rises = (known.falls, known.rises) if grows else (known.rises, known.falls)
        helps = weights[number] > min(weights) and falls[feature]
        return bool(helps or (weights[number] < max(weights) and rises[feature]))

    def _searched(
        self, feature: str, question: ResolvedQuestion, known: Fraction, budget: Budget, none: Reversal
    ) -> Reversal:
        """The largest reversal: proved by the trees if none of them has one, searched for otherwise."""
        if known == 0:
            return none
        search = largest_difference if self.averaged else answer
        result = answered(
            f"the shape of {feature}",
            partial(search, question.query, self.base, budget.at_least(0.05)),
            partial(Result, question.query.name, Verdict.UNKNOWN),
        )
        bound = math.nextafter(float(known), math.inf)
        if result.objective is not None and result.objective.bound is not None:
            bound = min(bound, max(result.objective.bound, 0.0))
        return replace(none, bound=bound, result=result)

    def _record(
        self,
        feature: str,
        output: int,
        fall: Reversal,
        rise: Reversal,
        questions: tuple[ResolvedQuestion, ResolvedQuestion],
        seconds: float,
    ) -> ShapeRecord:
        sign = self.declared.get(feature)
        against = None if sign is None else (fall if sign > 0 else rise)
        told = [points_and_scores(one, question) for one, question in zip((fall, rise), questions, strict=True)]
        shape = shape_of(fall, rise)
        reasons = dict.fromkeys(one.reason for one in (fall, rise) if one.reason)
        witness = next((r.result.witness for r in (fall, rise) if r.result and r.result.witness), None)
        return ShapeRecord(
            feature=feature,
            class_=self._class(output),
            shape=shape,
            declared=None if sign is None else "increasing" if sign > 0 else "decreasing",
            holds=None if against is None else True if against.bound == 0 else False if against.is_shown else None,
            largest_fall=fall.value,
            largest_fall_bound=fall.bound,
            largest_rise=rise.value,
            largest_rise_bound=rise.bound,
            closed=fall.closed and rise.closed,
            reason="; ".join(reasons),
            fall=told[0][0],
            fall_scores=told[0][1],
            rise=told[1][0],
            rise_scores=told[1][1],
            replay=None if witness is None else str(witness.replay),
            seconds=round(seconds, 6),
        )

    def unordered(self, feature: str, output: int) -> ShapeRecord:
        """The record of a category."""
        sign = self.declared.get(feature)
        return ShapeRecord(
            feature=feature,
            class_=self._class(output),
            shape="unordered",
            declared=None if sign is None else "increasing" if sign > 0 else "decreasing",
            holds=None,
            largest_fall=None,
            largest_fall_bound=None,
            largest_rise=None,
            largest_rise_bound=None,
            closed=False,
            reason=_NO_ORDER,
            fall=None,
            fall_scores=None,
            rise=None,
            rise_scores=None,
            replay=None,
            seconds=0.0,
        )

    def _class(self, output: int) -> Any:
        ensemble = self.ensemble
        return ensemble.classes[output] if ensemble.n_outputs > 1 and ensemble.classes else ABSENT
