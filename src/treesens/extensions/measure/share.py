"""Finds a measure's affected share: a proved interval, and a guaranteed estimate inside this interval (docs/measures.md).

Branch and bound alternates with draws: draws determine which boxes are split, and proved boxes need no draws. As soon as the
remaining draws cost no more time than all boxes so far, the search continues with draws only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.base.budget import Budget, OutOfTime, working_within
from treesens.compiler.result import Estimate
from treesens.extensions.measure.precision import Precision
from treesens.extensions.measure.sampler import Sampler
from treesens.extensions.measure.search import Masses, ShareSearch

_FIRST_NODES = 512
_DRAWS_PER_NODE = 48
"""Number of draws that take as long as one box, as measured by `python -m benchmarks.shares`."""
_MOST_BOXES = 1_500_000
_MOST_BYTES = 400_000_000
_BOXES_SHARE = {False: 0.5, True: 0.8}
"""Maximum share of the time that is spent on boxes if a proof is not required (False), or is required (True)."""
_BLOCK = 10_000
_MOMENT = 0.2


@dataclass(frozen=True, eq=False)
class Share:
    """The interval from `lower` to `upper` is proved. `closed` is True if the proved interval or the estimate's interval is
    narrow enough; if neither is, `reason` explains why. `drawn` holds affected inputs from the open boxes.
    """

    lower: float
    upper: float
    estimate: Estimate | None
    closed: bool
    reason: str
    masses: Masses
    seconds: float
    drawn: Int32Array = field(default_factory=lambda: np.zeros((0, 0), np.int32))


@dataclass
class ShareRun:
    """One search: when the budget ends, `run` returns the results so far. `progress` is called repeatedly."""

    search: ShareSearch
    precision: Precision
    seed: int = 0
    progress: Callable[[Masses], None] | None = None
    draws_at_most: int | None = None
    decided: Callable[[float, float], bool] | None = None
    """Returns True if a proved interval answers the question. If set, most time is spent on boxes until the result is True."""
    first_nodes: int = _FIRST_NODES
    """Number of boxes that are split in the first turn."""

    def run(self, seconds: float, budget: Budget) -> Share:
        """Searches and draws for `seconds`, within the budget. The length of a turn is a number of boxes or draws, so that
        searches without time limits are reproducible.
        """
        start = time.monotonic()
        sampler = Sampler(self.search, self.precision, self.seed)
        boxes = budget.within(seconds * _BOXES_SHARE[self.decided is not None])
        masses = self.search.masses()
        reason = None
        while reason is None:
            cutting = self._worthwhile(sampler, masses, boxes)
            nodes = max(self.first_nodes, masses.nodes // 4)
            if cutting:
                masses = self._looked_at(nodes, boxes)
            if self._enough(masses) or masses.open_boxes == 0:
                return Share(masses.lower, masses.upper, None, True, "", masses, time.monotonic() - start)
            if not cutting or self.decided is None:
                draws = _DRAWS_PER_NODE * nodes // 2 if cutting else _BLOCK
                reason = self._drawn(sampler, draws, masses, budget)
        spent = time.monotonic() - start
        estimate = sampler.estimate
        return Share(masses.lower, masses.upper, estimate, reason == "", reason, masses, spent, sampler.rows())

    def _enough(self, masses: Masses) -> bool:
        """True if the proved shares suffice."""
        if self.decided is not None:
            return self.decided(masses.lower, masses.upper)
        return self.precision.reached(masses.lower, masses.upper)

    def _worthwhile(self, sampler: Sampler, masses: Masses, budget: Budget) -> bool:
        """True if more boxes should be split."""
        if budget.over or masses.open_boxes + masses.full_boxes >= self._most_boxes:
            return False
        return self.decided is not None or sampler.draws_left > _DRAWS_PER_NODE * masses.nodes

    @property
    def _most_boxes(self) -> int:
        """The number of boxes that fit into memory: two cells per feature, and the overhead of a box."""
        return min(_MOST_BOXES, _MOST_BYTES // (8 * self.search.features + 200))

    def _looked_at(self, nodes: int, budget: Budget) -> Masses:
        """The proved shares after up to `nodes` more boxes. The engine returns often, so that Ctrl-C works."""
        masses = self.search.masses()
        last = masses.nodes + nodes
        while masses.nodes < last and not budget.over:
            self.search.run(min(_MOMENT, budget.left()), most_boxes=self._most_boxes, most_nodes=last - masses.nodes)
            before, masses = masses, self.search.masses()
            if masses.open_boxes == 0 or masses.nodes == before.nodes:
                break
        if self.progress is not None:
            self.progress(masses)
        return masses

    def _draw_once(self, sampler: Sampler, draws: int, masses: Masses, budget: Budget) -> bool:
        """Draws one round. Returns False if the budget ended during the round, because no later round could use the results."""
        try:
            with working_within(budget):
                sampler.draw(draws, masses)
                return True
        except OutOfTime:
            if budget.over:
                return False
            raise

    def _drawn(self, sampler: Sampler, draws: int, masses: Masses, budget: Budget) -> str | None:
        """Draws up to `draws` inputs. Returns the reason to stop ("" for a good estimate), or None to continue."""
        if sampler.drawn == 0:
            sampler.scout(budget)
        last = min(sampler.drawn + draws, self.draws_at_most or 1 << 62)
        while sampler.drawn < last:
            if budget.over:
                return budget.reason
            if not self._draw_once(sampler, min(_BLOCK, last - sampler.drawn), masses, budget):
                return budget.reason
            if sampler.reached:
                return ""
        return "draws" if last == self.draws_at_most else None
