"""What is promised while a model is trained: the swing of some features, for all inputs, with missing values of all features
but categories with names.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from treesens.compiler.result import Verdict
from treesens.errors import UsageError
from treesens.extensions.repair.possible import possible_inputs
from treesens.extensions.repair.program import ROOM
from treesens.extensions.repair.proof import Decided, Promise, questions_for, settle
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import load
from treesens.grammar.tree import ast


@dataclass(frozen=True)
class Within:
    """No two inputs that differ in the features of one group alone are further than `swing` apart in raw score. `seconds` are
    for each proof; one that takes longer counts as none.
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
        """UsageError for features that the rows do not have, and for rows that have no others."""
        if unknown := sorted(self.varied - set(names)):
            raise UsageError(f"the rows have no feature `{unknown[0]}`", remedy=f"features: {', '.join(names)}")
        if not set(names) - self.varied:
            raise UsageError("every feature of the rows varies", remedy="leave one out of `vary`")

    def is_kept(self, trained: Any) -> bool:
        """Whether it is proved of a booster, with room for what the library rounds."""
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
