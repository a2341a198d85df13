"""Which rows of a table flip, for every kind of decision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.query import OneHot, Query, SameExcept
from treesens.data.flips import MOST_COMBINATIONS, FlipQuestion, Flips, flip_question, swing_bound
from treesens.data.rows import cells_of_rows
from treesens.extensions.studies.decisions import Between, Decision
from treesens.extensions.studies.joint_flips import joint_flips, two_class_swing
from treesens.extensions.studies.questions import Gap
from treesens.solve.tasks.data_rows import legal_rows, sweep_rows

WALKS_PER_SECOND = 60_000_000
"""Walks through a tree for every second of the limit: what the sweep of all rows takes, and several times as much."""

LEAST_COMBINATIONS = 16
"""Combinations of values of several features that are tried for every row in any case."""


@dataclass
class RowSweep:
    """Rows float64[rows, features] of a table and what the sensitive features do to their scores, swept when it is needed.

    A decision between classes has two sweeps: at a lead of 0 ties count as the library breaks them.
    """

    decision: Decision
    query: Query
    rows: FloatArray
    seconds: float

    def of(self, gap: Gap) -> Flips:
        """The extremes of all rows for a gap."""
        return self._at_zero if isinstance(self.decision, Between) and gap.size == 0 else self.plain

    @cached_property
    def plain(self) -> Flips:
        return self._swept(ties=False)

    @cached_property
    def _at_zero(self) -> Flips:
        return self._swept(ties=True)

    @cached_property
    def features(self) -> tuple[int, ...]:
        (same,) = (c for c in self.query.constraints if isinstance(c, SameExcept))
        return tuple(sorted(same.varied))

    def shape(self, question: ResolvedQuestion, gap: Gap) -> FlipQuestion:
        """The question about a gap as one about the extremes of rows."""
        if isinstance(self.decision, Between):
            lead = LogRational(gap.size * self.query.models[0].ensemble.average)
            ruled = any(isinstance(c, OneHot) for c in self.query.constraints)
            return FlipQuestion(0, 1, self.features, 0, self.decision.first, lead, -lead, None, not ruled)
        found = flip_question(question.query)
        assert found is not None
        return found

    @property
    def widest(self) -> FlipQuestion:
        """The question about any swing at all."""
        return FlipQuestion(0, 1, self.features, 0, self.decision.output, None, None, LogRational(), True)

    def swing_bound(self) -> float:
        """What no swing exceeds, from the leaves alone."""
        model = self.query.models[0]
        if isinstance(self.decision, Between):
            exact = two_class_swing(model, self.features, *self.decision.classes)
            return math.nextafter(float(exact), math.inf)
        return swing_bound(model, self.features, self.decision.output)

    def _swept(self, *, ties: bool) -> Flips:
        model = self.query.models[0]
        walks = int(WALKS_PER_SECOND * self.seconds)
        ruled = any(isinstance(c, OneHot) for c in self.query.constraints)
        if isinstance(self.decision, Between) or ruled:
            index = legal_rows(self.query, self.rows)
            cells = cells_of_rows(self.query.space.grid, self.rows[index])
            outputs = self.decision.classes if isinstance(self.decision, Between) else (self.decision.output,)
            return joint_flips(self.query, model, cells, self.features, outputs, index=index, walks=walks, ties=ties)
        most = walks / (max(1, len(self.rows)) * max(1, model.n_trees))
        combinations = max(LEAST_COMBINATIONS, min(MOST_COMBINATIONS, int(most)))
        return sweep_rows(self.query, self.widest, self.rows, combinations=combinations)
