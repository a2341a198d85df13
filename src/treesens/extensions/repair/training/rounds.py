"""The promise of a training. Each round that splits on the promise's features is kept, made smaller, or repeated without them.

The promise limits the swing of some features for all inputs, including missing values of all features except named categories.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np

from treesens.compiler.result import Verdict
from treesens.errors import UsageError
from treesens.extensions.repair.program import ROOM
from treesens.extensions.repair.proof import Decided, Promise, possible_inputs, questions_for, settle
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import load
from treesens.grammar.tree import ast


@dataclass(frozen=True)
class Within:
    """The promise that the raw scores of two inputs that differ only in the features of one group are at most `swing` apart. A
    proof that takes longer than `seconds` fails.
    """

    groups: tuple[tuple[str, ...], ...]
    swing: Fraction
    domain: Sequence[ast.Declaration]
    seconds: float

    @property
    def varied(self) -> frozenset[str]:
        """All features of all groups."""
        return frozenset(name for group in self.groups for name in group)

    def check(self, names: Sequence[str]) -> None:
        """Raises UsageError if a feature is missing from the rows, or the rows have no other feature."""
        if unknown := sorted(self.varied - set(names)):
            raise UsageError(f"the rows have no feature `{unknown[0]}`", remedy=f"features: {', '.join(names)}")
        if not set(names) - self.varied:
            raise UsageError("every feature of the rows varies", remedy="leave at least one feature out of `vary`")

    def is_kept(self, trained: Any) -> bool:
        """True if a proof shows that the booster `trained` keeps the promise, with a margin for the library's rounding."""
        model = self._read(trained)
        missing = np.array([not f.labels for f in model.ensemble.features], dtype=np.bool_)
        domain = (*self.domain, *possible_inputs(model, missing, self.domain))
        size = self.swing * (1 - Fraction(ROOM))
        promises = [Promise(group, "swing", size) for group in self.groups]
        never = threading.Event()
        return all(
            settle(asking, model, seconds=self.seconds, stop=never).verdict is Verdict.NONE
            for asking in questions_for(model, promises, Decided(domain=domain))
        )

    def _read(self, trained: Any) -> LoadedModel:
        model = load(trained)
        return replace(model, ensemble=replace(model.ensemble, name="trained"))


Round = Literal["other features", "as it was", "smaller", "without"]
_STEPS = (1.0, 0.5, 0.25)
"""The fractions of the learning rate that are tried."""
_LONGEST_REST = 64


class Trainer(Protocol):
    """A booster in training, after a round."""

    def asked(self) -> frozenset[str]:
        """The features on which the last round's trees split."""
        ...

    def model(self) -> Any:
        """The current booster."""
        ...

    def model_before(self) -> Any:
        """The booster without the last round; None if the last round was the first."""
        ...

    def again(self, step: float, *, without: Iterable[str] = ()) -> None:
        """Undoes the last round and repeats it, with a fraction of the learning rate or without some features."""
        ...

    def leave_out(self, names: Iterable[str]) -> None:
        """Excludes the named features from the next round on."""
        ...


class Rounds:
    """Enforces the promise during one training; `made` lists the outcomes of rounds.

    A round without splits on the promise's features changes no swing, so it needs no proof. If the proof fails even with a
    quarter of the learning rate, the round is repeated without these features, which are then excluded for 1, 2, 4, … rounds.
    """

    def __init__(self, within: Within) -> None:
        self.within = within
        self.made: list[Round] = []
        self._rest, self._left = 1, 0

    def after_round(self, trainer: Trainer) -> None:
        """Checks the last round. Raises UsageError if the model already exceeded the budget before this round."""
        if not self.made:
            self._check_start(trainer)
        self.made.append(self._kept(trainer))

    def _check_start(self, trainer: Trainer) -> None:
        before = trainer.model_before()
        if before is not None and not self.within.is_kept(before):
            raise UsageError(
                "no proof shows that the model from which training continues is within the budget",
                remedy="repair the model first, or raise the budget",
            )

    def _kept(self, trainer: Trainer) -> Round:
        varied = self.within.varied
        if self._left:
            self._left -= 1
            if not self._left:
                trainer.leave_out(())
        if not trainer.asked() & varied:
            return "other features"
        for step in _STEPS:
            if step < 1:
                trainer.again(step)
            if self.within.is_kept(trainer.model()):
                self._rest = 1
                return "as it was" if step == 1 else "smaller"
        trainer.again(1.0, without=varied)
        if trainer.asked() & varied:
            raise UsageError("the library still splits on excluded features", remedy="update the library")
        self._left, self._rest = self._rest, min(_LONGEST_REST, 2 * self._rest)
        trainer.leave_out(varied)
        return "without"
