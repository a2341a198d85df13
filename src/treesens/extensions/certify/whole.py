"""The question in the form that the checker reads: a statement, alternatives, change limits, sums of values and probabilities.

For a proof in cases, the checker derives the cases from the question (verify/, `cases.py`), and detects unproved cases. Inputs
are checked against the entire question, by value.

Cavities are stated by the cells of rows. A cavity of width w is a box in at most w features that contains no row: a point is in
no cavity if, on every set of w features, some row shares the point's cells. Fewer rows make a stronger statement, so an answer
lists just enough rows (`Cavities.separating`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.query.cavities import Cavities
from treesens.compiler.query.forest import Forest
from treesens.compiler.query.query import (
    AnyOf,
    AtLeast,
    AvoidCavities,
    CellSet,
    Constraint,
    Difference,
    ProbabilitySum,
    Query,
    SameExcept,
    Summand,
    parts_in,
)
from treesens.compiler.query.shares import Linear, Probability
from treesens.compiler.query.values import LinearTerm, Term, ValueSum
from treesens.extensions.certify.cases import MOST, Refuted, flat
from treesens.extensions.certify.combined_rows import with_combined_rows
from treesens.extensions.certify.statement import (
    NoCertificate,
    domains_of,
    is_order,
    is_plain,
    learnt_of,
    scores_of,
    set_of_cells,
    statement_of,
)
from treesens.extensions.certify.sums import sums_of, with_cell_rows
from treesens.extensions.formats.links.calibration import Isotonic, Learnt
from treesens.extensions.formats.links.curve_sums import Curve
from treesens.extensions.formats.links.quotients import Quotient
from treesens.values.relations import at_scores
from treesens.values.stated_changes import counted_changes, least_changes
from treesens.values.verify import Witness

Whole = dict[str, Any]

LISTS = ("domain", "rows", "clauses", "orders")

MOST_CELLS = 200_000
"""Maximum total number of cells in the rows of a statement about cavities."""


def whole_of(query: Query, extra: tuple[AtLeast, ...] = (), *, combined: bool = False) -> Whole:
    """The question with the `extra` rows, for a proof in cases; if `combined`, with joint consequences of relations. Raises
    NoCertificate for models that the checker cannot read. Change limits with too many cases are omitted.
    """
    return _Further(query, learnt_of(query, extra), combined=combined).whole((*query.constraints, *extra))


def whole_of_inputs(
    query: Query, extra: tuple[AtLeast, ...] = (), *, in_cells: bool = False, answer: Witness | None = None
) -> Whole:
    """The complete question, for checking inputs; with `in_cells`, sums have bounds of single cells, as in a proof.

    Cavities are stated by all rows, or rows sufficient for an `answer`. Also raises NoCertificate if there are too many rows.
    """
    further = _Further(query, learnt_of(query, extra), inputs=True, in_cells=in_cells, answer=answer)
    return further.whole((*query.constraints, *extra))


def unsaid(query: Query) -> list[str]:
    """The names of constraints that a statement cannot express."""
    return list(dict.fromkeys(reason for c in parts_in(query.constraints) if (reason := _unsaid(c))))


def with_alternatives(whole: Whole, query: Query, alternatives: Iterable[Refuted]) -> Whole:
    """The question with a disjunction of `alternatives`, which are questions that start with the constraints of `query`."""
    count, found = len(query.constraints), _Further(query, learnt_of(query))
    one = [found.alternative((*other.constraints[count:], *rows)) for other, rows in alternatives]
    return {**whole, "either": [*whole["either"], one]}


def _unsaid(constraint: Constraint) -> str:
    match constraint:
        case SameExcept() if {constraint.left, constraint.right} != {0, 1}:
            return "a second pair of points that agree"
        case AtLeast() if not is_plain(constraint.form) and counted_changes(constraint) is None:
            least = least_changes(constraint)
            return "" if least is not None else f"the constraint `{constraint.name}` on pairs of cells or on changes"
        case ProbabilitySum() if not _is_said(constraint):
            of_classes = any(isinstance(term, Quotient) for term in constraint.terms)
            return f"a probability of classes that were {'calibrated' if of_classes else 'balanced'}"
        case _:
            return ""


def _is_by_value(constraint: Constraint) -> bool:
    return isinstance(constraint, AvoidCavities) or (isinstance(constraint, AtLeast) and bool(constraint.values))


def _is_said(row: ProbabilitySum) -> bool:
    """True if each term of a sum is a share of a softmax, a line, a sigmoid, or an isotonic function of one score."""
    return all(isinstance(term, Probability | Linear) for term in row.terms)


class _Further:
    """The parts of a question that a statement cannot express: disjunctions, change limits, and sums."""

    def __init__(
        self,
        query: Query,
        learnt: list[Forest],
        *,
        inputs: bool = False,
        in_cells: bool = True,
        answer: Witness | None = None,
        combined: bool = False,
    ) -> None:
        self.query, self.learnt, self.inputs, self.in_cells, self.answer = query, learnt, inputs, in_cells, answer
        self.combined = combined

    def whole(self, constraints: Iterable[Constraint]) -> Whole:
        constraints = tuple(constraints)
        return {"statement": self.statement(constraints), **self.of(constraints)}

    def statement(self, constraints: Iterable[Constraint]) -> dict[str, Any]:
        """The statement, with bounds of single cells for sums and without the constraints that a statement cannot express. With
        `in_cells=False`, known cavities and rows of values are omitted too, because cavities and values are checked.
        """
        constraints = (c for c in flat(constraints) if self.in_cells or not _is_by_value(c))
        asked = replace(self.query, constraints=tuple(constraints), objective=None)
        asked = with_cell_rows(asked) if self.in_cells else asked
        return statement_of((self.combined and with_combined_rows(asked)) or asked, learnt=self.learnt).text

    def of(self, constraints: Iterable[Constraint]) -> dict[str, list[Any]]:
        """Lists of the parts that a statement cannot express, by kind."""
        found: dict[str, list[Any]] = {name: [] for name in ("either", "changes", "apart", "values", "chances")}
        cavities = [self._cavities(c) for c in flat(constraints) if self.inputs and isinstance(c, AvoidCavities)]
        found |= {"cavities": cavities} if cavities else {}
        for constraint in flat(constraints):
            counted, least = counted_changes(constraint), least_changes(constraint)
            if least is not None and least[1] > 0:
                found["apart"].append({"features": sorted(least[0]), "least": least[1]})
            if isinstance(constraint, AnyOf) and not all(isinstance(part, CellSet) for part in constraint.parts):
                found["either"].append([self.alternative((part,)) for part in constraint.parts])
            elif counted is not None and (self.inputs or math.comb(len(counted[0]), max(0, counted[1])) <= MOST):
                found["changes"].append({"features": sorted(counted[0]), "most": max(-1, counted[1])})
            elif isinstance(constraint, ValueSum) and not is_order(constraint):
                found["values"].append(_values(constraint))
            elif isinstance(constraint, Difference) and not is_order(constraint):
                found["values"] += map(_values, sums_of(constraint))
            elif isinstance(constraint, AtLeast) and constraint.values:
                turned = [replace(t, coefficient=-t.coefficient) for t in constraint.form.scores]
                scores = {"scores": scores_of(self.query, turned)}
                found["values"].append(_values(at_scores(constraint, Fraction(0))) | scores)
            elif isinstance(constraint, ProbabilitySum) and _is_said(constraint):
                found["chances"].append(self._chance(constraint))
        return found

    def _cavities(self, constraint: AvoidCavities) -> dict[str, Any]:
        cells = None if self.answer is None else self.answer.cells[constraint.point]
        return stated_cavities(self.query, constraint, cells)

    def alternative(self, constraints: Iterable[Constraint]) -> dict[str, Any]:
        """One alternative of a disjunction."""
        constraints = tuple(constraints)
        text, more = self.statement(constraints), self.of(constraints)
        if self.combined and constraints != self.query.constraints:  # the relations of the question are included
            text["rows"] += self.statement((*self.query.constraints, *constraints))["rows"]
        if text["same_except"] is not None:
            kept = set(range(len(self.query.space.names))) - set(text["same_except"])
            more["changes"].append({"features": sorted(kept), "most": 0})
        lists = {name: text[name] for name in LISTS}
        return {**lists, "domain": text["domain"][len(domains_of(self.query)) :], **more}

    def _chance(self, row: ProbabilitySum) -> dict[str, Any]:
        return {"terms": list(map(self._term, row.terms)), "least": str(row.bound), "strict": row.strict}

    def _term(self, term: Summand) -> list[Any]:
        if isinstance(term, Probability):
            exponents = [[scores_of(self.query, e.terms), str(e.constant)] for e in term.exponents]
            return [str(term.factor), exponents]
        assert isinstance(term, Linear)
        curve = _curve(term.calibration) if isinstance(term, Curve) else None
        return [str(term.factor), scores_of(self.query, term.scores), curve]


def _curve(calibration: Learnt) -> dict[str, Any]:
    if isinstance(calibration, Isotonic):
        knots = [[str(x), str(y)] for x, y in zip(*calibration.exact, strict=True)]
        return {"knots": knots, "of_probability": calibration.of_probability}
    slope, intercept = Fraction(calibration.slope), Fraction(calibration.intercept)
    return {"slope": str(slope), "intercept": str(intercept), "of_probability": calibration.of_probability}


def _values(relation: ValueSum) -> dict[str, Any]:
    return {"terms": list(map(_value, relation.terms)), "most": str(relation.limit), "strict": relation.strict}


def _value(term: Term) -> list[Any]:
    if isinstance(term, LinearTerm):
        return [str(term.factor), term.point, term.feature]
    other = {"value": None if math.isnan(term.row) else term.row} if term.other is None else {"point": term.other}
    width = None if term.unordered else str(term.width)
    return [str(term.factor), term.point, term.feature, other, width, term.power]


def stated_cavities(query: Query, constraint: AvoidCavities, answer: Int32Array | None = None) -> dict[str, Any]:
    """The constraint that a point is in no cavity, stated by all rows or by rows that suffice for `answer`, int32[features].

    Raises NoCertificate if the statement would name more than MOST_CELLS cells.
    """
    cavities = constraint.cavities
    rows = cavities.rows if answer is None else _enough(cavities, constraint.coarse_cells(answer))
    if rows.size > MOST_CELLS:
        raise NoCertificate(f"all cavities of {len(rows)} different rows need more than {MOST_CELLS} cells")
    cells, numbers = list[list[dict[str, Any]]](), np.empty(rows.shape, object)
    for column, feature in enumerate(cavities.features.tolist()):
        start = int(constraint.start[feature])
        grid = query.space.grid[feature]
        owner = constraint.coarse[start : start + grid.n_cells]
        used, place = np.unique(rows[:, column], return_inverse=True)
        sets = {int(c): set_of_cells(grid, owner == c) for c in used if (owner == c).any()}
        order = {c: number for number, c in enumerate(sets)}
        cells.append(list(sets.values()))
        numbers[:, column] = [order.get(int(used[i])) for i in place.reshape(-1)]
    return {
        "point": constraint.point,
        "width": cavities.width,
        "features": cavities.features.tolist(),
        "cells": cells,
        "rows": numbers.tolist(),
    }


def _enough(cavities: Cavities, cells: Int32Array) -> Int32Array:
    """Rows that exclude all cavities of the width around a point: first the row that shares most cells with the point, and then
    one row for each set of features that no earlier row covers.
    """
    alike = np.asarray(cavities.rows == cells[cavities.features])
    best = np.argsort(-np.count_nonzero(alike, axis=1), kind="stable")
    column = {feature: place for place, feature in enumerate(cavities.features.tolist())}
    chosen = best[:1]
    while True:
        few = Cavities(np.empty((0, len(cavities.n_cells)), np.int32), cavities.n_cells, cavities.width)
        few.rows = np.unique(cavities.rows[chosen], axis=0)
        apart = few.separating(cells, 1)
        if not apart:
            return few.rows
        with_these = best[alike[best][:, [column[f] for f in apart[0]]].all(axis=1)]
        if len(with_these) == 0:
            raise NoCertificate("the answer is in a cavity")
        chosen = np.append(chosen, with_these[0])
