"""Everything that is done for a question ends by the question's own limit, and a record counts the seconds that passed."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.binder.setting import bound
from treesens.compiler.base.budget import Budget
from treesens.compiler.result import Result, Verdict
from treesens.solve import question as solving
from treesens.solve.method import OpenQuestion
from treesens.solve.options import Options
from treesens.solve.question import answer_question, explain_none

NONE = "query q: find a, b in binary such that\n a = b\n margin(a) >= 0.4\n margin(b) <= 0.2"
FOUND = "query q: find a in binary such that a.x >= 0\n maximize margin(a)"
LISTED = "query q: find a in binary such that a.x >= 0\n top 2 diverse"
MOMENT = 0.2
"""A share, and a search that runs at the end, get at least so many seconds (`Budget.at_least`)."""


@pytest.mark.parametrize("text", [NONE, FOUND, LISTED])
@pytest.mark.parametrize("confirm", [None, "library", "highs"])
@pytest.mark.parametrize("certified", [False, True])
def test_no_search_may_last_longer_than_the_question(
    text: str, confirm: str | None, certified: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compares deadlines, not clocks: every search that starts has the deadline of the question, or an earlier one."""
    begun: list[Budget] = []
    ask_methods, certify = solving.ask_methods, solving.with_certificates

    def asked(question: OpenQuestion, budget: Budget) -> Result:
        begun.append(budget)
        return ask_methods(question, budget)

    def certificates(query: object, result: Result, options: Options, budget: Budget) -> Result:
        begun.append(budget)
        return certify(query, result, options, budget)  # type: ignore[arg-type]

    monkeypatch.setattr(solving, "ask_methods", asked)
    monkeypatch.setattr(solving, "with_certificates", certificates)
    question = bound(text, models=("binary",))["q"]
    options = Options(backend="native", time_limit=60, confirm=confirm, certificates=tmp_path if certified else None)
    budget = options.budget()
    start = time.perf_counter()
    result = answer_question(question, options, budget)
    passed = time.perf_counter() - start
    assert result.verdict is (Verdict.NONE if text == NONE else Verdict.FOUND), result.reason
    assert len(begun) >= 1 + certified
    assert all(one.deadline <= budget.deadline + MOMENT for one in begun)
    if confirm is not None or certified:
        assert begun[0].deadline < budget.deadline - 10, "the first answer leaves a part for what comes after it"
    # The record's seconds add up to the elapsed time: time outside all phases has a name of its own.
    assert passed - 0.005 <= sum(result.seconds.values()) + 0.001
    assert sum(result.seconds.values()) <= passed + 0.001


def test_a_core_has_what_the_answer_left(monkeypatch: pytest.MonkeyPatch) -> None:
    question = bound(NONE, models=("binary",))["q"]
    options = Options(backend="native", time_limit=60)
    result = replace(answer_question(question, options), seconds={"solve": 45.0})
    begun: list[Budget] = []
    ask_methods = solving.ask_methods

    def asked(question: OpenQuestion, budget: Budget) -> Result:
        begun.append(budget)
        return ask_methods(question, budget)

    monkeypatch.setattr(solving, "ask_methods", asked)
    end = time.monotonic() + 16.0
    core = explain_none(question, result, replace(options, core=True)).core
    assert core is not None
    assert begun
    assert all(one.deadline <= end for one in begun)
