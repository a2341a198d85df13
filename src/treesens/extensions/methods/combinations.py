"""Enumerates cell combinations of a small domain in which a question may hold: vectorised, exact on cells, relaxed on values.

Constraints on cells (scores, sets of cells, boxes) are exact. If the values that matter are few, they are enumerated as well,
so that relations between values are exact, too. Other constraints on values count as satisfied if some values in the cells,
chosen separately for each term, satisfy them; `concretise` decides such constraints for each combination.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from math import lcm, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array
from treesens.compiler.base.dyadic import INT64_SAFE, ScaledIntegers, Unit, exact_product, largest_magnitude
from treesens.compiler.query.dependencies import points_in
from treesens.compiler.query.probabilities import reaches_on_rows
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    AvoidBoxes,
    AvoidCavities,
    CellSet,
    Constraint,
    Difference,
    LinearForm,
    Objective,
    OneHot,
    ProbabilitySum,
    Query,
    SameExcept,
)
from treesens.compiler.query.values import Place, Term, ValueRange, ValueSum, extremes
from treesens.extensions.methods.slots import Member, Slots, count_choices, list_choices, related_features, slots_of
from treesens.values.relations import canonical_terms, equal_groups, firm_relations, merged_mask, relations_of

Exact = NDArray[Any]
"""Integers in units of 1 / denominator: int64, or Python integers in an object array if int64 is too small."""

MOST_VALUES = 400_000
"""Maximum number of combinations for which the values that matter are enumerated."""
_ALONE = 2
"""The limit for a single point is this multiple of the limit for all points together."""
_WALKS = 10_000_000
"""Maximum number of leaves that are evaluated at once."""


class Combinations:
    """Combinations of slots: `chosen`, int32[N, points, features], holds the slot numbers, and `cells` holds the cell numbers.

    `total` is the number of combinations before `of` applies the constraints on single points.
    """

    def __init__(
        self, query: Query, roots: dict[Place, Place], slots: Sequence[Slots], chosen: Int32Array, total: int = 0
    ) -> None:
        self.query, self.roots, self.slots, self.chosen = query, roots, slots, chosen
        self.count, self.total = len(chosen), total or len(chosen)
        self.cells = np.stack([s.cells[chosen[:, :, f]] for f, s in enumerate(slots)], axis=2) if slots else chosen
        self._scores: dict[int, tuple[Exact, int]] = {}
        self._sources: dict[int, tuple[Combinations, Int64Array]] = {}

    @staticmethod
    def of(query: Query, most: int) -> Combinations | None:
        """The combinations that domains and constraints on single points allow; None if there are more than `most`.

        Values that matter are enumerated unless this yields too many combinations.
        """
        matters = related_features(query)
        features = range(len(query.space.names))
        for limit, split in ((MOST_VALUES, matters), (most, set[int]())):
            slots = [slots_of(query.space, f, split=f in split) for f in features]
            found = _Enumeration(query, slots, limit).run()
            if found is not None:
                return found
        return None

    @staticmethod
    def of_points(query: Query, most: int) -> list[Combinations] | None:
        """For each point, the cell combinations that its own constraints allow; None if a point has more than `most`."""
        slots = [slots_of(query.space, f, split=False) for f in range(len(query.space.names))]
        return _Enumeration(query, slots, most).of_points(most)

    @cached_property
    def leaves_ranges(self) -> bool:
        """True if constraints relate values that the cells do not determine."""
        return bool(firm_relations(self.query.constraints)) and any(
            not self.slots[f].split and self.slots[f].wide.any() for f in related_features(self.query)
        )

    def ranges(self, numbers: Int64Array) -> dict[Place, ValueRange | None] | Place:
        """The values of every place in these combinations, or a place that is missing in some but not all of them."""
        found: dict[Place, ValueRange | None] = {}
        for root in dict.fromkeys(self.roots.values()):
            reaches = self.slots[root[1]].reaches
            used = [reaches[s] for s in np.unique(self.chosen[numbers, root[0], root[1]]).tolist()]
            present = [reach for reach in used if reach is not None]
            if present and len(present) < len(used):
                return root
            low, high = min((r.low for r in present), default=0.0), max((r.high for r in present), default=0.0)
            whole = all(r.whole or (r.single and r.low.is_integer()) for r in present)
            found[root] = ValueRange(low, high, present[0].number_type, whole=whole) if present else None
        return found

    def pins(self, number: int) -> dict[Place, float]:
        """The chosen values of a combination, for features whose values are enumerated."""
        found: dict[Place, float] = {}
        for point, features in enumerate(self.chosen[number].tolist()):
            for f, slot in enumerate(features):
                reach = self.slots[f].reaches[slot]
                if reach is not None and self.slots[f].split:
                    found[point, f] = reach.low
        return found

    def taken(self, places: Int64Array) -> Combinations:
        """The combinations at `places`; scores that were already computed are kept."""
        found = Combinations(self.query, self.roots, self.slots, self.chosen[places], self.total)
        found._sources = dict.fromkeys(range(self.chosen.shape[1]), (self, places))
        return found

    def scores(self, point: int) -> tuple[Exact, int]:
        """The raw sums of a point, [N, outputs], as integers, and their shift."""
        if point not in self._scores:
            if point in self._sources:
                source, places = self._sources[point]
                values, shift = source.scores(point)
                self._scores[point] = values[places], shift
            else:
                self._scores[point] = self._summed_scores(point)
        return self._scores[point]

    def _summed_scores(self, point: int) -> tuple[Exact, int]:
        model = self.query.models[self.query.points[point].model]
        step = max(1, _WALKS // max(1, model.n_trees))
        cells = np.ascontiguousarray(self.cells[:, point])
        parts = [cells[start : start + step] for start in range(0, max(1, self.count), step)]
        sums = [model.ensemble.sums_exact(model.leaves(part)) for part in parts]
        shift = max(part.shift for part in sums)
        return np.concatenate([exact_product(part.values, 1 << (shift - part.shift)) for part in sums]), shift

    # --- constraints ------------------------------------------------------------------------------------------------------

    def may(self, constraint: Constraint) -> BoolArray:
        """False for combinations in which no values in the cells satisfy a constraint, bool[N]."""
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
            case ProbabilitySum():
                scores = {p: ScaledIntegers(*self.scores(p)) for p in points_in(constraint)}
                return reaches_on_rows(constraint, scores, self.count)
            case OneHot(_, members):
                ones = sum((self.may(member).astype(np.int64) for member in members), np.zeros(self.count, np.int64))
                return np.asarray(ones == 1, bool)
            case AvoidBoxes():
                return self._avoids(constraint)
            case AvoidCavities(point):
                return np.array([constraint.holds(cells) for cells in self.cells[:, point]], bool)
            case SameExcept(left, right, varied):
                kept = [f for f in range(self.cells.shape[2]) if f not in varied]
                return np.asarray((self.chosen[:, left, kept] == self.chosen[:, right, kept]).all(axis=1))
            case Difference() | ValueSum():
                alive = self.everything
                for relation in relations_of(constraint):
                    alive &= self._small(relation)
                return alive

    def all_of(self, constraints: Sequence[Constraint]) -> BoolArray:
        """False for combinations in which a single constraint is false for all values in the cells, bool[N]."""
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
        """True where the sum of the terms' least values is at most the limit; False if a linear term has a missing value."""
        total, denominator, possible = self._best_sum(canonical_terms(relation.terms, self.roots), upwards=False)
        limit = relation.limit * denominator
        highest = -(-limit).__floor__() - 1 if relation.strict else limit.__floor__()
        return np.asarray(possible & (total <= highest), bool)

    # --- sums -------------------------------------------------------------------------------------------------------------

    def best_of_form(self, form: LinearForm, *, upwards: bool) -> tuple[Exact, int]:
        """The greatest (or least) value of a form for every combination; if values matter, an upper (or lower) bound on it."""
        parts: list[tuple[Exact, Fraction]] = []
        for term in form.scores:
            values, shift = self.scores(term.point)
            parts.append((values[:, term.output], term.coefficient * Unit(shift).size))
        parts += [(c.costs[self.cells[:, c.point, c.feature]], Unit(c.shift).size) for c in form.costs]
        for change in form.changes:
            left, right = (self.chosen[:, p, list(change.features)] for p in (change.left, change.right))
            count = (left != right).sum(axis=1)
            if change.most:
                # Two values in the same slot can differ too.
                wide = np.array([self.slots[f].wide[left[:, i]] for i, f in enumerate(change.features)], bool)
                apart = [self.roots[change.left, f] != self.roots[change.right, f] for f in change.features]
                same = (left == right).T & wide & np.array(apart, bool)[:, None]
                count = count + same.sum(axis=0)
            parts.append((count, Fraction(change.coefficient)))
        for tree in form.forests:
            scores = tree.scores(np.ascontiguousarray(self.cells[:, tree.point]))
            parts.append((scores, Unit(tree.shift).value(tree.coefficient)))
        for pair in form.pairs:
            costs = pair.costs[self.cells[:, *pair.left], self.cells[:, *pair.right]]
            parts.append((costs, Unit(pair.shift).size))
        for level in form.levels:
            # The least value counts a level only if it must count, the greatest value counts a level if it may count.
            if upwards is (level.cost > 0):
                counted = self.everything if level.above is None else self.may(level.above)
            else:
                counted = ~self.everything if level.below is None else ~self.may(level.below)
            parts.append((counted.astype(np.int64), Unit(level.shift).value(level.cost)))
        return _summed(parts, self.count)

    def best_of_objective(self, goal: Objective) -> tuple[Exact, int]:
        """The objective at the best values of every combination, or an optimistic bound on the objective."""
        if not goal.values or goal.form.scores:
            return self.best_of_form(goal.form, upwards=goal.maximize)
        if not goal.largest:
            total, denominator, _ = self._best_sum(canonical_terms(goal.values, self.roots), upwards=goal.maximize)
            return total, denominator
        parts = [self._best_sum(canonical_terms((t,), self.roots), upwards=goal.maximize)[:2] for t in goal.values]
        common = lcm(*(d for _, d in parts)) if parts else 1
        most = np.zeros(self.count, np.int64)
        for values, denominator in parts:
            most = np.maximum(most, exact_product(values, common // denominator))
        return most, common

    def _best_sum(self, terms: Sequence[Term], *, upwards: bool) -> tuple[Exact, int, BoolArray]:
        parts: list[tuple[Exact, Fraction]] = []
        possible = self.everything
        for term in terms:
            table = self._table(term, upwards)
            at = tuple(self.chosen[:, p, f] for p, f in term.places)
            has_value = np.array([v is not None for v in table.ravel()], bool).reshape(table.shape)
            possible &= has_value[at]
            denominator = lcm(*(v.denominator for v in table[has_value]), 1)
            whole = np.zeros(table.shape, object)
            whole[has_value] = [int(v * denominator) for v in table[has_value]]
            parts.append((_fitting(whole)[at], Fraction(1, denominator)))
        total, denominator = _summed(parts, self.count)
        return total, denominator, possible

    def _table(self, term: Term, upwards: bool) -> Exact:
        """The least (or greatest) value of a term for every slot or pair of slots; None if the term has no value there."""
        reaches = [self.slots[f].reaches for _, f in term.places]
        table = np.empty([len(r) for r in reaches], object)
        used = [np.unique(self.chosen[:, p, f]).tolist() for p, f in term.places]
        for at in itertools.product(*used):
            found = extremes(term, [r[s] for r, s in zip(reaches, at, strict=True)])
            table[at] = None if found is None else found[1 if upwards else 0]
        return table


class _Enumeration:
    """Enumerates the combinations of each point separately, and joins those that satisfy the point's own constraints."""

    def __init__(self, query: Query, slots: Sequence[Slots], most: int) -> None:
        self.query, self.slots, self.most = query, slots, most
        self.points, self.features = len(query.points), len(slots)
        self.roots = equal_groups(query.constraints, self.points, self.features)
        masks: dict[Place, BoolArray] = {}
        for place, root in self.roots.items():
            mask = merged_mask(query, *place)
            masks[root] = masks[root] & mask if root in masks else mask
        self.options = {root: slots[root[1]].of_cells(mask) for root, mask in masks.items()}

    def run(self) -> Combinations | None:
        """The combinations; None if there are too many."""
        parts = self.of_points(_ALONE * self.most)
        if parts is None:
            return None
        found = parts[0] if self.points == 1 else self._joined(parts[0], parts[1])
        if found is None or found.count > self.most:
            return None
        found.total = prod(len(option) for option in self.options.values())
        return found

    def of_points(self, most: int) -> list[Combinations] | None:
        """The combinations of each point by itself; None if a point has too many."""
        parts = [found for point in range(self.points) if (found := self._alone(point, most)) is not None]
        return parts if len(parts) == self.points else None

    def _alone(self, point: int, most: int) -> Combinations | None:
        """The choices of a point that its own constraints allow; the other point is free; None if there are too many."""
        blocks = self._blocks(point)
        sizes = [count_choices(block) for block in blocks]
        count = prod(sizes)
        if count > most:
            return None
        chosen = np.zeros((count, self.points, self.features), np.int32)
        number, column = np.arange(count), dict[Place, Int32Array]()
        for block, size in zip(reversed(blocks), reversed(sizes), strict=True):
            # If a block has no combinations, nothing is listed, because another block may be huge.
            choices = list_choices(block)[number % size] if count else np.zeros((0, len(block)), np.int32)
            column |= {root: choices[:, i] for i, root in enumerate(block)}
            number = number // max(1, size)
        for place, root in self.roots.items():
            if root in column:
                chosen[:, place[0], place[1]] = column[root]
        alone = Combinations(self.query, self.roots, self.slots, chosen)
        kept = alone.all_of([c for c in self.query.constraints if points_in(c) <= {point}])
        return alone.taken(np.flatnonzero(kept))

    def _blocks(self, point: int) -> list[dict[Place, Member]]:
        """The places for which a point chooses slots, in blocks: a block per one-hot group, and a block per other place."""
        found, free = list[dict[Place, Member]](), dict.fromkeys(self.roots[point, f] for f in range(self.features))
        for group in self.query.constraints:
            if isinstance(group, OneHot) and group.point == point:
                masks = {self.roots[point, m.feature]: m.mask for m in group.members}
                if all(root in free for root in masks):
                    found.append({root: self._member(root, mask) for root, mask in masks.items()})
                    free = {root: None for root in free if root not in masks}
        return [{root: self._member(root)} for root in free] + found

    def _member(self, root: Place, mask: BoolArray | None = None) -> Member:
        options = self.options[root]
        return Member(options, None if mask is None else np.asarray(mask[self.slots[root[1]].cells[options]]))

    def _joined(self, left: Combinations, right: Combinations) -> Combinations | None:
        """All pairs whose points agree wherever the question requires it; None if there are too many."""
        shared = [f for f in range(self.features) if self.roots[0, f] == self.roots[1, f]]
        both = np.concatenate([left.chosen[:, 0, shared], right.chosen[:, 1, shared]])
        groups = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1) if shared else np.zeros(len(both), int)
        left_groups, right_groups = groups[: left.count], groups[left.count :]
        order = np.argsort(right_groups, kind="stable")
        first, last = (np.searchsorted(right_groups[order], left_groups, side) for side in ("left", "right"))
        lengths = last - first
        if int(lengths.sum()) > self.most:
            return None
        one = np.repeat(np.arange(left.count), lengths)
        other = order[first[one] + np.arange(len(one)) - np.repeat(np.cumsum(lengths) - lengths, lengths)]
        chosen = np.stack([left.chosen[one, 0], right.chosen[other, 1]], axis=1)
        found = Combinations(self.query, self.roots, self.slots, chosen)
        found._sources = {0: (left, one), 1: (right, other)}
        return found


def _summed(parts: Sequence[tuple[Exact, Fraction]], count: int) -> tuple[Exact, int]:
    """A sum of integers times units, as integers over a common denominator."""
    common = lcm(*(unit.denominator for _, unit in parts), 1)
    factors = [int(unit * common) for _, unit in parts]
    sizes = [largest_magnitude(values) * abs(factor) for (values, _), factor in zip(parts, factors, strict=True)]
    exact = np.int64 if sum(sizes) < INT64_SAFE and all(abs(f) < INT64_SAFE for f in factors) else object
    total = np.zeros(count, exact)
    for (values, _), factor in zip(parts, factors, strict=True):
        total = total + values.astype(exact) * factor
    return total, common


def _fitting(whole: Exact) -> Exact:
    return whole.astype(np.int64) if largest_magnitude(whole) < INT64_SAFE else whole
