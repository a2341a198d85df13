"""One output of a model that predicts several at once: labels of a row, or targets of a regression.

`FORMAT:output=K` names it, counted from 0 in the order of the library's predictions, as `FORMAT:VARIANT` names one of the
models that a file holds. What is read is a model of one output like any other: the trees of this output alone, or this column
of leaves that are vectors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from treesens.compiler.model import Ensemble, ModelSource
from treesens.errors import ModelError
from treesens.frontends.base import LoadedModel

_PREFIX = "output="
_MOST_DIGITS = 6
_OF_NODES = ("node_feature", "threshold", "default_left", "category_set", "zero_missing")


def output_named(variant: str) -> int | None:
    """The number in `output=K`; None for other variants. ModelError if it is no number."""
    if not variant.startswith(_PREFIX):
        return None
    text = variant[len(_PREFIX) :]
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise ModelError(f"`{text[:20]}` is no number of an output", remedy="count from 0: `output=0` is the first one")
    return int(text)


def check_output(output: int, count: int, place: str) -> None:
    """ModelError if a model has one output only, or none of this number."""
    if count < 2:
        raise ModelError("the model has one output", place=place, remedy="leave `output=` out")
    if output >= count:
        raise ModelError(f"the model has no output {output}", place=place, remedy=f"its outputs are 0 to {count - 1}")


def source_of_output(source: ModelSource, output: int) -> ModelSource:
    """Where an output comes from: reports and certificates name it, and nobody takes the file for a model of its own."""
    return replace(source, format=f"output {output} of {source.format}")


def note_of_output(output: int, count: int) -> str:
    """What a user should see."""
    return f"this is output {output} of {count} (0 to {count - 1}), and the others are left out"


def choose_output(model: LoadedModel, output: int) -> LoadedModel:
    """One target of a regression of several. ModelError if the model is none, or has no such target."""
    e, place = model.ensemble, model.ensemble.source.path
    check_output(output, 1 if e.classes or e.blend is not None else e.n_outputs, place)
    one = of_output(replace(e, source=source_of_output(e.source, output)), output).validate()
    return LoadedModel(
        one,
        model.frontend,
        lambda rows: np.asarray(model.margins(rows))[:, output : output + 1],
        None,
        (note_of_output(output, e.n_outputs), *model.notes),
        options=model.options,
        inputs=model.inputs,
        monotone=model.monotone,
    )


def of_output(e: Ensemble, k: int) -> Ensemble:
    """An ensemble with its score k alone: its trees, or its column of leaves that are vectors."""
    if e.leaf_value.shape[1] > 1:
        one = replace(e, leaf_value=e.leaf_value[:, k : k + 1])
    else:
        one = _of_trees(e, np.flatnonzero(e.tree_output == k))
    return replace(one, tree_output=np.zeros(one.n_trees, np.int32), base=e.base[k : k + 1])


def _of_trees(e: Ensemble, trees: Any) -> Ensemble:
    """Some trees of an ensemble, in their order."""
    sizes = np.diff(e.tree_offset)[trees]
    mine = np.zeros(e.n_trees, np.bool_)
    mine[trees] = True
    nodes = np.flatnonzero(mine[e.node_tree])
    moved = np.full(len(e.node_feature), -1, np.int64)
    moved[nodes] = np.arange(len(nodes))
    leaves = e.node_leaf[nodes][e.node_leaf[nodes] >= 0]
    number = np.full(e.n_leaves, -1, np.int64)
    number[leaves] = np.arange(len(leaves))
    position = np.full(e.n_trees, -1, np.int64)
    position[trees] = np.arange(len(trees))

    def among(values: Any, places: Any) -> Any:
        return np.where(values >= 0, places[np.maximum(values, 0)], -1).astype(np.int32)

    return replace(
        e,
        tree_offset=np.concatenate([[0], np.cumsum(sizes)]),
        **{name: getattr(e, name)[nodes] for name in _OF_NODES},
        left=among(e.left[nodes], moved),
        right=among(e.right[nodes], moved),
        node_leaf=among(e.node_leaf[nodes], number),
        leaf_value=e.leaf_value[leaves],
        leaf_node=e.leaf_node[leaves],
        leaf_tree=among(e.leaf_tree[leaves], position),
        tree_weight=e.tree_weight[trees],
        tree_output=e.tree_output[trees],
    )
