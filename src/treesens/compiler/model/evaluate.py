"""Evaluates an ensemble on floats: leaves, the library's sums bit for bit, exact sums, and bounds on their difference.

The class of an input is the library's prediction. `Ensemble.predicted_classes` emulates the library's rule, and `LibraryReplay`
calls the library itself, so that a wrong emulation is noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray, Int64Array, distinct
from treesens.compiler.base.dyadic import ScaledIntegers, exact_sum
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model.grid import category_codes
from treesens.errors import DataError, ModelError

if TYPE_CHECKING:
    from treesens.compiler.model.ensemble import Ensemble

# Number of rows x trees processed at once, to bound memory for long tables.
_CHUNK = 1 << 21
_GUARD = 40
"""Additional bits of the error bounds, below the rounding error of the smallest leaf."""
_FEW = 16
"""Maximum number of rows that are summed one by one; for more rows it is faster to add each tree to all rows."""


def leaves(ensemble: Ensemble, rows: object) -> NDArray[np.int32]:
    """Leaf numbers int32[rows, T], by direct comparison of floats, deliberately without cells and the engine."""
    given = np.asarray(rows, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] != ensemble.n_features:
        raise DataError(f"expected a matrix with {ensemble.n_features} columns, not an array of shape {given.shape}")
    x = ensemble.number_type.cast(given)
    if ensemble.zero_band:
        x = np.where(np.abs(x) <= ensemble.zero_band, 0.0, x)
    result = np.empty((x.shape[0], ensemble.n_trees), dtype=np.int32)
    step = max(1, _CHUNK // max(1, ensemble.n_trees))
    for start in range(0, x.shape[0], step):
        result[start : start + step] = _walk(ensemble, x[start : start + step])
    return result


def _walk(ensemble: Ensemble, x: NDArray[np.float64]) -> NDArray[np.int32]:
    """Moves all rows of a chunk down all trees, one level at a time."""
    trees = ensemble.n_trees
    at = np.tile(ensemble.tree_offset[:-1].astype(np.int32), (x.shape[0], 1)).ravel()
    row = np.repeat(np.arange(x.shape[0]), trees)
    active = np.flatnonzero(ensemble.node_feature[at] >= 0)
    categorical = bool((ensemble.category_set >= 0).any())
    while active.size:
        node = at[active]
        value = x[row[active], ensemble.node_feature[node]]
        threshold = ensemble.threshold[node]
        with np.errstate(invalid="ignore"):
            goes = value < threshold if ensemble.comparison == "<" else value <= threshold
        if categorical:
            split = np.flatnonzero(ensemble.category_set[node] >= 0)
            goes[split] = _in_set(ensemble, node[split], value[split])
        absent = np.isnan(value) | (ensemble.zero_missing[node] & (value == 0))
        goes = np.where(absent, ensemble.default_left[node], goes)
        at[active] = np.where(goes, ensemble.left[node], ensemble.right[node])
        active = active[ensemble.node_feature[at[active]] >= 0]
    return ensemble.node_leaf[at].reshape(x.shape[0], trees)


def _in_set(ensemble: Ensemble, node: NDArray[np.int32], value: NDArray[np.float64]) -> NDArray[np.bool_]:
    """True where the category of a value is in the left set of its node. False for NaN, which the caller handles."""
    counts = np.array([f.categories for f in ensemble.features], dtype=np.int64)
    truncates = np.array([f.truncates for f in ensemble.features])
    feature = ensemble.node_feature[node]
    code = category_codes(value, counts[feature], truncates[feature])
    result = np.zeros(len(node), dtype=np.bool_)
    sets = ensemble.category_set[node]
    for s in distinct(sets):
        of_set = sets == s
        codes = ensemble.set_codes[ensemble.set_offset[s] : ensemble.set_offset[s + 1]]
        result[of_set] = np.isin(code[of_set], codes)
    return result


def _trees_of(ensemble: Ensemble, output: int) -> NDArray[np.int64]:
    return np.flatnonzero((ensemble.tree_output == output) | (ensemble.tree_output == -1))


def _column(ensemble: Ensemble, output: int) -> int:
    """The column of leaf_value that contributes to an output."""
    return output if ensemble.leaf_value.shape[1] > 1 else 0


def sum_emulated(ensemble: Ensemble, reached: NDArray[np.int32]) -> NDArray[Any]:
    """Margins [rows, n_outputs] for leaves [rows, T], by the library's additions, in its accumulation type."""
    kind = ensemble.accumulation.number_type.dtype
    whole = ensemble.accumulation.weighs_sums
    weights = ensemble.tree_weight.astype(kind)
    weight = np.ones((1, 1), kind) if whole else weights[ensemble.leaf_tree][:, None]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        added = weight * ensemble.leaf_value.astype(kind)
        result = np.empty((len(reached), ensemble.n_outputs), dtype=kind)
        for output in range(ensemble.n_outputs):
            trees = _trees_of(ensemble, output)
            base = ensemble.base[output].astype(ensemble.accumulation.base_type.dtype)
            value = added[:, _column(ensemble, output)]
            total = np.full(len(reached), base if ensemble.accumulation.base_first else 0, dtype=kind)
            if len(reached) <= _FEW:
                # The same order of additions as in the loop below.
                terms = np.concatenate((total[:, None], value[reached[:, trees]]), axis=1)
                total = np.add.accumulate(terms, axis=1, dtype=kind)[:, -1].copy()
            else:
                for tree in trees:
                    total += value[reached[:, tree]]
            if whole and len(trees):
                total *= weights[trees[0]]
            if ensemble.average != 1:
                total /= kind.type(ensemble.average)
            if not ensemble.accumulation.base_first:
                total += base
            if ensemble.accumulation.rounds_sums:
                total = total.astype(np.float32).astype(kind)
            result[:, output] = total
    return result


def sum_exact(ensemble: Ensemble, reached: NDArray[np.int32]) -> ScaledIntegers:
    """The exact base * average + sum of contributions, [rows, n_outputs], for leaves [rows, T]."""
    contributions, base = ensemble.scaled_contributions, ensemble.scaled_base
    columns = []
    for output in range(ensemble.n_outputs):
        trees = _trees_of(ensemble, output)
        values = contributions[:, _column(ensemble, output)][reached[:, trees]]
        columns.append(exact_sum(values, axis=1).values)
    stacked = np.stack([c.astype(object) for c in columns], axis=1) if columns else np.empty((len(reached), 0), object)
    total = ScaledIntegers(stacked, contributions.shift)
    return total + ScaledIntegers(base.values.astype(object) * ensemble.average, base.shift)


def bands(ensemble: Ensemble) -> tuple[Fraction, ...]:
    """Bounds on |library's sum - exact sum| per output.

    The method is standard error analysis with the actual ranges: each rounding to nearest changes a value v by at most u |v|
    (plus half the smallest denormal for a product). Partial sums lie between the running sums of the smallest and the largest
    leaf of each tree, widened by the error so far. A fused multiply-add, which rounds only once, has a smaller error.
    """
    kind = ensemble.accumulation.number_type
    unit, tiny = Fraction(1, 1 << kind.precision), Fraction(kind.tiny) / 2
    contributions = ensemble.scaled_contributions
    limit = Fraction(kind.max)
    first_leaf = np.searchsorted(ensemble.leaf_tree, np.arange(ensemble.n_trees))
    result = []
    for output in range(ensemble.n_outputs):
        values = contributions.values[:, _column(ensemble, output)]
        lows = np.minimum.reduceat(values, first_leaf) if len(values) else values
        highs = np.maximum.reduceat(values, first_leaf) if len(values) else values
        base = Fraction(ensemble.base[output].item())
        start = base if ensemble.accumulation.base_first else Fraction(0)
        trees = _trees_of(ensemble, output)
        rounded = (ensemble.tree_weight != 1.0) & (not ensemble.accumulation.weighs_sums)
        ranges = [(int(lows[t]), int(highs[t]), bool(rounded[t])) for t in trees]
        low, high, error = _summed(ranges, contributions.shift, start, kind.precision, tiny)
        if ensemble.accumulation.any_order:
            low, high, error = _summed_anyhow(ranges, contributions.shift, unit, tiny)
        before = max(abs(low), abs(high)) + error
        if ensemble.accumulation.weighs_sums and len(trees):
            # Rounding is relative, so the errors are weighted like the sum.
            weight = abs(Fraction(ensemble.tree_weight[trees[0]].item()))
            before = before / weight if weight else before
            error += unit * (max(abs(low), abs(high)) + error) + tiny
        if ensemble.average != 1:
            low, high, error = low / ensemble.average, high / ensemble.average, error / ensemble.average
            error += unit * (max(abs(low), abs(high)) + error) + tiny
        if not ensemble.accumulation.base_first:
            low, high = low + base, high + base
            if ensemble.accumulation.base_type is not kind:  # rounded twice
                error += Fraction(1, 1 << ensemble.accumulation.base_type.precision) * (
                    max(abs(low), abs(high)) + error
                )
            error += unit * (max(abs(low), abs(high)) + error)
        if ensemble.accumulation.rounds_sums:
            limit = Fraction(NumberType.FLOAT32.max)
            error += Fraction(1, 1 << NumberType.FLOAT32.precision) * (max(abs(low), abs(high)) + error)
            error += Fraction(NumberType.FLOAT32.tiny) / 2
        if max(abs(low), abs(high), before) + error > limit:
            raise ModelError(
                f"sums of output {output} can exceed the largest {kind.value}", place=ensemble.name,
                remedy="the library itself would return infinity for some inputs; such a model has no exact meaning",
            )  # fmt: skip
        # A few digits suffice for a bound; rounding it up keeps the numbers short.
        result.append(Fraction(-(-error * (1 << 120) // 1), 1 << 120))
    return tuple(result)


def _summed_anyhow(
    ranges: list[tuple[int, int, bool]], shift: int, unit: Fraction, tiny: Fraction
) -> tuple[Fraction, Fraction, Fraction]:
    """Bounds on all partial sums, and on the error of the sum, for any order of additions.

    Every term is rounded at most once as a product and once by each addition (Higham, Accuracy and Stability of Numerical
    Algorithms, 2002, section 4.2); products that are added without rounding have a smaller error.
    """
    size = Fraction(sum(max(abs(smallest), abs(largest)) for smallest, largest, _ in ranges), 1 << shift)
    steps = (len(ranges) + 2) * unit
    return -size, size, size * steps / (1 - steps) + 4 * len(ranges) * tiny


def _summed(
    ranges: list[tuple[int, int, bool]], shift: int, start: Fraction, precision: int, tiny: Fraction
) -> tuple[Fraction, Fraction, Fraction]:
    """The least and the greatest sum of trees, and a bound on the error of the sum.

    `ranges` are in units of 2**-shift, with a flag that marks products. The error is rounded up to integer units after every
    tree, because an exact denominator would grow.
    """
    fine = max(shift, start.denominator.bit_length() - 1) + precision + _GUARD
    low = high = int(start * (1 << fine))
    half = -int(-tiny * (1 << fine) // 1)
    error = 0
    for smallest, largest, weighted in ranges:
        first, last = smallest << (fine - shift), largest << (fine - shift)
        if weighted:
            error += -(-max(abs(first), abs(last)) >> precision) + half
        low, high = low + first, high + last
        error += -(-(max(abs(low), abs(high)) + error) >> precision)
    return Fraction(low, 1 << fine), Fraction(high, 1 << fine), Fraction(error, 1 << fine)


def probabilities(ensemble: Ensemble, margins: object) -> NDArray[Any]:
    """Predictions for margins [rows, n_outputs] through the link; for a single margin, those of the second of two classes."""
    kind = ensemble.accumulation.number_type.dtype
    raw = np.asarray(margins, dtype=np.float64).astype(kind)
    with np.errstate(over="ignore", under="ignore"):
        return ensemble.link.predict(ensemble, raw)


def predicted_classes(ensemble: Ensemble, margins: FloatArray, rows: object = None) -> Int64Array:
    """The library's classes int64[rows] for its margins [rows, n_outputs]: by a cut-off, or the first of the best classes. If a
    hash breaks ties, `rows` [rows, features] determine the class.
    """
    if (winners := ensemble.link.winners(ensemble, margins)) is not None:
        return winners
    shown = np.asarray(probabilities(ensemble, margins), np.float64)
    if ensemble.cutoff is not None:
        # The decimal as written is compared: a share of 0.2 reaches a cut-off of 0.2.
        return np.array([Fraction(repr(float(p))) >= ensemble.cutoff for p in shown[:, -1]], np.int64)
    if ensemble.decides_at is not None:
        return np.asarray(np.asarray(margins, np.float64)[:, -1] > ensemble.decides_at, np.int64)
    best = np.asarray(margins, np.float64) if ensemble.ranks_scores else shown
    if ensemble.ties is not None and (rows is not None or not ensemble.ties.drawn):
        inputs = best if rows is None else np.asarray(rows, np.float64)
        return np.array([ensemble.ties.choose(*both) for both in zip(best, inputs, strict=True)], np.int64)
    if ensemble.n_outputs > 1 or ensemble.link.averages:
        return np.asarray(best.argmax(axis=1), np.int64)
    score = np.asarray(margins, np.float64)[:, 0]
    return np.where(score == 0, ensemble.class_at_zero, score > 0).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Predicted:
    """A library's predictions for rows.

    `probabilities` [rows, n] are the predictions through the link, as computed by the library: for a single margin one column
    (the second class), otherwise one column per class or target; None if the library returns no such array. `classes`,
    int64[rows], are positions in `Ensemble.classes`, or -1 for an unknown label; None for models without classes.
    """

    probabilities: NDArray[Any] | None
    classes: Int64Array | None


@dataclass(frozen=True, eq=False)
class LibraryReplay:
    """Replay in the library: `margins` calls the library for margins [rows, n_outputs], and `predicts` calls its predict.

    `predicts` is None if a frontend provides only margins; classes then follow from the ensemble's rule.
    """

    margins: Callable[[NDArray[np.float64]], NDArray[Any]]
    predicts: Callable[[NDArray[np.float64]], Predicted] | None = None

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        return self.margins(rows)

    def on(self, change: Callable[[NDArray[np.float64]], Any]) -> LibraryReplay:
        """The same library, called on rows that `change` has transformed."""
        predicts = self.predicts
        return LibraryReplay(
            lambda rows: self.margins(change(rows)),
            None if predicts is None else lambda rows: predicts(change(rows)),
        )


def positions(labels: NDArray[Any], classes: tuple[Any, ...]) -> Int64Array:
    """Positions of predicted labels among the classes, int64[rows]; -1 for unknown labels. A label 1.0 may be the class 1."""
    place = {str(float(c)): i for i, c in enumerate(classes) if isinstance(c, int)} | {
        str(c): i for i, c in enumerate(classes)
    }
    return np.array([place.get(str(label), -1) for label in np.ravel(labels).tolist()], dtype=np.int64)
