"""A question that is proved in cases, as the checker reads it: a statement, alternatives, and limits of changes.

The checker makes the cases from it (verify/, `cases.py`). Here nothing has to be right: a case that no part answers is noticed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from treesens.certificates.cases import MOST, flat
from treesens.certificates.statement import domains_of, learnt_of, statement_of
from treesens.certificates.sums import with_cell_rows
from treesens.compiler.query.forest import Forest
from treesens.compiler.query.query import AnyOf, AtLeast, CellSet, Constraint, Query
from treesens.values.stated_changes import counted_changes, least_changes

Refuted = tuple[Query, tuple[AtLeast, ...]]
"""A question, and rows beside it, that have no answer together."""

Whole = dict[str, Any]

LISTS = ("domain", "rows", "clauses", "orders")


def whole_of(query: Query, extra: tuple[AtLeast, ...] = ()) -> Whole:
    """The question with the rows beside it. Raises NoCertificate for models that the checker does not read."""
    learnt = learnt_of(query, extra)
    plain, more = _sorted(query, (*query.constraints, *extra), learnt)
    text = statement_of(with_cell_rows(replace(query, constraints=plain, objective=None)), learnt=learnt).text
    return {"statement": text, **more}


def with_alternatives(whole: Whole, query: Query, alternatives: Iterable[Refuted]) -> Whole:
    """The question, and that one of some alternatives holds: questions that begin with its constraints."""
    count, learnt = len(query.constraints), learnt_of(query)
    one = [_alternative(query, (*other.constraints[count:], *rows), learnt) for other, rows in alternatives]
    return {**whole, "either": [*whole["either"], one]}


def _sorted(
    query: Query, constraints: Iterable[Constraint], learnt: list[Forest]
) -> tuple[tuple[Constraint, ...], dict[str, list[Any]]]:
    """What statements say; and the disjunctions that they cannot say, with the most and the least changes."""
    plain: list[Constraint] = []
    either: list[list[Any]] = []
    changes: list[dict[str, Any]] = []
    apart: list[dict[str, Any]] = []
    for constraint in flat(constraints):
        counted, least = counted_changes(constraint), least_changes(constraint)
        if least is not None and least[1] > 0:
            apart.append({"features": sorted(least[0]), "least": least[1]})
        if isinstance(constraint, AnyOf) and not all(isinstance(part, CellSet) for part in constraint.parts):
            either.append([_alternative(query, (part,), learnt) for part in constraint.parts])
        elif counted is not None and math.comb(len(counted[0]), max(0, counted[1])) <= MOST:
            changes.append({"features": sorted(counted[0]), "most": max(-1, counted[1])})
        else:
            plain.append(constraint)
    return tuple(plain), {"either": either, "changes": changes, "apart": apart}


def _alternative(query: Query, constraints: Sequence[Constraint], learnt: list[Forest]) -> dict[str, Any]:
    plain, more = _sorted(query, constraints, learnt)
    text = statement_of(with_cell_rows(replace(query, constraints=plain, objective=None)), learnt=learnt).text
    if text["same_except"] is not None:
        kept = set(range(len(query.space.names))) - set(text["same_except"])
        more["changes"].append({"features": sorted(kept), "most": 0})
    lists = {name: text[name] for name in LISTS}
    return {**lists, "domain": text["domain"][len(domains_of(query)) :], **more}
