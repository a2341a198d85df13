"""Explainable boosting machines: the JSON written by `to_json`, and live estimators of InterpretML.

How InterpretML evaluates (interpret-core 0.6 and 0.7): a number is in bin k + 1 if k cuts are at most the number. Missing
values are in bin 0, and categories that do not occur in training are in the last bin. A score is the intercept plus one number
per term, added in float64 in the order of the terms. For two classes, the second is predicted if the score is above 0; for more
classes, the first class with the greatest score (Nori, Jenkins, Koch and Caruana 2019).
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Accumulation, ModelSource, Task
from treesens.errors import ModelError
from treesens.extensions.formats.additive import (
    MAX_LEAVES,
    Axis,
    Categories,
    Numbers,
    labels_of_codes,
    leaves_of,
    term_tree,
)
from treesens.extensions.formats.interpret.known import TABLE
from treesens.extensions.formats.interpret.library import NativeAdditive
from treesens.frontends.base import LoadedModel
from treesens.frontends.columns import MAX_CATEGORIES, Nodes, as_categorical, ensemble_of, feature_tuple, stack_trees
from treesens.frontends.documents import Field, check_document, is_json, parse_document
from treesens.links import Exp, Identity, Link, Logistic, Softmax

_LINKS = {
    "logit": (Task.BINARY, Logistic()),
    "mlogit": (Task.MULTICLASS, Softmax()),
    "vlogit": (Task.MULTICLASS, Logistic()),
    "identity": (Task.REGRESSION, Identity()),
    "log": (Task.REGRESSION, Exp()),
}
_ESTIMATORS = (
    "ExplainableBoostingClassifier",
    "ExplainableBoostingRegressor",
    "DPExplainableBoostingClassifier",
    "DPExplainableBoostingRegressor",
)
_MAX_OUTPUTS = 100_000
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,15}")


class InterpretFrontend:
    """Reads explainable boosting machines; each term becomes a tree."""

    name = "interpret"
    library = "interpret"

    def recognises_bytes(self, head: bytes) -> bool:
        return is_json(head) and b'"ebm"' in head[:4096]

    def recognises_object(self, obj: object) -> bool:
        module = type(obj).__module__.partition(".")[0]
        return module == "interpret" and "interpret" in sys.modules and type(obj).__name__ in _ESTIMATORS

    def load(self, path: Path, data: bytes) -> LoadedModel:
        sha256 = hashlib.sha256(data).hexdigest()
        source = ModelSource("interpret-json", sha256=sha256, path=str(path))
        return self._read(parse_document(data, str(path)), source, path.stem, None)

    def from_object(self, obj: Any) -> LoadedModel:
        place = f"<{type(obj).__name__}>"
        if not getattr(obj, "has_fitted_", False):
            raise ModelError("the model has not been fitted", place=place, remedy="fit it first")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning that the JSON may change; `known.py` lists its fields
            # A round trip converts numpy's integers to numbers, as in a file.
            document = json.loads(json.dumps(obj.to_jsonable("minimal")))
        return self._read(document, ModelSource("interpret", path=place), "model", obj)

    def _read(self, document: Any, source: ModelSource, name: str, live: Any) -> LoadedModel:
        place = source.path
        root = Field(document, place)
        check_document(TABLE, document, place)
        if root["version"].text() != "1.0":
            raise root["version"].error(
                "this version of the JSON is not supported", "save it with interpret-core 0.6 or 0.7"
            )
        ebm = root["ebm"]
        outputs = list(ebm["outputs"].items())
        if len(outputs) != 1:
            raise ebm["outputs"].error("models of several targets are not supported", "train a model per target")
        intercept = ebm["intercept"].floats()
        task, link, classes = _objective(outputs[0], len(intercept))
        axes, names, labels = _features(ebm["features"])
        features = list(feature_tuple(names, place))
        for column, known in labels.items():
            features[column] = as_categorical(features[column], len(known), known)
        trees = _terms(ebm["terms"], axes, names, len(intercept))
        ensemble = ensemble_of(
            stack_trees(trees),
            tuple(features),
            place,
            name=name,
            source=source,
            number_type=NumberType.FLOAT64,
            comparison="<",
            tree_output=np.full(len(trees), 0 if len(intercept) == 1 else -1),
            tree_weight=np.ones(len(trees)),
            base=intercept,
            link=link,
            task=task,
            accumulation=Accumulation.FLOAT64_BASE_FIRST,
            classes=classes,
            ranks_scores=True,
        )
        library = NativeAdditive(document if live is None else None, live, labels, len(intercept))
        return LoadedModel(
            ensemble,
            self.name,
            library.margins,
            predicts=partial(library.predicts, ensemble=ensemble),
            inputs=library.rows,
        )


def _objective(output: Field, outputs: int) -> tuple[Task, Link, tuple[str | int, ...]]:
    link = output["link"].text()
    if link not in _LINKS:
        raise output["link"].error(f"the link `{link[:40]}` is not supported", f"supported: {', '.join(_LINKS)}")
    task, kind = _LINKS[link]
    if not 0 < outputs <= _MAX_OUTPUTS:
        raise output.error(f"{outputs} outputs are not plausible")
    if task is Task.REGRESSION:
        if outputs != 1:
            raise output.error(f"{outputs} intercepts for a regressor of one value")
        return task, kind, ()
    given = output["classes"]
    if not isinstance(given.value, list) or not all(isinstance(c, bool | int | float | str) for c in given.value):
        raise given.error("expected a list of classes")
    classes = tuple(c if isinstance(c, int | str) and not isinstance(c, bool) else str(c) for c in given.value)
    if len(classes) != (2 if outputs == 1 else outputs) or (task is Task.BINARY) != (outputs == 1):
        raise given.error(f"{len(classes)} classes for {outputs} scores and the link `{link}`")
    return task, kind, classes


def _features(fields: Field) -> tuple[list[list[Axis]], list[str], dict[int, list[Any]]]:
    """The bins of each feature per level (terms of k + 1 features use level k), the names, and the category labels."""
    axes: list[list[Axis]] = []
    names: list[str] = []
    labels: dict[int, list[Any]] = {}
    for column, field in enumerate(fields.items()):
        names.append(field["name"].text())
        kind = field["type"].text()
        if kind == "continuous":
            levels: list[Axis] = [Numbers(column, _cuts(level)) for level in field["cuts"].items()]
        elif kind in ("nominal", "ordinal"):
            levels, labels[column] = _categories(column, field["categories"])
        else:
            raise field["type"].error(f"features of type `{kind[:40]}` are not supported")
        if not levels:
            raise field.error("a feature without bins")
        axes.append(levels)
    if not axes:
        raise fields.error("a model without features")
    return axes, names, labels


def _cuts(level: Field) -> NDArray[np.float64]:
    cuts = level.floats()
    if np.isnan(cuts).any() or (np.diff(cuts) <= 0).any():
        raise level.error("the cuts of a feature are not ascending")
    return cuts


def _categories(column: int, field: Field) -> tuple[list[Axis], list[Any]]:
    """The levels of a categorical feature, and its labels; the codes refer to the finest level."""
    levels = [_bins(level) for level in field.items()]
    if not levels:
        raise field.error("a feature without bins")
    names, _ = labels_of_codes(levels[0])
    if any(set(level) != set(names) for level in levels):
        raise field.error("the levels of a feature have different categories")
    made: list[Axis] = []
    for level in levels:
        unseen = max(level.values(), default=0) + 1
        made.append(Categories(column, np.array([*(level[name] for name in names), unseen], dtype=np.int64)))
    return made, _plain(names)


def _bins(level: Field) -> dict[str, int]:
    """The bin of every category, from 1 on. In the file, several categories may share a bin."""
    found: dict[str, int] = {}
    for number, entry in enumerate(level.items(), start=1):
        for name in entry.texts() if isinstance(entry.value, list) else [entry.text()]:
            if name in found:
                raise entry.error(f"the category `{name[:40]}` appears twice")
            found[name] = number
    if len(found) > MAX_CATEGORIES:
        raise level.error(f"{len(found)} categories are too many")
    return found


def _plain(names: list[str]) -> list[Any]:
    """The categories as numbers, if all texts have the library's number format; the library identifies categories by text."""
    if names and all(_WHOLE.fullmatch(name) for name in names):
        return [int(name) for name in names]
    return list(names)


def _terms(fields: Field, axes: list[list[Axis]], names: list[str], outputs: int) -> list[Nodes]:
    columns = {name: column for column, name in enumerate(names)}
    trees, leaves = [], 0
    for field in fields.items():
        asked = field["term_features"].texts()
        unknown = [name for name in asked if name not in columns]
        if unknown or not asked or len(set(asked)) < len(asked):
            raise field["term_features"].error("a term has a feature that does not exist, or repeats a feature")
        # The library uses coarser bins for terms of more features, and the coarsest bins if it has no further level.
        used = [axes[columns[name]][min(len(axes[columns[name]]), len(asked)) - 1] for name in asked]
        leaves += leaves_of(used)
        if leaves > MAX_LEAVES:
            raise field.error(
                f"the terms have more than {MAX_LEAVES} bins together", "train with fewer bins (max_bins)"
            )
        trees.append(term_tree(used, _scores(field["scores"], used, outputs)))
    return trees


def _scores(field: Field, axes: list[Axis], outputs: int) -> NDArray[np.float64]:
    """The scores of a term, float64[bins of the first feature, .., outputs]; each feature's first bin is for missing values."""
    try:
        found = np.asarray(field.value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise field.error("the scores of a term are not a table of finite numbers") from None
    shape = tuple(_size(axis) for axis in axes) + ((outputs,) if outputs > 1 else ())
    if found.shape != shape:
        raise field.error(f"the scores have the shape {found.shape}, but the features' bins have {shape}")
    if not np.isfinite(found).all():
        raise field.error("a score is not finite", "such a model predicts probabilities of 0 or 1 for all other values")
    return found.reshape(*shape[: len(axes)], outputs)


def _size(axis: Axis) -> int:
    """The number of bins, including bins of missing and unseen values."""
    return len(axis.cuts) + 3 if isinstance(axis, Numbers) else int(axis.bin_of[-1]) + 1
