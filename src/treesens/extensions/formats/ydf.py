"""Live models and saved folders of YDF (Yggdrasil Decision Forests; Guillame-Bert et al. 2023), read by its Python API.

Inputs, thresholds, leaves and sums are float32; `condition.missing` states where missing values go. Boosted trees are added to
the initial prediction; the generic engine, used for trees of many leaves, adds the prediction last. A leaf of a forest is
divided by the number of trees in float64; sums of a classifier are cut off at 1. Of two classes, the second is predicted from a
probability of 1/2 on; otherwise, the first class with the greatest probability.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import NumberType
from treesens.compiler.base.folders import folder_digest
from treesens.compiler.model import Accumulation, Ensemble, FeatureKind, ModelSource, Task
from treesens.compiler.model.evaluate import Predicted, leaves, positions, sum_emulated
from treesens.compiler.model.kinds import REST
from treesens.errors import ModelError
from treesens.extensions.formats.apart import read_apart
from treesens.frontends.base import LoadedModel
from treesens.frontends.columns import (
    Growing,
    Nodes,
    as_categorical,
    ensemble_of,
    feature_tuple,
    labels_of_texts,
    stack_trees,
)
from treesens.links import Identity, Link, Logistic, Softmax

_LINKS: Mapping[str, Link] = {"SIGMOID": Logistic(), "SOFTMAX": Softmax(), "IDENTITY": Identity()}
_TASKS = {"CLASSIFICATION": Task.BINARY, "REGRESSION": Task.REGRESSION, "RANKING": Task.RANKING}
_REMEDY = "train boosted trees or a random forest with a default loss and splits on single columns"


class _Shares(Identity):
    """Sums of a forest that may exceed 1 by rounding; probabilities are cut off there, which changes no bound below 1."""

    def predict(self, ensemble: Ensemble, scores: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        return np.asarray(np.clip(scores, 0, 1))


class YDFFrontend:
    """Reads boosted trees, random forests and CART: classifiers, regressors and rankers."""

    name = "ydf"
    library = "ydf"
    reads_with = "ydf"

    def recognises_bytes(self, head: bytes) -> bool:  # noqa: ARG002 - a saved model is a folder
        return False

    def recognises_object(self, obj: object) -> bool:
        return type(obj).__module__.startswith("ydf.model.")

    def recognises_folder(self, names: Collection[str]) -> bool:
        return {"data_spec.pb", "header.pb"} <= set(names)

    def load(self, path: Path, data: bytes) -> LoadedModel:  # noqa: ARG002 - a saved model is a folder
        raise ModelError("a model of YDF is a folder", place=str(path), remedy="pass the folder that `save` wrote")

    def load_folder(self, path: Path, files: Mapping[str, bytes]) -> LoadedModel:
        try:
            import ydf
        except ImportError:
            raise ModelError("YDF models need ydf", place=str(path), remedy="pip install 'treesens[ydf]'") from None
        size = sum(map(len, files.values()))  # another process reads the folder first, which may crash the library
        read_apart("import ydf", "ydf.load_model(sys.argv[3])", [str(path)], size, "YDF cannot read it", str(path))
        level = ydf.verbose(0)  # its messages go to stdout
        try:
            return _read(ydf.load_model(str(path)), str(path), path.name, folder_digest(files))
        finally:
            ydf.verbose(level)

    def from_object(self, obj: Any) -> LoadedModel:
        return _read(obj, f"<{type(obj).__name__}>", "model", "")


def _read(model: Any, place: str, name: str, sha256: str) -> LoadedModel:
    boosted, task, data = hasattr(model, "num_trees_per_iteration"), model.task().name, model.data_spec()
    classes = tuple(model.label_classes()) if task == "CLASSIFICATION" else ()
    refused = {
        f"of the task {task}": task not in _TASKS or not hasattr(model, "iter_trees"),
        "of one class": len(classes) == 1,
        "with columns of several numbers": len(data.unstackeds) > 0,
        "with integers for categories": any(spec.categorical.is_already_integerized for spec in data.columns),
        "that only the slow engine evaluates": not model.list_compatible_engines(),
        "with logits as output": boosted and task == "CLASSIFICATION" and model.output_logits(),
    }
    if what := next((what for what, holds in refused.items() if holds), ""):
        raise ModelError(f"a {type(model).__name__} {what} is not read", place=place, remedy=_REMEDY)
    whole = labels_of_texts(classes)
    columns = [feature.column_idx for feature in model.input_features()]
    features = list(feature_tuple(model.input_feature_names(), place))
    texts: dict[int, list[str]] = {}
    for number, spec in enumerate(data.columns[column] for column in columns):
        if spec.HasField("categorical"):  # number 0 are all other texts, whose name may also be a category
            listed = {item.index: text for text, item in spec.categorical.items.items() if item.index}
            texts[number] = [listed[code] for code in sorted(listed)]
            named = (*texts[number], REST)  # texts that are rare in training are among the others
            features[number] = as_categorical(features[number], len(named), labels_of_texts(named))
        elif spec.HasField("boolean"):  # the library accepts no missing value
            features[number] = replace(features[number], kind=FeatureKind.INDICATOR, needs_value=True)
    width, accumulation = 1 if boosted else max(1, len(classes)), Accumulation.FLOAT32_BASE_FIRST
    link: Link = _Shares() if classes else Identity()
    votes = width > 1 and model.winner_takes_all()
    nodes = stack_trees([_tree(tree.root, width, votes, columns, data, place) for tree in model.iter_trees()])
    count, base = len(nodes.tree_offset) - 1, np.zeros(width)
    if boosted:
        try:
            link, base = _LINKS[model.activation().name], np.asarray(model.initial_predictions(), np.float64)
        except ValueError:
            raise ModelError("the loss of the model is not read", place=place, remedy=_REMEDY) from None
        if "QuickScorer" not in model.list_compatible_engines()[0]:
            accumulation = Accumulation.FLOAT32_BASE_LAST
    else:
        value = (nodes.leaf_value / count).astype(np.float32).astype(np.float64)
        if width == 2:  # the library adds up the second class's leaves, and the first class gets 1 minus their sum
            value, base, accumulation = value[:, 1:] * [-1.0, 1.0], np.array([1.0, 0.0]), Accumulation.FLOAT32_BASE_LAST
        nodes = replace(nodes, leaf_value=value)
    ensemble = ensemble_of(
        nodes, tuple(features), place, name=name, source=ModelSource("ydf", sha256=sha256, path=place),
        number_type=NumberType.FLOAT32, comparison="<=", base=base, link=link, accumulation=accumulation,
        tree_output=np.arange(count) % model.num_trees_per_iteration() if boosted else np.full(count, -1 if width > 1 else 0),
        tree_weight=np.ones(count), task=Task.MULTICLASS if len(classes) > 2 else _TASKS[task],
        classes=whole if all(isinstance(label, int) for label in whole) else classes,
        cutoff=Fraction(1, 2) if len(classes) == 2 else None,
    )  # fmt: skip
    library, zero = _Library(model, texts, ensemble), np.zeros((1, len(features)))
    if boosted and (library.margins(zero) != sum_emulated(ensemble, leaves(ensemble, zero))).any():
        raise ModelError("the model's predictions are not sums of its leaves", place=place, remedy=_REMEDY)
    return LoadedModel(ensemble, "ydf", library.margins, predicts=library.predicts, inputs=library.rows)


def _tree(root: Any, width: int, votes: bool, columns: list[int], data: Any, place: str) -> Nodes:
    """A tree; the child that a condition sends an input to is the right one."""
    tree, waiting = Growing(width), [(root, [0], 0)]
    while waiting:
        node, side, parent = waiting.pop()
        if node.is_leaf:
            given = [node.value.value] if width == 1 else node.value.probability
            side[parent] = tree.leaf(np.eye(width)[np.argmax(given)] if votes else given)
            continue
        split, kind, threshold = node.condition, type(node.condition).__name__, np.inf
        if kind == "NumericalHigherThanCondition":
            threshold = float(np.nextafter(np.float32(split.threshold), np.float32(-np.inf)))
        elif kind == "DiscretizedNumericalHigherThanCondition":
            bounds = data.columns[split.attribute].discretized_numerical.boundaries
            threshold = float(np.nextafter(np.float32(bounds[split.threshold_idx - 1]), np.float32(-np.inf)))
        elif kind == "IsTrueCondition":
            threshold = 0.5
        elif kind not in ("CategoricalIsInCondition", "IsMissingInCondition"):
            raise ModelError(f"a split of the kind {kind} is not read", place=place, remedy=_REMEDY)
        feature = columns.index(split.attribute)
        missing_left = not split.missing and kind != "IsMissingInCondition"
        side[parent] = number = tree.inner(feature, threshold, missing_left=missing_left)
        if data.columns[split.attribute].HasField("categorical"):
            tree.sets[number] = np.ones(data.columns[split.attribute].categorical.number_of_unique_values + 1, np.bool_)
            # Number 0 has the last two codes here: the category of all other texts, and codes that no category has.
            for code in getattr(split, "mask", ()):
                tree.sets[number][code - 1 if code else slice(-2, None)] = False
        waiting += [(node.pos_child, tree.right, number), (node.neg_child, tree.left, number)]
    return tree.nodes()


@dataclass
class _Library:
    """Predictions of the model; `texts` are the dictionaries of its features of text."""

    model: Any
    texts: Mapping[int, list[str]]
    ensemble: Ensemble

    def rows(self, rows: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """The columns that `predict` accepts: float32, Booleans, and texts, empty if missing."""
        found: dict[str, NDArray[Any]] = {}
        with np.errstate(over="ignore"):
            columns = np.asarray(rows, np.float64).astype(np.float32).T
        for number, (feature, x) in enumerate(zip(self.ensemble.features, columns, strict=True)):
            known = self.texts.get(number, ())
            code = np.where((x >= 0) & (x < len(known)), x, np.where(np.isnan(x), len(known) + 1, len(known)))
            all_texts = np.array([*known, "unseen" + "_" * max(map(len, known), default=0), ""], object)
            plain = x > 0.5 if feature.kind is FeatureKind.INDICATOR else x
            found[feature.name] = all_texts[code.astype(np.int64)] if number in self.texts else plain
        return found

    def _scores(self, model: Any, rows: NDArray[np.float64]) -> NDArray[Any]:
        try:
            found = np.asarray(model.predict(self.rows(rows))).reshape(len(rows), -1)
        except ValueError as error:
            raise ModelError(f"YDF refused to predict: {str(error)[:200]}", remedy=_REMEDY) from None
        return found if found.shape[1] == self.ensemble.n_outputs else np.hstack([np.float32(1) - found, found])

    @cached_property
    def _raw(self) -> Any:
        """The model, or a copy that returns scores before the link."""
        if not self.ensemble.link.is_probability:
            return self.model
        import ydf

        copy = ydf.deserialize_model(self.model.serialize())
        copy.set_output_logits(True)
        return copy

    def margins(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Scores float32[rows, n_outputs]. A sum that the library cuts off is that of the leaves."""
        found = self._scores(self._raw, rows)
        if not isinstance(self.ensemble.link, _Shares) or not (cut := (found == 1).any(axis=1)).any():
            return found
        sums = sum_emulated(self.ensemble, leaves(self.ensemble, rows))
        return np.where(cut[:, None] & (np.clip(sums, 0, 1) == found), sums, found)

    def predicts(self, rows: NDArray[np.float64]) -> Predicted:
        """The results of `predict` and `predict_class`."""
        classes = self.ensemble.classes
        labels = positions(self.model.predict_class(self.rows(rows)), classes) if classes else None
        return Predicted(self._scores(self.model, rows), labels)
