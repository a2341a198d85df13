"""When an optimum is left open: without a tolerance to the last unit, with one as near as it says, whatever asks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from treesens.compiler.base.tolerance import EXACT, Tolerance
from treesens.compiler.result import ObjectiveValue, Result, Sense, Verdict
from treesens.records.kept import is_decided
from treesens.solve.bounds import CLOSE, left_open

USUAL = Tolerance()


def found(kind: str, value: float, bound: float | None) -> Result:
    return replace(Result("q", Verdict.FOUND, "verified"), objective=ObjectiveValue(value, bound, Sense.MINIMIZE, kind))


@pytest.mark.parametrize("close", [0.0, CLOSE])
def test_a_distance_is_closed_by_the_last_unit_alone_if_there_is_no_tolerance(close: float) -> None:
    # The bound that a search of a fifth of a second gave, in units of 2**-30 of the engine.
    near = found("distance l1", 0.16666666666666666, 0.16666666604578495)
    assert left_open(near, close, EXACT)
    assert not left_open(near, close, USUAL)
    assert not left_open(found("distance l1", 0.25, 0.25), close, EXACT)
    assert left_open(found("distance l1", 0.25, None), close, USUAL)


def test_a_journal_keeps_as_decided_what_is_closed() -> None:
    near = found("distance l1", 0.16666666666666666, 0.16666666604578495)
    assert not is_decided(near, EXACT)
    assert is_decided(near, USUAL)


def test_scores_are_as_near_as_their_sums_are_exact() -> None:
    assert not left_open(found("margin", 8.0, 8.0 - 4e-9), 0.0, EXACT)
    assert left_open(found("margin", 8.0, 8.0 - 2e-8), 0.0, EXACT)


def test_no_verdict_is_open() -> None:
    assert left_open(Result("q", Verdict.UNKNOWN, "time"))
    assert not left_open(Result("q", Verdict.NONE, "infeasible"))
