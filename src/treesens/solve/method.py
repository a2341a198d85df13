"""The declaration of methods: their questions, share of the time, and proofs. `solve/methods/registry.py` lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, TypeAlias

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result
from treesens.solve.fits import leaves
from treesens.solve.options import Options
from treesens.values.verify import Witness

if TYPE_CHECKING:
    from treesens.solve.conclude import Facts


@dataclass(frozen=True, eq=False)
class OpenQuestion:
    """A question, as passed to a method.

    `ask` answers other questions, such as a case of this question; it takes a query, options, a budget, and `on_better` as a
    keyword. `on_better` is called with better witnesses. `known` is the result of the previous methods (None for the first
    method); the options contain hints.
    """

    query: Query
    options: Options
    ask: Callable[..., Result]
    on_better: Callable[[Witness], None] | None = None
    known: Result | None = None

    def show(self, result: Result) -> None:
        """Calls `on_better` with the witness of a result."""
        if self.on_better is not None and result.witness is not None:
            self.on_better(result.witness)


class Stage(Enum):
    """A method's position in the list."""

    STEP = "step"
    """A method that may leave the question open: later methods continue."""
    SEARCH = "search"
    """A search: after the first search with an answer, no other method runs."""
    CELLS = "cells"
    """A search over cells alone, which refinement also uses."""


MethodRecord: TypeAlias = dict[str, str | float | None]
"""A method as a record of `treesens explain --json`; times are in seconds."""


@dataclass(frozen=True)
class Method:
    """One way to answer a question, as data.

    `fits` decides from the question and the options alone whether the method is tried; `questions` describes this condition in
    words, and `proves` lists the claims that the method's answers prove. `run` is "module:function", imported on first use: the
    function takes `OpenQuestion` and a `Budget`, and returns a result, or None if it declines. A plug-in method returns
    `solve.conclude.Facts` instead, so that its points are verified like all other points; it is tried before the built-in
    method in `before`.
    """

    name: str
    questions: str
    fits: Callable[[Query, Options], bool]
    proves: str
    run: str
    stage: Stage = Stage.SEARCH
    share: float = 1.0
    """Share of the remaining time."""
    most: float = inf
    """Maximum time in seconds, not counting the time per leaf."""
    per_leaf: float = 0.0
    """Additional seconds per leaf of all points."""
    always: bool = False
    """True if the method always returns a result: no later method is tried."""
    to_the_last_unit: bool = False
    """True if later methods continue, regardless of the time left, unless the method's answer is proved with zero tolerance."""
    takes_over: bool = False
    """True if the method's result already includes the previous methods' result."""
    before: str = "compiled"
    """For a plug-in method: the built-in method that follows."""

    def part(self, query: Query, budget: Budget) -> Budget:
        """The method's share of the remaining time."""
        part = budget if self.share == 1.0 else budget.share(self.share)
        if self.most == inf:
            return part
        return part.within(self.most + (self.per_leaf * leaves(query) if self.per_leaf else 0.0))

    def function(self) -> Callable[[OpenQuestion, Budget], Result | Facts | None]:
        """The function that `run` names."""
        module, _, name = self.run.partition(":")
        run: Callable[[OpenQuestion, Budget], Result | Facts | None] = getattr(import_module(module), name)
        return run

    def record(self) -> MethodRecord:
        """The method as a record."""
        most = None if self.most == inf else self.most
        return {
            "method": self.name,
            "questions": self.questions,
            "share": self.share,
            "most_seconds": most,
            "proves": self.proves,
        }


def time_words(share: float, most: float | None) -> str:
    """A share of the time in words."""
    part = "the rest" if share == 1.0 else f"{Fraction(share).limit_denominator(100)} of the rest"
    return part if most is None else f"{part}, at most {most:g} s"
