"""Short methods: answers known without a search, brief searches, and case splits of a disjunction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, isinf

from treesens.compiler.base.budget import LEAST, Budget
from treesens.compiler.pipeline import Contradiction
from treesens.compiler.query.cases import cases_of_one
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result, Verdict
from treesens.solve.bounds import within_range
from treesens.solve.combine import combine_cases
from treesens.solve.conclude import conclude_contradiction, leave_open, shown_objective
from treesens.solve.method import OpenQuestion
from treesens.solve.methods.registry import searches
from treesens.solve.options import Options
from treesens.solve.question import ask_methods
from treesens.values.verify import Witness, verify_values


def state_contradiction(question: OpenQuestion, _: Budget) -> Result:
    """A `none` result: `without_clashes` has found a contradiction."""
    reason = "compiler: constraints on one sum contradict each other"
    contradiction = conclude_contradiction(question.query.name, Contradiction(reason))
    return replace(contradiction, pipeline=question.options.pipeline)


def search_any_answer(question: OpenQuestion, budget: Budget) -> Result | None:
    """The answer to the question without its objective, or `none`, with the objective's value; None if the verdict is unknown.

    Optimising searches may end without an answer, and all of them benefit from a known answer.
    """
    query = question.query
    goal = query.objective
    assert goal is not None
    found = question.ask(replace(query, objective=None), question.options, budget)
    if found.witness is None:
        return found if found.verdict is Verdict.NONE else None
    question.show(found)
    reached = objective_form_value(goal, inputs_of(query, found.witness.values))
    bound = within_range(query, inf if goal.maximize else -inf)
    return replace(found, objective=shown_objective(goal, reached, None if bound is None or isinf(bound) else bound))


def search_briefly(question: OpenQuestion, budget: Budget) -> Result:
    """One short search for an answer to the question."""
    return ask_methods(replace(question, known=None), budget, searches())


Search = Callable[[Query, Budget], Result]
"""Answers one case within its time."""


def answer_by_cases(query: Query, options: Options, cases: list[Query], search: Search, budget: Budget) -> Result:
    """The answer from the question's cases, which share the time; time that a case does not use is passed on to the next cases.

    A case is often far simpler than the question: `changes(a, b) = 0` merges two points, and `margin(a) <= -9` may be
    infeasible. The cases cover the question: it has no answer if no case has one, and its optimum is the best of the cases.
    """
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
    """A case's answer as an answer to the whole question; the witness is replayed on the whole question."""
    if result.witness is None:
        return result
    witness = verify_values(query, result.witness.values, library_predict=options.library_predict)
    if isinstance(witness, Witness):
        return replace(result, witness=witness)
    reason = "the answer to one case of a disjunction does not answer the question"
    return leave_open(query.name, reason, backend=result.backend, attempts=result.attempts)


def search_cases(question: OpenQuestion, budget: Budget) -> Result:
    """Entry point named in `solve/methods/registry.py`."""

    def one(case: Query, part: Budget) -> Result:
        return question.ask(case, question.options, part, on_better=question.on_better)

    return answer_by_cases(question.query, question.options, cases_of_one(question.query), one, budget)
