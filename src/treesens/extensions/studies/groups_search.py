"""Favourable decisions by group: counted over the rows of each group, or measured over similar inputs."""

from __future__ import annotations

import math
import operator
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from treesens.compiler.base.arrays import Int64Array
from treesens.compiler.base.budget import Budget, OutOfTime, working_within
from treesens.compiler.base.diagnostics import Diagnostics, did_you_mean
from treesens.compiler.base.floats import float_of
from treesens.compiler.result import answered
from treesens.data.rows import cells_of_rows
from treesens.data.tables import Table, align_table, as_named
from treesens.errors import UsageError
from treesens.extensions.measure.counted import Counted, counted_of
from treesens.extensions.measure.measure import Measure
from treesens.extensions.measure.measures import LEARNT, NOT_LEARNT, measure_by, rows_of_domain
from treesens.extensions.measure.search import CONCERNED, NONE, ShareSearch
from treesens.extensions.measure.share import ShareRun
from treesens.extensions.studies.count import EstimateRecord
from treesens.extensions.studies.decisions import check_regions, favourable_clause
from treesens.extensions.studies.events import favourable_class
from treesens.extensions.studies.evidence import Counted as CountedRows
from treesens.extensions.studies.evidence import Evidence
from treesens.extensions.studies.evidence import Share as MeasuredShare
from treesens.extensions.studies.groups import GroupOptions, GroupRecord
from treesens.extensions.studies.questions import bind_study, declarations_of
from treesens.extensions.studies.study import Asking, Found
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.solve.driver import FIRST_MOMENT

_A = ast.Name("a")
_OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_CONDITION = re.compile(r"(.+?)\s*(<=|>=|<|>)\s*(\S+)")


class Counts(NamedTuple):
    """The exact bounds on the favourable share of one group; `rows` is the number of favourable rows, if rows were counted."""

    lower: Fraction
    upper: Fraction
    estimate: EstimateRecord | None
    closed: bool
    reason: str
    rows: int | None = None


def ask(asked: Asking[GroupOptions]) -> Found[GroupRecord]:
    """Counts every group of every set of columns."""
    assert asked.table is not None
    options, model = asked.options, asked.model
    sets = [groups_of_rows(asked.table, by) for by in options.by]
    positive = favourable_class(model.ensemble, options.favourable, model.meaning)
    diagnostics = Diagnostics()
    counter = Counter(model, align_table(model, asked.table), options, positive, diagnostics)
    records: list[GroupRecord] = []
    for groups in sets:
        counted = []
        for group in groups:
            if asked.stop.is_set():
                break
            start = time.perf_counter()
            budget = Budget.of(options.time_limit, asked.stop)
            counts = answered(
                f"the group {' '.join(map(str, group.values))}", partial(counter.count, group, budget), _unknown
            )
            counted.append((group, counts, time.perf_counter() - start))
            asked.advance(None)
        records += _compared(counted, options, asked.table.rows)
    warnings = tuple(item.render() for item in diagnostics)
    favourable, closed, evidence = str(model.ensemble.classes[positive]), all(one.closed for one in records), []
    if options.certificates is not None:
        every = [group for groups in sets for group in groups]
        evidence = [[counter.evidence(*one)] for one in zip(every, records, strict=False)]
    return Found(records, warnings, asked.stop.is_set(), closed, favourable, evidence=evidence)


class Counter:
    """Counts favourable decisions in the groups of one table."""

    def __init__(
        self, model: LoadedModel, table: Table, options: GroupOptions, positive: int, diagnostics: Diagnostics
    ) -> None:
        self.options, self.positive = options, positive
        declared = declarations_of(model, options.real, has_table=True, domain=options.domain)
        find = ast.Find((ast.Point(_A),), (favourable_clause(model.ensemble, positive, options.threshold),))
        (self.question,) = bind_study(model, table, (*declared, ast.Query(ast.Name("q"), find)), diagnostics)
        self.ensemble = self.question.models[0].ensemble
        self.rows = self.question.rows["d"]
        self.as_predicted = options.measure == "rows" and options.threshold is None
        if not self.as_predicted:
            _ = self.counted  # raises its errors before any group is counted

    @cached_property
    def counted(self) -> Counted:
        """The question in the form for counting inputs; not used if the library's decisions on rows are counted."""
        try:
            return counted_of(self.question.query)
        except UsageError:
            # If one score decides the class, as in some voting models, shares can be counted.
            check_regions(
                self.ensemble, "count the rows as the library decides them: --measure rows, without --threshold"
            )
            raise

    def count(self, group: Group, budget: Budget) -> Counts:
        """The share of one group."""
        if self.as_predicted:
            return self._by_library(group)
        try:
            with working_within(budget.at_least(FIRST_MOMENT)):
                measure = self.measure(group)
                search = ShareSearch(self.counted.trees, self.counted.sides, measure)
        except OutOfTime:
            return _unknown(f"{budget.reason}: {NOT_LEARNT}")
        if self.options.measure == "rows":
            return self._by_rows(group, search)
        share = ShareRun(search, self.options.precision, self.options.seed).run(self.options.time_limit, budget)
        estimate = None
        if share.estimate is not None:
            e = share.estimate
            estimate = EstimateRecord(value=e.value, low=e.low, high=e.high, delta=e.delta, draws=e.draws)
        return Counts(Fraction(share.lower), Fraction(share.upper), estimate, share.closed, share.reason)

    def evidence(self, group: Group, record: GroupRecord) -> Evidence:
        """The evidence for a group's share; a share of rows is open if the library's decisions differ from exact scores."""
        title, query = f"the favourable share of {', '.join(map(str, group.values))}", self.question.query
        if self.options.measure != "rows":
            return MeasuredShare(title, query, self.measure(group), record.lower, record.upper)
        count = record.favourable_rows if record.closed and isinstance(record.favourable_rows, int) else None
        return CountedRows(title, query, self.rows[group.rows], "d", count, record.reason, among=record.rows)

    def _by_library(self, group: Group) -> Counts:
        """The share of rows with a favourable decision by the library, computed row by row and bit for bit."""
        rows = self.rows[group.rows]
        margins = np.asarray(self.ensemble.margins_emulated(rows), dtype=np.float64)
        number = int((self.ensemble.predicted_classes(margins, rows) == self.positive).sum())
        share = Fraction(number, len(rows))
        return Counts(share, share, None, True, "", number)

    def _by_rows(self, group: Group, search: ShareSearch) -> Counts:
        """The share of rows beyond the cut-off, computed row by row in exact arithmetic."""
        query, groups = self.question.query, self.counted.groups
        cells = rows_of_domain(query, self.rows[group.rows], groups, "d")
        answers = search.answers(groups.folded_rows(cells))
        sure, maybe = int((answers == CONCERNED).sum()), int((answers != NONE).sum())
        reason = "" if sure == maybe else "the scores have too many bits for exact sums"
        count = len(cells)
        return Counts(Fraction(sure, count), Fraction(maybe, count), None, sure == maybe, reason, sure)

    def measure(self, group: Group) -> Measure:
        """The measure of a group: learnt from the group's rows, or restricted to the group's values."""
        name, query, groups = self.options.measure, self.question.query, self.counted.groups
        if name in LEARNT:
            return measure_by(name, query, groups, rows_of_domain(query, self.rows[group.rows], groups, "d"))
        return self._within(measure_by(name, query, groups, None), group)

    def _within(self, measure: Measure, group: Group) -> Measure:
        """A measure of independent features, restricted to the group's column values."""
        names, folded = self.ensemble.feature_names, self.counted.groups.members
        weights, error = list(measure.weights), measure.error
        for column in group.by:
            if column not in names:
                raise UsageError(
                    f"`{column}` is not a feature, so `{self.options.measure}` cannot measure its groups",
                    remedy="leave out --measure, or learn a measure from the rows: --measure marginals",
                )
            feature = names.index(column)
            if feature in folded:
                raise UsageError(f"`{column}` belongs to a `onehot` group", remedy="measure the rows: --measure rows")
            cell = int(cells_of_rows(self.question.query.space.grid, self.rows[group.rows[:1]])[0, feature])
            part = float(measure.shares(feature)[cell])
            if part <= 0:
                raise UsageError(f"no input has the value of `{column}` that the rows have", remedy="widen its domain")
            error = 2 * error / part
            only = np.zeros_like(weights[feature])
            only[cell] = 1
            weights[feature] = only
        return replace(measure, weights=tuple(weights), error=error)


def _unknown(reason: str) -> Counts:
    return Counts(Fraction(0), Fraction(1), None, False, reason)


def _compared(
    counted: Sequence[tuple[Group, Counts, float]], options: GroupOptions, rows: int
) -> Iterator[GroupRecord]:
    """The records, with the ratio of every large group to the best of the other large groups."""
    large = [len(group.rows) >= options.smallest * rows for group, _, _ in counted]
    for number, (group, counts, seconds) in enumerate(counted):
        others = [one for i, (_, one, _) in enumerate(counted) if large[i] and i != number]
        ratio = _ratio(counts, others) if large[number] and others else None
        yield GroupRecord(
            by=list(group.by),
            group=list(group.values),
            rows=len(group.rows),
            **({} if counts.rows is None else {"favourable_rows": counts.rows}),
            lower=_rounded(counts.lower, 0.0),
            upper=_rounded(counts.upper, 1.0),
            estimate=counts.estimate,
            closed=counts.closed,
            ratio_lower=None if ratio is None else _rounded(ratio[0], 0.0),
            ratio_upper=None if ratio is None else _rounded(ratio[1], 1.0),
            reaches=_reaches(ratio, Fraction(repr(options.ratio))),
            reason=counts.reason,
            seconds=round(seconds, 6),
        )


def _ratio(mine: Counts, others: Sequence[Counts]) -> tuple[Fraction, Fraction] | None:
    """The interval of a share's ratio to the greatest share among this share and `others`. None if all shares may be 0."""
    best_lower, best_upper = max(one.lower for one in others), max(one.upper for one in others)
    if max(mine.lower, best_lower) == 0:
        return None
    return mine.lower / max(mine.lower, best_upper), mine.upper / max(mine.upper, best_lower)


def _reaches(ratio: tuple[Fraction, Fraction] | None, wanted: Fraction) -> str:
    if ratio is None:
        return "not compared"
    if ratio[0] >= wanted:
        return "yes"
    return "no" if ratio[1] < wanted else "open"


def _rounded(exact: Fraction, outward: float) -> float:
    """An end of an interval as a float; inexact ends are rounded outwards."""
    near = float(exact)
    beyond = Fraction(near) > exact if outward == 0.0 else Fraction(near) < exact
    return math.nextafter(near, outward) if beyond else near


_MOST_GROUPS = 200


@dataclass(frozen=True)
class Group:
    """The rows of a table, int64[..], that have the same values in some columns."""

    by: tuple[str, ...]
    values: tuple[Any, ...]
    rows: Int64Array


def groups_of_rows(table: Table, by: Sequence[str]) -> list[Group]:
    """The groups of some columns, in the order of their values; missing values form a group. A condition such as `age<25` is a
    column of the values yes and no. Raises UsageError for an unknown column, and for more than _MOST_GROUPS groups.
    """
    table, _ = as_named(table, by)
    columns = [_column(table, name) for name in by]
    places: dict[tuple[Any, ...], list[int]] = {}
    for number, values in enumerate(zip(*columns, strict=True)):
        places.setdefault(values, []).append(number)
    if len(places) > _MOST_GROUPS:
        raise UsageError(
            f"{' and '.join(f'`{name}`' for name in by)} makes {len(places)} groups",
            remedy="name columns with few values, or a condition such as `age<25`",
        )
    ordered = sorted(places, key=lambda values: [(value is None, str(type(value)), value or 0) for value in values])
    return [Group(tuple(by), values, np.array(places[values], dtype=np.int64)) for values in ordered]


def _column(table: Table, name: str) -> list[Any]:
    """The values of a column, or of a condition on a column of numbers."""
    if name in table.columns:
        return [_plain(value) for value in table.columns[name].tolist()]
    condition = _CONDITION.fullmatch(name)
    if condition is None or condition[1] not in table.columns:
        raise UsageError(f"the table has no column `{name}`", remedy=did_you_mean(name, list(table.columns)))
    values, cut = table.columns[condition[1]], float_of(condition[3])
    if values.dtype == object or cut is None:
        raise UsageError(f"`{name}` does not compare numbers", remedy="write e.g. `age<25`, for a column of numbers")
    holds = _OPERATORS[condition[2]](values, cut)
    return [None if math.isnan(value) else "yes" if yes else "no" for value, yes in zip(values, holds, strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else int(value) if value.is_integer() else value
    return value
