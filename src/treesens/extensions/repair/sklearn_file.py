"""Writes scikit-learn estimators with other trees, keeping the format (skops, pickle or joblib) and compression.

Changed estimators are copied; the rest of the file is unchanged. For boosters, copies of trees become additional rounds. A
forest predicts a mean, so empty trees are added until the forest has 2^k times its original size, and all leaf values are
multiplied by 2^k, which is exact in floating point.

This module opens only files that were opened before, because the user trusts them or skops found only plain data in them.
"""

from __future__ import annotations

import bz2
import copy as copying
import gzip
import io
import lzma
import pickle
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Ensemble, ModelSource
from treesens.errors import ModelError
from treesens.extensions.repair.forest import Tree, leaves_of_trees, nodes_in_file
from treesens.frontends.sklearn.frontend import open_skops
from treesens.frontends.sklearn.pickles import open_pickle

_Way = Callable[[bytes], bytes]
_COMPRESSIONS: tuple[tuple[tuple[bytes, ...], _Way, _Way], ...] = (
    ((b"\x1f\x8b",), gzip.decompress, lambda data: gzip.compress(data, mtime=0)),
    ((b"x\x01", b"x^", b"x\x9c", b"x\xda"), zlib.decompress, zlib.compress),
    ((b"BZh",), bz2.decompress, bz2.compress),
    ((b"\xfd7zXZ",), lzma.decompress, lzma.compress),
    ((b"]\x00\x00",), lzma.decompress, lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE)),
)
"""First bytes of compressed files, and their codecs."""
_OF_JOBLIB = b"joblib.numpy_pickle"
_FIRST_PROTOCOL = 2


@dataclass(frozen=True, eq=False)
class Store:
    """The object in a file, and a function that returns the file's content with another object in its place."""

    model: Any
    content: Callable[[Any], bytes]


def stored(source: ModelSource, data: bytes) -> Store:
    """The object stored in a trusted file, where `data` is the file's content."""
    if source.format.startswith("sklearn-skops"):
        return Store(open_skops(data, source.path), _as_skops)
    squeeze: _Way = bytes
    for starts, unpacked, packed in _COMPRESSIONS:
        if data.startswith(starts):
            data, squeeze = unpacked(data), packed
    dump = _as_joblib if _OF_JOBLIB in data else _as_pickle(data)
    return Store(open_pickle(Path(source.path)), lambda model: squeeze(dump(model)))


def _as_skops(model: Any) -> bytes:
    from skops import io as skops_io

    return bytes(skops_io.dumps(model))


def _as_joblib(model: Any) -> bytes:
    import joblib

    file = io.BytesIO()
    joblib.dump(model, file)
    return file.getvalue()


def _as_pickle(data: bytes) -> Callable[[Any], bytes]:
    """The function that pickles an object with the protocol of `data`."""
    protocol = data[1] if data[:1] == b"\x80" and data[1] <= pickle.HIGHEST_PROTOCOL else _FIRST_PROTOCOL
    return lambda model: pickle.dumps(model, protocol=protocol)


_NO_CHILD, _NO_FEATURE = -1, -2


class SklearnWriter:
    """Writes estimators, and pipelines that end in estimators. Raises ModelError for repairs that the file cannot express."""

    leaf_type = NumberType.FLOAT64

    def __init__(self, ensemble: Ensemble, data: bytes) -> None:
        self._ensemble = ensemble
        self._store: Store = stored(ensemble.source, data)
        self._outside = self._store.model
        inside = self._outside.steps[-1][1] if type(self._outside).__name__ == "Pipeline" else self._outside
        self._inside = inside
        kind = type(inside).__name__ if type(inside).__module__.startswith("sklearn.") else ""
        if kind not in _WRITERS:
            raise ModelError(
                f"a {type(inside).__name__} cannot be written back",
                place=ensemble.source.path,
                remedy=f"supported estimators, also at the end of a pipeline: {', '.join(sorted(_WRITERS))}",
            )
        self._write = _WRITERS[kind]
        self._leaves = leaves_of_trees(ensemble)

    def written(self, trees: Sequence[Tree]) -> bytes:
        """The content of the file with other trees."""
        made = self._write(self, trees)
        if self._inside is not self._outside:
            pipeline = copying.copy(self._outside)
            pipeline.steps = [*pipeline.steps[:-1], (pipeline.steps[-1][0], made)]
            made = pipeline
        return self._store.content(made)

    def in_rounds(self, trees: Sequence[Tree]) -> list[list[Tree | None]]:
        """The trees by round, one per output: first the trees of the file, then copies. None stands for a tree that adds 0."""
        outputs = self._ensemble.n_outputs
        first = {tree.source: tree for tree in reversed(trees)}
        rows: list[Tree | None] = [first.get(t) for t in range(self._ensemble.n_trees)]
        later = [tree for tree in trees if tree is not first[tree.source]]
        waiting = [[tree for tree in later if tree.source % outputs == output] for output in range(outputs)]
        for number in range(max(map(len, waiting))):
            rows += [queue[number] if number < len(queue) else None for queue in waiting]
        return [rows[at : at + outputs] for at in range(0, len(rows), outputs)]

    def decision_tree(self, members: Sequence[Any], tree: Tree | None, scale: float = 1.0) -> Any:
        """The tree estimator for one tree of the new file; `members` holds the estimators of the file."""
        source = members[0 if tree is None else tree.source]
        if tree is not None and tree.values is None and scale == 1.0:
            return source
        kind, arguments, state = source.tree_.__reduce__()
        nodes, values = state["nodes"].copy(), state["values"].copy()
        if tree is None:
            nodes, values = nodes[:1], np.zeros_like(values[:1])
            _end(nodes, np.zeros(1, np.int64))
        elif tree.copy is not None:
            assert tree.values is not None
            place = nodes_in_file(self._ensemble, tree.source, nodes["left_child"], nodes["right_child"])
            ids = [place[int(node)] for node in tree.copy.node]
            nodes, values = nodes[ids], values[ids]
            nodes["left_child"], nodes["right_child"] = tree.copy.left, tree.copy.right
            _end(nodes, tree.copy.leaves)
            values[tree.copy.leaves] = _shaped(tree, values)
        elif tree.values is not None:
            values[self._ensemble.leaf_node[self._leaves[tree.source]]] = _shaped(tree, values)
        made = kind(*arguments)
        depth = state["max_depth"] if tree is not None else 0
        made.__setstate__({"max_depth": depth, "node_count": len(nodes), "nodes": nodes, "values": scale * values})
        estimator = copying.copy(source)
        estimator.tree_ = made
        return estimator

    def predictor(self, members: Sequence[Any], tree: Tree | None) -> Any:
        """The `TreePredictor` of histogram boosting for one tree of the new file."""
        source = members[0 if tree is None else tree.source]
        if tree is not None and tree.values is None:
            return source
        nodes = source.nodes.copy()
        if tree is None:
            nodes = nodes[:1]
            nodes["is_leaf"], nodes["value"], nodes["left"], nodes["right"] = 1, 0.0, 0, 0
        elif tree.copy is not None:
            assert tree.values is not None
            place = nodes_in_file(self._ensemble, tree.source, nodes["left"], nodes["right"])
            nodes = nodes[[place[int(node)] for node in tree.copy.node]]
            nodes["left"], nodes["right"] = np.maximum(tree.copy.left, 0), np.maximum(tree.copy.right, 0)
            nodes["value"][tree.copy.leaves] = tree.values[:, 0]
        elif tree.values is not None:
            nodes["value"][self._ensemble.leaf_node[self._leaves[tree.source]]] = tree.values[:, 0]
        made = copying.copy(source)
        made.nodes = nodes
        return made

    def forest(self, trees: Sequence[Tree]) -> Any:
        """The random forest (or extra trees) with other trees."""
        made, members = copying.copy(self._inside), self._inside.estimators_
        count = len(members)
        while count < len(trees):
            count *= 2
        padded: list[Tree | None] = [*trees, *[None] * (count - len(trees))]
        made.estimators_ = [self.decision_tree(members, tree, count / len(members)) for tree in padded]
        made.n_estimators = count
        return made

    def gradient_boosting(self, trees: Sequence[Tree]) -> Any:
        """The exact-split gradient boosting estimator with other trees."""
        made, members = copying.copy(self._inside), self._inside.estimators_.ravel().tolist()
        rounds = self.in_rounds(trees)
        made.estimators_ = np.empty((len(rounds), self._ensemble.n_outputs), dtype=object)
        for number, trees_of_round in enumerate(rounds):
            made.estimators_[number] = [self.decision_tree(members, tree) for tree in trees_of_round]
        made.n_estimators = made.n_estimators_ = len(rounds)
        return made

    def histogram_boosting(self, trees: Sequence[Tree]) -> Any:
        """The histogram gradient boosting estimator with other trees."""
        made, members = copying.copy(self._inside), [tree for one in self._inside._predictors for tree in one]
        made._predictors = [[self.predictor(members, tree) for tree in one] for one in self.in_rounds(trees)]
        return made.set_params(max_iter=len(made._predictors))


def _end(nodes: Any, leaves: Any) -> None:
    """Turns nodes into leaves in the library's format."""
    nodes["left_child"][leaves] = nodes["right_child"][leaves] = _NO_CHILD
    nodes["feature"][leaves] = nodes["threshold"][leaves] = _NO_FEATURE


def _shaped(tree: Tree, values: Any) -> Any:
    """The leaf values of `tree`, float64[leaves, W], in the library's layout: one output with W classes, or W outputs."""
    assert tree.values is not None
    return tree.values.reshape(len(tree.values), *values.shape[1:])


_Write = Callable[[SklearnWriter, Sequence[Tree]], Any]
_WRITERS: dict[str, _Write] = {
    **dict.fromkeys(
        ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"),
        SklearnWriter.forest,
    ),
    **dict.fromkeys(("GradientBoostingClassifier", "GradientBoostingRegressor"), SklearnWriter.gradient_boosting),
    **dict.fromkeys(
        ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"), SklearnWriter.histogram_boosting
    ),
}
"""The writer of each estimator class."""
