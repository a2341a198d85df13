"""Short methods: what is known without a search, and a search that gets little time before something else is tried."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isinf

from treesens.compiler.base.budget import Budget
from treesens.compiler.compilation import Contradiction
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.result import Result, Verdict
from treesens.solve.bounds import within_range
from treesens.solve.conclude import conclude_contradiction, shown_objective
from treesens.solve.dispatch import ask_methods
from treesens.solve.method import OpenQuestion
from treesens.solve.methods.registry import SEARCHES


def state_contradiction(question: OpenQuestion, _: Budget) -> Result:
    """`none`: `without_clashes` has left nothing that can hold."""
    reason = "compiler: what is asked of a sum contradicts itself"
    contradiction = conclude_contradiction(question.query.name, Contradiction(reason))
    return replace(contradiction, pipeline=question.options.pipeline)


def search_any_answer(question: OpenQuestion, budget: Budget) -> Result | None:
    """An answer to the question without its objective, with its value, or that there is none; None if neither is known.

    Searches for the best answer may end without any, and all of them get better from one that is known.
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
    """One search of what is asked, in a short time."""
    return ask_methods(replace(question, known=None), budget, SEARCHES)
