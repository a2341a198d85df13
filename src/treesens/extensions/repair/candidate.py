"""Repaired models in memory and in files, both created from the same description of leaf values."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.model import Ensemble, ModelSource
from treesens.errors import ModelError
from treesens.extensions.repair.forest import Tree, Writer, leaves_of_trees, units
from treesens.extensions.repair.lightgbm_file import LightGBMWriter
from treesens.extensions.repair.program import Variables
from treesens.extensions.repair.sklearn_file import SklearnWriter
from treesens.extensions.repair.xgboost_file import XGBoostWriter
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import load

WRITERS: dict[str, Callable[[Ensemble, bytes], Writer]] = {
    "xgboost-json": XGBoostWriter,
    "xgboost-ubj": XGBoostWriter,
    "lightgbm-text": LightGBMWriter,
    "sklearn-pickle": SklearnWriter,
    "sklearn-skops": SklearnWriter,
    "sklearn-skops-pipeline": SklearnWriter,
}
"""The writer of each file format."""


class Editor:
    """Replaces the leaf values of a model, and of copies of its trees.

    The tree structure is read once, from a file in which the value of each leaf is the number of the leaf. A candidate is this
    structure with new leaf values, in memory; a file is written only at the end.
    """

    def __init__(self, model: LoadedModel, variables: Variables) -> None:
        source = model.ensemble.source
        make = WRITERS.get(source.format)
        if make is None:
            raise ModelError(
                f"models of the format `{source.format}` cannot be written back",
                place=source.path,
                remedy=f"formats that can: {', '.join(WRITERS)}; save the model in one of these formats",
            )
        self.model, self.variables = model, variables
        data = _content(source)
        self._writer = make(model.ensemble, data)
        self.suffix = Path(source.path).suffix
        self._leaves = leaves_of_trees(model.ensemble)
        count, width = model.ensemble.leaf_value.shape
        first = count + 1  # 0 marks the trees that fill rounds
        slots = first + np.arange(variables.count // width, dtype=np.float64)
        own = np.repeat(np.arange(1.0, first)[:, None], width, axis=1)
        numbered = self._trees(own, np.repeat(slots, width))
        self._template = self._read(self._writer.written(numbered), model.ensemble.name)
        # If a forest gets more trees, its leaf values are scaled up, so that the mean of the trees is unchanged.
        self._scale = self._template.ensemble.average / model.ensemble.average
        number = (self._template.ensemble.leaf_value[:, 0] / self._scale).astype(np.int64)
        self._own_at, self._copy_at = np.flatnonzero((number > 0) & (number < first)), np.flatnonzero(number >= first)
        self._own_leaf, self._variable = number[self._own_at] - 1, number[self._copy_at] - first

    def _trees(self, own: FloatArray, values: FloatArray, *, alone: bool = False) -> list[Tree]:
        """Trees to write, with leaves `own`, float64[leaves, W], and copies with `values`, which replace trees if `alone`."""
        changed, variables = set(self.variables.forest.changed), self.variables
        copies: dict[int, list[Tree]] = {}
        for copy, start in zip(variables.copies, variables.start.tolist(), strict=False):
            held = values[start : start + variables.width * len(copy.leaves)].reshape(-1, variables.width)
            if held.any():
                copies.setdefault(copy.tree, []).append(Tree(copy.tree, copy, held))
        trees: list[Tree] = []
        for tree, leaves in enumerate(self._leaves):
            if not (alone and tree in changed and tree in copies):
                trees.append(Tree(tree, None, own[leaves]))
            trees += copies.get(tree, [])
        return trees

    def _raw(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Leaf values as stored in the file, without the weights of the trees: for the model's trees, and for all variables."""
        ensemble, variables = self.model.ensemble, self.variables
        unit, width = units(ensemble), variables.width
        weight = np.repeat(unit[[c.tree for c in variables.copies]], np.diff(variables.start))
        own = ensemble.leaf_value.copy()
        held = values[: len(variables.own)].reshape(-1, width)
        moved = (held != variables.own.reshape(-1, width)).any(axis=1)
        at = variables.leaf[moved]
        own[at] = held[moved] / unit[ensemble.leaf_tree[at]][:, None]
        copied = values.copy()
        copied[len(variables.own) :] /= np.where(weight == 0, 1.0, weight)
        return own, copied

    def candidate(self, values: FloatArray) -> LoadedModel:
        """The model with the leaf values `values`, float64[variables], in memory only."""
        own, copied = self._raw(values)
        ensemble = self._template.ensemble
        held = np.zeros(ensemble.leaf_value.shape)
        held[self._own_at], held[self._copy_at] = (
            own[self._own_leaf],
            copied.reshape(-1, self.variables.width)[self._variable],
        )
        held = self._writer.leaf_type.cast(self._scale * held).astype(np.float64)
        return replace(self._template, ensemble=replace(ensemble, leaf_value=held))

    def content(self, values: FloatArray, *, alone: bool = False) -> bytes:
        """The content of the file with the leaf values `values`, float64[variables]; if `alone`, copies replace their trees."""
        own, copied = self._raw(values)
        trees = self._trees(own, copied, alone=alone)
        original = self.model.ensemble.leaf_value
        kept = [
            Tree(t.source)
            if t.copy is None and np.array_equal(own[self._leaves[t.source]], original[self._leaves[t.source]])
            else t
            for t in trees
        ]
        return self._writer.written(kept)

    def read(self, content: bytes) -> LoadedModel:
        """The model that treesens reads from the content of a repaired file."""
        return self._read(content, self.model.ensemble.name)

    def _read(self, content: bytes, name: str) -> LoadedModel:
        with on_disk(content, name, self.suffix) as model:
            return model


@contextmanager
def on_disk(content: bytes, name: str, suffix: str) -> Iterator[LoadedModel]:
    """The model that treesens reads from the content of a repaired file, written to a temporary folder. A pickle can be trusted
    here, because it was created from an object whose file is trusted by the user.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}{suffix}"
        path.write_bytes(content)
        yield load(path, trust_pickle=True)


def _content(source: ModelSource) -> bytes:
    """The content of the model's original file. Raises ModelError if the file has changed or is missing."""
    try:
        data = Path(source.path).read_bytes()
    except OSError:
        data = b""
    if hashlib.sha256(data).hexdigest() != source.sha256:
        raise ModelError(
            "the model file is missing, or has changed since it was read",
            place=source.path,
            remedy="save the model, and pass the path of its file",
        )
    return data
