"""Simplifications of an XGBoost model: fewer trees, smaller trees, fewer features, shorter numbers.

The writer of `repair` writes the file from the document of the original file, so that a candidate has the objective, the base
score and the float32 numbers of the library's own format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import copysign
from pathlib import Path

import numpy as np

from treesens.compiler.model import Ensemble
from treesens.errors import ModelError
from treesens.extensions.reduce.ddmin import Level
from treesens.extensions.repair.forest import Copy, Tree
from treesens.extensions.repair.xgboost_file import XGBoostWriter
from treesens.frontends.base import LoadedModel

FORMS: Sequence[Callable[[float], float]] = (
    lambda _: 0.0,
    lambda value: copysign(1.0, value),
    *(partial(lambda digits, value: float(np.float32(f"{value:.{digits}e}")), digits) for digits in range(3)),
)
"""The forms to which a number is simplified, the simplest first: 0, 1 with its sign, and one to three digits in float32."""


@dataclass(frozen=True)
class Part:
    """A subtree: the node of the original ensemble, its threshold or leaf value, and its children (None at a leaf)."""

    node: int
    value: float
    left: Part | None = None
    right: Part | None = None

    @cached_property
    def levels(self) -> list[list[Part]]:
        """The parts of this subtree by depth."""
        found, level = [], [self]
        while level:
            found.append(level)
            level = [child for part in level for child in (part.left, part.right) if child is not None]
        return found

    def changed(self, change: Callable[[Part], Part]) -> Part:
        """The subtree in which `change` is applied to every part, from the root down."""
        part = change(self)
        if part.left is None or part.right is None:
            return part
        return replace(part, left=part.left.changed(change), right=part.right.changed(change))


@dataclass(frozen=True, eq=False)
class XGBoostModel:
    """A model with some of the trees of an `ensemble`: `trees` are pairs of the number of the original tree and its root.

    `features` are the columns that are kept; with `plain_base`, the base score is 1/2.
    """

    ensemble: Ensemble
    writer: XGBoostWriter
    trees: tuple[tuple[int, Part], ...]
    features: tuple[int, ...]
    plain_base: bool = False

    @cached_property
    def content(self) -> bytes:
        """The file in XGBoost's JSON format."""
        ensemble, written, none = self.ensemble, [], np.zeros(0, np.int32)
        layouts = [[part for level in root.levels for part in level] for _, root in self.trees]
        for (source, _), parts in zip(self.trees, layouts, strict=True):
            place = {id(part): at for at, part in enumerate(parts)} | {id(None): -1}
            columns = [(part.node, place[id(part.left)], place[id(part.right)]) for part in parts]
            node, left, right = np.array(columns, np.int32).T
            copy = Copy(source, node, left, right, none, none, np.zeros(0))
            written.append(Tree(source, copy, np.array([[part.value] for part in parts if part.left is None])))
        root = json.loads(self.writer.written(written))
        learner = root["learner"]
        booster, parameters = learner["gradient_booster"], learner["learner_model_param"]
        model = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]
        if "iteration_indptr" in model and "best_iteration" not in learner.get("attributes", {}):
            model["iteration_indptr"] = sorted(set(model["iteration_indptr"]))  # without empty rounds
        column = {feature: at for at, feature in enumerate(self.features)}
        for tree, parts in zip(model["trees"], layouts, strict=False):  # the writer may add trees to the last round
            for at, part in enumerate(parts):
                tree["split_indices"][at] = column.get(int(ensemble.node_feature[part.node]), 0)
                if part.left is not None and part.value != ensemble.threshold[part.node]:
                    tree["split_conditions"][at] = float(str(np.float32(part.value)))
            tree["tree_param"]["num_feature"] = str(len(column))
        parameters["num_feature"] = str(len(column))
        learner["feature_names"] = [ensemble.feature_names[feature] for feature in self.features]
        learner["feature_types"] = [learner["feature_types"][f] for f in self.features if learner.get("feature_types")]
        if self.plain_base:
            parameters["base_score"] = re.sub(r"[^\[\],]+", "5E-1", parameters["base_score"])
        return json.dumps(root, separators=(",", ":")).encode()

    @property
    def parts(self) -> Iterator[Part]:
        return (part for _, root in self.trees for level in root.levels for part in level)

    def sizes(self) -> dict[str, int]:
        leaves = sum(part.left is None for part in self.parts)
        return {"trees": len(self.trees), "leaves": leaves, "features": len(self.features)}

    def without_trees(self, gone: Sequence[int]) -> XGBoostModel:
        return replace(self, trees=tuple(tree for tree in self.trees if tree[0] not in set(gone)))

    def without_features(self, gone: Sequence[int]) -> XGBoostModel:
        return replace(self, features=tuple(feature for feature in self.features if feature not in gone))

    def unused(self) -> list[int]:
        """The kept features on which no tree splits; one feature stays, and all if some have categories."""
        used = {int(self.ensemble.node_feature[part.node]) for part in self.parts if part.left is not None}
        if any(feature.categories for feature in self.ensemble.features):
            return []
        return [feature for feature in self.features if feature not in used][not used :]

    def _changed(self, nodes: Sequence[int], change: Callable[[Part], Part]) -> XGBoostModel:
        """The model in which `change` is applied to the parts of some nodes."""
        chosen = set(nodes)
        change_chosen: Callable[[Part], Part] = lambda part: change(part) if part.node in chosen else part  # noqa: E731
        return replace(self, trees=tuple((number, root.changed(change_chosen)) for number, root in self.trees))

    def coarse(self) -> Iterator[Level]:
        """Levels of whole trees; leaves of -1, 0 and 1 often allow fewer trees, and are tried for all trees at once."""
        trees = Level("trees", lambda model: [number for number, _ in model.trees], XGBoostModel.without_trees)
        yield from (
            trees,
            Level("signs", lambda model: [_long_leaves(model)][: bool(_long_leaves(model))], _signs),
            trees,
        )

    def fine(self) -> Iterator[Level]:
        """Levels below whole trees: a child replaces its parent, from the roots down; then features and numbers."""
        for depth in range(max((len(root.levels) for _, root in self.trees), default=1) - 1):
            for side in ("left", "right"):
                yield Level("subtrees", partial(_splits, depth=depth), partial(_hoisted, side=side))
        yield Level("features", XGBoostModel.unused, XGBoostModel.without_features)
        yield Level("base score", lambda m: [] if m.plain_base else [1], lambda m, _: replace(m, plain_base=True))
        for form in range(len(FORMS)):
            yield Level("numbers", partial(_longer, form=form), partial(_shortened, form=form))


def _splits(model: XGBoostModel, depth: int) -> list[int]:
    levels = (root.levels[depth] for _, root in model.trees if depth < len(root.levels))
    return [part.node for level in levels for part in level if part.left is not None]


def _hoisted(model: XGBoostModel, nodes: Sequence[int], side: str) -> XGBoostModel:
    return model._changed(nodes, lambda part: getattr(part, side) or part)


def _long_leaves(model: XGBoostModel) -> list[int]:
    return [part.node for part in model.parts if part.left is None and part.value not in (-1, 0, 1)]


def _signs(model: XGBoostModel, edits: Sequence[list[int]]) -> XGBoostModel:
    return _shortened(model, edits[0], 1)


def _longer(model: XGBoostModel, form: int) -> list[int]:
    """The nodes whose numbers have none of the forms up to `form`; thresholds of categorical splits are 0."""
    return [
        part.node for part in model.parts if all(shorter(part.value) != part.value for shorter in FORMS[: form + 1])
    ]


def _shortened(model: XGBoostModel, nodes: Sequence[int], form: int) -> XGBoostModel:
    return model._changed(nodes, lambda part: replace(part, value=FORMS[form](part.value)))


def read_trees(model: LoadedModel, file: Path) -> XGBoostModel:
    """The model of an XGBoost JSON file. Raises ModelError for all other models, whose trees cannot be edited."""
    ensemble = model.ensemble
    if ensemble.source.format != "xgboost-json" or (ensemble.tree_output < 0).any():
        remedy = "save the model with XGBoost as .json, with one tree per output"
        raise ModelError("the trees of this model stay as they are", place=ensemble.source.path, remedy=remedy)

    def part(node: int) -> Part:
        if ensemble.node_feature[node] < 0:
            return Part(node, float(ensemble.leaf_value[ensemble.node_leaf[node], 0]))
        return Part(node, float(ensemble.threshold[node]), part(ensemble.left[node]), part(ensemble.right[node]))

    try:
        trees = tuple((tree, part(int(root))) for tree, root in enumerate(ensemble.tree_offset[:-1]))
    except RecursionError:
        raise ModelError("trees of this depth stay as they are", place=ensemble.source.path) from None
    return XGBoostModel(ensemble, XGBoostWriter(ensemble, file.read_bytes()), trees, tuple(range(ensemble.n_features)))
