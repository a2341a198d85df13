"""What answers claim that are more than one statement: reasons, counts of rows, and several answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from treesens.certificates.attach import form_limit
from treesens.certificates.parts import having, lacking, not_beyond
from treesens.certificates.together import Claim, each, open_claim
from treesens.compiler.base.arrays import Int64Array
from treesens.compiler.query.explained import pinned
from treesens.compiler.query.query import Query
from treesens.compiler.result import Ranked, Result, RowCount
from treesens.data.rows import cells_of_rows
from treesens.solve.tasks.reason_claim import reason_claim
from treesens.solve.tasks.top_n import Apart

MOST_ROWS = 1000
"""Rows that are proved one by one."""

Ask = Callable[[Query], Result]


def claims_of(query: Query, result: Result, ask: Ask) -> Iterator[Claim]:
    """The claims of an answer that is a reason, a count or a list; `ask` looks for inputs that the answer does not show."""
    if query.explained is not None:
        row, known = query.explained, result.explanation
        if known is None or known.features is None:
            yield open_claim("the reason", "no reason was found")
            return
        yield reason_claim("the reason", row.others, row.cells, known.features, ask, smallest=known.smallest)
    elif result.count is not None:
        yield from _of_count(query, result.count, ask)
    elif result.ranked is not None:
        yield from _of_ranked(query, result.ranked)


def _of_count(query: Query, count: RowCount, ask: Ask) -> Iterator[Claim]:
    """Of every row that is decided, by its cells, whether it answers."""
    rows = query.rows
    assert rows is not None
    title = f"{count.at_least} of {count.total} rows answer"
    if count.undecided:
        yield open_claim(title, f"{len(count.undecided)} rows are undecided")
        return
    if len(rows.index) == 0:
        yield open_claim(title, "no row lies in the domain, and what lies outside of it is not stated")
        return
    if len(rows.index) > MOST_ROWS:
        yield open_claim(title, f"more than {MOST_ROWS} rows are not proved one by one")
        return
    bare = replace(query, rows=None, objective=None)
    cells = cells_of_rows(query.space.grid, rows.values)
    every = range(len(query.space.names))
    distinct, found = np.unique(cells, axis=0, return_inverse=True)
    group = np.array(found, np.int64).reshape(-1)
    answering = set(group[np.isin(rows.index, np.array(count.rows, np.int64))].tolist())
    parts = []
    for number, mine in enumerate(distinct):
        asked = pinned(bare, mine, every)
        witness = ask(asked).witness if number in answering else None
        parts.append(lacking(asked) if witness is None else having(asked, witness))
    yield Claim(title, "rows", parts, lambda numbers: _per_row(group, numbers))


def _per_row(group: Int64Array, numbers: list[int]) -> dict[str, list[int]]:
    return {"parts": [numbers[g] for g in group.tolist()]}


def _of_ranked(query: Query, ranked: Ranked) -> Iterator[Claim]:
    """Every answer outside the regions of those before it, that none is better, and at the end that there is no other."""
    typed = replace(query, top=1, diverse=False)
    apart = Apart(typed)
    for number, one in enumerate(ranked.answers):
        asked, witness, goal = apart.question(), one.witness, typed.objective
        assert witness is not None
        parts = [having(asked, witness)]
        if goal is not None and one.objective is not None and one.objective.bound is not None:
            parts.append(not_beyond(asked, form_limit(goal, one.objective.bound)))
        yield each(f"answer {number + 1}, outside the regions of those before it", parts)
        apart.add(witness, diverse=query.diverse)
    if ranked.complete:
        yield each("there is no other answer", [lacking(replace(apart.question(), objective=None))])
