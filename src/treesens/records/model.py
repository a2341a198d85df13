"""A model as a record: the facts of `treesens info`, without using the library that made the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.model.ensemble import Ensemble
from treesens.compiler.model.numbers import closed_over
from treesens.frontends.base import LoadedModel

SCHEMA_VERSION = 1


def leaf_depths(ensemble: Ensemble) -> Int32Array:
    """The depth of every leaf, int32[L]; the only leaf of a constant tree has depth 0."""
    depth = np.zeros(ensemble.n_nodes, np.int32)
    level = ensemble.tree_offset[:-1].astype(np.int32)
    while len(level):
        level = level[ensemble.node_feature[level] >= 0]
        children = np.concatenate((ensemble.left[level], ensemble.right[level]))
        depth[children] = np.tile(depth[level] + 1, 2)
        level = children
    return np.asarray(depth[ensemble.node_leaf >= 0], np.int32)


def model_record(loaded: LoadedModel) -> dict[str, Any]:
    """A model as a JSON-ready dictionary.

    A note names features that enter the score with a coefficient: such features have no cuts, and errors depend on domains.
    """
    numbers = loaded.ensemble.open_features
    e = closed_over(loaded.ensemble, {name: np.zeros(1) for name in numbers})
    depth = leaf_depths(e)
    deepest = np.zeros(e.n_trees, np.int32)
    np.maximum.at(deepest, e.leaf_tree, depth)
    return {
        "schema_version": SCHEMA_VERSION,
        "path": e.source.path,
        "frontend": loaded.frontend,
        "format": e.source.format,
        "library_version": e.source.version or None,
        "sha256": e.source.sha256 or None,
        "options": dict(e.source.options),
        "task": e.task.value,
        "trees": e.n_trees,
        "constant_trees": int(np.count_nonzero(deepest == 0)),
        "nodes": e.n_nodes,
        "leaves": e.n_leaves,
        "depth": {"max": int(deepest.max(initial=0)), "mean": round(float(deepest.mean()), 3) if e.n_trees else 0.0},
        "features": features_record(e),
        "classes": list(e.classes),
        "outputs": e.n_outputs,
        "base_margin": e.base.tolist(),
        "average": e.average,
        "link": e.link.name,
        "number_type": e.number_type.value,
        "comparison": e.comparison,
        "accumulation": e.accumulation.value,
        "numerical_band": None if numbers else [float(b) for b in e.bands()],
        "missing": missing_record(e),
        "notes": [*loaded.notes, *([_about_numbers(numbers)] if numbers else [])],
    }


def _about_numbers(names: Sequence[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names[:5]) + (f" and {len(names) - 5} others" if len(names) > 5 else "")
    verb = "reaches" if len(names) == 1 else "reach"
    return (
        f"{listed} {verb} the score as a number, a coefficient times its value: a question needs finitely many values"
    )


def features_record(ensemble: Ensemble) -> list[dict[str, Any]]:
    """For each feature: its kind, the number of inner nodes that split on it, its distinct guards and their range."""
    inner = ensemble.node_feature >= 0
    splits = np.bincount(ensemble.node_feature[inner], minlength=ensemble.n_features)
    trees = np.unique(np.stack((ensemble.node_feature[inner], ensemble.node_tree[inner])), axis=1)[0]
    used_by = np.bincount(trees, minlength=ensemble.n_features)
    categorical = inner & (ensemble.category_set >= 0)
    owner = ensemble.node_feature[categorical]
    sets = [set[tuple[int, ...]]() for _ in ensemble.features]
    for f, s in zip(owner.tolist(), ensemble.category_set[categorical].tolist(), strict=True):
        sets[f].add(tuple(ensemble.set_codes[ensemble.set_offset[s] : ensemble.set_offset[s + 1]].tolist()))
    result = []
    for number, (feature, grid) in enumerate(zip(ensemble.features, ensemble.grid(), strict=True)):
        ends = [float(grid.cuts[0]), float(grid.cuts[-1])] if len(grid.cuts) else None
        result.append(
            {
                "name": feature.name,
                "kind": feature.kind.value,
                "splits": int(splits[number]),
                "trees": int(used_by[number]),
                "guards": len(grid.cuts) + len(sets[number]),
                "range_of_cuts": None if ends is None or not all(map(math.isfinite, ends)) else ends,
                "categories": feature.categories or None,
                "labels": list(feature.labels) if feature.labels else None,
            }
        )
    return result


def missing_record(ensemble: Ensemble) -> dict[str, Any]:
    """The default directions of missing values in the file: counts of nodes, and the features with both directions."""
    inner = ensemble.node_feature >= 0
    left = np.bincount(ensemble.node_feature[inner & ensemble.default_left], minlength=ensemble.n_features)
    right = np.bincount(ensemble.node_feature[inner & ~ensemble.default_left], minlength=ensemble.n_features)
    both = np.flatnonzero((left > 0) & (right > 0))
    return {
        "nodes_left": int(left.sum()),
        "nodes_right": int(right.sum()),
        "features_both_ways": [ensemble.features[f].name for f in both],
    }
