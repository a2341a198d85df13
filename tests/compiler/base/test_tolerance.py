"""When a bound is near enough, and that only what is equal is called optimal."""

from __future__ import annotations

from math import inf, nextafter

import pytest

from treesens.compiler.base.tolerance import EXACT, USUAL, Closeness, Tolerance


@pytest.mark.parametrize(
    ("tolerance", "value", "bound", "expected"),
    [
        (USUAL, 3.0, 3.0, "optimal"),
        (USUAL, 3.0, nextafter(3.0, inf), "optimal"),
        (USUAL, 3.0, 3.0 + 1e-9, "within tolerance"),
        (USUAL, -3.0, -3.0 + 2.9e-6, "within tolerance"),
        (USUAL, 3.0, 3.0 + 4e-6, "open"),
        (USUAL, 0.0, 1e-12, "open"),
        (USUAL, 3.0, None, "open"),
        (EXACT, 3.0, 3.0 + 1e-12, "open"),
        (EXACT, 0.0, 0.0, "optimal"),
        (Tolerance(0.0, 0.5), 3.0, 3.4, "within tolerance"),
        (Tolerance(0.0, 0.5), 3.0, 3.6, "open"),
        (Tolerance(0.1, 0.5), 30.0, 32.0, "within tolerance"),
    ],
)
def test_only_what_is_equal_is_optimal(tolerance: Tolerance, value: float, bound: float | None, expected: str) -> None:
    assert tolerance.closeness(value, bound) is Closeness(expected)


def test_words_name_what_was_asked_for() -> None:
    assert USUAL.words() == "1e-06"
    assert Tolerance(0.0, 0.5).words() == "0.5 absolute"
    assert Tolerance(0.01, 0.5).words() == "0.01 or 0.5 absolute"
    assert EXACT.words() == "0"
    assert EXACT.is_exact
    assert not USUAL.is_exact
