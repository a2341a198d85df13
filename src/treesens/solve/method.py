"""What a method of answering is: when it fits, its part of the time, what it proves. `solve/methods/registry.py` lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from importlib import import_module
from math import inf
from typing import TypeAlias

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result
from treesens.solve.fits import leaves
from treesens.solve.options import Options
from treesens.values.verify import Witness


@dataclass(frozen=True, eq=False)
class OpenQuestion:
    """A question as a method gets it.

    `ask` answers other questions, such as a case of this one: by a query, options, a budget, and `on_better` by name.
    `on_better` is told of better witnesses. `known` is what the methods before have come to, None if nothing was asked yet;
    the hints are in the options.
    """

    query: Query
    options: Options
    ask: Callable[..., Result]
    on_better: Callable[[Witness], None] | None = None
    known: Result | None = None

    def show(self, result: Result) -> None:
        """Tells `on_better` of the witness of a result."""
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

    It fits if `fits` says so, which looks at the question alone; `questions` says the same in words, `proves` what its answers
    state. `run` is "module:function" below `treesens.solve`, imported when it is asked for the first time. The function takes
    `OpenQuestion` and a `Budget`, and returns a result, or None if it has nothing to say.
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
    """Whether it always has a result: no method after it is asked."""
    to_the_last_unit: bool = False
    """Whether the methods after it go on unless its answer is proved to the last unit, whatever time is left."""
    takes_over: bool = False
    """Whether its result already contains what was known before."""

    def part(self, query: Query, budget: Budget) -> Budget:
        """Its part of what is left."""
        part = budget if self.share == 1.0 else budget.share(self.share)
        if self.most == inf:
            return part
        return part.within(self.most + (self.per_leaf * leaves(query) if self.per_leaf else 0.0))

    def function(self) -> Callable[[OpenQuestion, Budget], Result | None]:
        """What runs it."""
        module, _, name = self.run.partition(":")
        run: Callable[[OpenQuestion, Budget], Result | None] = getattr(import_module(f"treesens.solve.{module}"), name)
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
