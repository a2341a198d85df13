"""Asks the methods that fit a question, one after the other, until the question is closed.

`conclude` has judged the result of a method, and `combine` joins it with what is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.cases import MOST_CASES, too_many_to_split
from treesens.compiler.query.probabilities import names_probabilities
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result
from treesens.errors import InternalError
from treesens.solve import fits
from treesens.solve.bounds import CLOSE, left_open
from treesens.solve.combine import combine
from treesens.solve.method import Method, OpenQuestion, Stage
from treesens.solve.methods.registry import CELL_SEARCHES, METHODS
from treesens.solve.options import Options
from treesens.values.contradictions import without_clashes
from treesens.values.verify import Witness

UNSPLIT: Final = "E502"
"""The code of the note on a disjunction that is too long to split."""


def ask_methods(question: OpenQuestion, budget: Budget, methods: Sequence[Method] = METHODS) -> Result:
    """Asks the methods that fit, in their order, until the question is closed; each goes on from what is known."""
    for method in methods:
        if not method.fits(question.query, question.options):
            continue
        result = method.function()(question, method.part(question.query, budget))
        if result is None:
            continue
        so_far = result if question.known is None or method.takes_over else combine(question.known, result)
        if method.stage is not Stage.STEP or _settles(method, so_far, question.options, budget):
            return so_far
        question = replace(question, known=so_far)
    raise InternalError(f"no method has answered `{question.query.name}`", remedy="please report this with the file")


def _settles(method: Method, so_far: Result, options: Options, budget: Budget) -> bool:
    if method.to_the_last_unit:
        return not left_open(so_far)
    return budget.over or not left_open(so_far, CLOSE, options.closeness)


def search_cells(
    query: Query,
    options: Options,
    budget: Budget,
    *,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """One search over cells; `refuted` says which candidates failed for want of values."""

    def ask(*_: object, **__: object) -> Result:
        raise InternalError("a search over cells asks no other question", remedy="please report this with the file")

    return ask_methods(OpenQuestion(query, options, ask, on_better), budget, CELL_SEARCHES)


def as_asked(query: Query, options: Options) -> Query:
    """The question as the methods get it: without alternatives that cannot hold.

    Encodings are measured on questions as they are: a pipeline that is named is not spared those about scores that do not move.
    """
    if names_probabilities(query.constraints) or query.explained is not None:
        return query
    return without_clashes(query, across=fits.on_trees(options))


def note_on_cases(query: Query) -> str | None:
    """What is said of a disjunction that is too long to split; None if there is none."""
    alternatives = too_many_to_split(query)
    if not alternatives:
        return None
    words = f"a disjunction of {alternatives} alternatives is searched as a whole"
    return f"{UNSPLIT}: {words}: at most {MOST_CASES} are split into cases"


def methods_for(query: Query, options: Options) -> list[Method]:
    """The methods that fit a question, in their order, to the first that always has a result."""
    query, found = as_asked(query, options), list[Method]()
    for method in METHODS:
        if method.fits(query, options):
            found.append(method)
            if method.always:
                break
    return found
