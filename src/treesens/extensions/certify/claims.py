"""What answers claim that are more than one statement: reasons, counts of rows, and several answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from math import isnan
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import Int32Array, Int64Array, frozen
from treesens.compiler.query.known_cavities import all_cavities_in
from treesens.compiler.query.query import AvoidCavities, CellSet, Difference, ProbabilitySum, Query, RowSet, parts_in
from treesens.compiler.query.values import ValueSum
from treesens.compiler.result import Ranked, Result, RowCount
from treesens.data.rows import cells_of_rows
from treesens.extensions.certify.attach import form_limit
from treesens.extensions.certify.parts import having, lacking, not_beyond
from treesens.extensions.certify.reason_claim import reason_claim
from treesens.extensions.certify.statement import NoCertificate, ensembles_of, set_of_cells
from treesens.extensions.certify.together import Claim, Part, each, open_claim
from treesens.extensions.certify.whole import unsaid, whole_of, whole_of_inputs
from treesens.solve.tasks.top_n import Apart

MOST_ROWS = 1000
"""Rows that are proved one by one."""

_BY_VALUE = (AvoidCavities, Difference, ProbabilitySum, ValueSum)
"""Of these cells say too little: rows of one point are looked at by value."""

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
    title = "how many rows answer"  # without the number, which may get no certificate
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
    if len(query.points) == 1 and any(isinstance(c, _BY_VALUE) for c in parts_in(query.constraints)):
        told = f" {count.at_least} are an answer"
        models = tuple(ensembles_of(bare))
        yield Claim(title, "answers", say=lambda _: _looked_at(bare, rows), models=models, told=told)
        return
    cells = cells_of_rows(query.space.grid, rows.values)
    distinct, group = distinct_of(cells)
    answering = set(group[np.isin(rows.index, np.array(count.rows, np.int64))].tolist())
    parts = []
    for number, mine in enumerate(distinct):
        asked = replace(bare, constraints=(*bare.constraints, *sets_of(query, mine)))
        witness = ask(asked).witness if number in answering else None
        parts.append(lacking(asked) if witness is None else having(asked, witness))
    yield claim_of_rows(title, bare, parts, distinct, group)


def _looked_at(query: Query, rows: RowSet) -> dict[str, Any]:
    """The question, and the values of every row."""
    if reasons := unsaid(query):
        raise NoCertificate(f"the format cannot say {' or '.join(reasons)}")
    values = [{"values": [None if isnan(x) else x for x in row]} for row in rows.values.tolist()]
    return {"whole": whole_of_inputs(query), "rows": values}


def claim_of_rows(title: str, query: Query, parts: list[Part], distinct: Int32Array, group: Int64Array) -> Claim:
    """What is claimed of every row, which is a question with one part; if some are proved in cases, with those of each."""

    def say(numbers: list[list[int]]) -> dict[str, Any]:
        if next(all_cavities_in(query.constraints), None) is not None:
            raise NoCertificate("cavities of which there is no list, about rows that are proved in cases")
        grid = query.space.grid
        sets = [
            [[0, c.feature, set_of_cells(grid[c.feature], c.mask)] for c in sets_of(query, mine)] for mine in distinct
        ]
        rows = [{"sets": sets[g], "parts": numbers[g]} for g in group.tolist()]
        return {"whole": whole_of(query), "rows": rows}

    return Claim(title, "rows", parts, lambda numbers: _per_row(group, numbers), in_cases=("answers", say))


def sets_of(query: Query, cells: Int32Array, free: Collection[int] = ()) -> list[CellSet]:
    """That the first point has these cells, int32[features], in all features but the free ones: a set for each feature."""
    legal = query.space.legal
    masks = [legal[f] if f in free else np.arange(len(legal[f])) == cell for f, cell in enumerate(cells)]
    return [CellSet(0, f, frozen(mask, bool)) for f, mask in enumerate(masks)]


def distinct_of(cells: Int32Array) -> tuple[Int32Array, Int64Array]:
    """The different rows of cells, and for each row the number of its own."""
    distinct, found = np.unique(cells, axis=0, return_inverse=True)
    return distinct, np.array(found, np.int64).reshape(-1)


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
