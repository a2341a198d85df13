"""The convex program over leaf values: change predictions for training rows as little as possible, under linear limits.

The variables are the leaves of the changed trees and of the copies of these trees, which have no splits on varied features. The
objective is the expected loss under the original model: the cross entropy with the model's probabilities, which is the
Kullback-Leibler divergence plus a constant, or, for a regressor, squared differences. The program does not refit the labels of
training rows, because this would fit noise. The objective is minimised by accelerated projected gradients (Beck and Teboulle,
SIAM J. Imaging Sciences 2009, with restarts); each projection is a quadratic program, and Clarabel solves its dual, which has
one variable per pair. `changes_of` compares the result with the original model.

With many leaves and few rows, the solution overfits and is worse than the blend. A ridge term (Hoerl and Kennard, Technometrics
1970) therefore shrinks the leaf values towards the blend; its strength is chosen on the held-out rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int32Array
from treesens.extensions.repair.forest import Copy, Forest, contributions, leaves_of_trees
from treesens.extensions.repair.limits import Limits, sparse_matrices
from treesens.extensions.studies.losses import LossName, curvature, expected_loss, expected_slopes, losses

RIDGE = 0.1
"""Default ridge, whose effect on a leaf equals the effect of this many rows that reach no other leaf."""
ROOM = 1e-3
"""Safety margin of a limit, relative to the limit, for float32 rounding and for pairs that are close to the found pairs."""


class Kept(Protocol):
    """An order of leaf values; `kept` changes values such that the order holds."""

    def kept(self, values: FloatArray) -> FloatArray:
        """The ordered leaf values, float64[variables], nearest to `values`."""
        ...


_STIFF = 1e30
"""The weight of a fixed leaf in the metric."""


@dataclass(frozen=True, eq=False)
class Columns:
    """The leaves that rows reach in the changed trees and their copies: `variable`, int32[rows, columns], holds the indices of
    the leaves' variables, and `output`, int64[columns], the output to which each column adds.
    """

    variable: Int32Array
    output: Any


class Variables:
    """The variables of the program: first the leaves of the changed trees, then the leaves of the copies."""

    def __init__(self, forest: Forest, copies: Sequence[Copy]) -> None:
        self.forest, self.copies = forest, copies
        ensemble = forest.ensemble
        leaves = leaves_of_trees(ensemble)
        self.width = width = ensemble.leaf_value.shape[1]
        self.leaf = np.concatenate([np.zeros(0, np.int32), *(leaves[t] for t in forest.changed)])
        self.of_leaf = np.full(ensemble.n_leaves, -1, dtype=np.int32)
        self.of_leaf[self.leaf] = width * np.arange(len(self.leaf))
        sizes = [width * len(copy.leaves) for copy in copies]
        self.start = width * len(self.leaf) + np.cumsum([0, *sizes])
        self.count = int(self.start[-1])
        self.own = contributions(ensemble)[self.leaf].ravel()
        # Leaf values of copies as weighted sums of leaf values of the changed trees.
        each = np.arange(width)
        places = [width * np.searchsorted(c.leaves, c.position) + s for c, s in zip(copies, self.start)]  # noqa: B905
        self._to = np.concatenate([np.zeros(0, np.int64), *((place[:, None] + each).ravel() for place in places)])
        self._from = np.concatenate(
            [np.zeros(0, np.int64), *((self.of_leaf[c.leaf][:, None] + each).ravel() for c in copies)]
        )
        self._weight = np.repeat(np.concatenate([np.zeros(0), *(c.weight for c in copies)]), width)
        averaged = np.isin(ensemble.leaf_tree[self.leaf], forest.averaged)
        self._averaged = np.flatnonzero(np.repeat(averaged, width))

    @property
    def original(self) -> FloatArray:
        """The leaf values of the original model; the leaves of copies are 0."""
        return np.concatenate([self.own, np.zeros(self.count - len(self.own))])

    def averaged(self, values: FloatArray) -> FloatArray:
        """The leaf values of the mean over the varied features: copies replace the trees that split on these features."""
        result = values + np.bincount(self._to, weights=self._weight * values[self._from], minlength=self.count)
        result[self._averaged] = 0.0
        return result

    def columns(self, cells: Int32Array) -> Columns:
        """The leaves that each row of `cells`, int32[rows, features], reaches."""
        forest = self.forest
        own = self.of_leaf[forest.cells.leaves(cells)[:, forest.changed]]
        made = [
            self.width * forest.reached(copy, cells)[:, None] + start
            for copy, start in zip(self.copies, self.start.tolist())  # noqa: B905
        ]
        reached, each = np.concatenate([own, *made], axis=1), np.arange(self.width)
        if self.width > 1:
            reached = (reached[:, :, None] + each).reshape(len(cells), -1)
            return Columns(reached.astype(np.int32), np.tile(each, reached.shape[1] // self.width))
        outputs = forest.ensemble.tree_output[[*forest.changed, *(copy.tree for copy in self.copies)]]
        return Columns(reached.astype(np.int32), outputs.astype(np.int64))

    def row(self, weights: FloatArray, high: Int32Array, low: Int32Array) -> FloatArray:
        """The difference between the scores of the cells `high` and `low` as a linear form, float64[variables]. The leaves of
        copies have the coefficient 0, because copies give both inputs of a pair the same score.
        """
        trees = self.forest.changed
        reached = self.of_leaf[self.forest.cells.leaves(np.stack([high, low]))[:, trees]]
        form = np.zeros(self.count)
        for column in range(self.width):
            signs = weights[self.forest.ensemble.tree_output[trees]] if self.width == 1 else weights[column]
            np.add.at(form, reached[0] + column, signs)
            np.add.at(form, reached[1] + column, -signs)
        return form


def reaching(variable: Int32Array, count: int) -> Any:
    """The sparse matrix with a 1 for each of the `count` variables that a row reaches; `variable` is int32[rows, columns]."""
    rows, columns = variable.shape
    ends = columns * np.arange(rows + 1)
    return sparse_matrices().csr_matrix((np.ones(variable.size), variable.ravel(), ends), shape=(rows, count))


class Program:
    """The program for training rows with the original `margins`, float64[rows, outputs], under `limits` and an `order` of
    leaves.
    """

    def __init__(
        self, variables: Variables, name: LossName, cells: Int32Array, margins: FloatArray, order: Kept | None = None
    ) -> None:
        self.variables, self.name, self.target, self.order = variables, name, margins, order
        columns = variables.columns(cells)
        self.count = len(cells)
        self._reach = [
            reaching(columns.variable[:, columns.output == output], variables.count)
            for output in range(margins.shape[1])
        ]
        self.fixed = margins - self._sums(variables.original)
        self._reached = np.bincount(columns.variable.ravel(), minlength=variables.count)
        self.limits = Limits(np.ones(variables.count))
        self.stay_near(variables.original, RIDGE)

    def stay_near(self, anchor: FloatArray, ridge: float, *, own: bool = True) -> None:
        """Shrinks each leaf value towards `anchor`, float64[variables], as strongly as `ridge` rows; with `own=False`, the
        leaves of the model's trees are fixed, and only the leaves of the copies change.
        """
        self.anchor, self.ridge, self.length = anchor, ridge, 4.0
        self.metric = (self._reached * curvature(self.name) + max(ridge, RIDGE)) / self.count
        if not own:
            self.metric[: len(self.variables.own)] = _STIFF
        self.limits.metric = self.metric

    def _sums(self, values: FloatArray) -> FloatArray:
        return np.stack([reach @ values for reach in self._reach], axis=1)

    def margins(self, values: FloatArray) -> FloatArray:
        """The margins of the rows, float64[rows, outputs]."""
        return self.fixed + self._sums(values)

    def value(self, values: FloatArray) -> float:
        """The objective at `values`."""
        return self._value(self.margins(values), values)

    def expected(self, values: FloatArray) -> float:
        """The mean expected loss for the rows under the original model: the objective without the ridge term."""
        return expected_loss(self.name, self.margins(values), self.target)

    def _value(self, margins: FloatArray, values: FloatArray) -> float:
        ridge = self.ridge / 2 / self.count * float(((values - self.anchor) ** 2).sum())
        return expected_loss(self.name, margins, self.target) + ridge

    def _slope(self, margins: FloatArray, values: FloatArray) -> FloatArray:
        by_margin = expected_slopes(self.name, margins, self.target)
        result = self.ridge * (values - self.anchor)
        for output, reach in enumerate(self._reach):
            result += reach.T @ by_margin[:, output]
        return np.asarray(result / self.count)

    def projected(self, values: FloatArray) -> FloatArray:
        """The nearest values that satisfy every limit; if there is an order, these are then changed to ordered values."""
        found = self.limits.projected(values)
        return found if self.order is None else self.order.kept(found)

    def solve(self, values: FloatArray, steps: int) -> FloatArray:
        """Leaf values with a smaller objective that satisfy the limits, after at most `steps` steps that start at `values`."""
        now = ahead = self.projected(values)
        momentum, best = 1.0, self._value(self.margins(now), now)
        for _ in range(steps):
            margins = self.margins(ahead)
            here, slope = self._value(margins, ahead), self._slope(margins, ahead)
            while True:
                then = self.projected(ahead - slope / (self.length * self.metric))
                step = then - ahead
                model = here + float(slope @ step) + self.length / 2 * float(self.metric @ step**2)
                value = self._value(self.margins(then), then)
                if value <= model + 1e-12 or self.length > 1e6:
                    break
                self.length *= 2
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            if value > best:
                momentum, ahead = 1.0, now  # a restart: the last steps went too far
                continue
            ahead = then + (momentum - 1) / following * (then - now)
            now, best, momentum = then, value, following
        return now


def changes_of(variables: Variables, values: FloatArray, *, alone: bool) -> dict[str, Any]:
    """The numbers of changed trees and leaves, and the largest change of a leaf."""
    n = len(variables.own)
    ensemble = variables.forest.ensemble
    moved = np.abs(values[:n] - variables.own).reshape(-1, variables.width).max(axis=1, initial=0.0)
    trees = np.unique(ensemble.leaf_tree[variables.leaf[moved > 0]])
    copies = sum(
        bool(values[start : start + len(copy.leaves)].any())
        for copy, start in zip(variables.copies, variables.start.tolist(), strict=False)
    )
    return {
        "changes": {
            "trees": ensemble.n_trees,
            "trees_that_ask": len(variables.forest.concerned),
            "trees_changed": len(trees),
            "trees_replaced": alone,
            "trees_added": copies,
            "leaves": ensemble.n_leaves,
            "leaves_changed": int((moved > 0).sum()),
            "largest_change_of_a_leaf": float(moved.max(initial=0.0)),
        }
    }


RIDGES = (3.0, 10.0, 30.0, 100.0, 300.0)
"""The strengths of the ridge that are tried, as numbers of rows that reach no other leaf."""
_KEPT = 0.5
"""The chosen strength must keep this share of the gain that the best strength achieves on the rows set aside."""
_STEPS = 20


@dataclass(frozen=True, eq=False)
class Aside:
    """The rows set aside: a `program` that is only evaluated, and the rows' `labels`, float64[rows]."""

    program: Program
    labels: FloatArray

    def divergence(self, values: FloatArray) -> float:
        """The mean loss of the leaves `values`, float64[variables], if labels follow the model's predicted distribution."""
        return self.program.expected(values)

    def losses(self, values: FloatArray) -> FloatArray:
        """The loss of the leaves `values` on each row, float64[rows]."""
        return losses(self.program.name, self.program.margins(values), self.labels)

    def is_better(self, values: FloatArray, other: FloatArray) -> bool:
        """True if `values` have a smaller loss than `other`, by more than two standard errors of the difference."""
        won = self.losses(other) - self.losses(values)
        return bool(won.mean() > 2 * won.std() / np.sqrt(len(won)))


def strength(program: Program, aside: Aside, anchor: FloatArray, *, own: bool = True) -> FloatArray:
    """Sets the greatest ridge towards `anchor` with at least half of the best ridge's gain on the rows set aside, and returns
    the leaves for this ridge, float64[variables]. With `own=False`, only the leaves of the copies change.

    For an overfitted model, a weak ridge looks best even on these rows, but on new rows a strong ridge costs less.
    """
    before = aside.divergence(anchor)
    found, won = [anchor], [0.0]
    for ridge in RIDGES[::-1]:
        program.stay_near(anchor, ridge, own=own)
        found.append(program.solve(found[-1], _STEPS))
        won.append(before - aside.divergence(found[-1]))
    kept = next(i for i, gain in enumerate(won) if gain >= _KEPT * max(won))
    program.stay_near(anchor, RIDGES[::-1][max(0, kept - 1)], own=own)
    return found[kept]
