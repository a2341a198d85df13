"""Short methods: what is known without a search, and a search that gets little time before something else is tried."""

from __future__ import annotations

from dataclasses import replace

from treesens.compiler.base.budget import Budget
from treesens.compiler.compilation import Contradiction
from treesens.compiler.result import Result
from treesens.solve.conclude import conclude_contradiction
from treesens.solve.method import Asked
from treesens.solve.methods import SEARCHES, ask_methods


def state_contradiction(asked: Asked, _: Budget) -> Result:
    """`none`: `without_clashes` has left nothing that can hold."""
    reason = "compiler: what is asked of a sum contradicts itself"
    known = conclude_contradiction(asked.query.name, Contradiction(reason))
    return replace(known, pipeline=asked.options.pipeline)


def search_briefly(asked: Asked, budget: Budget) -> Result:
    """One search of what is asked, in a short time."""
    return ask_methods(replace(asked, known=None), budget, SEARCHES)
