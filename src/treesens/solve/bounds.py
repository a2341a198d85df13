"""Bounds on objectives: their a-priori range, their consistency with reached values, and their display."""

from __future__ import annotations

from math import sqrt

from treesens.compiler.base.floats import NumberType, ceil_to, floor_to
from treesens.compiler.base.tolerance import EXACT, Closeness, Tolerance
from treesens.compiler.query.evaluate import Inputs, objective_form_value
from treesens.compiler.query.query import Objective, Query
from treesens.compiler.result import Result, Verdict
from treesens.errors import InternalError
from treesens.values.objective_ranges import objective_range

CLOSE = 1e-4
"""A distance that differs from its bound by at most this many widths counts as equal."""


class ContradictoryBound(InternalError):
    """A bound and a reached value that contradict each other; no result based on either is valid."""

    def __init__(self, words: str) -> None:
        super().__init__(words, remedy="please report this with the file and the model")
        self.reason = f"internal error: {words}"


def within_range(query: Query, bound: float | None, *, restricted: bool = False) -> float | None:
    """`bound`, tightened to the objective's a-priori range; an unknown bound (None) stays None if `restricted`."""
    goal = query.objective
    if goal is None or (bound is None and (restricted or not goal.form.costs)):
        return bound
    low, high = objective_range(query)
    limit = high if goal.maximize else low
    if limit is None:
        return bound
    rounded = (ceil_to if goal.maximize else floor_to)(limit, NumberType.FLOAT64)
    return rounded if bound is None else (min if goal.maximize else max)(bound, rounded)


def consistent(bound: float, value: float, *, maximize: bool, exact: bool, who: str) -> float:
    """The bound, set to the reached value if only rounding separates the two; otherwise raises ContradictoryBound."""
    beyond = value - bound if maximize else bound - value
    if beyond > (1e-9 if exact else 1e-4) * max(1.0, abs(value)):
        raise ContradictoryBound(f"{who} proved that no value is better than {bound}, but {value} was reached")
    # A floating-point bound may be an ulp on the wrong side of a reached value.
    return max(bound, value) if maximize else min(bound, value)


def shown_value(objective: Objective, form: float) -> float:
    """The displayed value of an objective: form * unit + offset or, for a squared distance, the root of this number."""
    value = form * float(objective.unit) + float(objective.offset)
    return sqrt(max(0.0, value)) if objective.kind == "distance l2" else value


def value_of(objective: Objective, inputs: Inputs) -> float:
    """The displayed value of an objective on concrete inputs."""
    return shown_value(objective, float(objective_form_value(objective, inputs)))


def of_form(objective: Objective | None, tolerance: Tolerance) -> tuple[Tolerance, float]:
    """Converts a tolerance on values to the units of the objective's form (in modules, more is better); also returns the offset
    from form to value in these units.
    """
    if objective is None:
        return tolerance, 0.0
    unit = abs(float(objective.unit))
    sign = 1.0 if objective.maximize else -1.0
    offset = sign * float(objective.offset / objective.unit) if objective.offset else 0.0
    # A square within a relative tolerance has a root within half of it; an absolute tolerance does not carry over.
    absolute = 0.0 if objective.kind == "distance l2" else tolerance.absolute / unit
    return Tolerance(tolerance.relative, absolute), offset


def left_open(result: Result, close: float = 0.0, tolerance: Tolerance = EXACT) -> bool:
    """True if there is no verdict, or if an optimum is not proved within the tolerance.

    With a tolerance, a distance may be `close` to its bound, which the engine computes in its own units. Any other value may
    differ from its bound by 1e-9 of the value, even if the tolerance is smaller.
    """
    goal = result.objective
    if result.verdict is not Verdict.FOUND:
        return result.verdict is Verdict.UNKNOWN
    if goal is None:
        return False
    if tolerance.closeness(goal.value, goal.bound) is not Closeness.OPEN:
        return False
    if goal.kind.startswith("distance"):
        near = 0.0 if tolerance.is_exact else close * max(1.0, abs(goal.value))
    else:
        near = 1e-9 * abs(goal.value)
    enough = max(near, tolerance.relative * abs(goal.value), tolerance.absolute)
    return goal.gap is None or goal.gap > enough
