"""Checks whether a `none` is valid in the library's own arithmetic: `--confirm library`.

`none` is about exact sums (docs/semantics.md). A library rounds, so an input whose exact score misses a bound by less than the
numerical band may satisfy the bound in the library. The question is repeated, relaxed by the library's maximum rounding error:
if the relaxed question has no answer, the library has none. The library itself evaluates an answer to the relaxed question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query, agreeing
from treesens.compiler.query.rounding import soften
from treesens.compiler.result import Explanation, Proof, Result, Verdict
from treesens.values.verify import may_hold_in_library

LIBRARY = "library"
"""The value of `--confirm` for the library's arithmetic."""


def confirm_in_library(query: Query, first: Result, ask: Callable[[Query, Budget], Result], budget: Budget) -> Result:
    """The `none`, confirmed if no rounding of the library can create an answer, and otherwise `unknown`.

    An input that is found has already passed the library's arithmetic. Other results are returned unchanged.
    """
    if first.verdict is Verdict.FOUND and query.explained is not None and first.explanation is not None:
        return _confirm_reason(query, first, first.explanation, ask, budget)
    if first.verdict is not Verdict.NONE:
        return first
    if query.explained is not None:  # proved by an input of another class, verified in the library's arithmetic
        return replace(first, confirmed_by=LIBRARY)
    second = ask(replace(soften(query), objective=None), budget)
    joined = replace(first, attempts=(*first.attempts, *second.attempts))
    if second.verdict is Verdict.NONE:
        weaker = first.proof if second.proof is Proof.EXACT else second.proof
        return replace(joined, confirmed_by=LIBRARY, proof=weaker)
    if second.witness is None:
        return replace(joined, notes=(*first.notes, f"the library's arithmetic is open: {second.reason}"))
    if may_hold_in_library(query, second.witness.values):
        reason = "numerical band: exact arithmetic has no such inputs, but the library's rounding may create some"
        return replace(joined, verdict=Verdict.UNKNOWN, reason=reason, proof=None)
    note = "the library's arithmetic is open: inputs miss a bound by less than its error; a tried input fails in the library"
    return replace(joined, notes=(*first.notes, note))


def _confirm_reason(
    query: Query, first: Result, explanation: Explanation, ask: Callable[[Query, Budget], Result], budget: Budget
) -> Result:
    """The reason, confirmed if no rounding gives another class to inputs that agree with the row on the reason."""
    assert query.explained is not None
    for agreeing_query in agreeing(query.explained, explanation.features or frozenset()):
        second = confirm_in_library(agreeing_query, ask(agreeing_query, budget), ask, budget)
        if second.confirmed_by is None:
            note = f"the library's arithmetic is open: {'; '.join(second.notes) or second.reason}"
            return replace(first, notes=(*first.notes, note))
    return replace(first, confirmed_by=LIBRARY)
