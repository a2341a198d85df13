"""Trees of scikit-learn objects as nodes: the Cython `Tree`, and the node records of histogram boosting."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.errors import ModelError
from treesens.frontends.columns import Nodes, bits_of

_LEAF = -1


def tree_nodes(
    estimator: Any,
    place: str,
    *,
    votes: NDArray[np.float64] | None = None,
    output: tuple[int, int] | None = None,
) -> Nodes:
    """The nodes of a fitted decision tree; leaf values have the shape [N, outputs or classes].

    With `votes` [classes, W], the row of the predicted class replaces the value of a leaf (AdaBoost). `output` is the number of
    one output of a multi-output tree, with its number of classes (1 for a regression target).
    """
    tree = estimator.tree_
    if not 0 < tree.node_count <= tree.capacity:
        # The tree's arrays would extend past the data of a damaged file.
        raise ModelError(f"the number of nodes of a tree, {tree.node_count}, is out of range", place=place)
    left, right = tree.children_left.astype(np.int64), tree.children_right.astype(np.int64)
    inner = left != _LEAF
    value = np.asarray(tree.value, dtype=np.float64)  # [N, outputs, classes]
    check_outputs(estimator, value.shape[1], place)
    classifier = int(tree.max_n_classes) > 1 or hasattr(estimator, "classes_")
    if output is not None:
        number, classes = output
        if value.ndim != 3 or number >= value.shape[1] or classes > value.shape[2]:
            raise ModelError("the leaves of a tree have no such output", place=place, remedy="save the model again")
        leaf = value[:, number, :classes]
    elif classifier and value.shape[1] != 1:
        raise ModelError(
            "several labels at once are not one model",
            place=place,
            remedy=f"name one: format `sklearn:output=0`, up to {value.shape[1] - 1}",
        )
    else:
        # The library truncates at the estimator's stated number of classes.
        stated = getattr(estimator, "n_classes_", None)
        if classifier and (stated is None or not np.array_equal(stated, value.shape[2])):
            message = f"`n_classes_` of a tree is not {value.shape[2]}, the number of classes in its leaves"
            raise ModelError(message, place=place, remedy="save the model again")
        leaf = value[:, 0, :] if classifier else value[:, :, 0]
    if votes is not None:
        # predict returns the first of equal classes, like argmax.
        leaf = votes[np.argmax(leaf, axis=1)]
    return Nodes(
        tree_offset=np.array([0, len(left)]),
        left=np.where(inner, left, -1),
        right=np.where(inner, right, -1),
        feature=np.where(inner, tree.feature, -1).astype(np.int64),
        threshold=np.where(inner, tree.threshold, 0.0),
        default_left=inner & (np.asarray(tree.missing_go_to_left) != 0),
        leaf_value=leaf,
    )


def check_outputs(estimator: Any, count: int, place: str) -> None:
    """Raises ModelError unless this number of outputs equals the number that the estimator states and the library uses."""
    if getattr(estimator, "n_outputs_", count) != count:
        message = f"`n_outputs_` is not {count}, the number of outputs in the leaves"
        raise ModelError(message, place=place, remedy="save the model again")


def member_nodes(estimator: Any, columns: NDArray[np.int64], classes: int, place: str) -> Nodes:
    """The nodes of a tree in a bagging ensemble; the tree may be fitted on a part of the columns and of the classes."""
    nodes = tree_nodes(estimator, place)
    inner = nodes.feature >= 0
    if inner.any() and nodes.feature.max() >= len(columns):
        raise ModelError("a split uses a feature that does not exist", place=place)
    leaf = nodes.leaf_value
    if classes:
        met = np.asarray(estimator.classes_, dtype=np.int64)
        leaf = np.zeros((len(leaf), classes))
        leaf[:, met] = nodes.leaf_value
    return replace(nodes, feature=np.where(inner, columns[np.where(inner, nodes.feature, 0)], -1), leaf_value=leaf)


def histogram_nodes(
    predictor: Any,
    columns: NDArray[np.int64],
    known: Mapping[int, NDArray[np.bool_]],
    nones: Collection[int],
    place: str,
) -> Nodes:
    """The nodes of a TreePredictor. `columns` maps tree features to user features, and `known` lists the possible categories.

    A category goes left if the node lists it, and right if it is known but not listed; all other categories go in the direction
    of NaN. In the columns `nones`, the last category is None, the missing value.
    """
    nodes = predictor.nodes
    leaf = nodes["is_leaf"] != 0
    remapped = nodes["feature_idx"].astype(np.int64)
    if ((remapped < 0) | (remapped >= len(columns)))[~leaf].any():
        raise ModelError("a split uses a feature that does not exist", place=place)
    feature = np.where(leaf, -1, columns[np.where(leaf, 0, remapped)])
    default = nodes["missing_go_to_left"] != 0
    sets, absent = {}, default.copy()
    for n in np.flatnonzero(~leaf & (nodes["is_categorical"] != 0)).tolist():
        f = int(feature[n])
        if f not in known:
            raise ModelError(f"a split by category on the ordered feature {f}", place=place)
        words = np.asarray(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][n]], dtype="<u4")
        listed = bits_of(words)[: len(known[f])]
        mask = np.where(listed, True, np.where(known[f], False, default[n]))
        if f in nones:
            mask, absent[n] = mask[:-1], mask[-1]
        sets[n] = np.append(mask, default[n]).astype(np.bool_)
    return Nodes(
        tree_offset=np.array([0, len(nodes)]),
        left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
        feature=feature,
        threshold=np.where(leaf, 0.0, nodes["num_threshold"]),
        default_left=absent & ~leaf,
        leaf_value=nodes["value"].astype(np.float64)[:, None],
        left_sets=sets,
    )
