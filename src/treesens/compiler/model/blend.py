"""Models of models: votes, stacks, bags and folds, whose prediction is a weighted mean of what several ensembles predict.

If every member is a sum of its leaves, so is the mean (`is_sum`): one ensemble over the trees of all, weighted as their member
is. If some member goes through a link or a calibration, each member keeps scores of its own, and the probability is a sum of
functions of several scores (`compiler/query/curve_sums.py`). If the classes that members predict are counted, each keeps
scores of its own, too.

How a library adds up is a fact of it, and so each member keeps its own arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray, Int64Array
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model.calibration import Isotonic
from treesens.errors import InternalError, ModelError

if TYPE_CHECKING:
    from treesens.compiler.model.ensemble import Ensemble


class Way(Enum):
    """How a library makes one prediction of those of the members."""

    SUM = "one after the other, then divided by their number"
    AVERAGE = "the average over a stack of tables"
    ROWS = "the average of each row"
    LINEAR = "a product with coefficients, and an intercept"
    DECISION = "the same by a classifier"
    MATRIX = "a product of all predictions with a matrix of coefficients, and intercepts: a score for each class"
    SPARSE = "products of what is not 0, one after the other, and an intercept"
    SINGLE = "products with coefficients that are added to an intercept one after the other, in float32"
    COUNT = "votes for the classes that the members predict, one after the other; the first of the best wins"
    COUNT_FIRST = "the same, and of the best that class wins which was voted for first"
    COMPARE = "a calibrated score of each class, divided by the sum of all; the first of the best wins"

    @property
    def counts(self) -> bool:
        """True if the classes that members predict are counted."""
        return self in (Way.COUNT, Way.COUNT_FIRST)

    @property
    def one_column(self) -> bool:
        """True if the last prediction of each member alone counts: that of the second class, or of a regressor."""
        return self in (Way.LINEAR, Way.DECISION, Way.SPARSE, Way.SINGLE)


@dataclass(frozen=True, eq=False)
class Blend:
    """`members` see the same features. `weights` are what the library multiplies by (None: a plain mean), `shares` what each
    member counts exactly: as it is written, so that 0.3 and 0.7 are 3/10 and 7/10. `trees` are the first tree of each member in
    the whole ensemble, and the one after its last.
    """

    members: tuple[Ensemble, ...]
    shares: tuple[Fraction, ...]
    trees: tuple[tuple[int, int], ...]
    way: Way
    weights: tuple[float, ...] | None = None
    intercept: float = 0.0
    is_sum: bool = False

    def margins(self, whole: Ensemble, reached: NDArray[np.int32]) -> FloatArray:
        """What the library has before the link of the whole: leaves int32[rows, T] -> float64[rows, n_outputs]."""
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
        """Each member is the score of a class, a sum over the predictions that all share: the library makes one product."""
        inner = [member.blend for member in self.members if member.blend is not None]
        own = inner[0]._margins_of_members(self.members[0], reached[:, : self.trees[0][1]])
        columns = np.concatenate([m.probabilities(o) for m, o in zip(inner[0].members, own, strict=True)], axis=1)
        weights, intercepts = np.asarray([blend.weights for blend in inner]), [blend.intercept for blend in inner]
        return np.asarray(columns @ weights.T + np.asarray(intercepts), np.float64)

    def probabilities(self, margins: FloatArray, classes: int) -> FloatArray:
        """The probability of every class of the scores of all members, float64[rows, classes]."""
        tables = []
        for member, first, end in self.parts():
            shown = _shown(member, margins[:, first:end])
            tables.append(np.concatenate([1 - shown, shown], axis=1) if shown.shape[1] == 1 < classes else shown)
        return self.combined(tables)

    def combined(self, tables: Sequence[NDArray[Any]]) -> FloatArray:
        """The prediction of the library of those of its members, each [rows, n], with the calls that it makes itself."""
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
                # Whether the coefficients are a vector or a matrix decides in which order they are added up.
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
                raise InternalError("the scores of several classes, and votes, are no single prediction")
            case Way.COMPARE:
                values = np.concatenate([np.asarray(t[:, -1:], np.float64) for t in tables], axis=1)
                total, even = np.sum(values, axis=1)[:, None], np.full_like(values, 1 / len(tables))
                found = np.divide(values, total, out=even, where=total != 0)
        return np.asarray(found, np.float64)

    def parts(self) -> Iterator[tuple[Ensemble, int, int]]:
        """Each member with its first score, and the one after its last, where members keep scores of their own."""
        first = 0
        for member in self.members:
            yield member, first, first + member.n_outputs
            first += member.n_outputs

    def winners(self, margins: FloatArray, classes: int) -> Int64Array:
        """The class that wins, int64[rows], by the scores of all members: by what these predict, or are."""
        if self.way is Way.COMPARE:
            return np.asarray(self.probabilities(margins, classes).argmax(axis=1), np.int64)
        votes = [member.predicted_classes(margins[:, first:end]) for member, first, end in self.parts()]
        return self.elected(np.stack(votes, axis=1), classes)

    def elected(self, votes: NDArray[np.int64], classes: int) -> Int64Array:
        """The class that wins, int64[rows], of the classes that members predict, int64[rows, members]: weights are added up as
        the library adds them, one member after the other.
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
        """Bounds on |library's margin - exact margin| per output of the whole."""
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
            # A weight, its product, the sums and the division are rounded; so is what is written of a weight.
            kind = NumberType.FLOAT32 if self.way is Way.SINGLE else NumberType.FLOAT64
            steps, unit = 4 * len(self.members) + 16, Fraction(1, 1 << kind.precision)
            if self.way is Way.SINGLE and 2 * (size + moved) > Fraction(kind.max):
                raise ModelError(
                    "sums of products can exceed the largest float32",
                    remedy="give the numbers smaller domains; the library itself would return infinity",
                )
            result.append(moved + steps * (unit * (size + moved) + Fraction(kind.tiny)))
        return tuple(result)


def keeps_single(ensemble: Ensemble) -> bool:
    """True if probabilities of a model are rounded to float32."""
    calibration = ensemble.calibration
    return isinstance(calibration, Isotonic) and calibration.single


def _shown(member: Ensemble, margins: FloatArray) -> FloatArray:
    """What a member predicts for its margins: calibrated scores of classes are divided by their sum."""
    if member.link.compares_members:
        assert member.blend is not None
        return member.blend.probabilities(margins, len(member.classes))
    return np.asarray(member.probabilities(margins))


def _largest(member: Ensemble, output: int) -> Fraction:
    """No prediction of a member without a link is further from 0."""
    column = output % member.leaf_value.shape[1]
    largest = np.zeros(member.n_trees)
    mine = (member.tree_output == output % member.n_outputs) | (member.tree_output == -1)
    np.maximum.at(largest, member.leaf_tree, np.abs(member.leaf_value[:, column]) * mine[member.leaf_tree])
    weights = np.abs(member.tree_weight)
    total = sum((Fraction(float(v)) * Fraction(float(w)) for v, w in zip(largest, weights, strict=True)), Fraction(0))
    return total / member.average + abs(Fraction(float(member.base[output])))
