"""Stacks of more than two classes: a softmax over sums of probabilities, each with a coefficient of its own.

The last model gives each class k the score b_k + the sum over members i and classes j of w_kij p_ij. The probability p_ij of
a forest is a sum of leaves, and so the score of a class is one, too: an ensemble of one output over the columns (i, j), once
for each k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from treesens.compiler.model import Ensemble, ModelSource, Task
from treesens.compiler.model.blend import Way
from treesens.errors import ModelError
from treesens.extensions.formats.sklearn.linear import check_finite
from treesens.frontends.blending import blend_of
from treesens.links import Identity, Softmax


def stack_of_classes(
    members: Sequence[Ensemble],
    final: Any,
    names: Sequence[str],
    place: str,
    *,
    name: str,
    source: ModelSource,
    classes: tuple[str | int, ...],
) -> Ensemble:
    """The ensemble of a stack over members whose probabilities are sums of leaves, with one score for each class."""
    check_finite(final, place)
    weights, intercepts = np.asarray(final.coef_, np.float64), np.ravel(final.intercept_).astype(np.float64)
    columns = [_column(member, j) for member in members for j in range(len(classes))]
    if weights.shape != (len(classes), len(columns)) or len(intercepts) not in (1, len(classes)):
        message = f"{weights.shape[0]} x {weights.shape[1]} coefficients for {len(columns)} probabilities"
        raise ModelError(message, place=place, remedy="fit it again")
    scores = [
        blend_of(
            columns,
            [Fraction(w) for w in row.tolist()],
            Way.LINEAR,
            names,
            place,
            weights=row.tolist(),
            intercept=float(intercept),
            is_sum=True,
            name=name,
            source=source,
            classes=(),
            link=Identity(),
            task=Task.REGRESSION,
        )
        for row, intercept in zip(weights, np.broadcast_to(intercepts, len(classes)).tolist(), strict=True)
    ]
    return blend_of(
        scores,
        [Fraction(1)] * len(scores),
        Way.MATRIX,
        names,
        place,
        is_sum=False,
        name=name,
        source=source,
        classes=classes,
        link=Softmax(),
        task=Task.MULTICLASS,
        ranks_scores=True,
    )


def _column(e: Ensemble, j: int) -> Ensemble:
    """The probability of one class alone, of a model whose probabilities are sums of leaves."""
    if e.blend is not None:
        raise ModelError("a vote inside of a stack of several classes is not supported", remedy="stack its members")
    if e.leaf_value.shape[1] > 1:
        value = e.leaf_value[:, j : j + 1]
    else:
        value = np.where((e.tree_output == j)[e.leaf_tree][:, None], e.leaf_value, 0.0)
    trees = np.zeros(e.n_trees, np.int32)
    base = e.base[j : j + 1]
    return replace(
        e,
        leaf_value=value,
        tree_output=trees,
        base=base,
        classes=(),
        task=Task.REGRESSION,
        cutoff=None,
    )
