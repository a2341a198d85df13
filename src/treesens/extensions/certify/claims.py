"""Claims that need several statements, with a certificate per part: reasons, row counts and rankings.

A reason needs one proof per other class: no input of that class agrees with the row on the reason's features. For each feature,
an input of another class that agrees on the other features shows that the feature is needed. For a smallest reason, inputs of
other classes show that no smaller set hits all their differences from the row (implicit hitting sets).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import isnan
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import Int32Array, Int64Array, frozen
from treesens.compiler.query.known_cavities import all_cavities_in
from treesens.compiler.query.query import (
    AvoidCavities,
    CellSet,
    ProbabilitySum,
    Query,
    RowSet,
    parts_in,
    pinned,
)
from treesens.compiler.result import Ranked, Result, RowCount
from treesens.data.rows import cells_of_rows
from treesens.extensions.answers.top import Apart
from treesens.extensions.certify.answers import Existing, certified_bound, certified_found, certified_none
from treesens.extensions.certify.attach import form_limit
from treesens.extensions.certify.produce import existence, reached
from treesens.extensions.certify.statement import NoCertificate, ensembles_of, set_of_cells
from treesens.extensions.certify.together import Claim, Part, each, open_claim
from treesens.extensions.certify.whole import unsaid, whole_of, whole_of_inputs
from treesens.values.relations import relates
from treesens.values.verify import Witness

MOST_ROWS = 1000
"""Maximum number of rows that are proved one by one."""

_BY_VALUE = (AvoidCavities, ProbabilitySum)
"""Constraints for which the bounds of cells are too weak; for questions about one point, rows are checked by value."""

MOST_TRIED = 20_000
"""Maximum number of feature sets tried in the search for a set that hits all inputs."""

Ask = Callable[[Query], Result]

Shown = tuple[Part, frozenset[int]]
"""An input of another class, and the features on which it agrees with the row."""


def lacking(query: Query) -> Part:
    """Claims that a question has no answer."""
    return Part(query, lambda folder, budget: certified_none(query, folder, budget=budget))


def not_beyond(query: Query, limit: float) -> Part:
    """Claims that no answer has an objective beyond a limit, in units of its form."""
    return Part(query, lambda folder, budget: certified_bound(query, limit, folder, budget=budget))


def having(query: Query, witness: Witness) -> Part:
    """Claims that a question has this answer and, if there is an objective, that the answer reaches the stated value."""
    make: Existing = existence if query.objective is None else reached
    return Part(query, lambda folder, _: [certified_found(query, witness, folder, make, by_value="cells")])


def claims_of(query: Query, result: Result, ask: Ask) -> Iterator[Claim]:
    """The claims about a reason, a count or a list; `ask` finds inputs that are not part of the answer."""
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
    """Claims for every decided row that the row is an answer, or that it is no answer; rows are identified by their cells."""
    rows = query.rows
    assert rows is not None
    title = "the number of rows that answer"  # not the number of rows, which may stay uncertified
    if count.undecided:
        yield open_claim(title, f"{len(count.undecided)} rows are undecided")
        return
    if len(rows.index) == 0:
        yield open_claim(title, "no row lies in the domain, and a claim covers only rows in the domain")
        return
    if len(rows.index) > MOST_ROWS:
        yield open_claim(title, f"more than {MOST_ROWS} rows are not proved one by one")
        return
    bare = replace(query, rows=None, objective=None)
    named = parts_in(query.constraints)
    if len(query.points) == 1 and any(isinstance(c, _BY_VALUE) or relates(c) for c in named):
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
    """The claim's fields: the question, and the values of every row."""
    if reasons := unsaid(query):
        raise NoCertificate(f"the format cannot express {' or '.join(reasons)}")
    values = [{"values": [None if isnan(x) else x for x in row]} for row in rows.values.tolist()]
    return {"whole": whole_of_inputs(query), "rows": values}


def claim_of_rows(title: str, query: Query, parts: list[Part], distinct: Int32Array, group: Int64Array) -> Claim:
    """The claim about every row, with one part per distinct row; rows proved in cases have the claims of their cases."""

    def say(numbers: list[list[int]]) -> dict[str, Any]:
        if next(all_cavities_in(query.constraints), None) is not None:
            raise NoCertificate("cavities without a list, for rows that are proved in cases")
        grid = query.space.grid
        sets = [
            [[0, c.feature, set_of_cells(grid[c.feature], c.mask)] for c in sets_of(query, mine)] for mine in distinct
        ]
        rows = [{"sets": sets[g], "parts": numbers[g]} for g in group.tolist()]
        return {"whole": whole_of(query), "rows": rows}

    return Claim(title, "rows", parts, lambda numbers: _per_row(group, numbers), in_cases=("answers", say))


def sets_of(query: Query, cells: Int32Array, free: Collection[int] = ()) -> list[CellSet]:
    """Restricts the first point to `cells`, int32[features], except in the `free` features: one set per feature."""
    legal = query.space.legal
    masks = [legal[f] if f in free else np.arange(len(legal[f])) == cell for f, cell in enumerate(cells)]
    return [CellSet(0, f, frozen(mask, bool)) for f, mask in enumerate(masks)]


def distinct_of(cells: Int32Array) -> tuple[Int32Array, Int64Array]:
    """The distinct rows of `cells`, and for each row the index of its distinct row."""
    distinct, found = np.unique(cells, axis=0, return_inverse=True)
    return distinct, np.array(found, np.int64).reshape(-1)


def _per_row(group: Int64Array, numbers: list[int]) -> dict[str, list[int]]:
    return {"parts": [numbers[g] for g in group.tolist()]}


def _of_ranked(query: Query, ranked: Ranked) -> Iterator[Claim]:
    """Claims that each answer is a best answer outside the regions of earlier answers, and that no further answer exists."""
    typed = replace(query, top=1, diverse=False)
    apart = Apart(typed)
    for number, one in enumerate(ranked.answers):
        asked, witness, goal = apart.question(), one.witness, typed.objective
        assert witness is not None
        parts = [having(asked, witness)]
        if goal is not None and one.objective is not None and one.objective.bound is not None:
            parts.append(not_beyond(asked, form_limit(goal, one.objective.bound)))
        yield each(f"answer {number + 1}, outside the regions of earlier answers", parts)
        apart.add(witness, diverse=query.diverse)
    if ranked.complete:
        yield each("there is no other answer", [lacking(replace(apart.question(), objective=None))])


def reason_claim(
    title: str,
    others: Sequence[Query],
    cells: Int32Array,
    features: Collection[int],
    ask: Ask,
    *,
    smallest: bool = False,
) -> Claim:
    """The claim that `features` are a minimal reason and, with `smallest`, that no reason has fewer features.

    `others` holds the questions for another class; `cells`, int32[features], are the cells of the row; `ask` finds inputs that
    show that a feature is needed.
    """
    parts = [lacking(pinned(other, cells, features)) for other in others]
    kept: list[Collection[int]] = [features for _ in others]
    shown_apart: list[Shown] = []
    for left_out in sorted(features):
        shown = _shown(others, cells, [f for f in features if f != left_out], ask)
        if shown is None:
            name = others[0].space.names[left_out]
            return open_claim(title, f"no input was found that shows that {name} cannot be left out")
        shown_apart.append(shown)
    if smallest and not _against_fewer(others, cells, len(features), shown_apart, ask):
        return open_claim(title, "a reason with fewer features was not excluded")
    parts += [part for part, _ in shown_apart]
    kept += [agreed for _, agreed in shown_apart]
    kind = "smallest" if smallest else "reason"
    row = values_of(others[0], cells)
    return Claim(
        title, kind, parts, lambda numbers: {"features": sorted(features), "row": row, "parts": numbers}, kept=kept
    )


def values_of(query: Query, cells: Int32Array) -> list[list[Any]]:
    """The values in the cells of a row, int32[features], in the form of claims: one set per feature."""
    grids = query.space.grid
    return [[f, set_of_cells(grid, np.arange(grid.n_cells) == cells[f])] for f, grid in enumerate(grids)]


def _shown(others: Sequence[Query], cells: Int32Array, kept: Collection[int], ask: Ask) -> Shown | None:
    """An input of another class that agrees with the row at least on the kept features."""
    for other in others:
        asked = pinned(other, cells, kept)
        witness = ask(asked).witness
        if witness is not None:
            mine = witness.cells[0]
            agreed = [f for f in range(len(mine)) if mine[f] == cells[f]]
            return having(pinned(other, cells, agreed), witness), frozenset(agreed)
    return None


def _against_fewer(others: Sequence[Query], cells: Int32Array, size: int, shown_apart: list[Shown], ask: Ask) -> bool:
    """Adds inputs of other classes until no set of fewer than `size` features hits all their differences; True on success."""
    tried = 0
    for fewer in range(size):
        for chosen in combinations(range(len(cells)), fewer):
            tried += 1
            if tried > MOST_TRIED:
                return False
            if not any(agreed.issuperset(chosen) for _, agreed in shown_apart):
                shown = _shown(others, cells, chosen, ask)
                if shown is None:
                    return False
                shown_apart.append(shown)
    return True
