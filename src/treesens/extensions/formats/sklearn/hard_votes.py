"""Reads `VotingClassifier(voting="hard")`, which predicts the class with the most votes, or the first such class at a tie.

Votes of single trees are sums of leaves: each leaf votes for one class. Other members keep separate scores, and the class is a
formula over the classes that the members predict (`binder/classes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import ModelSource
from treesens.errors import ModelError
from treesens.extensions.formats.links.blend import Way
from treesens.extensions.formats.sklearn.columns import rows_of_members
from treesens.extensions.formats.voting import adds_up, task_of, vote_of
from treesens.frontends.base import LoadedModel
from treesens.frontends.columns import ensemble_of, feature_tuple, stack_trees
from treesens.frontends.sklearn.model import SINGLE_TREES, Read, names_of, plain_classes
from treesens.frontends.sklearn.rows import RowMaker, predictor, replayer
from treesens.frontends.sklearn.trees import tree_nodes
from treesens.links import Raw

_SOFT = "use whole numbers as weights, or voting='soft'; or pass the inner models one by one"


def counts_votes(obj: Any) -> bool:
    """True if an estimator of scikit-learn counts the votes for classes instead of averaging probabilities."""
    return type(obj).__name__ == "VotingClassifier" and obj.voting == "hard"


def weights_of(obj: Any, place: str) -> list[float] | None:
    """The weights of the members of a vote; None if all are equal. Raises ModelError for invalid weights."""
    try:
        given = obj._weights_not_none
        weights = None if given is None else [float(w) for w in given]
    except (IndexError, TypeError, ValueError):
        message = "the models of the vote, or their weights, are not lists"
        raise ModelError(message, place=place, remedy="the file is damaged; save the model again") from None
    if weights is None:
        return None
    if len(weights) != len(obj.estimators_):
        message = f"there are {len(weights)} weights for {len(obj.estimators_)} models"
        raise ModelError(message, place=place, remedy="the file is damaged; save the model again")
    if not np.isfinite(weights).all():
        raise ModelError("a weight of the vote is not finite", place=place, remedy="fit it again")
    if min(weights) < 0 or not any(weights):
        message = "a weight of the vote is negative, or all weights are 0"
        raise ModelError(message, place=place, remedy="pass the inner models one by one")
    return weights


def read_hard_votes(obj: Any, load: Callable[[Any], LoadedModel], source: ModelSource, name: str) -> LoadedModel:
    """The model of a fitted vote. Raises ModelError if the predicted class of a member is not a function of its scores."""
    place, classes = source.path, plain_classes(obj, source.path)
    weights = weights_of(obj, place)
    trees = all(type(e).__name__ in SINGLE_TREES and type(e).__module__.startswith("sklearn.") for e in obj.estimators_)
    # `vote_of` accounts for rounded sums, because it tabulates all combinations.
    if trees and adds_up(weights):
        return _of_trees(obj, weights, classes, source, name)
    members = [load(e) for e in obj.estimators_]
    ensemble = vote_of(
        [model.ensemble for model in members],
        weights,
        Way.COUNT,
        names_of(obj),
        place,
        classes=classes,
        remedy=_SOFT,
        name=name,
        source=source,
    )
    rows = rows_of_members(obj, members, ensemble, place)
    formats = ", ".join(dict.fromkeys(model.ensemble.source.format for model in members))
    note = f"VotingClassifier over {len(members)} models, whose classes are counted: {formats}"
    others = tuple(note for model in members for note in model.notes)
    return LoadedModel(
        ensemble,
        "sklearn",
        lambda x: np.concatenate([np.asarray(m.margins(x), np.float64) for m in members], axis=1),
        None,
        tuple(dict.fromkeys((note, *others))),
        predicts=replayer(obj, rows, ensemble),
        inputs=rows,
    )


def _of_trees(
    obj: Any, weights: Sequence[float] | None, classes: tuple[str | int, ...], source: ModelSource, name: str
) -> LoadedModel:
    """The model of a vote of trees. A leaf adds the weight of its tree to the first of the leaf's most likely classes."""
    count = len(classes)
    trees = []
    for tree, weight in zip(obj.estimators_, weights or [1.0] * len(obj.estimators_), strict=True):
        if len(tree.classes_) != count:
            message = f"a tree has {len(tree.classes_)} classes, but the whole model {count}"
            raise ModelError(message, place=source.path, remedy="train every tree on all classes")
        trees.append(tree_nodes(tree, source.path, votes=np.eye(count) * weight))
    read = Read(
        nodes=stack_trees(trees),
        features=feature_tuple(names_of(obj), source.path),
        outputs=count,
        task=task_of(classes),
        link=Raw(),
        margins=_votes,
        leaf_ids=lambda e, x: np.stack([tree.apply(x) for tree in e.estimators_], axis=1),
        classes=classes,
        ranks_scores=True,
    )
    ensemble = ensemble_of(read.nodes, read.features, source.path, name=name, source=source, **read.facts())
    rows = RowMaker({}, list(obj.feature_names_in_) if hasattr(obj, "feature_names_in_") else None)
    assert read.leaf_ids is not None
    return LoadedModel(
        ensemble,
        "sklearn",
        predictor(obj, rows, read.margins, count),
        predictor(obj, rows, read.leaf_ids, ensemble.n_trees),
        ("margins are votes",),
        predicts=replayer(obj, rows, ensemble),
        inputs=rows,
    )


def _votes(estimator: Any, x: Any) -> NDArray[np.float64]:
    """The votes for each class, float64[rows, classes], counted as in scikit-learn."""
    weights, count = estimator._weights_not_none, len(estimator.classes_)
    counted = [np.bincount(row, weights=weights, minlength=count) for row in np.asarray(estimator.transform(x))]
    return np.asarray(counted, np.float64).reshape(-1, count)
