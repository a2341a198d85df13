"""A method of answering: when it fits, its share of the time, what it proves. `solve/methods/registry.py` lists them."""

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
    """A question as a method gets it.

    `ask` answers other questions, such as a case of this one: by a query, options, a budget, and `on_better` by name.
    `on_better` is called with better witnesses. `known` is the result of the methods before, None for the first one; the hints
    are in the options.
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
    """Where a method is in the list."""

    STEP = "step"
    """It may leave the question open: the methods after it go on."""
    SEARCH = "search"
    """The first search with an answer is the last method that is asked."""
    CELLS = "cells"
    """A search over cells alone; refinement asks such searches, too."""


MethodRecord: TypeAlias = dict[str, str | float | None]
"""A method as `treesens explain --json` shows it; times in seconds."""


@dataclass(frozen=True)
class Method:
    """One way to answer a question, as data.

    `fits` decides from the question and the options alone if the method is tried; `questions` says the same in words, `proves`
    names the claims that its answers prove. `run` is "module:function", imported on first use: the function takes
    `OpenQuestion` and a `Budget`, and returns a result, or None if it declines. A method of another distribution returns
    `solve.conclude.Facts` instead of a result, so that its points are verified like all others, and is tried in front of the
    built-in method that `before` names.
    """

    name: str
    questions: str
    fits: Callable[[Query, Options], bool]
    proves: str
    run: str
    stage: Stage = Stage.SEARCH
    share: float = 1.0
    """Of the time that is left."""
    most: float = inf
    """Seconds at most."""
    per_leaf: float = 0.0
    """Seconds more for every leaf of all points."""
    always: bool = False
    """True if it always has a result: no later method is tried."""
    to_the_last_unit: bool = False
    """True if later methods go on unless its answer is proved to the last unit, whatever time is left."""
    takes_over: bool = False
    """True if its result already contains that of the methods before."""
    before: str = "compiled"
    """For a method of another distribution: the built-in method that comes next."""

    def part(self, query: Query, budget: Budget) -> Budget:
        """Its part of what is left."""
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
    """A part of the time as people read it."""
    part = "the rest" if share == 1.0 else f"{Fraction(share).limit_denominator(100)} of the rest"
    return part if most is None else f"{part}, at most {most:g} s"
