"""`share of MEASURE` and `expect share <= 1 %`: a question's measure, and the check that the share can be counted."""

from __future__ import annotations

from typing import Protocol

from treesens.binder.scope import Scope
from treesens.builtin import service
from treesens.compiler.query.query import Query
from treesens.compiler.query.share import ShareAsked
from treesens.errors import UsageError
from treesens.grammar.printing.print_terms import decimal
from treesens.grammar.tree import ast


class Shares(Protocol):
    """The interface of the service "measures" (`builtin.SERVICES`)."""

    def check_countable(self, query: Query) -> None:
        """Raises UsageError if the question's share cannot be counted, or its measure is invalid."""


def share_asked(scope: Scope, find: ast.Find | ast.Count) -> ShareAsked | None:
    """The measure that a question uses, with the rows from which it is learnt; None if the question has no measure."""
    if not isinstance(find, ast.Find) or find.share is None:
        return None
    measure = scope.found.measure(find.share)
    bound = find.expect if isinstance(find.expect, ast.ExpectShare) else None
    return ShareAsked(
        find.share.text,
        measure.kind,
        None if measure.data is None else measure.data.text,
        None if measure.data is None else scope.matrix(measure.data),
        None if bound is None else (bound.operator, bound.bound.value),
    )


def check_countable(scope: Scope, query: Query, find: ast.Find | ast.Count) -> None:
    """Reports an error at the clause if the question's share cannot be counted or the measure is invalid."""
    assert isinstance(find, ast.Find)
    assert find.share is not None
    assert query.share is not None
    try:
        shares: Shares = service("measures")
        shares.check_countable(query)
    except UsageError as error:
        remedy = error.remedy if query.share.kind != "uniform" or "ends" not in error.message else _ENDS
        raise scope.fail("E223", error.message, find.share.span, remedy) from None


_ENDS = "declare the feature with two ends, write `domain from DATA`, or measure by `cells`"


def expected_words(expect: ast.Expect | ast.ExpectShare | None) -> str | None:
    """A question's expectation as text, e.g. `none` or `share <= 0.01`; None without an expectation."""
    match expect:
        case ast.Expect(verdict):
            return verdict
        case ast.ExpectShare(operator, bound):
            return f"share {operator} {decimal(bound.value)}"
        case None:
            return None
