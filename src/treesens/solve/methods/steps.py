"""Short methods: what is known without a search, and a search that gets little time before something else is tried."""

from __future__ import annotations

from dataclasses import replace

from treesens.compiler.base.budget import Budget
from treesens.compiler.compilation import Contradiction
from treesens.compiler.result import Result
from treesens.solve.conclude import conclude_contradiction
from treesens.solve.dispatch import ask_methods
from treesens.solve.method import OpenQuestion
from treesens.solve.methods.registry import SEARCHES


def state_contradiction(question: OpenQuestion, _: Budget) -> Result:
    """`none`: `without_clashes` has left nothing that can hold."""
    reason = "compiler: what is asked of a sum contradicts itself"
    contradiction = conclude_contradiction(question.query.name, Contradiction(reason))
    return replace(contradiction, pipeline=question.options.pipeline)


def search_briefly(question: OpenQuestion, budget: Budget) -> Result:
    """One search of what is asked, in a short time."""
    return ask_methods(replace(question, known=None), budget, SEARCHES)
