"""Counts of work, for tests in which a clock would measure the load of the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(function: Callable[[], object]) -> int:
    """The number of Python and C functions that a function calls in this thread, directly or indirectly.

    A single call that processes a whole array counts as one, a Python loop over the array as one for each element.
    """
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return calls
