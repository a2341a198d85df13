"""Walks through the combinations of cells of a small domain, the most promising first.

Cells decide nearly everything. If values inside cells matter, they are chosen exactly, and a proof about them excludes all
combinations to which it applies. The walk is exact but slow, so it is used only if the other methods fail to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import inf

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int64Array
from treesens.compiler.model.evaluate import LibraryReplay
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.query import Objective, Query
from treesens.compiler.query.rounding import soften
from treesens.extensions.methods.combinations import Combinations, Exact
from treesens.extensions.methods.decide_values import Inside, bound_objective, decide_values
from treesens.extensions.methods.enumerate_groups import enumerate_groups
from treesens.values.concretise import Alternatives, NoValues, alternatives_of, concretise
from treesens.values.objective_ranges import Range, objective_range
from treesens.values.relations import better_than, rows_with_values
from treesens.values.verify import Rejected, Witness, may_hold_in_library, verify_cells, verify_values

_FEW = 8
"""Maximum number of combinations that are always checked one by one, even if values in them are related."""

_CLOSE = Fraction(1, 20_000)
"""The precision to which objectives are bounded over ranges of values."""
_CHOICES = 60
"""Number of values that are tried in the cells of a combination before z3 decides."""
_STEPS = 40
"""Number of improvements that are tried in one combination before improvements must exceed `_CLOSE`."""


@dataclass
class Enumeration:
    """One walk through the combinations of cells, with the results so far."""

    query: Query
    combinations: Combinations
    left: Callable[[], float]
    on_better: Callable[[Witness], None] | None = None
    near: FloatArray | None = None
    """Preferred values, float64[features]."""
    library_predict: Sequence[LibraryReplay] | None = None
    """The predictions of the library itself, per model, for replay."""
    known: Witness | None = None
    """The answer of an earlier search, if any."""
    witness: Witness | None = None
    value: Fraction | None = None
    numerical: int = 0
    """The number of combinations that are accepted in exact arithmetic, but rejected in the library's arithmetic."""
    ruled_out: int = 0
    """The number of these `numerical` combinations that the library rejects for every addition order and tie-break."""
    unsettled: list[str] = field(default_factory=list)
    doubtful: bool = False
    """True if a finished combination that contributes to the bound on the objective may contain no values at all."""
    asked_z3: bool = False
    """True if an exclusion relies on z3, which decides values inside cells."""
    open_bound: Fraction | None = None
    """The best value that a finished combination may attain, if the best value of some combination is not known exactly."""

    def run(self, alive: BoolArray) -> bool:
        """Checks combinations, the best first, until the remaining combinations cannot improve the answer. Returns False at the
        time limit; the unchecked combinations then yield a bound.

        `alive`, bool[N], flags the remaining combinations, and is updated. If `value` is set, answers must improve on `value`.
        """
        if self.known is not None:
            self._keep(self.known)
        goal = self.query.objective
        keys = None if goal is None else self.combinations.best_of_objective(goal)
        if int(alive.sum()) > _FEW and self.combinations.leaves_ranges:
            return enumerate_groups(self, alive, keys)
        for number in self._order(alive, goal, keys):
            if not alive[number]:
                continue
            key = None if keys is None else self.within_range(Fraction(int(keys[0][number]), keys[1]))
            if self.left() <= 0:
                if goal is not None and key is not None:
                    self.stays_possible(goal, key)
                return False
            if goal is not None and key is not None and not self.better(goal, key, self.value):
                break
            self.look_at(int(number), key, alive)
            if self.witness is not None and goal is None:
                break
        return True

    def _order(self, alive: BoolArray, goal: Objective | None, keys: tuple[Exact, int] | None) -> Int64Array:
        """The remaining combinations, the best first."""
        index = np.flatnonzero(alive)
        if goal is None or keys is None:
            return index
        values = keys[0][index]
        ranked = np.argsort(-values if goal.maximize else values, kind="stable")
        return np.asarray(index[ranked], np.int64)

    @cached_property
    def _range(self) -> Range:
        return objective_range(self.query)

    def within_range(self, key: Fraction) -> Fraction:
        """The objective's bound from cells, tightened by other facts, e.g. that points differ in some feature."""
        goal = self.query.objective
        if goal is None:
            return key
        limit = self._range[goal.maximize]
        return key if limit is None else (min if goal.maximize else max)(key, limit)

    @staticmethod
    def better(goal: Objective, value: Fraction, than: Fraction | None) -> bool:
        return than is None or (value > than if goal.maximize else value < than)

    def look_at(self, number: int, key: Fraction | None, alive: BoolArray) -> None:
        """Checks one combination: finds its best values, or excludes it."""
        key = None if key is None else self.within_range(key)
        cells = self.combinations.cells[number]
        pins = self.combinations.pins(number)
        alive[number] = False
        if self.combinations.leaves_ranges and self.value is not None:
            better_values = alternatives_of(self.better_question(), cells, self.near, pins)
            if self.decide(better_values).none:
                return
        verdict = verify_cells(
            self.query,
            cells,
            near=self.near,
            library_predict=self.library_predict,
            pins=pins,
            choices=_CHOICES,
        )
        if isinstance(verdict, Rejected) and verdict.none is not None and not verdict.none.proved:
            inside = self.decide(alternatives_of(self.query, cells, self.near, pins))
            if inside.none:
                return
            if inside.values is not None:
                verdict = verify_values(self.query, inside.values, library_predict=self.library_predict)
        if isinstance(verdict, Rejected):
            self._reject(verdict, key, alive, pinned=bool(pins))
            if self.query.objective is not None and key is not None and self.unsettled:
                self._stays_open(self.query.objective, number, key)
            return
        self._keep(verdict)
        goal = self.query.objective
        if goal is not None and goal.values and key is not None:
            self._improve_inside(goal, number, verdict, key)

    def decide(self, asked: Alternatives, seconds: float = inf) -> Inside:
        """Decides the values in some cells, and records whether z3 excluded these values."""
        inside = decide_values(asked, lambda: min(seconds, self.left()))
        self.asked_z3 |= inside.by_z3 and inside.none
        return inside

    def _reject(self, rejected: Rejected, key: Fraction | None, alive: BoolArray, *, pinned: bool) -> None:
        if rejected.none is not None and rejected.none.proved:
            if not pinned:
                # The proof covers more than the cells of this combination.
                alive &= self.combinations.may(rejected.none.cut)
        elif rejected.numerical:
            self.numerical += 1
            if not rejected.possible:
                # The library's scores depend on the cells alone, so the library accepts no values in these cells.
                self.ruled_out += 1
            elif self.query.objective is not None and key is not None:
                self.stays_possible(self.query.objective, key)
        else:
            self.unsettled.append(rejected.reason)

    def _keep(self, witness: Witness) -> None:
        goal = self.query.objective
        value = None if goal is None else objective_form_value(goal, inputs_of(self.query, witness.values))
        first = self.witness is None and self.value is None
        if first or (goal is not None and value is not None and self.better(goal, value, self.value)):
            self.witness, self.value = witness, value
            if self.on_better is not None:
                self.on_better(witness)

    def _improve_inside(self, goal: Objective, number: int, witness_known: Witness, key: Fraction) -> None:
        """Searches for improvements in the same cells until no more are found, and records a bound on further improvements."""
        value = objective_form_value(goal, inputs_of(self.query, witness_known.values))
        sign = 1 if goal.maximize else -1
        for step in range(2 * _STEPS):
            if not self.better(goal, key, value):
                return
            wanted = value if step < _STEPS else value + sign * _CLOSE
            better = better_than(goal, wanted, strict=step < _STEPS)
            wanted_query = replace(self.query, constraints=(*self.query.constraints, better))
            pins = self.combinations.pins(number)
            found = concretise(wanted_query, self.combinations.cells[number], self.near, pins, _CHOICES)
            if isinstance(found, NoValues) and found.proved:
                # No values reach `wanted`.
                self.stays_possible(goal, wanted)
                return
            witness = None if isinstance(found, NoValues) else self._better_values(found)
            if witness is None:
                break
            value = objective_form_value(goal, inputs_of(self.query, witness.values))
        self._close_inside(goal, number, key)

    def _better_values(self, values: FloatArray) -> Witness | None:
        """Records the pair with these values and returns it; None if the library rejects the pair."""
        witness = verify_values(self.query, values, library_predict=self.library_predict)
        if not isinstance(witness, Witness):
            return None
        self._keep(witness)
        return witness

    def better_question(self) -> Query:
        """The question; if the objective is about values, with the constraint that answers must improve on the best answer."""
        goal = self.query.objective
        if goal is None or not goal.values or self.value is None:
            return self.query
        better = better_than(goal, self.value, strict=True)
        return replace(self.query, constraints=(*self.query.constraints, better))

    def _close_inside(self, goal: Objective, number: int, key: Fraction) -> None:
        """Searches by bisection for values in the cells that are better than the best known values, and records a bound."""
        cells, pins = self.combinations.cells[number], self.combinations.pins(number)
        inside = self.decide(alternatives_of(self.better_question(), cells, self.near, pins))
        while not inside.none and self.value is not None and self.left() > 0:
            if inside.values is None or self._better_values(inside.values) is None:
                self.stays_possible(goal, self._rational_bound(goal, number, key))
                return
            if abs(self.value - key) <= _CLOSE:
                self.stays_possible(goal, key)
                return
            middle = (self.value + key) / 2
            upper_half = replace(self.query, constraints=(*self.query.constraints, better_than(goal, middle)))
            inside = self.decide(alternatives_of(upper_half, cells, self.near, pins))
            if inside.none:
                key = middle
                inside = self.decide(alternatives_of(self.better_question(), cells, self.near, pins))
        if not inside.none:
            self.stays_possible(goal, key)

    def _rational_bound(self, goal: Objective, number: int, key: Fraction) -> Fraction:
        """A bound on the objective within one combination of cells, over rational values."""
        cells, pins = self.combinations.cells[number], self.combinations.pins(number)
        inside = bound_objective(alternatives_of(self.query, cells, self.near, pins), goal, self.left)
        self.asked_z3 |= inside.by_z3
        if inside.values is not None:
            self._better_values(inside.values)
        return key if inside.bound is None or self.better(goal, inside.bound, key) else inside.bound

    def _stays_open(self, goal: Objective, number: int, key: Fraction) -> None:
        """Records the bound of a combination that may contain no values at all."""
        self.unsettled.pop()
        self.stays_possible(goal, self._rational_bound(goal, number, key))
        self.doubtful = True

    def stays_possible(self, goal: Objective, value: Fraction) -> None:
        if self.better(goal, value, self.open_bound):
            self.open_bound = value

    def better_open(self, goal: Objective) -> bool:
        """True if a finished combination may contain an improvement."""
        return self.open_bound is not None and self.better(goal, self.open_bound, self.value)

    def library_agrees(self) -> bool:
        """True if the library's own arithmetic certainly accepts no combination, for any tie-break of probabilities."""
        query = self.query
        if rows_with_values(query.constraints):
            return False  # the library's verdict depends on values that are not all tried
        loose = replace(soften(query), objective=None)
        alive = self.combinations.all_of(loose.constraints)
        for number in np.flatnonzero(alive):
            values = concretise(loose, self.combinations.cells[number], None, self.combinations.pins(int(number)))
            if self.left() <= 0 or (isinstance(values, NoValues) and not values.proved):
                return False
            if not isinstance(values, NoValues) and may_hold_in_library(query, values):
                return False
        return True
