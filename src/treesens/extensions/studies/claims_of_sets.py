"""Claims of studies of sets of features and of single rows, in parts that can have certificates: sets, why, robust, reasons."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.explained import pinned
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result
from treesens.extensions.certify.attach import form_limit
from treesens.extensions.certify.claims import Ask, having, lacking, not_beyond, reason_claim, values_of
from treesens.extensions.certify.together import Claim, Part, each, open_claim
from treesens.extensions.studies.reasons import DenialRecord, ReasonOptions
from treesens.extensions.studies.reasons_search import NOTHING_HELPS, Shown
from treesens.extensions.studies.robust import RobustOptions, RobustRecord
from treesens.extensions.studies.robust_search import Nearest, RowQuestions
from treesens.extensions.studies.sets import SetOptions, SetsRecord
from treesens.extensions.studies.sets_search import MinimalSets, Set, with_varied
from treesens.extensions.studies.study import Asking, Found
from treesens.extensions.studies.why import WhyOptions, WhyRecord
from treesens.records.plain import ABSENT
from treesens.solve.options import Options
from treesens.solve.question import answer


def asking(options: Any) -> Callable[[Query], Result]:
    """What looks for inputs beside an answer, as the study has looked for it: all of them in the time of one answer."""
    how = Options(time_limit=options.time_limit, seed=options.seed, regions=False)
    budget = Budget.of(options.time_limit)
    return lambda query: answer(query, how, budget)


def claim_sets(asked: Asking[SetOptions], found: Found[SetsRecord]) -> Iterator[list[Claim]]:
    """Which sets of features flip each decision, and which do not: about all sets, if all are decided."""
    for one in found.result:
        words = one.decision.record()
        title = "the sets of features" + (f" {words}" if words else "")
        parts = [_flipping(one, features, asked.options) for features in one.lattice.having]
        parts += [lacking(with_varied(one.query, features)) for features in one.lattice.lacking]
        if not one.complete:
            decided = [each(f"{title}: those that are decided", parts)] if parts else []
            yield [open_claim(title, "not all sets are decided"), *decided]
            continue
        every = sorted(one.lattice.every)
        yield [Claim(title, "border", parts, partial(_border, every))]


def _border(every: list[int], numbers: list[int]) -> dict[str, Any]:
    return {"features": every, "parts": numbers}


def _flipping(one: MinimalSets, features: Set, options: SetOptions) -> Part:
    """A pair of a set; one that an earlier run had found is looked for again."""
    query = with_varied(one.query, features)
    witness = one.witnesses.get(features) or asking(options)(query).witness
    return lacking(query) if witness is None else having(query, witness)


def claim_reasons(asked: Asking[WhyOptions], found: Found[WhyRecord]) -> Iterator[Iterator[Claim]]:
    """Of every row its reason, and that no feature of it can be left out."""
    options, table = asked.options, asked.table
    assert table is not None
    questions = RowQuestions(asked.model, table, domain=options.range, seed=options.seed, decision=options.decision)
    names = questions.of_class[0].query.space.names

    def of_record(record: WhyRecord) -> Iterator[Claim]:
        title = f"why row {record.row}"
        predicted = questions.predicted(record.row)
        if record.sufficient is None or predicted is None:
            yield open_claim(title, record.reason or "no reason was found")
            return
        others = [one.query for c, one in enumerate(questions.of_class) if c != predicted]
        cells = others[0].space.grid.cells(questions.rows[record.row : record.row + 1])[0].astype(np.int32)
        several = record.reasons if isinstance(record.reasons, list) else [record.sufficient]
        for reason in several:
            mine, ask = [names.index(n) for n in reason], asking(options)
            yield reason_claim(title, others, cells, mine, ask, smallest=record.smallest)
        if record.complete is True:
            yield open_claim(f"{title}: there are no others", "that there are no other reasons has no certificate")
        if record.contrast is not None:
            yield _of_contrast(title, others, cells, [names.index(n) for n in record.contrast], asking(options))
        yield from _beside(title, record)

    return map(of_record, found.records)


def _of_contrast(title: str, others: Sequence[Query], cells: Int32Array, free: Sequence[int], ask: Ask) -> Claim:
    """That changes of these features alone give another class."""
    title = f"{title}: the change"
    kept = set(range(len(cells))) - set(free)
    for other in others:
        asked = pinned(other, cells, kept)
        witness = ask(asked).witness
        if witness is not None:
            return each(title, [having(asked, witness)])
    return open_claim(title, "no input was found that shows it")


def _beside(title: str, record: WhyRecord) -> Iterator[Claim]:
    """What stands beside a reason, and has no certificate."""
    if record.changeable is not ABSENT and record.changeable is not None:
        yield open_claim(f"{title}: what is permitted", "which changes are permitted is in no statement")
    for word in ("box", "radius", "recourse"):
        if getattr(record, word) not in (ABSENT, None):
            yield open_claim(f"{title}: {word}", f"what stands in `{word}` has no certificate")


def claim_robustness(asked: Asking[RobustOptions], found: Found[RobustRecord]) -> Iterator[list[Claim]]:
    """Of every row that no input of another class is nearer than its bound."""
    options, table = asked.options, asked.table
    assert table is not None
    questions = RowQuestions(asked.model, table, domain=options.range, norm=options.norm, seed=options.seed)
    classes = [str(c) for c in asked.model.ensemble.classes]
    for row in found.result.rows:
        predicted = questions.predicted(row.row)
        if predicted is None or row.verdict is None:
            yield [open_claim(f"row {row.row}", row.reason or "nothing is known")]
            continue
        known = row.targets or (Nearest(None, row.verdict, row.distance, row.bound, row.point, row.reason),)
        claims = []
        for one in known:
            title = f"row {row.row}" + ("" if one.target is None else f", class {one.target}")
            target = None if one.target is None else classes.index(one.target)
            claims.append(_of_nearest(title, questions.question(row.row, predicted, target).query, one))
        yield claims


def _of_nearest(title: str, query: Query, one: Nearest) -> Claim:
    goal = query.objective
    assert goal is not None
    if one.bound is None:
        return open_claim(title, one.reason or "no bound is proved")
    if math.isinf(one.bound):
        return each(f"{title}: no input of another class", [lacking(replace(query, objective=None))])
    limit = form_limit(goal, one.bound)
    return each(f"{title}: none is nearer than its bound", [not_beyond(query, limit)])


def claim_denials(asked: Asking[ReasonOptions], found: Found[DenialRecord]) -> Iterator[list[Claim]]:
    """Of every denial that its reasons suffice, and that none can be left out; or that nothing helps."""
    for record in found.records:
        yield [_of_denial(asked, record, found.result.shown.get(record.row))]


def _of_denial(asked: Asking[ReasonOptions], record: DenialRecord, shown: Shown | None) -> Claim:
    title, ask = f"the reasons of row {record.row}", asking(asked.options)
    if shown is None or record.suffice == "open":
        return open_claim(title, record.reason or "no reasons were found")
    if record.suffice == "yes" and asked.options.way == "values":
        return reason_claim(title, [shown.query], shown.cells, shown.features, ask)
    if record.suffice == "yes":
        return _of_change(title, shown, ask)
    if record.reason == NOTHING_HELPS:
        return each(title, [lacking(pinned(shown.query, shown.cells, _every(shown) - shown.usable))])
    return open_claim(title, f"that {record.reason.removesuffix(' (proved)')} has no certificate")


def _every(shown: Shown) -> frozenset[int]:
    return frozenset(range(len(shown.cells)))


def _of_change(title: str, shown: Shown, ask: Ask) -> Claim:
    """That changes of the features alone are favourable, and of fewer of them none."""
    kept = _every(shown) - shown.features
    asked = pinned(shown.query, shown.cells, kept)
    witness = ask(asked).witness
    if witness is None:
        return open_claim(title, "no input was found that shows that they suffice")
    features, row = sorted(shown.features), values_of(shown.query, shown.cells)
    more = [pinned(shown.query, shown.cells, kept | {f}) for f in features]
    parts: list[Part] = [having(asked, witness), *map(lacking, more)]
    return Claim(
        title,
        "change",
        parts,
        lambda numbers: {"features": features, "row": row, "parts": numbers},
        kept=[kept, *(kept | {f} for f in features)],
    )
