"""Combines ensembles over the same columns into one ensemble of all their trees, each with the weight of its member."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import NumberType, largest_true
from treesens.compiler.model import Accumulation, Ensemble, Feature, FeatureKind
from treesens.errors import ModelError
from treesens.extensions.formats.links.blend import Way, Weighted

_MOST_AVERAGED = 1 << 40
"""Weights with a common denominator above this number are not vote counts, and are rounded."""


def blend_of(
    members: Sequence[Ensemble],
    shares: Sequence[Fraction],
    way: Way,
    names: Sequence[str],
    place: str,
    *,
    weights: Sequence[float] | None = None,
    intercept: float = 0.0,
    is_sum: bool,
    **facts: Any,
) -> Ensemble:
    """The ensemble of all members, with weights `shares`. `facts` holds fields of the result: link, task, classes, …"""
    features = _features(members, names, place)
    own = [_plain(member) for member in _one_type(members, place)]
    if not way.counts:
        # A mean averages probabilities, so the members' cut-offs have no effect.
        own = [replace(member, cutoff=None) for member in own]
    widths = [1 if way.one_column else member.n_outputs for member in own]
    outputs = widths[0] if is_sum else sum(widths)
    vector = any(member.leaf_value.shape[1] > 1 for member in own) and outputs > 1
    scales, average = _scales(own, shares) if is_sum else _averages(own)
    built: list[dict[str, NDArray[Any]]] = []
    trees: list[tuple[int, int]] = []
    count = 0
    for number, member in enumerate(own):
        first = 0 if is_sum else sum(widths[:number])
        part = _columns(member, first, outputs, vector, way.one_column)
        part["tree_weight"], rest = _weighed(member, scales[number], place)
        trees.append((count, count + member.n_trees))
        count += member.n_trees
        built.append(part)
        if rest.any():
            count += member.n_trees
            built.append({**part, "tree_weight": rest})
        if is_sum and (constant := member.base[-1:] if way.one_column else member.base).any():
            extra = _constants(constant, outputs, vector, scales[number])
            count += len(extra["tree_output"])
            built.append(extra)
    base = np.full(outputs, intercept) if is_sum else np.concatenate([member.base for member in own]).astype(np.float64)
    blend = Weighted(
        tuple(own),
        tuple(shares),
        tuple(trees),
        way,
        None if weights is None else tuple(map(float, weights)),
        intercept,
        is_sum,
    )
    return Ensemble(
        features=features,
        number_type=own[0].number_type,
        comparison=own[0].comparison,
        zero_band=own[0].zero_band,
        base=base,
        accumulation=_accumulation(own, way),
        average=average,
        blend=blend,
        **_joined(built),
        **facts,
    ).validate()


def _accumulation(members: Sequence[Ensemble], way: Way) -> Accumulation:
    # BLAS, and numpy from eight numbers on, add up in an order that depends on the number of rows.
    by_shape = way in (Way.LINEAR, Way.DECISION, Way.MATRIX) or (way is Way.ROWS and len(members) >= 8)
    if not by_shape and not any(member.open_features or member.accumulation.any_order for member in members):
        return Accumulation.FLOAT64_BASE_LAST
    return Accumulation.FLOAT32_ANY_ORDER if way is Way.SINGLE else Accumulation.FLOAT64_ANY_ORDER


def _features(members: Sequence[Ensemble], names: Sequence[str], place: str) -> tuple[Feature, ...]:
    """The features, by position. A column must be a number, or have the same categories, for all members that use it."""
    if any(member.n_features != len(names) for member in members):
        raise ModelError("the models inside have different columns", place=place, remedy="pass the models one by one")
    result = []
    for f, name in enumerate(names):
        asked = [m.features[f] for m in members if (m.node_feature == f).any()] or [members[0].features[f]]
        # Different marks of missing values are refused by `rows_of_members`.
        first = replace(asked[0], name=name, mark=next((x.mark for x in asked if x.mark is not None), None))
        if not any(feature.categories for feature in asked):
            # Only one library records that the training data had integers, so this difference is ignored.
            alike = len({feature.kind for feature in asked}) == 1
            first = replace(first, kind=first.kind if alike else FeatureKind.NUMERIC)
        elif any(replace(feature, name=name, mark=first.mark) != first for feature in asked):
            raise ModelError(
                f"the models inside see `{name}` in two ways: as a number and as a category, or with other categories",
                place=place,
                remedy="encode the column once, before all models, or pass the models one by one",
            )
        result.append(first)
    return tuple(result)


def _one_type(members: Sequence[Ensemble], place: str) -> list[Ensemble]:
    """The members with thresholds of one number type: float64 if their types differ."""
    kinds = {(m.number_type, m.comparison, m.zero_band) for m in members}
    return list(members) if len(kinds) == 1 else [_in_float64(member, place) for member in members]


def _in_float64(e: Ensemble, place: str) -> Ensemble:
    """The ensemble with splits `<=` in float64; bisection finds the last number that goes left."""
    if e.zero_missing.any():
        raise ModelError(
            "a model inside treats zeros as missing values, and other models do not",
            place=place,
            remedy="train it with zero_as_missing=False",
        )
    nodes = np.flatnonzero(~np.isnan(e.node_cut))
    cut = e.node_cut[nodes]

    def goes(values: NDArray[np.float64]) -> NDArray[np.bool_]:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(e.number_type.cast(values) < cut)

    threshold = e.threshold.copy()
    threshold[nodes] = largest_true(goes, len(nodes))
    return replace(e, number_type=NumberType.FLOAT64, comparison="<=", threshold=threshold, zero_band=0.0)


def _plain(e: Ensemble) -> Ensemble:
    """The member with its weights multiplied into the leaves, rounded like the library's product."""
    if e.blend is not None or e.accumulation.weighs_sums:
        # The library multiplies the finished sum, so the leaves keep their values here.
        return e
    kind = e.accumulation.number_type.dtype
    value = e.tree_weight.astype(kind)[e.leaf_tree][:, None] * e.leaf_value.astype(kind)
    return replace(e, leaf_value=value.astype(np.float64), tree_weight=np.ones(e.n_trees))


def _weighed(e: Ensemble, scale: float, place: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The weights of a member's trees in the result, and the float64 remainders; trees with a remainder occur twice."""
    weights = e.tree_weight.astype(np.float64) * scale
    rest = np.zeros(e.n_trees)
    if (e.tree_weight != 1).any():
        exact = [Fraction(own) * Fraction(scale) for own in e.tree_weight.tolist()]
        left = [product - Fraction(w) for product, w in zip(exact, weights.tolist(), strict=True)]
        rest = np.array([float(part) for part in left], np.float64)
        if any(Fraction(r) != part for r, part in zip(rest.tolist(), left, strict=True)):
            message = "the weights of a nested mean are too long for exact products"
            raise ModelError(message, place=place, remedy="pass the models inside one by one")
    return weights, rest


def _averages(members: Sequence[Ensemble]) -> tuple[list[float], int]:
    """The weights of the members and their common divisor; with these weights, every member keeps its score."""
    average = lcm(*(member.average for member in members))
    return [float(average // member.average) for member in members], average


def _scales(members: Sequence[Ensemble], shares: Sequence[Fraction]) -> tuple[list[float], int]:
    """The weight of each member's trees, and the divisor of the sum; both are exact if the shares are short decimals."""
    exact = [share / member.average for share, member in zip(shares, members, strict=True)]
    average = lcm(*(part.denominator for part in exact))
    if average > _MOST_AVERAGED:
        average = lcm(*(member.average for member in members))
    return [float(part * average) for part in exact], average


def _columns(e: Ensemble, first: int, outputs: int, vector: bool, last_only: bool) -> dict[str, NDArray[Any]]:
    """The columns of a member; its outputs start at output `first` of the result."""
    width, value = e.leaf_value.shape[1], e.leaf_value
    output: NDArray[Any] = e.tree_output
    if last_only:
        if width == 1 and e.n_outputs > 1:
            value = np.where((output == e.n_outputs - 1)[e.leaf_tree][:, None], value, 0.0)
        value, output = value[:, -1:], np.zeros(e.n_trees)
    elif vector:
        table = np.zeros((e.n_leaves, outputs))
        if width > 1:
            table[:, first : first + width] = value
        else:
            table[np.arange(e.n_leaves), first + np.maximum(output, 0)[e.leaf_tree]] = value[:, 0]
        value, output = table, np.full(e.n_trees, -1)
    else:
        output = np.maximum(output, 0) + first
    return {
        "sizes": np.diff(e.tree_offset),
        "node_feature": e.node_feature,
        "threshold": e.threshold,
        "left": e.left,
        "right": e.right,
        "default_left": e.default_left,
        "category_set": e.category_set,
        "set_sizes": np.diff(e.set_offset),
        "set_codes": e.set_codes,
        "zero_missing": e.zero_missing,
        "leaf_value": value,
        "leaf_node": e.leaf_node,
        "tree_output": np.asarray(output, np.int32),
    }


def _constants(base: NDArray[np.float64], outputs: int, vector: bool, scale: float) -> dict[str, NDArray[Any]]:
    """The base of a member as trees of one leaf, so that it is weighted like its trees."""
    trees = 1 if vector or outputs == 1 else outputs
    value = base[None, :] if vector else base[:, None]
    return {
        "sizes": np.ones(trees, np.int64),
        "node_feature": np.full(trees, -1),
        "threshold": np.zeros(trees),
        "left": np.full(trees, -1),
        "right": np.full(trees, -1),
        "default_left": np.zeros(trees, np.bool_),
        "category_set": np.full(trees, -1),
        "set_sizes": np.zeros(0, np.int64),
        "set_codes": np.zeros(0, np.int32),
        "zero_missing": np.zeros(trees, np.bool_),
        "leaf_value": np.asarray(value, np.float64),
        "leaf_node": np.zeros(trees, np.int32),
        "tree_output": np.full(1, -1) if vector else np.arange(trees),
        "tree_weight": np.full(trees, scale),
    }


def _joined(parts: Sequence[dict[str, NDArray[Any]]]) -> dict[str, Any]:
    """The columns of all parts, with node and set numbers shifted past earlier parts."""
    nodes = np.cumsum([0, *(len(p["node_feature"]) for p in parts)])
    sets = np.cumsum([0, *(len(p["set_sizes"]) for p in parts)])
    result: dict[str, Any] = {}
    for name in ("node_feature", "threshold", "default_left", "zero_missing", "set_codes", "leaf_value", "leaf_node"):
        result[name] = np.concatenate([p[name] for p in parts])
    for name in ("tree_output", "tree_weight"):
        result[name] = np.concatenate([p[name] for p in parts])
    for name, starts in (("left", nodes), ("right", nodes), ("category_set", sets)):
        moved = [np.where(p[name] >= 0, p[name] + start, -1) for p, start in zip(parts, starts, strict=False)]
        result[name] = np.concatenate(moved).astype(np.int32)
    result["tree_offset"] = np.concatenate([[0], np.cumsum(np.concatenate([p["sizes"] for p in parts]))])
    result["set_offset"] = np.concatenate([[0], np.cumsum(np.concatenate([p["set_sizes"] for p in parts]))])
    leaf = result["node_feature"] < 0
    result["node_leaf"] = np.where(leaf, np.cumsum(leaf) - 1, -1).astype(np.int32)
    tree = np.repeat(np.arange(len(result["tree_output"])), np.diff(result["tree_offset"]))
    result["leaf_tree"] = tree[leaf].astype(np.int32)
    return result
