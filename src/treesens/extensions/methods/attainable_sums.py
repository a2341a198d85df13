"""Decides additive questions from the sums that their parts can attain, by exact dynamic programming.

If trees share no feature, directly or through other trees, their leaves are chosen independently. A score is therefore a sum of
parts, one for each group of trees that share features, and every value of the score is a sum of one choice per part. This
problem is subset sum, with which the paper shows that even trees of depth 1 are hard (Theorem weaknp:depth1). The table of
attainable sums is the dynamic program of Bellman (*Dynamic Programming*, 1957; Kellerer, Pferschy and Pisinger, *Knapsack
Problems*, 2004, chapter 4), one bit per sum.

A varied feature belongs to a single point, so one choice for its part is the best for all rows. If the other features have few
choices, the choices are enumerated; the paper decides this case in polynomial time (Theorem bounded-poly).

For an objective, the best value is the largest attainable sum within the bounds.

Linear relaxations cannot replace the table, because they also attain all values between two neighbouring sums.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

import numpy as np

from treesens.backends.native.score_constraints import IntegerRow, ScoreConstraints, row_of, score_constraints_of
from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.query import LinearForm, Objective, Query
from treesens.compiler.result import ObjectiveValue, Result
from treesens.extensions.methods.sum_tables import Table, front_of, window_of
from treesens.solve.conclude import Facts, attempt_of, conclude_facts, shown_optimum
from treesens.solve.method import OpenQuestion
from treesens.values.verify import Witness

MOST_CHOICES = 20_000
"""Maximum number of combinations of cells in one part."""

_INT64_BITS = 62
"""Maximum number of bits in products that are compared as int64."""


@dataclass(frozen=True, eq=False)
class _Part:
    """A group of trees that share features: the trees' variables, and the contribution of each combination of cells to rows.

    `sums` holds the distinct contributions, int64[n, rows]; `choice` int32[n, variables] holds a combination for each sum.
    """

    variables: tuple[int, ...]
    sums: Int64Array
    choice: Int32Array


@dataclass(frozen=True, eq=False)
class _Variables:
    """One variable per point and feature, shared by points that agree on the feature. `number` is int[points, features]."""

    number: Int32Array
    legal: tuple[BoolArray, ...]


def search_sums(question: OpenQuestion, budget: Budget) -> Result | None:
    """The method's answer; None if the question is not additive enough, or if the sums are too large for a table.

    An objective is treated as an additional row, which is maximised and has no bound.
    """
    start, query = time.perf_counter(), question.query
    parts = score_constraints_of(query, optimises=query.objective is not None)
    if parts is None or parts.avoided or any(row.form.forests for row in parts.rows):
        return None
    forms = [row.form for row in parts.rows] + ([] if query.objective is None else [upwards(query.objective)])
    if not 1 <= len(forms) <= 2:
        return None
    whole_rows = [row_of(query, form, ()) for form in forms]
    rows = [row for row in whole_rows if row is not None and not row.rounded]
    if len(rows) < len(whole_rows):
        return None
    bounds: list[int | None] = [row.bound(asked) for row, asked in zip(rows, parts.rows, strict=False)]
    bounds += [None] * (len(rows) - len(bounds))
    variables = _variables(query, parts)
    split = None if variables is None else _split(query, rows, variables, budget)
    if variables is None or split is None:
        return None
    decided = _decide(*split, bounds, variables, budget)
    if decided is None:
        return None
    facts, most = decided
    goal = query.objective

    def reach(witness: Witness) -> ObjectiveValue:
        assert goal is not None
        best = rows[-1].most(most) * (1 if goal.maximize else -1)
        return shown_optimum(goal, objective_form_value(goal, inputs_of(query, witness.values)), best)

    judged = conclude_facts(query, facts, question.options, reach=None if goal is None else reach)
    if not isinstance(judged, Result):
        return None
    seconds = {"build": 0.0, "solve": time.perf_counter() - start}
    attempt = replace(attempt_of(facts, judged, question.options, seconds), detail="attainable sums")
    result = replace(judged, backend="native", pipeline=question.options.pipeline, seconds=seconds, attempts=(attempt,))
    question.show(result)
    return result


def _variables(query: Query, parts: ScoreConstraints) -> _Variables | None:
    """The variables; None if some variable has no legal cell (the compiler then has a better message)."""
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
    """The features on which each tree splits."""
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
    """The parts, and the contributions of trees without splits to the rows; None if a part has too many choices."""
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
        model = query.models[query.points[p].model]
        reached = replace(model, root=model.root[wanted]).leaves(inputs)
        for r, row in enumerate(rows):
            if p in row.values:
                sums[:, r] += row.values[p][reached].sum(axis=1)
    different, first = np.unique(sums, axis=0, return_index=True)
    return _Part(members, different, choice[first])


def upwards(goal: Objective) -> LinearForm:
    """The form to maximise."""
    sign = 1 if goal.maximize else -1
    return replace(goal.form, scores=tuple(replace(t, coefficient=sign * t.coefficient) for t in goal.form.scores))


def _decide(
    parts: list[_Part],
    constant: Int64Array,
    bounds: Sequence[int | None],
    variables: _Variables,
    budget: Budget,
) -> tuple[Facts, int] | None:
    """The facts about the question and, if the last row has no bound, the maximum of this row.

    Parts whose sums change all rows in the same proportion are combined in a table of sums; other parts are combined to
    Pareto-optimal sums. If the sums are too far apart for a table, all parts are combined.
    """
    direction, along, apart = _by_direction(parts, len(constant))
    table = Table.of([part.sums for part in along], direction)
    if table is None:
        apart, along = [*apart, *along], []
        table = Table.of([], direction)
        assert table is not None
    first = constant + sum((part.sums[0] for part in along), np.zeros_like(constant))
    front = front_of([part.sums for part in apart], len(bounds))
    if front is None:
        return None
    best, most = None, 0
    for sums, choices in zip(front[0].tolist(), front[1].tolist(), strict=True):
        if budget.over:
            return None
        reached = [int(base) + s for base, s in zip(first, sums, strict=True)]
        wanted = [None if bound is None else bound - r for bound, r in zip(bounds, reached, strict=True)]
        steps = table.find(*window_of(direction, wanted), largest=direction[-1] > 0)
        if steps is None:
            continue
        moved = sum(int(part.sums[n, -1] - part.sums[0, -1]) for part, n in zip(along, steps, strict=True))
        if best is None or reached[-1] + moved > most:
            best, most = (choices, steps), reached[-1] + moved
        if bounds[-1] is not None:
            break
    if best is None:
        return Facts(None, True, "infeasible"), 0
    cells = np.array([int(np.flatnonzero(legal)[0]) for legal in variables.legal], np.int32)
    for part, number in [*zip(apart, best[0], strict=True), *zip(along, best[1], strict=True)]:
        cells[list(part.variables)] = part.choice[number]
    return Facts(cells[variables.number], False, "satisfied" if bounds[-1] is not None else "optimal"), most


def _by_direction(parts: list[_Part], rows: int) -> tuple[tuple[int, ...], list[_Part], list[_Part]]:
    """The most frequent proportion in which parts add to one row and subtract from another; its parts; and the other parts.

    A part that subtracts from no row has a best choice, and does not need a table.
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
    """The common direction of all differences between `sums`, in lowest terms; None without a common direction."""
    moved = sums - sums[0]
    moved = moved[(moved != 0).any(axis=1)]
    if len(moved) == 0:
        return None
    divisor = gcd(*map(int, moved[0]))
    sign = next(1 if x > 0 else -1 for x in moved[0] if x)
    step = tuple(sign * int(x) // divisor for x in moved[0])
    axis = next(i for i, x in enumerate(step) if x)
    times, rest = np.divmod(moved[:, axis], step[axis])
    if int(np.abs(times).max()).bit_length() + max(map(int.bit_length, step)) > _INT64_BITS:
        exact = [[int(k) * x for x in step] for k in times]
        return step if not rest.any() and exact == moved.tolist() else None
    return step if not rest.any() and np.array_equal(times[:, None] * np.array(step), moved) else None
