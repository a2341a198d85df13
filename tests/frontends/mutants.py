"""Ensembles as wrong readers would make them, one slip each; the fidelity kit has to notice every one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from treesens.compiler.base.floats import NumberType, next_up_array
from treesens.compiler.model import Ensemble


def other_inputs(e: Ensemble) -> Ensemble:
    """Inputs compared in the other number type."""
    other = NumberType.FLOAT32 if e.number_type is NumberType.FLOAT64 else NumberType.FLOAT64
    band = float(other.cast(e.zero_band))
    return replace(e, number_type=other, zero_band=band)


def other_comparison(e: Ensemble) -> Ensemble:
    return replace(e, comparison="<=" if e.comparison == "<" else "<")


def rounded_thresholds(e: Ensemble) -> Ensemble:
    """Thresholds kept as float32."""
    return replace(e, threshold=NumberType.FLOAT32.cast(e.threshold))


def one_threshold(e: Ensemble) -> Ensemble:
    inner = np.flatnonzero((e.node_feature >= 0) & (e.category_set < 0))
    threshold = e.threshold.copy()
    threshold[inner[-1]] = next_up_array(threshold[inner[-1]], e.number_type)
    return replace(e, threshold=threshold)


def missing_turned(e: Ensemble) -> Ensemble:
    return replace(e, default_left=~e.default_left & (e.node_feature >= 0))


def zeros_not_missing(e: Ensemble) -> Ensemble:
    return replace(e, zero_missing=np.zeros_like(e.zero_missing))


def no_zero_band(e: Ensemble) -> Ensemble:
    return replace(e, zero_band=0.0, zero_missing=np.zeros_like(e.zero_missing))


def no_average(e: Ensemble) -> Ensemble:
    return replace(e, average=1)


def no_weights(e: Ensemble) -> Ensemble:
    return replace(e, tree_weight=np.ones_like(e.tree_weight))


def no_base(e: Ensemble) -> Ensemble:
    return replace(e, base=np.zeros_like(e.base))


def last_bits(e: Ensemble) -> Ensemble:
    """Leaf values one float too large."""
    return replace(e, leaf_value=next_up_array(e.leaf_value, e.accumulation.number_type))


def _left_codes(e: Ensemble) -> list[tuple[int, np.ndarray]]:
    """Per set the number of categories of its feature, and its codes."""
    counts = np.array([f.categories for f in e.features])
    size = {int(e.category_set[n]): int(counts[e.node_feature[n]]) for n in np.flatnonzero(e.category_set >= 0)}
    return [(size[s], e.set_codes[a:b]) for s, (a, b) in enumerate(zip(e.set_offset, e.set_offset[1:], strict=False))]


def _with_codes(e: Ensemble, sets: list[np.ndarray]) -> Ensemble:
    offset = np.concatenate([[0], np.cumsum([len(s) for s in sets])])
    return replace(e, set_offset=offset, set_codes=np.concatenate(sets))


def sets_to_the_other_side(e: Ensemble) -> Ensemble:
    return _with_codes(e, [np.setdiff1d(np.arange(n + 1), codes) for n, codes in _left_codes(e)])


def unseen_turned(e: Ensemble) -> Ensemble:
    """Categories that the model has never seen, sent to the other side."""
    return _with_codes(e, [np.setxor1d(codes, [n]) for n, codes in _left_codes(e)])


def codes_not_truncated(e: Ensemble) -> Ensemble:
    return replace(e, features=tuple(replace(f, truncates=not f.truncates) for f in e.features))
