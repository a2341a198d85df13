"""Computes the share of inputs for which changing only some features flips the decision.

An input is affected if, with all other features fixed, some values of the varied features yield a score above the gap, and
others a score below it. A pair for `sensitive M to F` and a flipping row of the audit satisfy the same condition.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, cast

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import FloatArray, Int32Array
from treesens.compiler.base.budget import Budget, OutOfTime, working_within
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.query.domain import ValueDomain, cell_range
from treesens.compiler.query.query import Space
from treesens.compiler.result import answered
from treesens.data.tables import Table, align_table
from treesens.errors import UsageError
from treesens.extensions.measure.counted import Counted, counted_of
from treesens.extensions.measure.measure import Measure
from treesens.extensions.measure.measures import NOT_LEARNT, MeasureName, check_measure, measure_of, rows_of_domain
from treesens.extensions.measure.search import CONCERNED, NONE, ShareSearch
from treesens.extensions.measure.share import Share, ShareRun
from treesens.extensions.studies.count import BoxRecord, CountOptions, CountRecord, EstimateRecord, TraitRecord
from treesens.extensions.studies.decisions import Asked, Decision, check_regions, decisions_of
from treesens.extensions.studies.events import Event, Gap
from treesens.extensions.studies.evidence import Counted as CountedRows
from treesens.extensions.studies.evidence import Evidence, Open
from treesens.extensions.studies.evidence import Share as MeasuredShare
from treesens.extensions.studies.questions import (
    bind_study,
    check_features,
    declarations_of,
    pair_of,
    sets_of,
    sizes_of,
)
from treesens.extensions.studies.study import Asking, Found
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.records.answers import label_of
from treesens.records.plain import plain
from treesens.solve.driver import FIRST_MOMENT
from treesens.solve.tasks.data_rows import table_in_play

_LARGEST = 3
_FULL_DRAWS = 5_000


def sizes_for(model: LoadedModel, options: CountOptions) -> list[Gap]:
    """The requested gaps."""
    return sizes_of(model, options.gap, options.margin, options.threshold, options.classes)


@dataclass(frozen=True)
class Unit:
    """One question: the varied features, the decision and the event."""

    varied: tuple[str, ...]
    decision: Decision
    event: Event
    question: ResolvedQuestion


def units_of(
    model: LoadedModel,
    table: Table | None,
    varied: Sequence[Sequence[str]],
    gaps: Sequence[Gap],
    options: CountOptions,
    diagnostics: Diagnostics | None = None,
) -> list[Unit]:
    """The questions, which are bound together so that they share one space of cells and, if a table is given, this table."""
    decisions = decisions_of(model.ensemble, Asked(gaps[0].kind, options.threshold, tuple(options.classes)))
    for decision in decisions:
        for gap in gaps:
            decision.check(gap.size)
    check_features(model, varied)
    asked = [
        (tuple(group), decision, decision.event(gap)) for group in varied for decision in decisions for gap in gaps
    ]
    queries = [ast.Query(ast.Name(f"q{i}"), pair_of(group, event.clauses)) for i, (group, _, event) in enumerate(asked)]
    declared = declarations_of(model, options.real, has_table=table is not None, domain=options.domain)
    bound = bind_study(model, table, (*declared, *queries), diagnostics)
    return [Unit(*one, question) for one, question in zip(asked, bound, strict=True)]


_OF_AUDITS = ("measure", "lower", "upper", "estimate", "closed", "reason", "who")


def share_record(unit: Unit, options: CountOptions, stop: threading.Event) -> dict[str, Any]:
    """The fields of a share that an audit records: all except times."""
    found = plain(count_unit(unit, options, stop))
    return {name: found[name] for name in _OF_AUDITS}


def check_countable(question: ResolvedQuestion, measure: MeasureName) -> None:
    """Raises UsageError if shares of a question cannot be counted, or if the question's domain does not permit the measure."""
    counted_of(question.query)
    if measure == "uniform":
        measure_of(measure, question)


def count_unit(unit: Unit, options: CountOptions, stop: threading.Event) -> CountRecord:
    """The record of one question."""
    start, budget = time.monotonic(), Budget.of(options.time_limit, stop)
    head: dict[str, Any] = {
        "varied": list(unit.varied),
        **unit.event.facts,
        "question": unit.event.words,
        "measure": options.measure,
    }
    try:
        found = answered(
            f"the share of {' and '.join(unit.varied)}",
            lambda: _counted(unit, options, budget),
            _unknown_share,
        )
    except OutOfTime:
        found = _unknown_share(f"{budget.reason}: {NOT_LEARNT}")
    return CountRecord(**head, **found, seconds=round(time.monotonic() - start, 6))


def _counted(unit: Unit, options: CountOptions, budget: Budget) -> dict[str, Any]:
    """The bounds on a share when the budget ends. Raises OutOfTime if the search could not start."""
    with working_within(budget.at_least(FIRST_MOMENT)):
        counted = _counted_of(unit)
        measure = measure_of(options.measure, unit.question)
        search = ShareSearch(counted.trees, counted.sides, measure)
    if options.measure == "rows":
        return _of_rows(unit, counted, search, measure)
    run = ShareRun(search, options.precision, options.seed)
    return _of_share(unit, counted, search, measure, run.run(options.time_limit, budget))


def _counted_of(unit: Unit) -> Counted:
    try:
        return counted_of(unit.question.query)
    except UsageError:
        # If one score decides the class, as in some voting models, shares can be counted.
        check_regions(unit.decision.ensemble, "count the rows of a table that flip: `treesens audit --measure rows`")
        raise


def _unknown_share(reason: str) -> dict[str, Any]:
    """The record of a share about which nothing is known."""
    return {"lower": 0.0, "upper": 1.0, "estimate": None, "closed": False, "reason": reason, "who": [], "boxes": []}


def _of_rows(unit: Unit, counted: Counted, search: ShareSearch, measure: Measure) -> dict[str, Any]:
    """The share of affected rows; rows are counted one by one."""
    table = table_in_play(unit.question)
    assert table is not None
    groups = counted.groups
    cells = rows_of_domain(unit.question.query, table[1], groups, table[0])
    answers = search.answers(groups.folded_rows(cells))
    sure, maybe = int((answers == CONCERNED).sum()), int((answers != NONE).sum())
    drawn = cells[answers == CONCERNED]
    weights = np.full(len(drawn), 1 / max(1, len(drawn)))
    traits = traits_of(unit.question.query.space, counted.varied, groups.everyone(measure), drawn, weights)
    return {
        "lower": sure / len(cells),
        "upper": maybe / len(cells),
        "estimate": None,
        "closed": sure == maybe,
        "reason": "" if sure == maybe else "the scores have too many bits for exact sums",
        "rows": len(cells),
        "rows_outside": len(table[1]) - len(cells),
        "rows_concerned": sure,
        "who": [trait.record() for trait in traits],
        "boxes": [],
    }


def _of_share(unit: Unit, counted: Counted, search: ShareSearch, measure: Measure, share: Share) -> dict[str, Any]:
    space, masses, groups = unit.question.query.space, share.masses, counted.groups
    estimate = None
    if share.estimate is not None:
        e = share.estimate
        estimate = EstimateRecord(value=e.value, low=e.low, high=e.high, delta=e.delta, draws=e.draws)
    full = search.draw_full(_FULL_DRAWS, seed=1)
    open_part = 0.0 if share.estimate is None else max(0.0, share.estimate.value - masses.lower)
    drawn = np.concatenate([full, share.drawn]) if open_part > 0 and len(share.drawn) else full
    weights = np.ones(len(drawn))
    weights[: len(full)] *= masses.lower / max(1, len(full))
    weights[len(full) :] *= open_part / max(1, len(share.drawn))
    weights /= max(weights.sum(), 1e-300)
    traits = traits_of(space, counted.varied, groups.everyone(measure), groups.unfolded_rows(drawn), weights)
    boxes = [
        BoxRecord(share=mass, where=where(space, counted.varied, *groups.unfolded_box(low, high)))
        for low, high, mass in search.largest_full(_LARGEST)
    ]
    return {
        "lower": share.lower,
        "upper": share.upper,
        "estimate": estimate,
        "closed": share.closed,
        "reason": share.reason,
        "who": [trait.record() for trait in traits],
        "boxes": boxes,
        "nodes": masses.nodes,
        "open_boxes": masses.open_boxes,
        "full_boxes": masses.full_boxes,
    }


def ask(asked: Asking[CountOptions]) -> Found[CountRecord]:
    """Computes the share for every set, decision and gap. If the event `stop` is set, the shares so far are returned."""
    options, model, table, diagnostics = asked.options, asked.model, asked.table, Diagnostics()
    check_measure(options.measure, table is not None)
    table = None if table is None else align_table(model, table)
    units = units_of(model, table, sets_of(model, options.vary), sizes_for(model, options), options, diagnostics)
    records: list[CountRecord] = []
    for unit in units:
        if asked.stop.is_set():
            break
        records.append(count_unit(unit, options, asked.stop))
        asked.advance(records[-1])
    warnings, closed = tuple(item.render() for item in diagnostics), all(one.closed for one in records)
    evidence = []
    if options.certificates is not None:
        evidence = [[_evidence(*one)] for one in zip(units, records, strict=False)]
    return Found(records, warnings, asked.stop.is_set(), closed, evidence=evidence)


def _evidence(unit: Unit, record: CountRecord) -> Evidence:
    """The evidence for a share: an interval for a measure, or the rows counted one by one."""
    title, question = f"the share of {', '.join(record.varied)}, {record.question}", unit.question
    if isinstance(record.rows_concerned, int):
        table = table_in_play(question)
        assert table is not None
        count = record.rows_concerned if record.closed else None
        return CountedRows(title, question.query, table[1], table[0], count, record.reason)
    if record.measure == "rows":
        return Open(title, record.reason or "the share is not known")
    measure = measure_of(cast("MeasureName", record.measure), question)
    return MeasuredShare(title, question.query, measure, record.lower, record.upper)


def total(asked: Asking[CountOptions]) -> int:
    """The expected number of shares."""
    options = asked.options
    sets = len(options.vary) if options.vary is not None else asked.model.ensemble.n_features
    return len(sizes_for(asked.model, options)) * sets


_LEAST_DIFFERENCE = 0.03
"""The smallest difference of shares that is reported."""
_LISTED = 6


@dataclass(frozen=True)
class Trait:
    """A statement about one feature that holds for a larger share of affected inputs (`concerned`) than of `all` inputs."""

    feature: str
    words: str
    concerned: float
    all: float

    @property
    def strength(self) -> float:
        """The relative entropy of the two shares, in nats: the information that an affected input gives about the statement."""
        return _entropy(self.concerned, self.all) + _entropy(1 - self.concerned, 1 - self.all)

    def record(self) -> TraitRecord:
        """The trait as a record."""
        shares = round(self.concerned, 4), round(self.all, 4)
        return TraitRecord(feature=self.feature, words=self.words, concerned=shares[0], all=shares[1])


def _entropy(one: float, two: float) -> float:
    return 0.0 if one <= 0 else one * log(one / max(two, 1e-12))


def traits_of(
    space: Space, varied: Collection[int], everyone: Sequence[FloatArray], drawn: Int32Array, weights: FloatArray
) -> list[Trait]:
    """The statement about each feature that best separates affected inputs from all inputs, the strongest first.

    `everyone[f]`, float64[n_cells], holds the shares of all inputs. `drawn`, int32[rows, features], holds affected inputs, with
    weights float64[rows] that add up to 1.
    """
    found = []
    for f in range(len(space.names)):
        if f in varied or len(drawn) == 0:
            continue
        mine: FloatArray = np.bincount(drawn[:, f], weights, minlength=len(everyone[f])).astype(np.float64)
        more = [t for t in _statements(space, f, mine, everyone[f]) if t.concerned - t.all >= _LEAST_DIFFERENCE]
        if more:
            found.append(max(more, key=lambda trait: trait.strength))
    return sorted(found, key=lambda trait: -trait.strength)[:_LISTED]


def _statements(space: Space, f: int, mine: FloatArray, everyone: FloatArray) -> Iterator[Trait]:
    """All statements about a feature: one for missing values, one per category, or two per threshold of an ordered feature."""
    name, grid = space.names[f], space.grid[f]
    legal = np.flatnonzero(space.legal[f])
    if grid.missing and space.legal[f][grid.missing_cell]:
        yield Trait(name, f"`{name}` missing", float(mine[-1]), float(everyone[-1]))
    if unordered(space, f):
        for cell in legal[legal < grid.present_cells].tolist():
            words = f"`{name}` {values_in(space, f, cell, cell)}"
            yield Trait(name, words, float(mine[cell]), float(everyone[cell]))
        return
    present = legal[legal < grid.present_cells]
    for last, first in zip(present[:-1].tolist(), present[1:].tolist(), strict=True):
        below, above = slice(0, last + 1), slice(first, grid.present_cells)
        up, down = values_in(space, f, first, int(present[-1])), values_in(space, f, int(present[0]), last)
        yield Trait(name, f"`{name}` {up}", float(mine[above].sum()), float(everyone[above].sum()))
        yield Trait(name, f"`{name}` {down}", float(mine[below].sum()), float(everyone[below].sum()))


def unordered(space: Space, f: int) -> bool:
    """True if the values of a feature are names."""
    domain = space.domains[f]
    return bool(space.grid[f].categories) or (
        isinstance(domain, ValueDomain) and any(isinstance(label, str) for label in domain.labels)
    )


def values_in(space: Space, f: int, first: int, last: int) -> str:
    """The legal values of a run of present cells, in the user's own labels."""
    domain, grid = space.domains[f], space.grid[f]
    kind = grid.number_type.dtype
    if isinstance(domain, ValueDomain):
        cells = grid.cell_of(domain.values)
        inside = [label for label, c in zip(domain.labels, cells.tolist(), strict=True) if first <= c <= last]
        labels = list(dict.fromkeys(inside))
        if unordered(space, f) or len(labels) == 1:
            return f"= {_listed(labels)}"
        least, most, low, high = labels[0], labels[-1], domain.labels[0], domain.labels[-1]
    else:
        present = np.flatnonzero(space.legal[f][: grid.present_cells])
        low, high = (label_of(domain, v, kind) for v in (domain.low, domain.high))  # type: ignore[assignment]
        least = label_of(domain, cell_range(domain, grid, first)[0], kind)  # type: ignore[assignment]
        most = label_of(domain, cell_range(domain, grid, last)[1], kind)  # type: ignore[assignment]
        low = least if first <= present[0] else low
        high = most if last >= present[-1] else high
    if least == most:
        return f"= {least}"
    if most == high:
        return f">= {least}"
    return f"<= {most}" if least == low else f"in [{least}, {most}]"


def _listed(labels: Sequence[Any]) -> str:
    shown = ", ".join(map(str, labels[:4])) + (", …" if len(labels) > 4 else "")
    return shown if len(labels) == 1 else f"one of {shown}"


def where(space: Space, varied: Collection[int], low: Int32Array, high: Int32Array) -> dict[str, str]:
    """A box in words: for each feature that the box restricts, its values in the box."""
    found = {}
    for f, name in enumerate(space.names):
        legal = np.flatnonzero(space.legal[f])
        if f in varied or (low[f] <= legal[0] and high[f] >= legal[-1]):
            continue
        last = space.grid[f].present_cells - 1
        missing = " or missing" if high[f] > last and space.legal[f][-1] else ""
        if low[f] > last:
            found[name] = "missing"
            continue
        present = legal[(legal >= low[f]) & (legal <= min(int(high[f]), last))]
        if len(present):
            found[name] = values_in(space, f, int(present[0]), int(present[-1])) + missing
    return found
