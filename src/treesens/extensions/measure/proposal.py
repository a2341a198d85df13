"""Learns proposal distributions from examples: tilts of a measure under which affected inputs are frequent.

A tilt multiplies the share of every cell by a factor, one per feature and cell. Tilts are fitted to affected inputs by the
cross-entropy method (R. Rubinstein, *The cross-entropy method for combinatorial and continuous optimization*, Methodology and
Computing in Applied Probability 1, 1999); several tilts are fitted as a mixture by expectation maximisation. A bad fit only
increases the number of draws; results stay correct.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int32Array, Int64Array
from treesens.compiler.base.budget import check_in
from treesens.extensions.measure.measure import Measure

_SCALE = 2.0**40
_BELIEVED = 4.0
"""Pseudo-rows of a tilt, which are distributed like the measure: a constant number, plus a share of the number of rows."""
_BELIEVED_PART = 0.1
_MOST_PART = 0.1
"""Maximum share of the total weight that one row may have (truncated importance weights)."""
_STEPS = 25
_POWERS = ((1.0, 0.6), (0.5, 0.4))
"""Powers of a tilt, and the share of its draws for each power; lower powers reach inputs between the tilt and the measure."""


@dataclass(frozen=True, eq=False)
class Tilt:
    """A distribution from which a share `part` of the inputs is drawn. `ratios[f]`, float64[n_cells], holds the frequencies of
    the cells relative to the measure; `weights` and `tables` are the tilted weights and tables of the measure.
    """

    part: float
    weights: tuple[Int64Array, ...]
    ratios: tuple[FloatArray, ...]
    tables: tuple[FloatArray, ...]


def tilts_for(
    measure: Measure,
    varied: Collection[int],
    rows: Int32Array,
    weights: FloatArray,
    *,
    count: int,
    plain: float,
    seed: int,
) -> list[Tilt]:
    """`count` tilts fitted to the affected inputs `rows`, int32[rows, features], with the masses `weights`, and weaker versions
    of them. A share `plain` of the draws comes from the measure itself. Raises OutOfTime when the budget of the caller ends.
    """
    weights = np.minimum(weights, weights.sum() * max(_MOST_PART, 2 / len(weights)))
    sample_size = float(weights.sum() ** 2 / (weights**2).sum())
    weights = weights / weights.sum() * sample_size
    groups = [_groups(measure.shares(f), sample_size) for f in range(len(measure.weights))]
    random = np.random.default_rng(seed)
    belongs = random.dirichlet(np.ones(count), len(rows)) if count > 1 else np.ones((len(rows), 1))
    for _ in range(_STEPS if count > 1 else 1):
        parts = (belongs * weights[:, None]).sum(axis=0)
        ratios = []
        for k in range(count):
            check_in()
            ratios.append(_fitted(groups, varied, rows, belongs[:, k] * weights))
        check_in()
        logs = np.array(
            [sum(np.log(r[rows[:, f]]) for f, r in enumerate(ratios_of_tilt)) for ratios_of_tilt in ratios]
        ).T
        logs = logs + np.log(np.maximum(parts, 1e-9))
        belongs = np.exp(logs - logs.max(axis=1, keepdims=True))
        belongs /= belongs.sum(axis=1, keepdims=True)
    parts = np.maximum(parts / parts.sum(), 0.05)
    parts /= parts.sum()
    found = []
    for part, ratios_of_tilt in zip(parts.tolist(), ratios, strict=True):
        for power, share in _POWERS:
            found.append(_tilt(measure, part * share * (1 - plain), tuple(r**power for r in ratios_of_tilt)))
    return found


@dataclass(frozen=True, eq=False)
class _Groups:
    """Runs of cells of a feature with roughly equal shares: `of` holds each cell's run, and `shares` holds the runs' shares."""

    of: Int32Array
    shares: FloatArray


def _groups(shares: FloatArray, sample_size: float) -> _Groups:
    """Groups cells into runs: more runs if there are more rows, and one run per cell if there are few cells."""
    count = int(np.clip(sample_size**0.5, 8, 64))
    if len(shares) <= count:
        return _Groups(np.arange(len(shares), dtype=np.int32), shares)
    middle = np.cumsum(shares) - shares / 2
    _, of = np.unique(np.minimum((middle * count).astype(np.int32), count - 1), return_inverse=True)
    return _Groups(of.astype(np.int32), np.bincount(of, shares).astype(np.float64))


def _fitted(
    groups: list[_Groups], varied: Collection[int], rows: Int32Array, weights: FloatArray
) -> tuple[FloatArray, ...]:
    """Per feature, the frequencies of cells among the rows relative to the measure; 1 for varied features."""
    total = float(weights.sum())
    believed = _BELIEVED + _BELIEVED_PART * total
    found = []
    for f, bins_of_feature in enumerate(groups):
        if f in varied:
            found.append(np.ones(len(bins_of_feature.of)))
            continue
        seen = np.bincount(bins_of_feature.of[rows[:, f]], weights, minlength=len(bins_of_feature.shares))
        frequent = (seen + believed * bins_of_feature.shares) / (total + believed)
        ratio = np.where(bins_of_feature.shares > 0, frequent / np.maximum(bins_of_feature.shares, 1e-300), 1.0)
        found.append(np.maximum(ratio, 1e-6)[bins_of_feature.of])
    return tuple(found)


def _tilt(measure: Measure, part: float, ratios: tuple[FloatArray, ...]) -> Tilt:
    weights, exact, tables = [], [], []
    for f, ratio in enumerate(ratios):
        before, bins = measure.weights[f], measure.bins[f]
        raised = before * (ratio / ratio.max())
        scale = _SCALE / max(float(raised.sum()), 1e-300)
        tilted = np.where(before > 0, np.maximum(1, np.rint(raised * scale)), 0).astype(np.int64)
        # The rounded integer weights define the tilt.
        unit = ratio.max() / scale
        factor = np.where(before > 0, tilted / np.maximum(before, 1) * unit, 1.0)
        inside = np.bincount(bins, before.astype(np.float64))
        of_bin = np.bincount(bins, before * factor) / np.maximum(inside, 1)
        weights.append(tilted)
        exact.append(factor)
        tables.append(measure.tables[f] * np.where(inside > 0, of_bin, 1.0))
    return Tilt(part, tuple(weights), tuple(exact), tuple(tables))
