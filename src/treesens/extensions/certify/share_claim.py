"""The claim about a share: the affected rows, or boxes of a measure in which all inputs or no inputs are affected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result, ShareFound
from treesens.extensions.certify import claims
from treesens.extensions.certify.claims import claim_of_rows, distinct_of, having, lacking, sets_of
from treesens.extensions.certify.share_boxes import share_in_boxes
from treesens.extensions.certify.statement import NoCertificate
from treesens.extensions.certify.together import Claim, Part, open_claim
from treesens.extensions.measure.groups import groups_of
from treesens.extensions.measure.measure import Measure
from treesens.extensions.measure.measures import LEARNT, MeasureName, measure_by, rows_of_domain
from treesens.extensions.measure.precision import Precision
from treesens.extensions.measure.sides import varied_by

SLACK = 1e-9
"""Relative slack for a reported interval, whose masses are floats."""
NARROW = 0.01
"""The relative width of a proved share at which the search stops, unless the reported share is narrower."""

Ask = Callable[[Query], Result]


def claim_of_share(query: Query, share: ShareFound, ask: Ask, budget: Budget, folder: Path) -> tuple[Claim, ShareFound]:
    """The claim about a share, and the proved share."""
    title = f"the share of {share.measure}"
    asked = query.share
    assert asked is not None
    if share.rows is not None and asked.rows is not None:
        return _of_rows(title, query, share, ask), share
    try:
        return _in_boxes(title, query, share, ask, budget, folder)
    except NoCertificate as reason:
        return open_claim(title, str(reason)), share


def claim_of_interval(
    title: str, query: Query, measure: Measure, shown: tuple[float, float], ask: Ask, budget: Budget, folder: Path
) -> Claim:
    """The claim that the share of a measure is in a reported interval."""

    def enough(lower: float, upper: float) -> bool:
        return lower >= shown[0] - SLACK and upper <= shown[1] + SLACK

    try:
        found = share_in_boxes(
            title, query, varied_by(query), groups_of(query), measure, ask=ask, enough=enough,
            budget=budget, folder=folder,
        )  # fmt: skip
    except NoCertificate as reason:
        return open_claim(title, str(reason))
    if enough(found.lower, found.upper):
        return found.claim
    return open_claim(title, f"boxes prove in time only that it lies between {found.lower:.6g} and {found.upper:.6g}")


def _in_boxes(
    title: str, query: Query, share: ShareFound, ask: Ask, budget: Budget, folder: Path
) -> tuple[Claim, ShareFound]:
    """The claim about a share in boxes of the fixed features, refined to the usual precision or until the bound is proved."""
    asked, groups, name = query.share, groups_of(query), cast("MeasureName", share.kind)
    assert asked is not None
    cells = None
    if name in LEARNT:
        assert asked.rows is not None
        cells = rows_of_domain(query, asked.rows, groups, asked.data or "")
    precision, width = Precision(epsilon=NARROW), share.upper - share.lower

    def enough(lower: float, upper: float) -> bool:
        if asked.expected is not None and share.holds is not None:
            return asked.decided(lower, upper) is not None
        return precision.reached(lower, upper) or upper - lower <= width

    found = share_in_boxes(
        title,
        replace(query, share=None, objective=None),
        varied_by(query),
        groups,
        measure_by(name, query, groups, cells),
        ask=ask,
        enough=enough,
        budget=budget,
        folder=folder,
    )
    closed = Precision().reached(found.lower, found.upper) or enough(found.lower, found.upper)
    reason = "" if closed else "the certificate proves a wider interval than the reported interval"
    proved = replace(share, lower=found.lower, upper=found.upper, estimate=None, closed=closed, reason=reason)
    return found.claim, proved.judged(asked)


def _of_rows(title: str, query: Query, share: ShareFound, ask: Ask) -> Claim:
    """The claim about a share of rows: for each row, whether an input with its fixed features' values is an answer."""
    assert query.share is not None
    assert query.share.rows is not None
    if not share.closed:
        return open_claim(title, share.reason or "the share is not known")
    cells = rows_of_domain(query, query.share.rows, groups_of(query), query.share.data or "")
    return claim_of_counted(title, query, cells, round(share.lower * len(cells)), ask)


def claim_of_counted(title: str, query: Query, rows: Int32Array, count: int, ask: Ask) -> Claim:
    """The claim that `count` of the `rows`, int32[rows, features], have an answer, and which rows have one."""
    cells = rows.copy()
    free = varied_by(query)
    cells[:, sorted(free)] = 0
    distinct, group = distinct_of(cells)
    if len(distinct) > claims.MOST_ROWS:
        return open_claim(title, f"more than {claims.MOST_ROWS} rows are not proved one by one")
    bare, parts, answering = replace(query, share=None, objective=None), list[Part](), np.zeros(len(distinct), bool)
    for number, mine in enumerate(distinct):
        asked = replace(bare, constraints=(*bare.constraints, *sets_of(query, mine, free)))
        witness = ask(asked).witness
        answering[number] = witness is not None
        parts.append(lacking(asked) if witness is None else having(asked, witness))
    if answering[group].sum() != count:
        return open_claim(title, "rows are counted by cells, and for one of these rows no answer is known")
    return claim_of_rows(title, bare, parts, distinct, group)
