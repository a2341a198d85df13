"""What is left open on a small domain is closed by going through its combinations of cells, the most promising first.

Cells decide nearly everything; where values inside cells matter they are chosen exactly, and what a proof rules out is ruled
out for all combinations that it covers. This is slow, exact, and in one place: nothing but the end of a search leads here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int64Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.combinations import Combinations, Exact
from treesens.compiler.query.concretise import Alternatives, NoValues, alternatives_of, concretise
from treesens.compiler.query.evaluate import inputs_of, objective_value
from treesens.compiler.query.query import Objective, Query
from treesens.compiler.query.rounding import soften
from treesens.compiler.result import Attempt, Proof, Result, Witness
from treesens.compiler.verify import Rejected, may_hold_in_library, verify_cells, verify_values
from treesens.errors import MissingPackageError
from treesens.solve.bounds import left_open
from treesens.solve.combine import combine
from treesens.solve.conclude import conclude_found, conclude_none, leave_open, shown_objective
from treesens.solve.exact_values import Z3, Inside, bound_objective, decide_values
from treesens.solve.fits import MOST_COMBINATIONS
from treesens.solve.options import Options
from treesens.solve.refine import better_than

FEW = 8
"""Combinations that are looked at one by one, even if values in them are related."""

_CLOSE = Fraction(1, 20_000)
"""Distances over whole ranges of values are bounded to this many widths."""
_CHOICES = 60
"""Values that are tried one after the other in the cells of a combination, before z3 decides."""
_STEPS = 40
"""Better values inside one combination that are tried one after the other, before they have to be clearly better."""
_BACKEND = "native"


@dataclass
class Enumeration:
    """One walk through combinations of cells, and what it has found so far."""

    query: Query
    options: Options
    combinations: Combinations
    left: Callable[[], float]
    on_better: Callable[[Witness], None] | None
    known: Witness | None = None
    """What the search before has found."""
    witness: Witness | None = None
    value: Fraction | None = None
    numerical: int = 0
    unsettled: list[str] = field(default_factory=list)
    doubtful: bool = False
    """Whether a combination that is done with may hold values, and only bounds the objective."""
    asked_z3: bool = False
    """Whether something is ruled out by z3, which decides values inside cells."""
    open_bound: Fraction | None = None
    """The best value that a combination which is done with may still hold, if that is not known exactly."""

    def run(self) -> Result | None:
        """The answer, closed if there was time; None where nothing was found in time, or something stays unsettled."""
        done = self.go_through(self.combinations.all_of(self.query.constraints))
        return self.result() if done or self.witness is not None else None

    def go_through(self, alive: BoolArray) -> bool:
        """Looks at combinations, the best first, until what is left is no better; False if the time was up (what is left is a
        bound then).

        `alive` bool[N] says which are left, and loses those that are done with. A `value` that is set before needs to be
        beaten.
        """
        if self.known is not None:
            self._keep(self.known)
        goal = self.query.objective
        keys = None if goal is None else self.combinations.best_of_objective(goal)
        if int(alive.sum()) > FEW and self.combinations.leaves_ranges:
            from treesens.solve.enumeration_groups import through_groups

            return through_groups(self, alive, keys)
        for number in self._order(alive, goal, keys):
            if not alive[number]:
                continue
            key = None if keys is None else Fraction(int(keys[0][number]), keys[1])
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
        """The combinations that are left, the best first."""
        index = np.flatnonzero(alive)
        if goal is None or keys is None:
            return index
        values = keys[0][index]
        ranked = np.argsort(-values if goal.maximize else values, kind="stable")
        return np.asarray(index[ranked], np.int64)

    @staticmethod
    def better(goal: Objective, value: Fraction, than: Fraction | None) -> bool:
        return than is None or (value > than if goal.maximize else value < than)

    def look_at(self, number: int, key: Fraction | None, alive: BoolArray) -> None:
        """One combination: its best values, or what rules it out."""
        cells = self.combinations.cells[number]
        pins = self.combinations.pins(number)
        alive[number] = False
        if self.combinations.leaves_ranges and self.value is not None:
            asked = alternatives_of(self.better_question(), cells, self.options.near, pins)
            if self.decide(asked).none:
                return
        verdict = verify_cells(
            self.query,
            cells,
            near=self.options.near,
            library_predict=self.options.library_predict,
            pins=pins,
            choices=_CHOICES,
        )
        if isinstance(verdict, Rejected) and verdict.none is not None and not verdict.none.proved:
            inside = self.decide(alternatives_of(self.query, cells, self.options.near, pins))
            if inside.none:
                return
            if inside.values is not None:
                verdict = verify_values(self.query, inside.values, library_predict=self.options.library_predict)
        if isinstance(verdict, Rejected):
            self._reject(verdict, alive, pinned=bool(pins))
            if self.query.objective is not None and key is not None and self.unsettled:
                self._stays_open(self.query.objective, number, key)
            return
        self._keep(verdict)
        goal = self.query.objective
        if goal is not None and goal.values and key is not None:
            self._improve_inside(goal, number, verdict, key)

    def decide(self, asked: Alternatives, seconds: float = inf) -> Inside:
        """What values in some cells there are. What z3 rules out is noted."""
        inside = decide_values(asked, lambda: min(seconds, self.left()))
        self.asked_z3 |= inside.by_z3 and inside.none
        return inside

    def _reject(self, rejected: Rejected, alive: BoolArray, *, pinned: bool) -> None:
        if rejected.none is not None and rejected.none.proved:
            if not pinned:
                # The proof covers more than these cells.
                alive &= self.combinations.may(rejected.none.cut)
        elif rejected.numerical:
            # The library's scores are those of the cells: it accepts no values in them.
            self.numerical += 1
        else:
            self.unsettled.append(rejected.reason)

    def _keep(self, witness: Witness) -> None:
        goal = self.query.objective
        value = None if goal is None else objective_value(goal, inputs_of(self.query, witness.values))
        first = self.witness is None and self.value is None
        if first or (goal is not None and value is not None and self.better(goal, value, self.value)):
            self.witness, self.value = witness, value
            if self.on_better is not None:
                self.on_better(witness)

    def _improve_inside(self, goal: Objective, number: int, known: Witness, key: Fraction) -> None:
        """Better values in the same cells, as long as there are any; what stays possible is a bound."""
        value = objective_value(goal, inputs_of(self.query, known.values))
        sign = 1 if goal.maximize else -1
        for step in range(2 * _STEPS):
            if not self.better(goal, key, value):
                return
            wanted = value if step < _STEPS else value + sign * _CLOSE
            better = better_than(goal, wanted, strict=step < _STEPS)
            asked = replace(self.query, constraints=(*self.query.constraints, better))
            pins = self.combinations.pins(number)
            found = concretise(asked, self.combinations.cells[number], self.options.near, pins, _CHOICES)
            if isinstance(found, NoValues) and found.proved:
                # Nothing is as good as `wanted`.
                self.stays_possible(goal, wanted)
                return
            witness = None if isinstance(found, NoValues) else self._better_values(found)
            if witness is None:
                break
            value = objective_value(goal, inputs_of(self.query, witness.values))
        self._close_inside(goal, number, key)

    def _better_values(self, values: FloatArray) -> Witness | None:
        """The pair of these values, which is kept; None if the library does not accept it."""
        witness = verify_values(self.query, values, library_predict=self.options.library_predict)
        if not isinstance(witness, Witness):
            return None
        self._keep(witness)
        return witness

    def better_question(self) -> Query:
        """The question for what is better than the best known, if the objective is about values."""
        goal = self.query.objective
        if goal is None or not goal.values or self.value is None:
            return self.query
        better = better_than(goal, self.value, strict=True)
        return replace(self.query, constraints=(*self.query.constraints, better))

    def _close_inside(self, goal: Objective, number: int, key: Fraction) -> None:
        """Better values in the cells than the best known, by halves; what they may be at most."""
        cells, pins = self.combinations.cells[number], self.combinations.pins(number)
        inside = self.decide(alternatives_of(self.better_question(), cells, self.options.near, pins))
        while not inside.none and self.value is not None and self.left() > 0:
            if inside.values is None or self._better_values(inside.values) is None:
                self.stays_possible(goal, self._rational_bound(goal, number, key))
                return
            if abs(self.value - key) <= _CLOSE:
                self.stays_possible(goal, key)
                return
            middle = (self.value + key) / 2
            asked = replace(self.query, constraints=(*self.query.constraints, better_than(goal, middle)))
            inside = self.decide(alternatives_of(asked, cells, self.options.near, pins))
            if inside.none:
                key = middle
                inside = self.decide(alternatives_of(self.better_question(), cells, self.options.near, pins))
        if not inside.none:
            self.stays_possible(goal, key)

    def _rational_bound(self, goal: Objective, number: int, key: Fraction) -> Fraction:
        """What the objective may be at best in a combination over rational values."""
        cells, pins = self.combinations.cells[number], self.combinations.pins(number)
        inside = bound_objective(alternatives_of(self.query, cells, self.options.near, pins), goal, self.left)
        self.asked_z3 |= inside.by_z3
        if inside.values is not None:
            self._better_values(inside.values)
        return key if inside.bound is None or self.better(goal, inside.bound, key) else inside.bound

    def _stays_open(self, goal: Objective, number: int, key: Fraction) -> None:
        """Whether the combination holds values at all is not known: what it could hold at best is a bound."""
        self.unsettled.pop()
        self.stays_possible(goal, self._rational_bound(goal, number, key))
        self.doubtful = True

    def stays_possible(self, goal: Objective, value: Fraction) -> None:
        if self.better(goal, value, self.open_bound):
            self.open_bound = value

    # --- the answer -------------------------------------------------------------------------------------------------------

    def result(self) -> Result | None:
        if self.unsettled:
            return None
        goal = self.query.objective
        if self.witness is None and self.doubtful:
            return None
        if self.witness is None:
            return None if self.numerical and not self._library_agrees() else self._none()
        objective = None
        if goal is not None and self.value is not None:
            bound = self.value if not self._better_open(goal) else self.open_bound
            assert bound is not None
            objective = shown_objective(goal, self.value, bound)
        answer = conclude_found(
            leave_open(self.query.name, witness=self.witness, objective=objective, backend=_BACKEND)
        )
        if objective is not None:
            leant = self._leant_on()
            if self.numerical:
                leant = (
                    *leant,
                    "inputs that are better in exact arithmetic are ruled out by the library's rounded sums",
                )
            answer = replace(answer, proof_dependencies=leant)
        return answer

    def _better_open(self, goal: Objective) -> bool:
        return self.open_bound is not None and self.better(goal, self.open_bound, self.value)

    def _none(self) -> Result:
        reason = f"{_BACKEND}: every one of {self.combinations.total} combinations of cells is ruled out"
        proof, notes = Proof.EXACT, tuple[str, ...]()
        if self.numerical:
            proof = Proof.LIBRARY
            notes = (
                "exact arithmetic knows inputs, within the numerical band; the arithmetic of the library knows none",
            )
        bare = leave_open(self.query.name, notes=notes, backend=_BACKEND, proof_dependencies=self._leant_on())
        return conclude_none(bare, reason, proof)

    def _leant_on(self) -> tuple[str, ...]:
        """What a `none` or a bound of this walk rests on beside its own arithmetic."""
        return (f"values inside cells by {Z3} (exact)",) if self.asked_z3 else ()

    def _library_agrees(self) -> bool:
        """Whether the library's own arithmetic surely accepts no combination, its ties of probabilities broken either way."""
        query = self.query
        loose = replace(soften(query), objective=None)
        alive = self.combinations.all_of(loose.constraints)
        for number in np.flatnonzero(alive):
            values = concretise(loose, self.combinations.cells[number], None, self.combinations.pins(int(number)))
            if self.left() <= 0 or (isinstance(values, NoValues) and not values.proved):
                return False
            if not isinstance(values, NoValues) and may_hold_in_library(query, values):
                return False
        return True


Walk = Callable[
    [Query, Options, Combinations, Callable[[], float], Callable[[Witness], None] | None, Witness | None], Result | None
]
"""Goes through combinations; the answer, or None if something stays open."""


def walk_combinations(
    query: Query,
    options: Options,
    combinations: Combinations,
    left: Callable[[], float],
    on_better: Callable[[Witness], None] | None,
    known: Witness | None,
) -> Result | None:
    """The walk for an objective that is a sum, or for none."""
    return Enumeration(query, options, combinations, left, on_better, known).run()


def finish_by_enumeration(
    query: Query,
    options: Options,
    before: Result,
    budget: Budget,
    *,
    walk: Walk = walk_combinations,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """The answer of a search, or that of going through all combinations of cells where the search left something open."""
    start = time.monotonic()

    combinations = Combinations.of(query, MOST_COMBINATIONS)
    if combinations is None:
        return before
    try:
        found = walk(query, options, combinations, budget.left, on_better, before.witness)
    except MissingPackageError as error:
        return replace(before, notes=(*before.notes, f"left open: {error.message}: {error.remedy}"))
    if found is None:
        return before
    seconds = time.monotonic() - start
    words = f"{combinations.total} combinations of cells were gone through"
    attempt = Attempt(_BACKEND, "exhaustive", "optimal", found.verdict, words, {"solve": seconds})
    if found.witness is not None and found.witness is before.witness:
        found = replace(before, objective=found.objective, proof_dependencies=found.proof_dependencies)
    if left_open(found):
        # Each of the two may know more.
        return combine(before, replace(found, attempts=(attempt,), seconds={**before.seconds, "exhausting": seconds}))
    return replace(
        found,
        attempts=(*before.attempts, attempt),
        seconds={**before.seconds, "exhausting": seconds},
        size=before.size,
        pipeline=before.pipeline,
        warm_started=before.warm_started,
    )
