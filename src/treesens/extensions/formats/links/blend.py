"""Models of models (votes, stacks, bags and folds), which predict a weighted mean of the predictions of several ensembles.

If every member is a sum of leaves, the mean is a sum of leaves, too (`is_sum`): one ensemble of all trees, in which each tree
has its member's weight. If some member has a link or a calibration, each member keeps separate scores, and the probability is a
sum of functions of several scores (`curve_sums.py`). If predicted classes are counted, members also keep separate scores.
Libraries add numbers in different ways, so each member keeps the arithmetic of its library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray, Int64Array
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model.kinds import Blend
from treesens.errors import InternalError, ModelError

if TYPE_CHECKING:
    from treesens.compiler.model.ensemble import Ensemble


class Way(Enum):
    """The way in which a library combines the members' predictions."""

    SUM = "added one after the other, then divided by the number of members"
    AVERAGE = "the average over a stack of tables"
    ROWS = "the average of each row"
    LINEAR = "a product with coefficients, plus an intercept"
    DECISION = "a classifier's product with coefficients, plus an intercept"
    MATRIX = "all predictions multiplied by a matrix of coefficients, plus intercepts: a score for each class"
    SPARSE = "products of coefficients and non-zero predictions, added one after the other, then an intercept"
    SINGLE = "products with coefficients that are added to an intercept one after the other, in float32"
    COUNT = "votes for the classes that the members predict, counted one after the other; the first of the best classes wins"
    COUNT_FIRST = "votes as in COUNT; among the best classes, the class that received a vote first wins"
    COMPARE = "each class's calibrated score divided by the sum of all scores; the first of the best classes wins"

    @property
    def counts(self) -> bool:
        """True if the method counts the members' predicted classes."""
        return self in (Way.COUNT, Way.COUNT_FIRST)

    @property
    def one_column(self) -> bool:
        """True if only the last prediction of each member is used: the second class's probability, or the regressor's value."""
        return self in (Way.LINEAR, Way.DECISION, Way.SPARSE, Way.SINGLE)


@dataclass(frozen=True, eq=False)
class Weighted(Blend):
    """A weighted mean of `members`. `weights` holds the library's factors, or is None for a plain mean; `shares` holds the
    exact weights as written (3/10 for 0.3).
    """

    members: tuple[Ensemble, ...]
    shares: tuple[Fraction, ...]
    trees: tuple[tuple[int, int], ...]
    way: Way
    weights: tuple[float, ...] | None = None
    intercept: float = 0.0
    is_sum: bool = False

    def margins(self, whole: Ensemble, reached: NDArray[np.int32]) -> FloatArray:
        """The library's raw output before the ensemble's link, float64[rows, n_outputs], from leaves, int32[rows, T]."""
        if self.way is Way.MATRIX:
            return self._scores_of_classes(reached)
        own = self._margins_of_members(whole, reached)
        if not self.is_sum:
            return np.concatenate([np.asarray(m, np.float64) for m in own], axis=1)
        return self.combined([m.probabilities(o) for m, o in zip(self.members, own, strict=True)])

    def _margins_of_members(self, whole: Ensemble, reached: NDArray[np.int32]) -> list[NDArray[Any]]:
        own = []
        for member, (first, last) in zip(self.members, self.trees, strict=True):
            start = int(np.searchsorted(whole.leaf_tree, first))
            own.append(np.asarray(member.margins_of_leaves(reached[:, first:last] - np.int32(start))))
        return own

    def _scores_of_classes(self, reached: NDArray[np.int32]) -> FloatArray:
        """The scores of all classes, one class per member: sums over shared predictions, computed together by the library."""
        inner = [members_of(member) for member in self.members]
        own = inner[0]._margins_of_members(self.members[0], reached[:, : self.trees[0][1]])
        columns = np.concatenate([m.probabilities(o) for m, o in zip(inner[0].members, own, strict=True)], axis=1)
        weights, intercepts = np.asarray([blend.weights for blend in inner]), [blend.intercept for blend in inner]
        return np.asarray(columns @ weights.T + np.asarray(intercepts), np.float64)

    def probabilities(self, margins: FloatArray, classes: int) -> FloatArray:
        """The probabilities of all classes, float64[rows, classes], from the scores of all members."""
        tables = []
        for member, first, end in self.parts():
            shown = _shown(member, margins[:, first:end])
            tables.append(np.concatenate([1 - shown, shown], axis=1) if shown.shape[1] == 1 < classes else shown)
        return self.combined(tables)

    def combined(self, tables: Sequence[NDArray[Any]]) -> FloatArray:
        """Combines the members' predictions, each [rows, n], with the same calls as the library."""
        match self.way:
            case Way.SUM:
                total = np.zeros(tables[0].shape)
                for table in tables:
                    total += table
                found = total / len(tables)
            case Way.AVERAGE:
                found = np.average(np.asarray(tables), axis=0, weights=self.weights)
            case Way.ROWS:
                found = np.average(np.asarray([t[:, 0] for t in tables]).T, axis=1, weights=self.weights)[:, None]
            case Way.LINEAR | Way.DECISION:
                columns = np.concatenate([t[:, -1:] for t in tables], axis=1)
                # The shape of the coefficients, a vector or a matrix, determines the order of additions.
                weights = np.asarray([self.weights]).T if self.way is Way.DECISION else np.asarray(self.weights)
                found = (columns @ weights + self.intercept).reshape(-1, 1)
            case Way.SPARSE:
                assert self.weights is not None
                found = np.zeros((len(tables[0]), 1))
                for table, weight in zip(tables, self.weights, strict=True):
                    found += np.asarray(table[:, -1:], np.float64) * weight
                found += self.intercept
            case Way.SINGLE:
                assert self.weights is not None
                found = np.full((len(tables[0]), 1), self.intercept, np.float32)
                for table, weight in zip(tables, self.weights, strict=True):
                    found += np.asarray(table[:, -1:], np.float32) * np.float32(weight)
            case Way.MATRIX | Way.COUNT | Way.COUNT_FIRST:
                raise InternalError("scores of several classes, and votes, are not a single prediction")
            case Way.COMPARE:
                values = np.concatenate([np.asarray(t[:, -1:], np.float64) for t in tables], axis=1)
                total, even = np.sum(values, axis=1)[:, None], np.full_like(values, 1 / len(tables))
                found = np.divide(values, total, out=even, where=total != 0)
        return np.asarray(found, np.float64)

    def sums(self) -> tuple[Blend, ...]:
        if self.way is Way.MATRIX:
            # Each member is one score, a sum over the same columns.
            return tuple(member.blend for member in self.members if member.blend is not None)
        return (self,) if self.is_sum else ()

    def winners(self, margins: FloatArray, classes: int) -> Int64Array:
        """The winning classes, int64[rows], from the scores of all members."""
        if self.way is Way.COMPARE:
            return np.asarray(self.probabilities(margins, classes).argmax(axis=1), np.int64)
        votes = [member.predicted_classes(margins[:, first:end]) for member, first, end in self.parts()]
        return self.elected(np.stack(votes, axis=1), classes)

    def elected(self, votes: NDArray[np.int64], classes: int) -> Int64Array:
        """The winning classes, int64[rows], from the members' predicted classes `votes`, int64[rows, members]. Weights are
        added in the library's order, member by member.
        """
        weights = self.weights or (1.0,) * len(self.members)
        counted, rows = np.zeros((len(votes), classes)), np.arange(len(votes))
        for member, weight in enumerate(weights):
            counted[rows, votes[:, member]] += weight
        if self.way is Way.COUNT_FIRST:
            best = counted[rows[:, None], votes] == counted.max(axis=1, keepdims=True)
            return np.asarray(votes[rows, best.argmax(axis=1)], np.int64)
        return np.asarray(counted.argmax(axis=1), np.int64)

    def bands(self) -> tuple[Fraction, ...]:
        """Bounds on the error |library's margin - exact margin|, one per output of the ensemble."""
        bands = [member.bands() for member in self.members]
        if not self.is_sum:
            return tuple(band for of_member in bands for band in of_member)
        outputs = 1 if self.way.one_column else len(bands[0])
        result = []
        for output in range(outputs):
            place = -1 if self.way.one_column else output
            moved = sum((abs(s) * b[place] for s, b in zip(self.shares, bands, strict=True)), Fraction(0))
            size = abs(Fraction(self.intercept)) + sum(
                (abs(s) * _largest(m, place) for s, m in zip(self.shares, self.members, strict=True)), Fraction(0)
            )
            # The written weight, the product with it, the sums and the division are all rounded.
            kind = NumberType.FLOAT32 if self.way is Way.SINGLE else NumberType.FLOAT64
            steps, unit = 4 * len(self.members) + 16, Fraction(1, 1 << kind.precision)
            if self.way is Way.SINGLE and 2 * (size + moved) > Fraction(kind.max):
                raise ModelError(
                    "sums of products can exceed the largest float32",
                    remedy="declare smaller domains for the numbers; the library itself would return infinity for such a sum",
                )
            result.append(moved + steps * (unit * (size + moved) + Fraction(kind.tiny)))
        return tuple(result)


def members_of(ensemble: Ensemble) -> Weighted:
    """The blend of an ensemble with members."""
    assert isinstance(ensemble.blend, Weighted)
    return ensemble.blend


def _shown(member: Ensemble, margins: FloatArray) -> FloatArray:
    """The prediction of a member from its margins; calibrated class scores are divided by their sum."""
    if member.link.compares_members:
        return members_of(member).probabilities(margins, len(member.classes))
    return np.asarray(member.probabilities(margins))


def _largest(member: Ensemble, output: int) -> Fraction:
    """An upper bound on the absolute prediction of a member without a link."""
    column = output % member.leaf_value.shape[1]
    largest = np.zeros(member.n_trees)
    mine = (member.tree_output == output % member.n_outputs) | (member.tree_output == -1)
    np.maximum.at(largest, member.leaf_tree, np.abs(member.leaf_value[:, column]) * mine[member.leaf_tree])
    weights = np.abs(member.tree_weight)
    total = sum((Fraction(float(v)) * Fraction(float(w)) for v, w in zip(largest, weights, strict=True)), Fraction(0))
    return total / member.average + abs(Fraction(float(member.base[output])))
