"""What happens to a round of training that asks for the features: it is kept, made smaller, or made again without them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Protocol

from treesens.errors import UsageError
from treesens.extensions.repair.training.promise import Within

Round = Literal["other features", "as it was", "smaller", "without"]
_STEPS = (1.0, 0.5, 0.25)
"""Parts of the learning rate that are tried."""
_LONGEST_REST = 64


class Trainer(Protocol):
    """A booster in training, after a round."""

    def asked(self) -> frozenset[str]:
        """The features that the trees of the last round ask for."""
        ...

    def model(self) -> Any:
        """The booster as it is."""
        ...

    def model_before(self) -> Any:
        """The booster without the last round; None if that was the first one."""
        ...

    def again(self, step: float, *, without: Iterable[str] = ()) -> None:
        """Takes the last round back and makes it again, with a part of the learning rate or without some features."""
        ...

    def leave_out(self, names: Iterable[str]) -> None:
        """Rounds from the next one on do not ask for these features."""
        ...


class Rounds:
    """Keeps one promise in one training; `made` says what became of each round.

    A round that does not ask for the features leaves every difference of two such inputs as it is, so it needs no proof. When
    not even a quarter of a round is proved, it is made without them, and they rest for 1, 2, 4, … rounds before they are tried
    again.
    """

    def __init__(self, within: Within) -> None:
        self.within = within
        self.made: list[Round] = []
        self._rest, self._left = 1, 0

    def after_round(self, trainer: Trainer) -> None:
        """Looks at the round that was made. UsageError if the model was outside of the budget before it."""
        if not self.made:
            self._check_start(trainer)
        self.made.append(self._kept(trainer))

    def _check_start(self, trainer: Trainer) -> None:
        before = trainer.model_before()
        if before is not None and not self.within.is_kept(before):
            raise UsageError(
                "the model that training goes on from is not proved to be within the budget",
                remedy="repair it first, or raise the budget",
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
            raise UsageError("the library asks for features that it was told to leave out", remedy="update the library")
        self._left, self._rest = self._rest, min(_LONGEST_REST, 2 * self._rest)
        trainer.leave_out(varied)
        return "without"
