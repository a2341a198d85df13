"""Chooses values for an answer's cells: equal where the question requires equality, jointly where it relates values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int32Array, frozen
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.domain import pick_value
from treesens.compiler.query.evaluate import Inputs, holds, scores_of_cells, scores_value
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    CellSet,
    Constraint,
    Difference,
    LinearForm,
    Query,
    SameExcept,
)
from treesens.compiler.query.values import (
    DistanceTerm,
    LinearTerm,
    Place,
    Term,
    ValueRange,
    ValueSum,
    extremes,
    join_ranges,
    reach_of_cell,
)
from treesens.values.propagation import CHOICES, Choice, Ranges, conflict, generalise_conflict, places_of, propagate
from treesens.values.relations import (
    at_scores,
    canonical_terms,
    equal_groups,
    firm_relations,
    firm_rows,
    places_named,
    relates,
    relations_of,
)

MOST_CASES = 64
"""Maximum number of combinations of alternatives that are tried for one candidate."""
_HALVINGS = 24
"""Number of halvings that determine up to which higher scores relations are refuted."""


@dataclass(frozen=True)
class NoValues:
    """The result for cells in which no values were found. `cut` excludes these cells, and other cells that the proof covers;
    `proved` is True if no values exist."""

    reason: str
    cut: AnyOf
    proved: bool


@dataclass(frozen=True)
class Alternatives:
    """Constraints on values in one combination of cells: the relations of one of `cases`, within the ranges of the case.

    `goal` holds the terms of an objective over values; `filled` expands related values to float64[points, features]; `complete`
    is False if there are more cases.
    """

    cases: tuple[tuple[tuple[ValueSum, ...], Ranges], ...]
    goal: tuple[Term, ...]
    filled: Callable[[dict[Place, float]], FloatArray]
    complete: bool


def alternatives_of(
    query: Query, cells: Int32Array, near: FloatArray | None = None, pins: Mapping[Place, float] | None = None
) -> Alternatives:
    """The cases in which values in `cells`, int32[points, features], can be an answer. Arguments are as for `concretise`."""
    return _Concrete(query, cells, near, pins or {}).alternatives()


def relaxation_of(query: Query, ranges: Mapping[Place, ValueRange | None]) -> Alternatives:
    """The unconditional relations, which values in wider ranges must also satisfy; `ranges` holds the first of equal places."""
    cells = np.zeros((len(query.points), len(query.space.names)), np.int32)
    concrete = _Concrete(query, cells, None, {})
    concrete.rows = []  # the scores of a row depend on the cells
    firm, goal = tuple(concrete.firm()), concrete.objective_terms(turned=False)
    places = dict.fromkeys((*places_of(firm), *(p for t in goal for p in t.places)))
    return Alternatives(((firm, {p: ranges[p] for p in places}),), goal, lambda _: np.zeros((0, 0)), True)


def concretise(
    query: Query,
    cells: Int32Array,
    near: FloatArray | None = None,
    pins: Mapping[Place, float] | None = None,
    choices: int = CHOICES,
) -> FloatArray | NoValues:
    """Values float64[points, features] in `cells`, int32[points, features], or the reason why none were found.

    Values satisfy the relations first, then suit the objective, and finally are close to `near`, float64[features] (NaN: no
    preference). `pins` fixes the values of some places; a proof then applies to these values only. At most `choices` values are
    tried for each alternative.
    """
    return _Concrete(query, cells, near, pins or {}).run(choices)


class _Concrete:
    def __init__(self, query: Query, cells: Int32Array, near: FloatArray | None, pins: Mapping[Place, float]) -> None:
        self.query, self.cells, self.near, self.pins = query, cells, near, pins
        points, features = cells.shape
        self.roots = equal_groups(query.constraints, points, features)
        self.rows = firm_rows(query.constraints)

    def alternatives(self) -> Alternatives:
        firm, goal = self.firm(), self.objective_terms(turned=False)
        found, complete = list[tuple[tuple[ValueSum, ...], Ranges]](), True
        for case in self._cases():
            if len(found) == MOST_CASES:
                complete = False
                break
            relations = (*firm, *(self._rooted(r) for r in case))
            found.append((relations, self._ranges(relations, goal)))
        return Alternatives(tuple(found), goal, self._filled, complete)

    def firm(self) -> list[ValueSum]:
        firm = [self._rooted(r) for r in firm_relations(self.query.constraints)]
        firm += map(self._relation, self.rows)
        return [r for r in firm if r.terms or not r.allows(Fraction(0))]

    def run(self, choices: int) -> FloatArray | NoValues:
        firm = self.firm()
        refuted = conflict(self._ranges(firm), firm)
        if refuted is not None:
            return NoValues("no values in these cells satisfy the relations between features", self._box(refuted), True)
        proved = True
        for number, case in enumerate(self._cases()):
            if number == MOST_CASES:
                proved = False
                break
            relations = [*firm, *(self._rooted(r) for r in case)]
            pulls = [t for r in relations for t in r.terms if isinstance(t, DistanceTerm)]
            choice = Choice(relations, [*self.objective_terms(), *pulls], self._preferred(), choices)
            found = choice.run(self._ranges(relations, choice.pulls))
            if found is not None:
                return self._filled(found)
            proved = proved and choice.proved
        reason = "no values in these cells satisfy the relations between features"
        return NoValues(reason, self._here(firm), proved)

    # --- what is related ------------------------------------------------------------------------------------------------

    def _rooted(self, relation: ValueSum) -> ValueSum:
        """The relation, rewritten to the first place of each group of equal places; a distance within a group is 0."""
        return ValueSum(canonical_terms(relation.terms, self.roots), relation.limit, relation.strict, relation.name)

    def _relation(self, row: AtLeast) -> ValueSum:
        """The relation that a row of scores and values requires in these cells."""
        return self._rooted(at_scores(row, scores_value(row.form, self._inputs())))

    def objective_terms(self, *, turned: bool = True) -> tuple[Term, ...]:
        """The terms of the objective, with signs such that smaller is better."""
        goal = self.query.objective
        if goal is None or not goal.values:
            return ()
        sign = -1 if goal.maximize and turned else 1
        return canonical_terms([replace(term, factor=term.factor * sign) for term in goal.values], self.roots)

    def _reach(self, place: Place) -> ValueRange | None:
        point, feature = place
        space = self.query.space
        if place in self.pins:
            return ValueRange(self.pins[place], self.pins[place], space.grid[feature].number_type)
        return reach_of_cell(space.domains[feature], space.grid[feature], int(self.cells[point, feature]))

    def _ranges(self, relations: Sequence[ValueSum], pulls: Sequence[Term] = ()) -> Ranges:
        places = dict.fromkeys((*places_of(relations), *(p for t in pulls for p in t.places)))
        return {place: self._reach(place) for place in places}

    def _preferred(self) -> dict[Place, float]:
        if self.near is None:
            return {}
        points = range(self.cells.shape[0])
        return {(p, f): float(v) for p in points for f, v in enumerate(self.near) if not np.isnan(v)}

    def _filled(self, chosen: dict[Place, float]) -> FloatArray:
        values = np.full(self.cells.shape, np.nan)
        preferred = self._preferred()
        for place, root in self.roots.items():
            if root not in chosen:
                p, f = root
                domain, grid = self.query.space.domains[f], self.query.space.grid[f]
                pinned = self.pins.get(root)
                chosen[root] = (
                    pick_value(domain, grid, int(self.cells[p, f]), preferred.get(root)) if pinned is None else pinned
                )
            values[place] = chosen[root] + 0.0
        return values

    # --- alternatives ---------------------------------------------------------------------------------------------------

    def _cases(self) -> Iterator[tuple[ValueSum, ...]]:
        """Yields a conjunction of relations for each way to satisfy the alternatives that the cells leave open."""
        options = [found for c in self.query.constraints if (found := self._options(c)) is not None]
        for combination in itertools.product(*options):
            yield tuple(relation for part in combination for relation in part)

    def _options(self, constraint: Constraint) -> list[tuple[ValueSum, ...]] | None:
        """The relations of each alternative in a constraint; None if no alternative depends on values."""
        if isinstance(constraint, AllOf):
            found = [o for part in constraint.parts if (o := self._options(part)) is not None]
            if not found:
                return None
            return [tuple(r for part in way for r in part) for way in itertools.product(*found)]
        if not isinstance(constraint, AnyOf) or not relates(constraint):
            return None
        ways: list[tuple[ValueSum, ...]] = []
        for part in constraint.parts:
            ways_of_part = self._asked(part)
            if ways_of_part == [()]:
                return None
            ways += ways_of_part
        return ways

    def _asked(self, constraint: Constraint) -> list[tuple[ValueSum, ...]]:
        """All sets of relations by which values in these cells satisfy a constraint; [()] if the cells alone suffice."""
        match constraint:
            case AllOf(parts):
                ways = [tuple(r for part in way for r in part) for way in itertools.product(*map(self._asked, parts))]
                return ways[: MOST_CASES + 1]
            case AnyOf(parts):
                found = [way for part in parts for way in self._asked(part)]
                return [()] if () in found else found
            case Difference() | ValueSum():
                return self._open(relations_of(constraint))
            case AtLeast() if constraint.values:
                return self._open((self._relation(constraint),))
            case SameExcept():
                return self._same(constraint)
            case _:
                return [()] if holds(constraint, self._inputs()) else []

    def _open(self, relations: tuple[ValueSum, ...]) -> list[tuple[ValueSum, ...]]:
        """A list with one tuple of the relations that the ranges leave open; empty if a relation is false for all values."""
        left: list[ValueSum] = []
        for relation in relations:
            least, most = Fraction(0), Fraction(0)
            for term in self._rooted(relation).terms:
                found = extremes(term, [self._reach(place) for place in term.places])
                if found is None:
                    return []  # a missing value satisfies no linear relation
                least, most = least + found[0], most + found[1]
            if not relation.allows(least):
                return []
            if not relation.allows(most):
                left.append(relation)
        return [tuple(left)]

    def _same(self, constraint: SameExcept) -> list[tuple[ValueSum, ...]]:
        relations: list[ValueSum] = []
        for f, grid in enumerate(self.query.space.grid):
            left, right = self.cells[constraint.left, f], self.cells[constraint.right, f]
            if f in constraint.varied:
                continue
            if left != right:
                return []
            if left == grid.missing_cell:
                continue
            one = Fraction(1)
            for sign in (one, -one):
                terms = (LinearTerm(constraint.left, f, sign), LinearTerm(constraint.right, f, -sign))
                relations.append(ValueSum(terms, Fraction(0)))
        return [tuple(relations)]

    def _inputs(self) -> Inputs:
        if not hasattr(self, "_known"):
            self._known = Inputs(self.cells.astype(float), self.cells, scores_of_cells(self.query, self.cells))
        return self._known

    # --- what is ruled out ----------------------------------------------------------------------------------------------

    def _box(self, refuted: Sequence[ValueSum]) -> AnyOf:
        """The constraint that excludes a box that contains the cells and in which the relations are refuted."""
        space = self.query.space

        def last(place: Place) -> int:
            return space.grid[place[1]].present_cells - 1

        def range_of(place: Place, first: int, final: int) -> ValueRange | None:
            f = place[1]
            found = None
            for cell in range(first, final + 1):
                here = reach_of_cell(space.domains[f], space.grid[f], cell)
                if here is not None:
                    found = here if found is None else join_ranges(found, here)
            return found

        runs = {p: (int(self.cells[p]), int(self.cells[p])) for p in places_of(refuted)}
        raised, higher = self._raised(refuted)
        return self._outside(generalise_conflict(runs, last, range_of, raised), higher)

    def _raised(self, refuted: Sequence[ValueSum]) -> tuple[list[ValueSum], list[AtLeast]]:
        """The relations at the highest scores at which they remain refuted, and the rows for still higher scores."""
        relations, higher = list(refuted), list[AtLeast]()
        ranges = self._ranges(refuted)
        for row in self.rows:
            here = self._relation(row)
            if here not in relations:
                continue
            ends = [extremes(term, [ranges[p] for p in term.places]) for term in here.terms]
            good, bad = Fraction(0), sum((end[1] for end in ends if end is not None), Fraction(0)) - here.limit
            others = [r for r in relations if r is not here and r != here]
            for _ in range(_HALVINGS):
                middle = (good + bad) / 2
                clash = propagate(ranges, [*others, replace(here, limit=here.limit + middle)]) is None
                good, bad = (middle, bad) if clash else (good, middle)
            relations = [*others, replace(here, limit=here.limit + good)]
            higher.append(self._above(row, good))
        return relations, higher

    def _above(self, row: AtLeast, more: Fraction = Fraction(0)) -> AtLeast:
        """The row for scores that exceed the scores in these cells by `more`: the relation of `row` is weaker there."""
        level = LogRational(scores_value(row.form, self._inputs()) + more)
        return AtLeast(LinearForm(row.form.scores), level, strict=True, name=f"{row.name}.scores")

    def _here(self, firm: Sequence[ValueSum]) -> AnyOf:
        """The constraint that excludes only these cells: at related places, or at all places if a formula depends on scores."""
        related = set(places_of(firm))
        for constraint in self.query.constraints:
            if isinstance(constraint, AllOf | AnyOf) and relates(constraint):
                named = places_named(constraint)
                if named is None:
                    related = set(self.roots.values())
                    break
                related |= {self.roots[p] for p in named}
        box = {p: (int(self.cells[p]), int(self.cells[p])) for p in sorted(related)}
        return self._outside(box, [self._above(row) for row in self.rows])

    def _outside(self, box: dict[Place, tuple[int, int]], higher: Sequence[AtLeast]) -> AnyOf:
        """The constraint that some place is outside the box, or that scores are higher."""
        parts: list[Constraint] = [*higher]
        for (point, feature), (first, final) in box.items():
            cells = np.arange(self.query.space.grid[feature].n_cells)
            outside = [mask for mask in (cells < first, cells > final) if mask.any()]
            parts += [CellSet(point, feature, frozen(mask, bool)) for mask in outside]
        return AnyOf(tuple(parts))
