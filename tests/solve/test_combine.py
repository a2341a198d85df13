"""Two results of one question as one: the better value, the tighter bound with what it rests on, no contradiction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from treesens.compiler.result import Attempt, ObjectiveValue, Result, Sense, Verdict
from treesens.errors import InternalError
from treesens.solve.combine import combine, join_opinions
from treesens.solve.conclude import IN_BAND

SIGNS = [(Sense.MAXIMIZE, 1.0), (Sense.MINIMIZE, -1.0)]


def result(verdict: Verdict, value: float | None = None, bound: float | None = None, who: str = "native") -> Result:
    objective = None if value is None else ObjectiveValue(value, bound, Sense.MAXIMIZE, "margin")
    attempt = Attempt(who, "default", "time", verdict)
    parts = () if bound is None else (f"bound of {who}",)
    return Result("q", verdict, "", objective=objective, backend=who, attempts=(attempt,), proof_dependencies=parts)


def turned(one: Result, sense: Sense, sign: float) -> Result:
    """The same for an objective of this sense."""
    goal = one.objective
    if goal is None:
        return one
    bound = None if goal.bound is None else sign * goal.bound
    return replace(one, objective=ObjectiveValue(sign * goal.value, bound, sense, goal.kind))


@pytest.mark.parametrize(("sense", "sign"), SIGNS)
def test_the_better_value_and_the_tighter_bound_whoever_has_them(sense: Sense, sign: float) -> None:
    better = turned(result(Verdict.FOUND, 3.0, None, "one"), sense, sign)
    tighter = turned(result(Verdict.FOUND, 2.0, 4.0, "other"), sense, sign)
    for first, second in ((better, tighter), (tighter, better)):
        both = combine(first, second)
        assert both.objective is not None
        assert (both.objective.value, both.objective.bound) == (sign * 3.0, sign * 4.0)
        assert both.backend == "one"
        assert both.proof_dependencies == ("bound of other",)
        assert [a.backend for a in both.attempts] == [first.backend, second.backend]


@pytest.mark.parametrize(("sense", "sign"), SIGNS)
def test_of_two_equal_values_the_first_stands(sense: Sense, sign: float) -> None:
    one, other = (turned(result(Verdict.FOUND, 3.0, 3.5, who), sense, sign) for who in ("one", "other"))
    assert combine(one, other).backend == "one"
    assert combine(other, one).backend == "other"


def test_what_is_known_stands_beside_what_is_not() -> None:
    unknown = result(Verdict.UNKNOWN, 9.0, 9.0, "late")
    for known in (result(Verdict.FOUND, 3.0, 4.0), result(Verdict.FOUND), result(Verdict.NONE)):
        for both in (combine(known, unknown), combine(unknown, known)):
            assert (both.verdict, both.backend, both.objective) == (known.verdict, "native", known.objective)
            assert len(both.attempts) == 2


@pytest.mark.parametrize(("sense", "sign"), SIGNS)
def test_results_that_contradict_each_other_are_an_error_of_ours(sense: Sense, sign: float) -> None:
    found, none = result(Verdict.FOUND, 3.0, 4.0), result(Verdict.NONE)
    for one, other in ((found, none), (none, found)):
        with pytest.raises(InternalError, match="says"):
            combine(one, other)
    reached, proved = (turned(r, sense, sign) for r in (found, result(Verdict.FOUND, 2.0, 2.5)))
    for one, other in ((reached, proved), (proved, reached)):
        with pytest.raises(InternalError, match="no value is better"):
            combine(one, other)


def test_no_note_is_lost_and_one_on_a_witness_stays_with_it() -> None:
    one = replace(result(Verdict.FOUND, 3.0, 4.0, "one"), notes=("of one", "of both"))
    other = replace(result(Verdict.FOUND, 2.0, 5.0, "other"), notes=("of both", IN_BAND, "of the other"))
    for first, second in ((one, other), (other, one)):
        assert set(combine(first, second).notes) == {"of one", "of both", "of the other"}
        assert len(combine(first, second).notes) == 3
    unknown = replace(result(Verdict.UNKNOWN), notes=("why it is open",))
    for first, second in ((unknown, other), (other, unknown)):
        assert set(combine(first, second).notes) == {"of both", IN_BAND, "of the other", "why it is open"}
    assert set(join_opinions(unknown, one, "z3").notes) == {"why it is open", "of one", "of both"}
