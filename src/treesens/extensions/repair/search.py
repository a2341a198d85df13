"""Proofs about leaves in memory, and the mixture with the mean that is nearest to the model and proved."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.result import Verdict
from treesens.extensions.repair.proof import decided_by, questions_for, settle

if TYPE_CHECKING:
    from treesens.extensions.repair.repair import Repair

Say = Callable[[str], None]

_HALVINGS = 8


class Search:
    """The search for leaves that keep the promises of one size."""

    def __init__(self, repair: Repair, size: Fraction, say: Say) -> None:
        self.repair, self.size, self.say = repair, size, say
        self.words = "; ".join(promise.words() for promise in repair.promises(size))
        self.reason = ""
        self.broken: tuple[int, FloatArray] | None = None
        self._first = 0

    def holds(self, values: FloatArray, seconds: float | None = None) -> bool:
        """Whether all promises are proved of leaves within so many seconds each (by default those of a search, so that the
        written file is proved easily); a pair that breaks one is kept in `broken`.
        """
        options, self.broken = self.repair.options, None
        seconds = min(options.proof_time, max(1.0, options.time_limit / 30)) if seconds is None else seconds
        model = self.repair.editor.candidate(values)
        asked = list(enumerate(questions_for(model, self.repair.promises(self.size), decided_by(options))))
        for number, asking in asked[self._first :] + asked[: self._first]:
            result = settle(asking, model, seconds=seconds, stop=self.repair.stop)
            if result.verdict is not Verdict.NONE:
                self._first = number
                self.reason = f"{asking.promise.words()}: {result.verdict}, {result.reason}"
                if result.witness is not None:
                    self.broken = number, result.witness.values
                return False
        return True

    def blended(self, mean: FloatArray | None = None) -> FloatArray:
        """As little of the mean (or of other leaves float64[variables] that keep the promise) as the proofs allow, of the
        leaves that the search starts from.
        """
        start, mean = self.repair.start, self.repair.mean if mean is None else mean
        if self.repair.order is not None and self.holds(start, self.repair.options.proof_time):
            return start  # the model as it is breaks a promise; in order it may keep all
        low, high, options = 0.0, 1.0, self.repair.options
        seconds = min(options.proof_time, max(3.0, options.time_limit / 10))  # few proofs, on which all else rests
        for _ in range(_HALVINGS):
            if self.repair.stop.is_set():
                break
            middle = (low + high) / 2
            if self.holds((1 - middle) * start + middle * mean, seconds):
                high = middle
            else:
                low = middle
        self.say(f"{self.words}: blend proved with {high:.1%} of the mean")
        return np.asarray((1 - high) * start + high * mean)
