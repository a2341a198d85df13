"""What studies of shares claim, as parts that can have certificates: shares of what a change flips, and of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from treesens.certificates.together import Claim, open_claim
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result
from treesens.data.alignment import align_table
from treesens.measure.groups import groups_of
from treesens.records.plain import Absent
from treesens.solve.measures import measure_of, rows_of_domain
from treesens.solve.options import Options
from treesens.solve.question import answer
from treesens.solve.tasks.data_rows import table_in_play
from treesens.solve.tasks.share_claim import claim_of_counted, claim_of_interval
from treesens.studies.count import CountOptions, CountRecord
from treesens.studies.favourable import favourable_class
from treesens.studies.group_shares import Counter
from treesens.studies.groups import GroupOptions, GroupRecord
from treesens.studies.questions import sets_of
from treesens.studies.row_groups import groups_of_rows
from treesens.studies.shares import sizes_for, units_of
from treesens.studies.study import Asking, Found


def claim_counts(asked: Asking[CountOptions], found: Found[CountRecord]) -> Iterator[Claim]:
    """Every share: of a measure between the two numbers that are shown, of rows one by one."""
    options, model = asked.options, asked.model
    table = None if asked.table is None else align_table(model, asked.table)
    units = units_of(model, table, sets_of(model, options.vary), sizes_for(model, options), options)
    for unit, record in zip(units, found.records, strict=True):
        title, query = f"the share of {', '.join(record.varied)}, {record.question}", unit.question.query
        budget = Budget.of(options.time_limit, asked.stop)
        ask = _asking(options.time_limit, budget)
        if options.measure == "rows":
            rows = table_in_play(unit.question)
            assert rows is not None
            cells = rows_of_domain(query, rows[1], groups_of(query), rows[0])
            if not record.closed or isinstance(record.rows_concerned, Absent):
                yield open_claim(title, record.reason or "the share is not known")
            else:
                yield claim_of_counted(title, query, cells, record.rows_concerned, ask)
            continue
        assert options.certificates is not None
        measure, shown = measure_of(options.measure, unit.question), (record.lower, record.upper)
        yield claim_of_interval(title, query, measure, shown, ask, budget, options.certificates)


def _asking(seconds: float, budget: Budget) -> Callable[[Query], Result]:
    options = Options(time_limit=seconds)
    return lambda query: answer(query, options, budget)


def claim_groups(asked: Asking[GroupOptions], found: Found[GroupRecord]) -> Iterator[Claim]:
    """The share of every group. That of rows is stated of exact scores; it has none if the library decides otherwise."""
    assert asked.table is not None
    options, model = asked.options, asked.model
    assert options.certificates is not None
    positive = favourable_class(model.ensemble, options.favourable, model.meaning)
    counter = Counter(model, align_table(model, asked.table), options, positive, Diagnostics())
    groups = [group for by in options.by for group in groups_of_rows(asked.table, by)]
    query = counter.question.query
    for group, record in zip(groups, found.records, strict=True):
        title = f"the favourable share of {', '.join(map(str, group.values))}"
        budget = Budget.of(options.time_limit, asked.stop)
        ask = _asking(options.time_limit, budget)
        if options.measure == "rows":
            cells = rows_of_domain(query, counter.rows[group.rows], groups_of(query), "d")
            if not record.closed or isinstance(record.favourable_rows, Absent):
                yield open_claim(title, record.reason or "the share is not known")
            elif len(cells) != record.rows:
                yield open_claim(title, "some rows lie outside of the domain")
            else:
                yield claim_of_counted(title, query, cells, record.favourable_rows, ask)
        else:
            shown = record.lower, record.upper
            yield claim_of_interval(title, query, counter.measure(group), shown, ask, budget, options.certificates)
