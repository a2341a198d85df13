"""The service "measures": checks if a share can be counted, counts it, and scores typical inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.base.budget import Budget, OutOfTime, working_within
from treesens.compiler.query.query import Query
from treesens.compiler.query.share import ShareAsked
from treesens.compiler.result import Proof, Result, ShareFound, Verdict
from treesens.extensions.measure.counted import Counted, counted_of
from treesens.extensions.measure.measures import LEARNT, NOT_LEARNT, MeasureName, measure_by, rows_of_domain, uniform
from treesens.extensions.measure.precision import Precision
from treesens.extensions.measure.search import CONCERNED, NONE, Masses, ShareSearch
from treesens.extensions.measure.share import ShareRun
from treesens.extensions.measure.share_words import share_words
from treesens.extensions.measure.typical import learn_typical
from treesens.solve.driver import FIRST_MOMENT

__all__ = ["check_countable", "learn_typical", "share_of", "share_words"]
ROUNDED = "scores are too long for exact sums"


def check_countable(query: Query) -> None:
    """Raises UsageError if the share of a question is not supported, or the measure of the question is undefined."""
    counted = counted_of(query)
    if query.share is not None and query.share.kind == "uniform":
        uniform(query.space, counted.groups)


def share_of(
    query: Query, result: Result, budget: Budget, progress: Callable[[str], None] | None = None
) -> ShareFound | None:
    """The share of a question with the answer `result`; if `none` is proved, the share is 0.

    Raises DataError if the measure counts rows and no row is in the domain.
    """
    share_asked = query.share
    if share_asked is None:
        return None
    if result.verdict is Verdict.NONE and result.proof is Proof.EXACT:
        return ShareFound(share_asked.measure, share_asked.kind, 0.0, 0.0, None, True, "").judged(share_asked)
    counted, name = counted_of(query), cast("MeasureName", share_asked.kind)
    cells = None
    if name in LEARNT:
        assert share_asked.rows is not None
        cells = rows_of_domain(query, share_asked.rows, counted.groups, share_asked.data or "")
    try:
        with working_within(budget.at_least(FIRST_MOMENT)):
            search = ShareSearch(counted.trees, counted.sides, measure_by(name, query, counted.groups, cells))
    except OutOfTime:
        reason = f"{budget.reason}: {NOT_LEARNT}"
        return ShareFound(share_asked.measure, share_asked.kind, 0.0, 1.0, None, False, reason).judged(share_asked)
    if name == "rows" and cells is not None:
        return _of_rows(share_asked, search, counted, cells)
    return _of_inputs(share_asked, search, budget, progress)


def _of_rows(share_asked: ShareAsked, search: ShareSearch, counted: Counted, cells: Int32Array) -> ShareFound:
    """The share of affected rows, found by counting every row."""
    answers = search.answers(counted.groups.folded_rows(cells))
    sure, maybe = (int(n) / len(cells) for n in ((answers == CONCERNED).sum(), (answers != NONE).sum()))
    closed = sure == maybe
    reason = "" if closed else ROUNDED
    return ShareFound(share_asked.measure, share_asked.kind, sure, maybe, None, closed, reason, rows=len(cells)).judged(
        share_asked
    )


def _of_inputs(
    share_asked: ShareAsked,
    search: ShareSearch,
    budget: Budget,
    progress: Callable[[str], None] | None,
) -> ShareFound:
    def show(masses: Masses) -> None:
        if progress is not None:
            progress(f"share of {share_asked.measure} in [{masses.lower:.3g}, {masses.upper:.3g}]")

    def decided(lower: float, upper: float) -> bool:
        return share_asked.decided(lower, upper) is not None

    run = ShareRun(search, Precision(), progress=show, decided=decided if share_asked.expected is not None else None)
    share = run.run(budget.left(), budget)
    low, high = share.lower, share.upper
    return ShareFound(
        share_asked.measure, share_asked.kind, low, high, share.estimate, share.closed, share.reason
    ).judged(share_asked)
