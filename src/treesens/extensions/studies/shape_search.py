"""Finds the features in which a score rises or falls: two optima per feature, bounded first by the trees, then by a search.

A score is increasing in a feature if a rise of this feature alone never lowers the score; the largest fall is then 0. A sum of
trees falls by at most the sum of the trees' largest falls. The largest fall of a tree is computed exactly, as the maximum over
all pairs of leaves that are reached by two inputs which differ only in the feature, the first with the smaller value. These
bounds prove the shape of models trained with monotone constraints, because training keeps the constraint in every tree.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import BoolArray, Int64Array
from treesens.compiler.base.budget import Budget, OutOfTime, steadily, working_within
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.model import Ensemble
from treesens.compiler.model.cells import CellEnsemble, LeafBoxes
from treesens.compiler.query.domain import ValueDomain
from treesens.compiler.query.query import ProbabilitySum, Query, Summand
from treesens.compiler.query.shares import Probability
from treesens.compiler.result import Result, Verdict, answered
from treesens.data.tables import align_table
from treesens.errors import UsageError
from treesens.extensions.formats.links.quotients import Quotient
from treesens.extensions.studies.decisions import check_votes, unknown_class
from treesens.extensions.studies.evidence import Best
from treesens.extensions.studies.optima import CLOSE, best, largest_of, score_of
from treesens.extensions.studies.questions import bind_study, check_features, declarations_of, pair_of
from treesens.extensions.studies.running import gathered, library_of
from treesens.extensions.studies.shape import ShapeOptions, ShapeRecord
from treesens.extensions.studies.study import Asking, Found
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.records.answers import points_of, scores_of
from treesens.records.plain import ABSENT
from treesens.solve.options import Options

_A, _B = ast.Name("a"), ast.Name("b")
_NO_ORDER = "the values of a category have no order"
_MOST_PAIRS = 4_000_000
"""Maximum product of leaf pairs and features in a tree; larger trees are bounded by the range of their values."""
_LARGEST = 1 << 61


def outputs_of(ensemble: Ensemble, classes: Sequence[str]) -> list[int]:
    """The scores to examine: with two classes, the score of the second class; with more classes, one score per class. Raises
    UsageError for a class that the model does not have.
    """
    check_votes(ensemble, "a shape")
    known = [str(c) for c in ensemble.classes]
    for name in classes:
        if name not in known:
            raise unknown_class(name, known)
    if ensemble.n_outputs == 1 and not ensemble.link.averages:
        return [0]
    if classes:
        return [known.index(name) for name in classes]
    if len(known) == 2:
        return [1]
    return list(range(len(known) if ensemble.link.averages else ensemble.n_outputs))


def declared_of(model: LoadedModel, options: ShapeOptions) -> dict[str, int]:
    """The declared or claimed direction of each feature, 1 or -1. Raises UsageError if both directions are claimed."""
    check_features(model, [options.increasing, options.decreasing, options.features])
    if both := sorted(set(options.increasing) & set(options.decreasing)):
        raise UsageError(f"`{both[0]}` is claimed to be increasing and decreasing", remedy="leave one out")
    claimed = {**dict.fromkeys(options.increasing, 1), **dict.fromkeys(options.decreasing, -1)}
    return {**model.monotone, **claimed}


def ask(asked: Asking[ShapeOptions]) -> Found[ShapeRecord]:
    """Finds the shape of every feature and score."""
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
    found = gathered(tasks, options.jobs, lambda one: asked.advance(one.record))
    records = [one.record for one in found]
    records += [study.unordered(name, output) for name in names if name not in ordered for output in outputs]
    records.sort(key=lambda one: names.index(one.feature))
    warnings = tuple(item.render() for item in diagnostics)
    decided = all(one.shape != "unknown" for one in records)
    evidence = [
        [
            Best(f"the largest {word} in {one.record.feature}", turned.question.query, turned.result, turned.bound)
            for word, turned in (("fall", one.fall), ("rise", one.rise))
        ]
        for one in found
    ]
    return Found(records, warnings, asked.stop.is_set(), decided, found, evidence=evidence)


def total(asked: Asking[ShapeOptions]) -> int:
    """The expected number of records."""
    ensemble = asked.model.ensemble
    return len(asked.options.features or ensemble.used_features) * len(outputs_of(ensemble, asked.options.classes))


def _has_order(domain: Any) -> bool:
    return not (isinstance(domain, ValueDomain) and any(isinstance(label, str) for label in domain.labels))


def _queries(number: int, ensemble: Ensemble, feature: str, output: int) -> tuple[ast.Query, ast.Query]:
    """The questions for the largest fall and the largest rise of a score; `a` has the smaller value of the feature."""
    averaged = ensemble.link.averages
    low, high = (score_of(ensemble, point, output, averaged=averaged) for point in (_A, _B))
    value_a, value_b = (ast.FeatureOf(point, ast.Name(feature)) for point in (_A, _B))
    order, found = ast.Comparison(value_a, "<=", value_b), []
    for kind, apart in (("f", ast.Sum((low, ast.Negate(high)))), ("r", ast.Sum((high, ast.Negate(low))))):
        more, goal = largest_of(apart, averaged=averaged)
        found.append(ast.Query(ast.Name(f"{kind}{number}"), pair_of((feature,), (order, *more), goal)))
    return found[0], found[1]


@dataclass(frozen=True)
class Shaped:
    """The record of one feature and score, with its largest fall and largest rise."""

    record: ShapeRecord
    fall: Reversal
    rise: Reversal


def terms_of_first(query: Query) -> list[Summand]:
    """The terms that depend on the point `a` alone, in a question that compares two probabilities."""
    (wanted,) = (c for c in query.constraints if isinstance(c, ProbabilitySum))
    return [term for term in wanted.terms if {score.point for score in term.reads()} == {0}]


class _Shapes:
    """The state that all units of one study share: the options, and the bounds of the trees."""

    def __init__(
        self,
        model: LoadedModel,
        options: ShapeOptions,
        declared: dict[str, int],
        stop: threading.Event,
        question: ResolvedQuestion,
    ) -> None:
        # The bound model is used, because some models have no cells without a domain.
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
        self._bounds: dict[int, TreeShapes] = {}
        self._lock = threading.Lock()

    def bounds(self, output: int) -> TreeShapes:
        """The bounds that the trees prove for one score."""
        with self._lock:
            if output not in self._bounds:
                self._bounds[output] = self._of_trees(output)
            return self._bounds[output]

    def _of_trees(self, output: int) -> TreeShapes:
        """The bounds from the falls and rises of every tree; the widest possible bounds if the computation takes too long."""
        seconds = self.options.time_limit * max(1, self.ensemble.n_features)
        try:
            with working_within(Budget.of(seconds, self.stop)):
                return tree_shapes(self.cells, output, self.space.legal)
        except OutOfTime:
            return widest_shapes(self.cells, output)

    def of(self, feature: str, output: int, falling: ResolvedQuestion, rising: ResolvedQuestion) -> Shaped | None:
        """The shape of one feature and score; None after an interruption."""
        if self.stop.is_set():
            return None
        start, number = time.perf_counter(), self.ensemble.feature_names.index(feature)
        most_fall, most_rise = self._known(number, output, falling, rising)
        budget = Budget.of(self.options.time_limit, self.stop)
        first = budget.share(0.5) if most_fall and most_rise else budget
        fall = self._searched(feature, most_fall, first, Reversal(falling, 0.0, None, output, True, self.averaged))
        rise = self._searched(feature, most_rise, budget, Reversal(rising, 0.0, None, output, False, self.averaged))
        return Shaped(self._record(feature, output, fall, rise, time.perf_counter() - start), fall, rise)

    def _known(
        self, number: int, output: int, falling: ResolvedQuestion, rising: ResolvedQuestion
    ) -> tuple[Fraction, Fraction]:
        """Bounds that trees prove on the largest fall and rise in a feature; for a probability, 0 if ruled out, otherwise 1."""
        if not self.averaged:
            known = self.bounds(output)
            return known.falls[number], known.rises[number]
        found = []
        for question in (falling, rising):
            moves = [self._moves_up(term, number) for term in terms_of_first(question.query)]
            found.append(Fraction(int(not moves or any(moves))))
        return found[0], found[1]

    def _moves_up(self, term: Summand, feature: int) -> bool:
        """True if the trees do not rule out that a term is greater at the point with the smaller value."""
        if isinstance(term, Quotient):
            return any(self._moves_part(term, number, feature) for number in range(len(term.parts)))
        # A curve never decreases with its score; a share 1 / (1 + the sum of e**exponent) never increases with an exponent.
        factor = -term.factor if isinstance(term, Probability) else term.factor
        for score in term.reads():
            known, up = self.bounds(score.output), factor * score.coefficient > 0
            if (known.falls if up else known.rises)[feature]:
                return True
        return False

    def _moves_part(self, term: Quotient, number: int, feature: int) -> bool:
        """True if one function of a quotient may raise the quotient at the point with the smaller value: the function may be
        greater there and its weight is not the smallest, or smaller there and its weight is not the greatest.
        """
        weights = [term.factor * w for w in term.weights]
        (score,) = term.parts[number].scores
        known, grows = self.bounds(score.output), score.coefficient > 0
        falls, rises = (known.falls, known.rises) if grows else (known.rises, known.falls)
        helps = weights[number] > min(weights) and falls[feature]
        return bool(helps or (weights[number] < max(weights) and rises[feature]))

    def _searched(self, feature: str, known: Fraction, budget: Budget, none: Reversal) -> Reversal:
        """The largest reversal: `none` if the trees prove that no reversal exists, otherwise the result of a search."""
        if known == 0:
            return none
        query = none.question.query
        result = answered(
            f"the shape of {feature}",
            partial(best, query, self.base, budget.at_least(0.05)),
            partial(Result, query.name, Verdict.UNKNOWN),
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
        seconds: float,
    ) -> ShapeRecord:
        sign = self.declared.get(feature)
        against = None if sign is None else (fall if sign > 0 else rise)
        told = [one.points_and_scores() for one in (fall, rise)]
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
        """The record of an unordered feature."""
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


@dataclass(frozen=True)
class Reversal:
    """The largest fall (or rise) of a score: the pair of `result` reaches `value`, and no pair is beyond `bound`."""

    question: ResolvedQuestion
    bound: float
    result: Result | None = None
    output: int = 0
    falls: bool = True
    of_probability: bool = False
    """True for an averaged probability; `output` is then its class."""

    @property
    def is_shown(self) -> bool:
        """True if the pair is also a reversal in the library's arithmetic, in which rounded sums may be equal."""
        witness = None if self.result is None else self.result.witness
        if witness is None:
            return False
        scores = witness.probabilities if self.of_probability else witness.margins
        low, high = (scores[point][self.output] for point in (0, 1))
        return low > high if self.falls else low < high

    @property
    def value(self) -> float | None:
        """The value that a pair reaches; 0 if no pair reverses the score (proved), and None if the value is unknown."""
        if self.bound == 0:
            return 0.0
        return None if self.result is None or self.result.objective is None else self.result.objective.value

    @property
    def reason(self) -> str:
        """The reason why the largest reversal is open, or why no pair shows a reversal; empty otherwise."""
        if self.result is None or self.bound == 0:
            return ""
        if self.result.objective is None:
            return self.result.reason
        if not self.closed:
            return "open: not closed within the time limit"
        if self.is_shown:
            return ""
        size = f"{'at most ' if self.of_probability else ''}{self.bound:.3g}"
        return f"a {'fall' if self.falls else 'rise'} of {size} in exact sums vanishes in the library's rounding"

    @property
    def closed(self) -> bool:
        """True if the bound equals the value, or is within the tolerance."""
        value, least = self.value, 2 * CLOSE if self.of_probability else 0.0
        return value is not None and self.bound - value <= max(2e-6 * abs(value), least)

    def points_and_scores(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """The pair and its scores, or None if the pair shows no reversal."""
        if self.result is None or self.result.witness is None or not self.is_shown:
            return None, None
        query, witness = self.question.query, self.result.witness
        scores = {point.name: scores_of(query, witness, number) for number, point in enumerate(query.points)}
        return points_of(query, witness), scores


def shape_of(fall: Reversal, rise: Reversal) -> str:
    """The shape of a score, proved or shown by two pairs."""
    if fall.bound == 0:
        return "constant" if rise.bound == 0 else "increasing"
    if rise.bound == 0:
        return "decreasing"
    return "neither" if fall.is_shown and rise.is_shown else "unknown"


@dataclass(frozen=True)
class TreeShapes:
    """Exact bounds on the largest fall and on the largest rise of a score, by feature."""

    falls: list[Fraction]
    rises: list[Fraction]


def tree_shapes(model: CellEnsemble, output: int, legal: Sequence[BoolArray]) -> TreeShapes:
    """The bounds for one output of a model, over the `legal` cells of every feature, bool[n_cells] each."""
    ensemble, boxes = model.ensemble, model.leaf_boxes()
    scaled = ensemble.scaled_contributions
    column = scaled.values[:, output if scaled.values.shape[1] > 1 else 0]
    falls, rises = [0] * ensemble.n_features, [0] * ensemble.n_features
    mine = np.flatnonzero((ensemble.tree_output == output) | (ensemble.tree_output == -1))
    order = np.argsort(ensemble.leaf_tree, kind="stable")
    ends = np.searchsorted(ensemble.leaf_tree[order], [mine, mine + 1])
    for start, end in steadily(list(zip(*ends.tolist(), strict=True))):
        leaves = order[start:end]
        leaves = leaves[boxes.reachable[leaves]]
        _add_tree(boxes, legal, leaves, column, falls, rises)
    per = Unit(scaled.shift).size / ensemble.average
    return TreeShapes([fall * per for fall in falls], [rise * per for rise in rises])


def widest_shapes(model: CellEnsemble, output: int) -> TreeShapes:
    """The same bound for every feature, without a search: the sum of the trees' ranges of leaf values."""
    ensemble = model.ensemble
    scaled = ensemble.scaled_contributions
    column = scaled.values[:, output if scaled.values.shape[1] > 1 else 0]
    mine = (ensemble.tree_output == output) | (ensemble.tree_output == -1)
    leaves = np.flatnonzero(mine[ensemble.leaf_tree])
    trees, values = ensemble.leaf_tree[leaves].tolist(), column[leaves].tolist()
    highest: dict[int, int] = {}
    lowest: dict[int, int] = {}
    for tree, value in zip(trees, values, strict=True):
        highest[tree], lowest[tree] = max(value, highest.get(tree, value)), min(value, lowest.get(tree, value))
    width = sum(int(highest[tree]) - int(lowest[tree]) for tree in highest)
    bound = width * Unit(scaled.shift).size / ensemble.average
    return TreeShapes([bound] * ensemble.n_features, [bound] * ensemble.n_features)


def _add_tree(
    boxes: LeafBoxes,
    legal: Sequence[BoolArray],
    leaves: Int64Array,
    column: NDArray[Any],
    falls: list[int],
    rises: list[int],
) -> None:
    """Adds the falls and rises of one tree to `falls` and `rises`."""
    spans = [range(int(boxes.offset[leaf]), int(boxes.offset[leaf + 1])) for leaf in leaves]
    used = sorted({int(boxes.feature[literal]) for span in spans for literal in span})
    if not used:
        return
    values = column[leaves]
    if max(abs(int(values.max())), abs(int(values.min()))) > _LARGEST:
        values = values.astype(object)  # differences of larger int64 values would wrap around
    if len(leaves) ** 2 * len(used) > _MOST_PAIRS:
        width = int(values.max()) - int(values.min())
        for feature in used:
            falls[feature] += width
            rises[feature] += width
        return
    literals = {(row, int(boxes.feature[one])): one for row, span in enumerate(spans) for one in span}
    reached = np.ones(len(leaves), dtype=np.bool_)
    apart = np.zeros((len(leaves), len(leaves)), dtype=np.int64)
    alone: dict[int, tuple[BoolArray, BoolArray]] = {}
    for feature in used:
        given = [literals.get((row, feature), -1) for row in range(len(leaves))]
        allowed = np.stack([legal[feature] if one < 0 else boxes.allowed(one) & legal[feature] for one in given])
        meets, before = _relations(allowed, boxes.grid[feature].present_cells)
        reached &= allowed.any(axis=1)
        apart += ~meets
        alone[feature] = meets, before
    both = reached[:, None] & reached[None, :]
    differences = values[:, None] - values[None, :]
    for feature, (meets, before) in alone.items():
        pairs = both & before & (apart == ~meets)
        falls[feature] += max(0, int(np.where(pairs, differences, 0).max()))
        rises[feature] += max(0, int(np.where(pairs, -differences, 0).max()))


def _relations(allowed: BoolArray, present_cells: int) -> tuple[BoolArray, BoolArray]:
    """Two relations between leaves in a feature, bool[n, n]: the leaves have a common cell; and a present cell of the first
    leaf is below a present cell of the second leaf. `allowed`, bool[n, n_cells], marks the cells of each leaf.
    """
    meets = (allowed.astype(np.float32) @ allowed.T.astype(np.float32)) > 0
    present = allowed[:, :present_cells]
    some = present.any(axis=1)
    lowest = np.where(some, present.argmax(axis=1), present_cells)
    highest = np.where(some, present_cells - 1 - present[:, ::-1].argmax(axis=1), -1)
    return np.asarray(meets), np.asarray(lowest[:, None] < highest[None, :])
