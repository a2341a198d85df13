"""A disjunction is answered case by case where one search over all cases has left the question open.

A case is often far simpler than the whole: `changes(a, b) = 0` makes one point of two, and `margin(a) <= -9` may hold nowhere.
The cases cover the question, so it has no answer if none of them has, and its best answer is the best of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from treesens.compiler.base.budget import LEAST, Budget
from treesens.compiler.query.cases import cases_of_one
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result, Verdict
from treesens.solve.combine import combine_cases
from treesens.solve.conclude import leave_open
from treesens.solve.method import OpenQuestion
from treesens.solve.options import Options
from treesens.values.verify import verify_values
from treesens.values.witness import Witness

Search = Callable[[Query, Budget], Result]
"""Answers one case within its time."""


def answer_by_cases(query: Query, options: Options, cases: list[Query], search: Search, budget: Budget) -> Result:
    """The answer to a question from those to its cases, which share the time; what a case leaves stays for the next ones."""
    results: list[Result] = []
    for number, case in enumerate(cases):
        if results and budget.over:
            results.append(leave_open(query.name, budget.reason, backend=options.backend))
            continue
        result = search(case, budget.share(1 / (len(cases) - number)).at_least(LEAST))
        results.append(_verified(query, options, result))
        if query.objective is None and result.verdict is Verdict.FOUND:
            break
    return combine_cases(query, results)


def _verified(query: Query, options: Options, result: Result) -> Result:
    """An answer to a case as one to the whole question: its witness is replayed on that."""
    if result.witness is None:
        return result
    witness = verify_values(query, result.witness.values, library_predict=options.library_predict)
    if isinstance(witness, Witness):
        return replace(result, witness=witness)
    reason = "an answer to one case of a disjunction is none to the question"
    return leave_open(query.name, reason, backend=result.backend, attempts=result.attempts)


def search_cases(question: OpenQuestion, budget: Budget) -> Result:
    """The method, as `solve/methods/registry.py` names it."""

    def one(case: Query, part: Budget) -> Result:
        return question.ask(case, question.options, part, on_better=question.on_better)

    return answer_by_cases(question.query, question.options, cases_of_one(question.query), one, budget)
