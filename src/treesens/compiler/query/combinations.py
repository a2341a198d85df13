"""All combinations of cells of a small domain, and which of them a question may hold in: vectorised, exact, relaxed on values.

What cells decide (scores, sets of cells, boxes) is decided exactly. What depends on values inside cells holds here where some
values of each cell alone could satisfy it; `concretise` settles the rest, combination by combination.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import lcm, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import BoolArray, Int32Array
from treesens.compiler.query.bounds import Bound
from treesens.compiler.query.concretise import equal_groups, merged_mask, relations_of, rooted
from treesens.compiler.query.costs import cell_reaches
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    AvoidBoxes,
    CellSet,
    Constraint,
    Difference,
    LinearForm,
    Objective,
    OneHot,
    Query,
    SameExcept,
)
from treesens.compiler.query.values import Place, Reach, Term, ValueSum, extremes

Exact = NDArray[Any]
"""Python integers in an object array, in units of 1 / denominator."""


class Combinations:
    """The combinations of cells that domains and firm sets of cells leave; places that must be equal are one.

    `cells` int32[N, points, features]; None from `of` where there are more than `most`.
    """

    def __init__(self, query: Query, roots: dict[Place, Place], options: dict[Place, Int32Array]) -> None:
        self.query, self.roots = query, roots
        sizes = [len(cells) for cells in options.values()]
        self.count = prod(sizes)
        self.cells = np.empty((self.count, len(query.points), len(query.space.names)), np.int32)
        index = np.unravel_index(np.arange(self.count), sizes) if self.count else [np.zeros(0, int)] * len(sizes)
        column = {root: cells[i] for (root, cells), i in zip(options.items(), index, strict=True)}
        for place, root in roots.items():
            self.cells[:, place[0], place[1]] = column[root]
        self._reaches: dict[int, list[Reach | None]] = {}

    @staticmethod
    def of(query: Query, most: int) -> Combinations | None:
        roots = equal_groups(query.constraints, len(query.points), len(query.space.names))
        masks: dict[Place, BoolArray] = {}
        for place, root in roots.items():
            mask = merged_mask(query, *place)
            masks[root] = masks[root] & mask if root in masks else mask
        options = {root: np.flatnonzero(mask).astype(np.int32) for root, mask in masks.items()}
        return None if prod(len(cells) for cells in options.values()) > most else Combinations(query, roots, options)

    @cached_property
    def scores(self) -> list[tuple[Exact, int]]:
        """Per point the raw sums [N, outputs] as integers, and their shift."""
        found = []
        for number, point in enumerate(self.query.points):
            model = self.query.models[point.model]
            sums = model.ensemble.sums_exact(model.leaves(np.ascontiguousarray(self.cells[:, number])))
            found.append((sums.values.astype(object), sums.shift))
        return found

    # --- constraints ------------------------------------------------------------------------------------------------------

    def may(self, constraint: Constraint) -> BoolArray:
        """bool[N]: False where no values in the cells satisfy a constraint."""
        match constraint:
            case AllOf(parts):
                return self.all_of(parts)
            case AnyOf(parts):
                found = ~self.everything
                for part in parts:
                    found |= self.may(part)
                return found
            case CellSet(point, feature, mask):
                return np.asarray(mask[self.cells[:, point, feature]])
            case AtLeast():
                return self._reaches_bound(constraint)
            case OneHot(_, members):
                ones = np.array([self.may(member) for member in members], np.int64).reshape(-1, self.count)
                return np.asarray(ones.sum(axis=0) == 1, bool)
            case AvoidBoxes():
                return self._avoids(constraint)
            case SameExcept(left, right, varied):
                kept = [f for f in range(self.cells.shape[2]) if f not in varied]
                return np.asarray((self.cells[:, left, kept] == self.cells[:, right, kept]).all(axis=1))
            case Difference() | ValueSum():
                alive = self.everything
                for relation in relations_of(constraint):
                    alive &= self._small(relation)
                return alive

    def all_of(self, constraints: Sequence[Constraint]) -> BoolArray:
        """bool[N]: False where some constraint is false for all values in the cells."""
        alive = self.everything
        for constraint in constraints:
            alive &= self.may(constraint)
        return alive

    @property
    def everything(self) -> BoolArray:
        return np.ones(self.count, bool)

    def _reaches_bound(self, constraint: AtLeast) -> BoolArray:
        best, denominator = self.best_of_form(constraint.form, upwards=True)
        return np.asarray(best >= (constraint.bound * denominator).ceil(0, strict=constraint.strict), bool)

    def _avoids(self, boxes: AvoidBoxes) -> BoolArray:
        free = self.everything
        for start, end in itertools.pairwise(boxes.indptr.tolist()):
            inside = self.everything
            for i in range(start, end):
                cell = self.cells[:, boxes.point, boxes.feature[i]]
                inside &= (cell >= boxes.low[i]) & (cell <= boxes.high[i])
            free &= ~inside
        return free

    def _small(self, relation: ValueSum) -> BoolArray:
        """Where the sum of the least values of the terms is within the limit; a missing value satisfies no linear term."""
        total, denominator, possible = self._best_sum(rooted(relation.terms, self.roots), upwards=False)
        limit = relation.limit * denominator
        return np.asarray(possible & (total < limit if relation.strict else total <= limit), bool)

    # --- sums -------------------------------------------------------------------------------------------------------------

    def best_of_form(self, form: LinearForm, *, upwards: bool) -> tuple[Exact, int]:
        """The greatest (least) value of a form in every combination, at most (at least) that where values matter."""
        parts: list[tuple[Exact, Fraction]] = []
        for term in form.scores:
            values, shift = self.scores[term.point]
            parts.append((values[:, term.output], term.coefficient / (1 << shift)))
        parts += [
            (c.costs[self.cells[:, c.point, c.feature]].astype(object), Fraction(1, 1 << c.shift)) for c in form.costs
        ]
        for change in form.changes:
            left, right = (
                self.cells[:, change.left, list(change.features)],
                self.cells[:, change.right, list(change.features)],
            )
            count = (left != right).sum(axis=1)
            if change.most:
                # Two values of one cell can differ too.
                wide = np.array([self._wide(f)[left[:, i]] for i, f in enumerate(change.features)], bool)
                apart = [self.roots[change.left, f] != self.roots[change.right, f] for f in change.features]
                same = (left == right).T & wide & np.array(apart, bool)[:, None]
                count = count + same.sum(axis=0)
            parts.append((count.astype(object), Fraction(change.coefficient)))
        for pair in form.pairs:
            costs = pair.costs[self.cells[:, *pair.left], self.cells[:, *pair.right]]
            parts.append((costs.astype(object), Fraction(1, 1 << pair.shift)))
        for level in form.levels:
            # Where the best is least, a level counts only if it must; where it is greatest, if it may.
            if upwards is (level.cost > 0):
                counted = self.everything if level.above is None else self.may(level.above)
            else:
                counted = ~self.everything if level.below is None else ~self.may(level.below)
            parts.append((counted.astype(object) * level.cost, Fraction(1, 1 << level.shift)))
        return _summed(parts, self.count)

    def best_of_objective(self, goal: Objective) -> tuple[Exact, int]:
        """What the best values of every combination make of an objective, or something better."""
        if not goal.values:
            return self.best_of_form(goal.form, upwards=goal.maximize)
        if not goal.largest:
            total, denominator, _ = self._best_sum(rooted(goal.values, self.roots), upwards=goal.maximize)
            return total, denominator
        parts = [self._best_sum(rooted((t,), self.roots), upwards=goal.maximize)[:2] for t in goal.values]
        common = lcm(*(d for _, d in parts)) if parts else 1
        most = np.zeros(self.count, object)
        for values, denominator in parts:
            most = np.maximum(most, values * (common // denominator))
        return most, common

    def _best_sum(self, terms: Sequence[Term], *, upwards: bool) -> tuple[Exact, int, BoolArray]:
        parts: list[tuple[Exact, Fraction]] = []
        possible = self.everything
        for term in terms:
            table = self._table(term, upwards)
            at = tuple(self.cells[:, p, f] for p, f in term.places)
            known = np.vectorize(lambda v: v is not None, otypes=[bool])(table)
            possible &= known[at]
            denominator = lcm(*(v.denominator for v in table[known]), 1)
            whole = np.zeros(table.shape, object)
            whole[known] = [int(v * denominator) for v in table[known]]
            parts.append((whole[at], Fraction(1, denominator)))
        total, denominator = _summed(parts, self.count)
        return total, denominator, possible

    def _table(self, term: Term, upwards: bool) -> Exact:
        """The least (greatest) value of a term for every cell (pair of cells); None where it has none."""
        reaches = [self._reaches_of(f) for _, f in term.places]
        table = np.empty([len(r) for r in reaches], object)
        used = [np.unique(self.cells[:, p, f]).tolist() for p, f in term.places]
        for cells in itertools.product(*used):
            found = extremes(term, [r[c] for r, c in zip(reaches, cells, strict=True)])
            table[cells] = None if found is None else found[1 if upwards else 0]
        return table

    def _reaches_of(self, feature: int) -> list[Reach | None]:
        if feature not in self._reaches:
            self._reaches[feature] = cell_reaches(self.query.space, feature)
        return self._reaches[feature]

    def _wide(self, feature: int) -> BoolArray:
        """Cells of more than one value."""
        return np.array([r is not None and not r.single for r in self._reaches_of(feature)], bool)


def _summed(parts: Sequence[tuple[Exact, Fraction]], count: int) -> tuple[Exact, int]:
    """A sum of integers times units, as integers over the common denominator."""
    common = lcm(*(unit.denominator for _, unit in parts), 1)
    total = np.zeros(count, object)
    for values, unit in parts:
        total = total + values * int(unit * common)
    return total, common


def loosened(query: Query, by: Sequence[Sequence[Fraction]]) -> Query:
    """The question with every score constraint easier by `by[point][output]` per unit of its score."""

    def easier(constraint: Constraint) -> Constraint:
        match constraint:
            case AtLeast():
                slack = sum((abs(t.coefficient) * by[t.point][t.output] for t in constraint.form.scores), Fraction(0))
                return replace(constraint, bound=constraint.bound + Bound(-slack))
            case AllOf(parts) | AnyOf(parts):
                return replace(constraint, parts=tuple(map(easier, parts)))
        return constraint

    return replace(query, constraints=tuple(map(easier, query.constraints)))
