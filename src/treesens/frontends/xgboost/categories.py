"""Categorical splits of XGBoost: stored categories go right; all others, including unseen and negative codes, go left."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Feature, FeatureKind
from treesens.frontends.columns import MAX_CATEGORIES, check_set_bytes, pack_sets, plain_labels
from treesens.frontends.documents import Field

Labels = tuple[str, ...] | tuple[int | float, ...]


def category_labels(model: Field, features: int) -> list[Labels | None]:
    """Category names per feature if the file has names (XGBoost 3.1 and later, trained on a data frame)."""
    cats = model.get("cats")
    none: list[Labels | None] = [None] * features
    if cats is None:
        return none
    encodings = list(cats["enc"].items())
    if not encodings:
        return none
    if len(encodings) != features:
        raise cats["enc"].error(f"expected {features} encodings, one per feature, found {len(encodings)}")
    return [_labels(encoding) for encoding in encodings]


def cut_names(model: Field) -> list[int]:
    """The features whose category names XGBoost has truncated: in non-ASCII text XGBoost counts characters, not bytes."""
    cats = model.get("cats")
    found = []
    for f, encoding in enumerate(list(cats["enc"].items()) if cats else []):
        if "offsets" in encoding and not _is_ascii(encoding["values"].integers()):
            found.append(f)
    return found


def _is_ascii(values: NDArray[np.int64]) -> bool:
    return bool(((values >= 0) & (values <= 0x7F)).all())


def _labels(encoding: Field) -> Labels | None:
    if "offsets" not in encoding:
        return plain_labels(encoding["values"].floats().tolist()) or None
    values = encoding["values"].integers()
    if not len(values):
        return None
    ends = encoding["offsets"].integers()
    if ends[0] != 0 or ends[-1] != len(values) or (np.diff(ends) < 0).any():
        raise encoding["offsets"].error("the category names do not fit their offsets")
    if not _is_ascii(values):
        # XGBoost 3.2 counts characters and stores bytes, so such names are split at the wrong positions, and the last ones are
        # lost.
        return None
    raw = values.astype(np.uint8).tobytes()
    return tuple(raw[a:b].decode("ascii") for a, b in itertools.pairwise(ends.tolist()))


def left_sets(
    trees: list[Field],
    offset: NDArray[np.int64],
    node: NDArray[np.int64],
    *,
    categorical: NDArray[np.bool_],
    feature: NDArray[np.int64],
    features: tuple[Feature, ...],
    labels: list[Labels | None],
) -> tuple[tuple[Feature, ...], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Features with their numbers of categories, and the codes that go left at the ordered nodes `node`, as CSR sets.

    `categorical` marks nodes by their number in the file; `offset` is the first node of each tree.
    """
    right_codes = _stored_sets(trees, offset, categorical)
    split_on = {int(feature[n]) for n in right_codes}
    largest: dict[int, int] = {}
    for n, codes in right_codes.items():
        f = int(feature[n])
        largest[f] = max(largest.get(f, -1), int(codes.max(initial=-1)))
    named = []
    for f, given in enumerate(features):
        if f not in split_on and given.kind is not FeatureKind.CATEGORICAL:
            named.append(given)
            continue
        names = labels[f]
        count = max(largest.get(f, -1) + 1, len(names) if names else 0, 1)
        names = names if names and len(names) == count else None
        named.append(replace(given, kind=FeatureKind.CATEGORICAL, categories=count, labels=names))

    place = trees[0].place if trees else ""
    check_set_bytes(sum(named[int(feature[n])].categories + 1 for n in right_codes), place)
    masks: dict[int, NDArray[np.bool_]] = {}
    for n, codes in right_codes.items():
        masks[n] = np.ones(named[int(feature[n])].categories + 1, dtype=np.bool_)
        masks[n][codes] = False
    of_node, set_offset, set_codes = pack_sets(masks, len(categorical), place)
    return tuple(named), of_node[node], set_offset, set_codes


def _stored_sets(
    trees: list[Field], offset: NDArray[np.int64], categorical: NDArray[np.bool_]
) -> dict[int, NDArray[np.int64]]:
    """The codes that go right, by a node's number in the file; exactly the categorical inner nodes have codes."""
    result: dict[int, NDArray[np.int64]] = {}
    for t, tree in enumerate(trees):
        mine = np.flatnonzero(categorical[offset[t] : offset[t + 1]])
        if not mine.size:
            continue
        nodes, start, size, codes = (
            tree[key].integers()
            for key in ("categories_nodes", "categories_segments", "categories_sizes", "categories")
        )
        if not len(nodes) == len(start) == len(size):
            raise tree["categories_nodes"].error("the category segments differ in length")
        if ((start < 0) | (size < 0) | (start + size > len(codes))).any():
            raise tree["categories_segments"].error("a segment lies outside the categories")
        if ((codes < 0) | (codes >= MAX_CATEGORIES)).any():
            raise tree["categories"].error(f"a category code is out of range (0 to {MAX_CATEGORIES - 1:,})")
        row = {int(n): i for i, n in enumerate(nodes)}
        for n in mine.tolist():
            if n not in row:
                raise tree["categories_nodes"].error(f"the categorical split of node {n} has no categories")
            i = row[n]
            result[int(offset[t]) + n] = codes[start[i] : start[i] + size[i]]
    return result
