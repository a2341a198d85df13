"""Converts a LightGBM model, text or JSON, to an Ensemble: objective, features, and the treatment of zeros and NaN at nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import NumberType, float_of
from treesens.compiler.model import Accumulation, Ensemble, Feature, ModelSource, Task
from treesens.errors import ModelError
from treesens.frontends.columns import Nodes, as_categorical, check_set_bytes, ensemble_of, feature_tuple, stack_trees
from treesens.links import Exp, Identity, Link, Logistic, Raw, Softmax

# kZeroThreshold of meta.h: the float32 nearest to 1e-35, as a double.
ZERO_BAND = float(np.float32(1e-35))
# Missing types in bits 2 and 3 of decision_type.
MISSING_NONE, MISSING_ZERO, MISSING_NAN = range(3)
_MAX_OUTPUTS = 100_000

_LINKS = {
    "regression": (Task.REGRESSION, Identity()),
    "regression_l1": (Task.REGRESSION, Identity()),
    "huber": (Task.REGRESSION, Identity()),
    "fair": (Task.REGRESSION, Identity()),
    "quantile": (Task.REGRESSION, Identity()),
    "mape": (Task.REGRESSION, Identity()),
    "poisson": (Task.REGRESSION, Exp()),
    "gamma": (Task.REGRESSION, Exp()),
    "tweedie": (Task.REGRESSION, Exp()),
    "cross_entropy": (Task.REGRESSION, Logistic()),
    "xentropy": (Task.REGRESSION, Logistic()),  # the objective's name up to LightGBM 2.2
    "binary": (Task.BINARY, Logistic()),
    "multiclass": (Task.MULTICLASS, Softmax()),
    "multiclassova": (Task.MULTICLASS, Logistic()),
    "lambdarank": (Task.RANKING, Identity()),
    "rank_xendcg": (Task.RANKING, Identity()),
    # Trained with the user's own objective: predictions are raw scores.
    "": (Task.REGRESSION, Identity()),
    "custom": (Task.REGRESSION, Identity()),
    "none": (Task.REGRESSION, Identity()),
}


@dataclass(frozen=True, eq=False)
class LightGBMTree:
    """One tree: n - 1 inner nodes and n leaves. A child >= 0 is an inner node, and any other child is the leaf ~child.

    `missing` holds the missing types, and `codes` holds the categories that go left at categorical nodes.
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    default_left: NDArray[np.bool_]
    missing: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    leaf_value: NDArray[np.float64]
    codes: Mapping[int, NDArray[np.int64]]


@dataclass(frozen=True)
class LightGBMHeader:
    """The header of a model file. `categories` holds each feature's known codes (None if ordered); `ranges` holds the least and
    greatest values of an ordered feature in training (None if unknown).
    """

    version: str
    outputs: int
    objective: str
    average: bool
    names: Sequence[str]
    categories: Sequence[NDArray[np.int64] | None]
    ranges: Sequence[tuple[float, float] | None]
    pandas: Sequence[Sequence[Any]]
    monotone: Any = None
    """Directions of the features in the file's notation; None if the file declares no directions."""
    named: Sequence[str] = ()
    """The features that are columns of pandas' type `category` in a frame of the caller."""


def read_ensemble(header: LightGBMHeader, trees: Sequence[LightGBMTree], name: str, source: ModelSource) -> Ensemble:
    """The ensemble of a model; within a round, the trees are in the order of the outputs."""
    place = source.path
    task, link = link_of(header, place)
    outputs = header.outputs
    if not 0 < outputs <= _MAX_OUTPUTS or len(trees) % outputs:
        raise _damaged(f"{len(trees)} trees do not form complete rounds of {outputs} outputs", place)
    # An objective with one output transforms only the first output; without a transformation this has no effect.
    several = task is Task.MULTICLASS or (task is not Task.BINARY and link.is_linear)
    if (outputs > 1 and not several) or (task is Task.MULTICLASS and outputs < 2):
        raise _damaged(f"objective `{header.objective}` does not support {outputs} outputs", place)
    counts = _category_counts(header, trees, place)
    labels = _labels(header, counts)
    plain = feature_tuple(header.names, place)
    features = tuple(
        as_categorical(f, counts[i], labels.get(i), truncates=True)
        if i in counts
        else replace(f, levels=tuple(labels.get(i, ())))
        for i, f in enumerate(plain)
    )
    unsure = _maybe_named(header, counts)
    features = tuple(replace(f, unsure=unsure.get(i, False)) for i, f in enumerate(features))
    nodes = stack_trees([_nodes(tree, counts) for tree in trees])
    classes = {Task.BINARY: (0, 1), Task.MULTICLASS: tuple(range(outputs))}.get(task, ())
    return ensemble_of(
        nodes,
        features,
        place,
        name=name,
        number_type=NumberType.FLOAT64,
        comparison="<=",
        tree_output=np.arange(len(trees)) % outputs,
        tree_weight=np.ones(len(trees)),
        base=np.zeros(outputs),
        link=link,
        task=task,
        accumulation=Accumulation.FLOAT64_BASE_LAST,
        source=source,
        average=max(1, len(trees) // outputs) if header.average else 1,
        classes=classes,
        zero_band=ZERO_BAND,
    )


def _damaged(message: str, place: str) -> ModelError:
    return ModelError(message, place=place, remedy="the file is damaged; save the model again")


def link_of(header: LightGBMHeader, place: str) -> tuple[Task, Link]:
    """Task and link of an objective such as `binary sigmoid:1`."""
    words = header.objective.split() or [""]
    options = dict(word.partition(":")[::2] for word in words[1:])
    found = _LINKS.get(words[0])
    if found is None:
        known = ", ".join(sorted(name for name in _LINKS if name))
        raise ModelError(f"objective `{words[0][:60]}` is not supported", place=place, remedy=f"supported: {known}")
    if "sqrt" in options:
        raise ModelError(
            "the objective predicts squares of the scores (reg_sqrt)",
            place=place,
            remedy="train on the square root of the label without reg_sqrt",
        )
    task, link = found
    scaled = options.get("sigmoid", "1") != "1"
    return task, Raw() if scaled and isinstance(link, Logistic) else link


def _category_counts(header: LightGBMHeader, trees: Sequence[LightGBMTree], place: str) -> dict[int, int]:
    """The number of codes of each categorical feature: from 0 to the largest code in the header or in a split."""
    largest = {f: int(codes.max(initial=0)) for f, codes in enumerate(header.categories) if codes is not None}
    for tree in trees:
        for n, codes in tree.codes.items():
            f = int(tree.feature[n])
            largest[f] = max(largest.get(f, 0), int(codes.max(initial=0)))
    counts = {f: top + 1 for f, top in largest.items()}
    splits = [int(tree.feature[n]) for tree in trees for n in tree.codes]
    check_set_bytes(sum(counts[f] + 1 for f in splits), place)
    return counts


def _labels(header: LightGBMHeader, counts: dict[int, int]) -> dict[int, Sequence[Any]]:
    """Category names of pandas columns whose position is certain; `counts` then holds each feature's number of names.

    A feature that is not in `counts` is an ordered category of pandas, whose codes the model reads as numbers.
    """
    result = {}
    for names, (first, last) in zip(header.pandas, _columns_of_lists(header, counts), strict=False):
        if first == last and (first in counts or all(isinstance(name, str) for name in names)):
            result[first] = names
            if first in counts:
                counts[first] = len(names)
    return result


def nameless(header: LightGBMHeader, features: Sequence[Feature]) -> list[str]:
    """Unnamed categorical features to which one of the name lists may belong."""
    counts = {f: 0 for f, feature in enumerate(features) if feature.categories}
    return [features[f].name for f in _maybe_named(header, counts) if f in counts and features[f].labels is None]


def _maybe_named(header: LightGBMHeader, counts: Mapping[int, int]) -> dict[int, bool]:
    """The features to which a name list of uncertain position may belong; each with True if one of the names is a number."""
    found: dict[int, bool] = {}
    for names, (first, last) in zip(header.pandas, _columns_of_lists(header, counts), strict=False):
        numeric = any(float_of(str(name)) is not None for name in names)
        for f in range(first, last + 1):
            if (first < last or f not in counts) and _may_have(header, counts, f, names):
                found[f] = found.get(f, False) or numeric
    return dict(sorted(found.items()))


def _columns_of_lists(header: LightGBMHeader, counts: Mapping[int, int]) -> list[tuple[int, int]]:
    """The first and the last feature to which each name list can belong; empty for lists that fit no features.

    Each column of pandas' type `category` has a name list, in column order. The file does not state which columns have this
    type: integers may be categorical features without names, and ordered categories are numbers in the model. A column with a
    list contains only codes from 0 up to the number of names minus 1.
    """
    features = len(header.names)
    first: list[int] = []
    for names in header.pandas:
        start = first[-1] + 1 if first else 0
        found = next((f for f in range(start, features) if _may_have(header, counts, f, names)), None)
        if found is None:
            return []
        first.append(found)
    last: list[int] = []
    for names in reversed(header.pandas):
        last.append(
            next(f for f in range((last[-1] if last else features) - 1, -1, -1) if _may_have(header, counts, f, names))
        )
    ranges = list(zip(first, reversed(last), strict=True))
    named = [f for f, name in enumerate(header.names) if name in header.named]
    fits = len(named) == len(ranges) and all(
        low <= f <= high and _may_have(header, counts, f, names)
        for f, (low, high), names in zip(named, ranges, header.pandas, strict=True)
    )
    return [(f, f) for f in named] if fits else ranges


def _may_have(header: LightGBMHeader, counts: Mapping[int, int], f: int, names: Sequence[Any]) -> bool:
    """True if a feature may be a column of pandas' type `category` with these names."""
    codes, span = header.categories[f], header.ranges[f]
    if codes is not None or f in counts:
        largest = int(np.max(codes, initial=0)) if codes is not None else 0
        return counts.get(f, 0) <= len(names) and largest < len(names)
    return span is None or (span[0] >= 0 and span[1] < len(names) and span[0].is_integer() and span[1].is_integer())


def _nodes(tree: LightGBMTree, counts: Mapping[int, int]) -> Nodes:
    """The nodes of a tree, inner nodes first, then leaves; a tree without splits consists of one leaf."""
    inner, leaves = len(tree.feature), len(tree.leaf_value)
    total = inner + leaves

    def child(side: NDArray[np.int64]) -> NDArray[np.int64]:
        # Out-of-range values are kept, so that order_nodes refuses them.
        at = np.where(side >= 0, np.where(side < inner, side, total), inner + ~side)
        return np.concatenate([at, np.full(leaves, -1)]).astype(np.int64)

    def padded(values: NDArray[Any], filler: Any) -> NDArray[Any]:
        return np.concatenate([values, np.full(leaves, filler, dtype=values.dtype)])

    zero_goes_left = tree.threshold >= 0
    default = np.where(tree.missing == MISSING_NONE, zero_goes_left, tree.default_left)
    masks = {}
    for n, codes in tree.codes.items():
        masks[n] = np.zeros(counts[int(tree.feature[n])] + 1, dtype=np.bool_)
        masks[n][codes] = True
        default[n] = False
    by_category = np.isin(np.arange(inner), list(tree.codes))
    value = np.zeros((total, 1))
    value[inner:, 0] = tree.leaf_value
    return Nodes(
        tree_offset=np.array([0, total]),
        left=child(tree.left),
        right=child(tree.right),
        feature=padded(tree.feature, -1),
        threshold=padded(tree.threshold, 0.0),
        default_left=padded(default, False),
        leaf_value=value,
        leaf_id=np.concatenate([np.full(inner, -1), np.arange(leaves)]),
        zero_missing=padded((tree.missing == MISSING_ZERO) & ~by_category, False),
        left_sets=masks,
    )


def with_classes(ensemble: Ensemble, classes: Sequence[Any]) -> Ensemble:
    """The ensemble with the class labels of a scikit-learn wrapper."""
    plain = tuple(c.item() if isinstance(c, np.generic) else c for c in classes)
    if len(plain) != len(ensemble.classes):
        return ensemble
    return replace(ensemble, classes=tuple(c if isinstance(c, (int, str)) else str(c) for c in plain))
