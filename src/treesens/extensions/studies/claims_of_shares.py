"""What studies of shares claim, as parts that can have certificates: shares of what a change flips, and of groups."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result
from treesens.data.tables import align_table
from treesens.extensions.certify.share_claim import claim_of_counted, claim_of_interval
from treesens.extensions.certify.together import Claim, open_claim
from treesens.extensions.measure.groups import groups_of
from treesens.extensions.measure.measures import measure_of, rows_of_domain
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.count import CountOptions, CountRecord
from treesens.extensions.studies.count_search import sizes_for, units_of
from treesens.extensions.studies.decisions import Asked
from treesens.extensions.studies.events import favourable_class
from treesens.extensions.studies.groups import GroupOptions, GroupRecord
from treesens.extensions.studies.groups_search import Counter, groups_of_rows
from treesens.extensions.studies.questions import needs_pairs, questions_of, sets_of, sizes_of
from treesens.extensions.studies.study import Asking, Found
from treesens.records.plain import Absent
from treesens.solve.options import Options
from treesens.solve.question import answer
from treesens.solve.tasks.data_rows import table_in_play


def claim_counts(asked: Asking[CountOptions], found: Found[CountRecord]) -> Iterator[list[Claim]]:
    """Every share: of a measure between the two numbers that are shown, of rows one by one."""
    options, model = asked.options, asked.model
    table = None if asked.table is None else align_table(model, asked.table)
    units = units_of(model, table, sets_of(model, options.vary), sizes_for(model, options), options)
    for unit, record in zip(units, found.records, strict=True):
        title, query = f"the share of {', '.join(record.varied)}, {record.question}", unit.question.query
        budget = Budget.of(options.time_limit, asked.stop)
        ask = _asking(options.time_limit, budget)
        if options.measure == "rows":
            if not record.closed or isinstance(record.rows_concerned, Absent):
                yield [open_claim(title, record.reason or "the share is not known")]
            else:
                cells, _ = _counted(unit.question, record.lower)
                yield [claim_of_counted(title, query, cells, record.rows_concerned, ask)]
            continue
        assert options.certificates is not None
        measure, shown = measure_of(options.measure, unit.question), (record.lower, record.upper)
        yield [claim_of_interval(title, query, measure, shown, ask, budget, options.certificates)]


def claim_shares_of_audit(
    asked: Asking[AuditOptions], records: Sequence[dict[str, Any]]
) -> Callable[[str, dict[str, Any]], Claim]:
    """What an audit claims of the share of a record, as `count` does: from its title and the record."""
    options, model = asked.options, asked.model
    assert asked.table is not None
    assert options.certificates is not None
    known: dict[str, ResolvedQuestion] = {}
    if options.measure is not None and not needs_pairs(model, options.decision):
        known = _questions_of_audit(asked, [record["varied"] for record in records])

    def claim(title: str, record: dict[str, Any]) -> Claim:
        question, share = known.get(_key_of(record)), record["share"]
        if question is None or options.measure is None or options.certificates is None:
            return open_claim(title, "rows that several scores decide are not proved one by one")
        budget = Budget.of(options.time_limit, asked.stop)
        ask = _asking(options.time_limit, budget)
        if options.measure != "rows":
            measure, shown = measure_of(options.measure, question), (share["lower"], share["upper"])
            return claim_of_interval(title, question.query, measure, shown, ask, budget, options.certificates)
        if not share["closed"]:
            return open_claim(title, share.get("reason") or "the share is not known")
        return claim_of_counted(title, question.query, *_counted(question, share["lower"]), ask)

    return claim


def _questions_of_audit(asked: Asking[AuditOptions], varied: Sequence[Sequence[str]]) -> dict[str, ResolvedQuestion]:
    options, model = asked.options, asked.model
    assert asked.table is not None
    gaps = sizes_of(model, options.gap, options.margin, options.threshold, options.classes)
    wanted = Asked(gaps[0].kind, options.threshold, tuple(options.classes))
    groups = [*dict.fromkeys(map(tuple, varied))]
    made = questions_of(
        model, align_table(model, asked.table), groups, gaps, Diagnostics(),
        asked=wanted, real=options.real, domain=options.domain,
    )  # fmt: skip
    return {
        _key_of({"varied": list(one.varied), **asked.event.facts, "question": asked.event.words}): asked.query
        for one in made
        for asked in one.asked
    }


def _key_of(record: dict[str, Any]) -> str:
    """What a record of an audit asks about."""
    return json.dumps([record[name] for name in ("varied", "gap", "margin", "question") if name in record])


def _counted(question: ResolvedQuestion, share: float) -> tuple[Int32Array, int]:
    """The rows of the domain, and how many of them a share is."""
    table = table_in_play(question)
    assert table is not None
    cells = rows_of_domain(question.query, table[1], groups_of(question.query), table[0])
    return cells, round(share * len(cells))


def _asking(seconds: float, budget: Budget) -> Callable[[Query], Result]:
    options = Options(time_limit=seconds)
    return lambda query: answer(query, options, budget)


def claim_groups(asked: Asking[GroupOptions], found: Found[GroupRecord]) -> Iterator[list[Claim]]:
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
                yield [open_claim(title, record.reason or "the share is not known")]
            elif len(cells) != record.rows:
                yield [open_claim(title, "some rows lie outside of the domain")]
            else:
                yield [claim_of_counted(title, query, cells, record.favourable_rows, ask)]
        else:
            shown = record.lower, record.upper
            yield [claim_of_interval(title, query, counter.measure(group), shown, ask, budget, options.certificates)]
