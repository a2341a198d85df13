"""A budget ends at its deadline or when it is stopped; parts never outlive it."""

from __future__ import annotations

import threading
import time

import pytest

from treesens.compiler.base.budget import LEAST, Budget


def test_what_is_left_falls_to_nothing_and_not_below() -> None:
    budget = Budget.of(0.02)
    assert 0 < budget.left() <= 0.02
    assert not budget.worthwhile
    time.sleep(0.03)
    assert budget.left() == 0
    assert (budget.over, budget.reason) == (True, "time")


def test_a_stop_ends_a_budget_and_all_its_parts() -> None:
    stop = threading.Event()
    budget = Budget.of(60, stop)
    parts = [budget.within(10), budget.share(0.5), budget.share(0.5).within(1), budget.at_least(5)]
    assert all(part.worthwhile for part in parts)
    stop.set()
    assert all(part.over and part.reason == "interrupted" for part in parts)


def test_parts() -> None:
    budget = Budget.of(10)
    assert budget.share(0.25).left() == pytest.approx(2.5, abs=0.1)
    assert budget.within(99).left() == pytest.approx(10, abs=0.1)
    assert Budget.of(0).at_least(LEAST).left() == pytest.approx(LEAST, abs=0.02)
