"""Conclusions from a largest swing about gaps that a search has left open."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from treesens.compiler.result import ObjectiveValue, Result, Sense, Verdict
from treesens.extensions.studies.audit_search import exact_bound


def test_a_swing_rules_out_what_is_above_it_exactly() -> None:
    """A value that a solver rounded by 1e-6 is not a bound, and an exact one is not stretched."""
    one = ObjectiveValue(1.0, 1.0, Sense.MAXIMIZE, "margin")
    for backend, bound in (("native", 1), ("highs", 4)):
        swing = Result("q", Verdict.FOUND, "verified", objective=one, backend=backend)
        found = exact_bound(swing, 4.0)
        assert 0 <= found - bound < Fraction(1, 10**12)
    tie = replace(one, bound=float(Fraction(1, 3)))
    assert exact_bound(Result("q", Verdict.FOUND, "", objective=tie, backend="native"), 4.0) >= Fraction(1, 3)
    assert exact_bound(Result("q", Verdict.UNKNOWN, ""), 4.0) == 4
