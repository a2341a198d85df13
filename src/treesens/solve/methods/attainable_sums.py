"""Decides additive questions by the sums that their parts can attain: exact dynamic programming.

Trees that share no feature, directly or through others, choose their leaves independently. So a score is a sum of parts, one
for each group of trees that do share features, and its values are the sums of one choice per part. This is subset sum, from
which the paper shows that trees of depth 1 are hard already (Theorem weaknp:depth1). The table of attainable sums is the
dynamic program of Bellman (*Dynamic Programming*, 1957; Kellerer, Pferschy and Pisinger, *Knapsack Problems*, 2004, chapter
4), one bit per sum.

A feature that varies belongs to each point alone, so the best choice of its part is the best for all. What is left are
choices of the features that do not vary: few of them are gone through, which is the case that the paper decides in
polynomial time (Theorem bounded-poly).

A bound that relaxes the choice of leaves sees nothing of this: no linear relaxation has a gap between two neighbouring sums.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, prod

import numpy as np

from treesens.backends.native.tree_question import IntegerRow, ScoreConstraints, row_of, score_constraints_of
from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result
from treesens.solve.conclude import TreeFacts, attempt_of, conclude_tree_search
from treesens.solve.method import OpenQuestion

MOST_CHOICES = 20_000
"""Combinations of cells of one part."""
MOST_BITS = 1 << 23
"""Sums in a table: a million bytes for each part."""
MOST_FRONT = 4096
"""Pairs of sums of which none is better than another in both rows, before the table."""

Choice = tuple[int, ...]
"""A cell for every variable of a part."""


@dataclass(frozen=True, eq=False)
class _Part:
    """Trees that share features: the variables of these, and what each combination of their cells adds to the rows.

    `sums` are the different contributions int64[n, rows], `choice` the combination int32[n, variables] that makes each.
    """

    variables: tuple[int, ...]
    sums: Int64Array
    choice: Int32Array


@dataclass(frozen=True, eq=False)
class _Variables:
    """Cells of a feature at a point; points that agree on a feature share the variable. `number` is int[points, features]."""

    number: Int32Array
    legal: tuple[BoolArray, ...]


def search_sums(question: OpenQuestion, budget: Budget) -> Result | None:
    """The method: None if the question is not additive enough, or sums are too long for a table."""
    start, query = time.perf_counter(), question.query
    parts = score_constraints_of(query)
    if parts is None or parts.avoided or not 1 <= len(parts.rows) <= 2 or any(row.form.forests for row in parts.rows):
        return None
    whole_rows = [row_of(query, row.form, ()) for row in parts.rows]
    rows = [row for row in whole_rows if row is not None and not row.rounded]
    if len(rows) < len(whole_rows):
        return None
    bounds = [row.bound(asked_row) for row, asked_row in zip(rows, parts.rows, strict=True)]
    variables = _variables(query, parts)
    split = None if variables is None else _split(query, rows, variables, budget)
    if variables is None or split is None:
        return None
    facts = _decide(*split, bounds, variables, budget)
    if facts is None:
        return None
    judged = conclude_tree_search(query, facts, question.options)
    if not isinstance(judged, Result):
        return None
    seconds = {"build": 0.0, "solve": time.perf_counter() - start}
    attempt = replace(attempt_of(facts, judged, question.options, seconds), detail="attainable sums")
    result = replace(judged, backend="native", pipeline=question.options.pipeline, seconds=seconds, attempts=(attempt,))
    question.show(result)
    return result


def _variables(query: Query, parts: ScoreConstraints) -> _Variables | None:
    """None if a variable has no legal cell: the compiler says that better."""
    features = len(query.space.names)
    varied = frozenset(range(features)) if parts.same is None else parts.same.varied
    number = np.zeros((len(query.points), features), np.int32)
    legal: list[BoolArray] = []
    for f in range(features):
        for p in range(len(query.points)):
            if p == 0 or f in varied:
                legal.append(np.array(query.space.legal[f], np.bool_))
            number[p, f] = len(legal) - 1
    for cell_set in parts.sets:
        legal[number[cell_set.point, cell_set.feature]] &= cell_set.mask
    return _Variables(number, tuple(legal)) if all(cells.any() for cells in legal) else None


def features_of_trees(model: CellEnsemble) -> list[frozenset[int]]:
    """The features that each tree asks for."""
    found: list[frozenset[int]] = []
    for root in model.root.tolist():
        features, open_nodes = set[int](), [root]
        while open_nodes:
            node = open_nodes.pop()
            if model.feature[node] >= 0:
                features.add(int(model.feature[node]))
                open_nodes += [int(model.left[node]), int(model.right[node])]
        found.append(frozenset(features))
    return found


def _split(
    query: Query, rows: Sequence[IntegerRow], variables: _Variables, budget: Budget
) -> tuple[list[_Part], Int64Array] | None:
    """The parts, and what trees without features add to the rows; None if a part has too many choices."""
    owner = list(range(len(variables.legal)))

    def root_of(v: int) -> int:
        while owner[v] != v:
            owner[v] = owner[owner[v]]
            v = owner[v]
        return v

    tree_variables: list[tuple[int, int, frozenset[int]]] = []  # point, tree, variables
    for p, point in enumerate(query.points):
        if not any(p in row.values for row in rows):
            continue
        for t, features in enumerate(features_of_trees(query.models[point.model])):
            variables_of_tree = frozenset(int(variables.number[p, f]) for f in features)
            tree_variables.append((p, t, variables_of_tree))
            first, *others = sorted(variables_of_tree) or [-1]
            for v in others:
                owner[root_of(v)] = root_of(first)
    constant = np.zeros(len(rows), np.int64)
    groups: dict[int, list[tuple[int, int]]] = {}
    members: dict[int, set[int]] = {}
    for p, t, variables_of_tree in tree_variables:
        if not variables_of_tree:
            model = query.models[query.points[p].model]
            leaf = int(model.leaf[model.root[t]])
            constant += [int(row.values[p][leaf]) if p in row.values else 0 for row in rows]
            continue
        part = root_of(min(variables_of_tree))
        groups.setdefault(part, []).append((p, t))
        members.setdefault(part, set()).update(variables_of_tree)
    if any(
        prod(int(variables.legal[v].sum()) for v in variables_of_tree) > MOST_CHOICES
        for variables_of_tree in members.values()
    ):
        return None
    found = []
    for part, trees in groups.items():
        if budget.over:
            return None
        found.append(_part_of(query, rows, variables, tuple(sorted(members[part])), trees))
    return found, constant


def _part_of(
    query: Query,
    rows: Sequence[IntegerRow],
    variables: _Variables,
    members: tuple[int, ...],
    trees: Sequence[tuple[int, int]],
) -> _Part:
    cells = [np.flatnonzero(variables.legal[v]).astype(np.int32) for v in members]
    choice = np.stack(np.meshgrid(*cells, indexing="ij"), axis=-1).reshape(-1, len(members))
    sums = np.zeros((len(choice), len(rows)), np.int64)
    place = {v: i for i, v in enumerate(members)}
    for p in sorted({p for p, _ in trees}):
        inputs = np.zeros((len(choice), variables.number.shape[1]), np.int32)
        for f, v in enumerate(variables.number[p].tolist()):
            if v in place:
                inputs[:, f] = choice[:, place[v]]
        wanted = [t for q, t in trees if q == p]
        reached = query.models[query.points[p].model].leaves(inputs)[:, wanted]
        for r, row in enumerate(rows):
            if p in row.values:
                sums[:, r] += row.values[p][reached].sum(axis=1)
    different, first = np.unique(sums, axis=0, return_index=True)
    return _Part(members, different, choice[first])


def _decide(
    parts: list[_Part],
    constant: Int64Array,
    bounds: Sequence[int],
    variables: _Variables,
    budget: Budget,
) -> TreeFacts | None:
    """Parts that add to all rows in one proportion go into a table of sums, the others are combined to the best of them.

    If the sums are too far apart for a table, all are combined.
    """
    direction, along, apart = _by_direction(parts, len(constant))
    table = _Table.of(along, direction)
    if table is None:
        apart, along = [*apart, *along], []
        table = _Table.of(along, direction)
        assert table is not None
    first = constant + sum((part.sums[0] for part in along), np.zeros_like(constant))
    wanted = [bound - int(base) for bound, base in zip(bounds, first, strict=True)]
    front = _front_of(apart, len(wanted))
    if front is None:
        return None
    for sums, choices in front:
        if budget.over:
            return None
        low, high = _window(direction, [w - s for w, s in zip(wanted, sums, strict=True)])
        steps = table.find(low, high)
        if steps is not None:
            cells = np.array([int(np.flatnonzero(legal)[0]) for legal in variables.legal], np.int32)
            for part, number in [*zip(apart, choices, strict=True), *zip(along, steps, strict=True)]:
                cells[list(part.variables)] = part.choice[number]
            return TreeFacts(cells[variables.number], False, "satisfied")
    return TreeFacts(None, True, "infeasible")


def _by_direction(parts: list[_Part], rows: int) -> tuple[tuple[int, ...], list[_Part], list[_Part]]:
    """The proportion in which most parts add to one row what they take from another, those parts, and the others.

    A part that takes from no row has a best choice, and needs no table.
    """
    proportions: dict[tuple[int, ...], list[_Part]] = {}
    bent: list[_Part] = []
    for part in parts:
        step = _proportion(part.sums)
        if step is None or min(step) >= 0:
            bent.append(part)
        else:
            proportions.setdefault(step, []).append(part)
    if not proportions:
        return (1, *[0] * (rows - 1)), [], bent
    best = max(proportions, key=lambda step: len(proportions[step]))
    others = [part for step, members in proportions.items() if step != best for part in members]
    return best, proportions[best], bent + others


def _proportion(sums: Int64Array) -> tuple[int, ...] | None:
    """The direction in which all differences of some sums lie, in lowest terms; None if there is no one such."""
    moved = [tuple(int(x) for x in row) for row in sums - sums[0]]
    step: tuple[int, ...] | None = None
    for row in moved:
        divisor = gcd(*row)
        if divisor == 0:
            continue
        sign = next(1 if x > 0 else -1 for x in row if x)
        own = tuple(sign * x // divisor for x in row)
        if step is not None and own != step:
            return None
        step = own
    return step


Pairs = list[tuple[tuple[int, ...], tuple[int, ...]]]
"""Sums by row, with the choice of each part that makes them."""


def _front_of(parts: list[_Part], rows: int) -> Pairs | None:
    """Sums over some parts of which none is at least as good in every row; None if there are too many."""
    front: Pairs = [((0,) * rows, ())]
    for part in parts:
        grown = [
            (tuple(s + int(x) for s, x in zip(sums, added, strict=True)), (*choices, number))
            for sums, choices in front
            for number, added in enumerate(part.sums.tolist())
        ]
        grown.sort(key=lambda item: item[0], reverse=True)
        kept: Pairs = []
        for sums, choices in grown:
            if not kept or sums[-1] > kept[-1][0][-1]:
                kept.append((sums, choices))
        front = kept
        if len(front) > MOST_FRONT:
            return None
    return front


def _window(direction: tuple[int, ...], wanted: Sequence[int]) -> tuple[int | None, int | None]:
    """The steps u for which u * direction is at least what is wanted in every row: from and to, None without an end.

    Without such a step the window is empty: from 1 to 0.
    """
    low: Fraction | None = None
    high: Fraction | None = None
    for step, least in zip(direction, wanted, strict=True):
        if step == 0:
            if least > 0:
                return 1, 0
        elif step > 0:
            low = max(Fraction(least, step), low) if low is not None else Fraction(least, step)
        else:
            high = min(Fraction(least, step), high) if high is not None else Fraction(least, step)
    return None if low is None else -((-low.numerator) // low.denominator), None if high is None else high.__floor__()


@dataclass(frozen=True, eq=False)
class _Table:
    """The attainable sums of parts in one direction, counted in steps from the first choice of every part.

    Bit i of `reached[k]` says whether the first k parts attain `unit` * i steps above the least that they can. `steps` are the
    units of every choice above the least of its part, and `least` is the least of all parts together.
    """

    reached: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    least: int
    unit: int

    @classmethod
    def of(cls, parts: Sequence[_Part], direction: tuple[int, ...]) -> _Table | None:
        """None if the sums are too far apart for a table."""
        axis = next(i for i, step in enumerate(direction) if step)
        least, above = 0, list[list[int]]()
        for part in parts:
            numbers = [int(x) // direction[axis] for x in part.sums[:, axis] - part.sums[0, axis]]
            least += min(numbers)
            above.append([x - min(numbers) for x in numbers])
        unit = gcd(*(x for numbers in above for x in numbers)) or 1
        steps = tuple(tuple(x // unit for x in numbers) for numbers in above)
        if sum(map(max, steps)) > MOST_BITS:
            return None
        reached = [1]
        for choices in steps:
            table = 0
            for step in set(choices):
                table |= reached[-1] << step
            reached.append(table)
        return cls(tuple(reached), steps, least, unit)

    def find(self, low: int | None, high: int | None) -> list[int] | None:
        """The choice of every part that attains a sum from `low` to `high`; None if there is no such sum."""
        last = self.reached[-1].bit_length() - 1
        first = 0 if low is None else max(0, -((self.least - low) // self.unit))
        end = last if high is None else min(last, (high - self.least) // self.unit)
        if first > end:
            return None
        inside = (self.reached[-1] >> first) & ((1 << (end - first + 1)) - 1)
        if not inside:
            return None
        left = first + (inside & -inside).bit_length() - 1
        choices: list[int] = []
        for k in range(len(self.steps) - 1, -1, -1):
            number = next(i for i, s in enumerate(self.steps[k]) if s <= left and self.reached[k] >> (left - s) & 1)
            choices.append(number)
            left -= self.steps[k][number]
        return choices[::-1]
