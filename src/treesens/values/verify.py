"""Verification of witnesses: concrete values, exact replay, and replay in the library's arithmetic (docs/semantics.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray, Int32Array
from treesens.compiler.model import Ensemble
from treesens.compiler.model.evaluate import LibraryReplay, Predicted
from treesens.compiler.query.dependencies import points_in
from treesens.compiler.query.domain import is_allowed
from treesens.compiler.query.evaluate import (
    Inputs,
    holds,
    inputs_of,
    linear_constraints,
    reads_scores,
    scores_of_margins,
    slack,
)
from treesens.compiler.query.predicted_classes import CLASS_ROW, blurred, rows_in, sure_classes, tied_point, told_apart
from treesens.compiler.query.query import AtLeast, Constraint, ProbabilitySum, Query
from treesens.compiler.query.rounding import harden, in_every_order, in_some_order
from treesens.compiler.query.values import Place
from treesens.values.concretise import NoValues, concretise
from treesens.values.propagation import CHOICES
from treesens.values.relations import rows_with_values


@dataclass(frozen=True)
class Rejected:
    """The reason why a candidate is not a witness. `numerical` is True if only the library's arithmetic rejects the candidate;
    `possible` is True if, with another order of additions or another tie-break, the library may accept the candidate or other
    values in its cells. `none` is set if no values that satisfy the relations were found in the candidate's cells.
    """

    reason: str
    numerical: bool = False
    possible: bool = False
    none: NoValues | None = None


def verify_cells(
    query: Query,
    cells: Int32Array,
    *,
    near: FloatArray | None = None,
    library_predict: Sequence[LibraryReplay] | None = None,
    pins: Mapping[Place, float] | None = None,
    choices: int = CHOICES,
) -> Witness | Rejected:
    """Turns cells int32[points, features] into a witness, or returns the reason why they are rejected.

    Values are chosen close to `near`, float64[features] (NaN: no preference); `library_predict` holds, per model, the library's
    own predict for the second level of replay; `pins` are fixed values; `choices` limits the number of tried values.
    """
    for point in range(len(query.points)):
        for feature, legal in enumerate(query.space.legal):
            if not legal[cells[point, feature]]:
                name = query.space.names[feature]
                return Rejected(f"{query.points[point].name}.{name} is in a cell without a legal value")
    values = concretise(query, cells, near, pins, choices)
    if isinstance(values, NoValues):
        return Rejected(values.reason, none=values)
    found = verify_values(query, values, library_predict=library_predict)
    if isinstance(found, Rejected) and found.numerical and rows_with_values(query.constraints):
        # Other values in these cells may satisfy the rows by more than the library's rounding error.
        clear = concretise(harden(query), cells, near, pins, choices)
        again = found if isinstance(clear, NoValues) else verify_values(query, clear, library_predict=library_predict)
        found = again if isinstance(again, Witness) else found
    return found


def verify_values(
    query: Query, values: FloatArray, *, library_predict: Sequence[LibraryReplay] | None = None
) -> Witness | Rejected:
    """Checks concrete points float64[points, features], exactly and in the library's arithmetic.

    A value that the model reads as a legal float is legal, even if the value as typed is outside the domain.
    """
    outside = _outside(query, values)
    if outside is not None:
        return Rejected(f"{outside} is not a value of its domain")
    x = inputs_of(query, values)
    for constraint in query.constraints:
        if not holds(constraint, x):
            return Rejected(f"exact replay: {describe(constraint, x)} does not hold")
    disputed = _judged_otherwise(query, x)
    if disputed is not None:
        return Rejected(disputed)
    margins = _margins(query, values, None)
    broken = _library_breaks(query, x, margins)
    if broken is not None:
        return _rejected_by_library(query, values, f"in the arithmetic of the library {broken} does not hold")
    replay = Replay.EMULATED
    said: list[Predicted | None] = [None] * len(query.points)
    if library_predict is not None:
        margins = _margins(query, values, library_predict)
        broken = _library_breaks(query, x, margins)
        if broken is not None:
            return _rejected_by_library(query, values, f"in the library itself {broken} does not hold")
        said = _predicted(query, values, library_predict)
        other = _another_class(query, margins, said)
        if other is not None:
            return _rejected_by_library(query, values, f"the library itself {other}")
        replay = Replay.LIBRARY
    probabilities = tuple(
        tuple(float(p) for p in np.ravel(_probabilities(query.models[point.model].ensemble, row, own)))
        for point, row, own in zip(query.points, margins, said, strict=True)
    )
    return Witness(
        values=values,
        cells=x.cells,
        margins=tuple(tuple(float(m) for m in row) for row in margins),
        probabilities=probabilities,
        exact=x.scores,
        replay=replay,
        in_band=_inside_band(query, x),
        classes=tuple(
            _class_of(query.models[point.model].ensemble, row, own)
            for point, row, own in zip(query.points, margins, said, strict=True)
        ),
    )


def _rejected_by_library(query: Query, values: FloatArray, reason: str) -> Rejected:
    possible = bool(rows_with_values(query.constraints)) or may_hold_in_library(query, values)
    return Rejected(reason, numerical=True, possible=possible)


def _predicted(query: Query, values: FloatArray, library_predict: Sequence[LibraryReplay]) -> list[Predicted | None]:
    """The libraries' predictions for each point; None for a library that only returns margins."""
    return [
        None if (predicts := library_predict[point.model].predicts) is None else predicts(values[number : number + 1])
        for number, point in enumerate(query.points)
    ]


def _another_class(query: Query, margins: list[NDArray[Any]], said: Sequence[Predicted | None]) -> str | None:
    """A description of a point with a class constraint, if its class in the library differs from the class of its margins."""
    points_asked = {
        row.form.scores[0].point
        for row in rows_in(query.constraints)
        if isinstance(row, AtLeast) and row.name.startswith(CLASS_ROW) and row.form.scores
    }
    # For several models, a sum of probabilities determines the class.
    points_asked |= {
        point
        for row in rows_in(query.constraints)
        if isinstance(row, ProbabilitySum) and row.name.startswith(CLASS_ROW)
        for point in points_in(row)
    }
    for number in sorted(points_asked):
        own, ensemble = said[number], query.models[query.points[number].model].ensemble
        if own is None or own.classes is None:
            continue
        scores = np.asarray(margins[number], np.float64)[None, :]
        sure, found = sure_classes(ensemble, scores)[0], int(own.classes[0])
        # The constraint is about exact sums: if only rounding decides, the scores themselves determine the class.
        ranked = ensemble if ensemble.link.of_several else replace(ensemble, ranks_scores=True)
        derived = int(ranked.predicted_classes(scores)[0]) if sure is None else sure
        if derived != found:
            name = str(ensemble.classes[found]) if found >= 0 else "no class of the model"
            return f"predicts {name} for `{query.points[number].name}`, and not {ensemble.classes[derived]}"
    return None


def _probabilities(ensemble: Ensemble, margins: NDArray[Any], said: Predicted | None) -> NDArray[Any]:
    if said is not None and said.probabilities is not None:
        return said.probabilities
    return ensemble.probabilities(margins[None, :])


def _class_of(ensemble: Ensemble, margins: NDArray[Any], said: Predicted | None) -> int | None:
    """A point's class: the library's prediction, or the class given by the margins if the library certainly separates them."""
    if not ensemble.classes:
        return None
    if said is not None and said.classes is not None:
        return int(said.classes[0]) if said.classes[0] >= 0 else None
    return sure_classes(ensemble, np.asarray(margins, np.float64)[None, :])[0]


def _outside(query: Query, values: FloatArray) -> str | None:
    """The first illegal value, as `point.feature`; None if all values are legal."""
    for f, (domain, grid) in enumerate(zip(query.space.domains, query.space.grid, strict=True)):
        for point, value in zip(query.points, values[:, f].tolist(), strict=True):
            # The domain applies to the float that the model reads.
            if not is_allowed(domain, value) and not is_allowed(domain, float(grid.number_type.cast(value))):
                return f"{point.name}.{query.space.names[f]}"
    return None


def _margins(query: Query, values: FloatArray, library_predict: Sequence[LibraryReplay] | None) -> list[NDArray[Any]]:
    # Each model predicts all its points in one call.
    rows: dict[int, NDArray[Any]] = {}
    for model in {point.model for point in query.points}:
        points_of_model = [number for number, point in enumerate(query.points) if point.model == model]
        predict = query.models[model].ensemble.margins_emulated if library_predict is None else library_predict[model]
        margins = np.asarray(predict(values[points_of_model])).reshape(len(points_of_model), -1)
        rows.update(zip(points_of_model, margins, strict=True))
    return [rows[number] for number in range(len(query.points))]


def _library_breaks(query: Query, x: Inputs, margins: list[NDArray[Any]]) -> str | None:
    """The first constraint that the library's scores violate, in words; None if all constraints hold."""
    seen = Inputs(x.values, x.cells, scores_of_margins(query, margins))
    for constraint in query.constraints:
        if reads_scores(constraint) and not holds(told_apart(query, in_every_order(query, constraint), seen), seen):
            tied = tied_point(query, constraint, seen)
            return describe(constraint, seen) if tied is None else f"that a class of `{tied}` is ahead of all others"
    return None


def may_hold_in_library(query: Query, values: FloatArray) -> bool:
    """True if points float64[points, features] may satisfy a question in the library, with some outcome of probability ties."""
    cells = query.space.grid.cells(values)
    seen = Inputs(values, cells, scores_of_margins(query, _margins(query, values, None)))
    return all(holds(blurred(query, in_some_order(query, constraint), seen), seen) for constraint in query.constraints)


def _judged_otherwise(query: Query, x: Inputs) -> str | None:
    """A description of a forest score that `Forest.judge` does not confirm; None if all scores are confirmed."""
    forms = [row.form for row in linear_constraints(query.constraints)]
    forms += [query.objective.form] if query.objective is not None else []
    for form in forms:
        for term in form.forests:
            low, high = term.forest.judge(x.values[term.point : term.point + 1])
            score = term.value(x.cells[term.point]) / term.coefficient
            if not Fraction(float(low[0])) <= score <= Fraction(float(high[0])):
                name = query.points[term.point].name
                return f"the {term.forest.name} says {float(score):.6g} of `{name}`, but by its own judge it is {low[0]:.6g}"
    return None


def _inside_band(query: Query, x: Inputs) -> bool:
    """True if some linear constraint holds with a margin smaller than the library's rounding error."""
    bands = [query.models[p.model].ensemble.bands() for p in query.points]
    averages = [query.models[p.model].ensemble.average for p in query.points]
    for constraint in linear_constraints(query.constraints):
        band = sum(
            (abs(t.coefficient) * bands[t.point][t.output] * averages[t.point] for t in constraint.form.scores),
            Fraction(0),
        )
        if constraint.form.scores and abs(slack(constraint, x)[1]) <= float(band):
            return True
    return False


def describe(constraint: Constraint, x: Inputs) -> str:
    """A short description of a constraint, with the amount by which a number violates the constraint."""
    if isinstance(constraint, AtLeast):
        return f"{constraint.name} (off by {slack(constraint, x)[1]:.3g})"
    if isinstance(constraint, ProbabilitySum):
        return constraint.name
    return type(constraint).__name__


class Replay(StrEnum):
    """The level of replay: in the library's arithmetic bit for bit, or by the library itself."""

    EMULATED = "emulated"
    LIBRARY = "library"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False)
class Witness:
    """Verified concrete points.

    `values`, float64[points, features], is passed to the model; `cells`, int32, has the same shape; `margins[point]` holds the
    library's own raw outputs, and `exact` holds the exact outputs; `in_band` is True if some constraint holds with a margin
    smaller than the numerical band. `classes[point]` is the position of the library's predicted class: None for a regressor,
    and if emulation cannot determine which of two classes the library chooses after rounding.
    """

    values: FloatArray
    cells: Int32Array
    margins: tuple[tuple[float, ...], ...]
    probabilities: tuple[tuple[float, ...], ...]
    exact: tuple[tuple[Fraction, ...], ...]
    replay: Replay
    in_band: bool
    classes: tuple[int | None, ...] = ()
