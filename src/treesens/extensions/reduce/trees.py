"""Simplifications of an XGBoost model: fewer trees, smaller trees, fewer features, fewer digits.

The file is written by the writer of `repair` from the document of the original file, so that every candidate has the base
score, the objective, and the float32 numbers of the library's own format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from treesens.compiler.model import Ensemble
from treesens.errors import ModelError
from treesens.extensions.repair.forest import Copy, Tree
from treesens.extensions.repair.xgboost_file import XGBoostWriter
from treesens.frontends.base import LoadedModel

DIGITS = (0, 1, 2, 3)
"""Significant digits to which numbers are rounded; 0 makes them 0."""


@dataclass(frozen=True)
class Part:
    """A subtree: the node of the original ensemble, its threshold or leaf value, and its children (None at a leaf)."""

    node: int
    value: float
    left: Part | None = None
    right: Part | None = None

    def parts(self, depth: int = 0) -> Iterator[tuple[int, Part]]:
        """All subtrees with their depths."""
        yield depth, self
        for child in (self.left, self.right):
            if child is not None:
                yield from child.parts(depth + 1)


@dataclass(frozen=True, eq=False)
class Document:
    """The original file."""

    ensemble: Ensemble
    writer: XGBoostWriter
    categories: bool


@dataclass(frozen=True, eq=False)
class XGBoostModel:
    """A model with some of the trees of its document: `trees` are pairs of the number of the original tree and its root.

    `features` are the columns that are kept.
    """

    document: Document
    trees: tuple[tuple[int, Part], ...]
    features: tuple[int, ...]

    @cached_property
    def content(self) -> bytes:
        """The file in XGBoost's JSON."""
        ensemble, written = self.document.ensemble, []
        layouts = [_laid_out(root) for _, root in self.trees]
        none = np.full(0, -1, np.int32)
        for (source, _), parts in zip(self.trees, layouts, strict=True):
            place = {id(part): at for at, part in enumerate(parts)}
            node, left, right = (
                np.array(column, np.int32)
                for column in zip(
                    *((p.node, place.get(id(p.left), -1), place.get(id(p.right), -1)) for p in parts), strict=True
                )
            )
            values = np.array([[part.value] for part in parts if part.left is None])
            written.append(Tree(source, Copy(source, node, left, right, none, none, np.zeros(0)), values))
        root = json.loads(self.document.writer.written(written))
        learner = root["learner"]
        booster = learner["gradient_booster"]
        model = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]
        number = {feature: at for at, feature in enumerate(self.features)}
        if "iteration_indptr" in model and "best_iteration" not in learner.get("attributes", {}):
            model["iteration_indptr"] = sorted(set(model["iteration_indptr"]))  # without empty rounds
        dropped = len(self.features) < len(ensemble.features)
        for tree, parts in zip(model["trees"], layouts, strict=False):  # the writer may fill the last round
            for at, part in enumerate(parts):
                if part.left is not None:
                    if part.value != ensemble.threshold[part.node]:
                        tree["split_conditions"][at] = float(str(np.float32(part.value)))
                    tree["split_indices"][at] = number[int(ensemble.node_feature[part.node])]
                elif dropped:
                    tree["split_indices"][at] = 0
            tree["tree_param"]["num_feature"] = str(len(number))
        if dropped:
            learner["learner_model_param"]["num_feature"] = str(len(number))
            learner["feature_names"] = [ensemble.feature_names[f] for f in self.features]
            if types := learner.get("feature_types"):
                learner["feature_types"] = [types[f] for f in self.features]
        return json.dumps(root, separators=(",", ":")).encode()

    @property
    def unused(self) -> list[int]:
        """The kept columns on which no tree splits; one column stays, and all if the file names categories."""
        if self.document.categories:
            return []
        asked = {int(self.document.ensemble.node_feature[p.node]) for _, root in self.trees for _, p in root.parts()}
        return [f for f in self.features if f not in asked][not asked & set(self.features) :]

    def without_trees(self, numbers: Sequence[int]) -> XGBoostModel:
        gone = set(numbers)
        return replace(self, trees=tuple(tree for tree in self.trees if tree[0] not in gone))

    def without_features(self, columns: Sequence[int]) -> XGBoostModel:
        return replace(self, features=tuple(f for f in self.features if f not in columns))

    def splits(self, depth: int) -> list[int]:
        """The inner nodes at a depth."""
        return [p.node for _, root in self.trees for d, p in root.parts() if d == depth and p.left is not None]

    def hoisted(self, nodes: Sequence[int], side: str) -> XGBoostModel:
        """The model in which one child of each node replaces the node."""
        chosen = set(nodes)

        def hoist(part: Part) -> Part:
            while part.node in chosen and part.left is not None:
                part = getattr(part, side)
            return part

        return self._mapped(hoist)

    def long_numbers(self, digits: int) -> list[int]:
        """The nodes whose threshold or leaf value has more significant digits than `digits`."""
        parts = (part for _, root in self.trees for _, part in root.parts())
        # Splits on categories have sets, and the threshold 0.
        return [part.node for part in parts if _rounded(part.value, digits) != part.value]

    def rounded(self, nodes: Sequence[int], digits: int) -> XGBoostModel:
        """The model in which the numbers of these nodes are rounded."""
        chosen = set(nodes)
        return self._mapped(lambda p: replace(p, value=_rounded(p.value, digits)) if p.node in chosen else p)

    def _mapped(self, change: Callable[[Part], Part]) -> XGBoostModel:
        def mapped(part: Part) -> Part:
            part = change(part)
            if part.left is None or part.right is None:
                return part
            left, right = mapped(part.left), mapped(part.right)
            return part if left is part.left and right is part.right else replace(part, left=left, right=right)

        return replace(self, trees=tuple((number, mapped(root)) for number, root in self.trees))

    @property
    def leaves(self) -> int:
        return sum(part.left is None for _, root in self.trees for _, part in root.parts())

    @property
    def depth(self) -> int:
        return max((d for _, root in self.trees for d, part in root.parts() if part.left is not None), default=-1)


def read_trees(model: LoadedModel, content: bytes) -> XGBoostModel:
    """The model of an XGBoost JSON file. Raises ModelError for a file that cannot be written with other trees."""
    ensemble = model.ensemble
    if ensemble.source.format != "xgboost-json" or not ensemble.n_trees or (ensemble.tree_output < 0).any():
        raise ModelError(
            f"trees of the format `{ensemble.source.format}` stay as they are",
            place=ensemble.source.path,
            remedy="save the model with XGBoost as .json, with one tree per output",
        )
    categories = b'"enc":[]' not in content and b'"enc"' in content
    document = Document(ensemble, XGBoostWriter(ensemble, content), categories)

    def part(node: int) -> Part:
        if ensemble.node_feature[node] < 0:
            return Part(node, float(ensemble.leaf_value[ensemble.node_leaf[node], 0]))
        children = (part(int(side[node])) for side in (ensemble.left, ensemble.right))
        return Part(node, float(ensemble.threshold[node]), *children)

    try:
        trees = tuple((t, part(int(start))) for t, start in enumerate(ensemble.tree_offset[:-1]))
    except RecursionError:
        raise ModelError("trees as deep as these stay as they are", place=ensemble.source.path) from None
    return XGBoostModel(document, trees, tuple(range(len(ensemble.features))))


def _laid_out(root: Part) -> list[Part]:
    """Nodes by level, with siblings next to each other, as the library requires."""
    parts = [root]
    for part in parts:
        parts += [child for child in (part.left, part.right) if child is not None]
    return parts


def _rounded(value: float, digits: int) -> float:
    """The float32 number nearest to a value with fewer digits; numbers that are short already stay."""
    return float(np.float32(f"{value:.{digits - 1}e}")) if digits else 0.0
