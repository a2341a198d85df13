"""How much of a measure a question is about: the share that belongs to its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.checkpoints import OutOfTime, working_within
from treesens.compiler.measure.counted import Counted, counted_of
from treesens.compiler.measure.precision import Precision
from treesens.compiler.measure.search import CONCERNED, NONE, Masses, ShareSearch
from treesens.compiler.measure.share import ShareRun
from treesens.compiler.query.query import Query
from treesens.compiler.query.share import ShareAsked
from treesens.compiler.result import Proof, Result, ShareFound, Verdict
from treesens.solve.driver import FIRST_MOMENT
from treesens.solve.measures import LEARNT, NOT_LEARNT, MeasureName, measure_by, rows_of_domain

ROUNDED = "scores are too long for exact sums"


def share_of(
    query: Query, result: Result, budget: Budget, progress: Callable[[str], None] | None = None
) -> ShareFound | None:
    """The share that a question asks for, of which `result` is the answer: what is proved to have none has a share of 0.

    DataError if the measure is one of rows and none of them lies in the domain.
    """
    asked = query.share
    if asked is None:
        return None
    if result.verdict is Verdict.NONE and result.proof is Proof.EXACT:
        return ShareFound(asked.measure, asked.kind, 0.0, 0.0, None, True, "").judged(asked)
    counted, name = counted_of(query), cast("MeasureName", asked.kind)
    cells = None
    if name in LEARNT:
        assert asked.rows is not None
        cells = rows_of_domain(query, asked.rows, counted.groups, asked.data or "")
    try:
        with working_within(budget.at_least(FIRST_MOMENT)):
            search = ShareSearch(counted.trees, counted.sides, measure_by(name, query, counted.groups, cells))
    except OutOfTime:
        reason = f"{budget.reason}: {NOT_LEARNT}"
        return ShareFound(asked.measure, asked.kind, 0.0, 1.0, None, False, reason).judged(asked)
    if name == "rows" and cells is not None:
        return _of_rows(asked, search, counted, cells)
    return _of_inputs(asked, search, budget, progress)


def _of_rows(asked: ShareAsked, search: ShareSearch, counted: Counted, cells: Int32Array) -> ShareFound:
    """Rows are counted one by one."""
    answers = search.answers(counted.groups.folded_rows(cells))
    sure, maybe = (int(n) / len(cells) for n in ((answers == CONCERNED).sum(), (answers != NONE).sum()))
    closed = sure == maybe
    reason = "" if closed else ROUNDED
    return ShareFound(asked.measure, asked.kind, sure, maybe, None, closed, reason, rows=len(cells)).judged(asked)


def _of_inputs(
    asked: ShareAsked,
    search: ShareSearch,
    budget: Budget,
    progress: Callable[[str], None] | None,
) -> ShareFound:
    def told(masses: Masses) -> None:
        if progress is not None:
            progress(f"share of {asked.measure} in [{masses.lower:.3g}, {masses.upper:.3g}]")

    def decided(lower: float, upper: float) -> bool:
        return asked.decided(lower, upper) is not None

    run = ShareRun(search, Precision(), progress=told, decided=decided if asked.expected is not None else None)
    share = run.run(budget.left(), budget)
    low, high = share.lower, share.upper
    return ShareFound(asked.measure, asked.kind, low, high, share.estimate, share.closed, share.reason).judged(asked)
