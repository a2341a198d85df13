"""Reads single outputs of scikit-learn estimators that predict several labels or targets.

In trees and forests fitted on a matrix of targets, each leaf has a row per target; `MultiOutputClassifier` and
`MultiOutputRegressor` have an estimator per target. A pipeline before these estimators remains unchanged.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from treesens.compiler.model import ModelSource
from treesens.errors import ModelError
from treesens.extensions.formats.sklearn.pipeline import is_pipeline
from treesens.frontends.base import LoadedModel, check_output, note_of_output, source_of_output
from treesens.frontends.columns import ensemble_of, stack_trees
from treesens.frontends.sklearn.model import Read, mean_of_trees, names_of, plain_classes
from treesens.frontends.sklearn.rows import RowMaker, predictor, replayer
from treesens.frontends.sklearn.trees import tree_nodes

_TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
_FORESTS = ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor")
_MULTIPLE = ("MultiOutputClassifier", "MultiOutputRegressor")
_GIVE_ONE = "pass a tree, a forest, a MultiOutputClassifier or a MultiOutputRegressor, or a pipeline that ends with one"


class OneOutput(BaseEstimator):  # type: ignore[misc]
    """One output of a fitted multi-output estimator, as a single-output estimator; the library still predicts all outputs."""

    def __init__(self, whole: Any, output: int) -> None:
        self.whole, self.output = whole, output
        self.n_features_in_ = whole.n_features_in_
        if hasattr(whole, "feature_names_in_"):
            self.feature_names_in_ = whole.feature_names_in_
        if hasattr(whole, "classes_"):
            self.classes_ = whole.classes_[output]

    def fit(self, *_: Any) -> Any:
        """Raises ModelError: fitting is not supported."""
        raise ModelError("a single output of a fitted model cannot be trained again")

    def _in_one_thread(self) -> Any:
        fixed = copy.copy(self.whole)
        if getattr(fixed, "n_jobs", None) not in (1, None):
            fixed.n_jobs = 1
        return fixed

    def predict(self, x: Any) -> Any:
        """The column of this output in the library's predictions, [rows]."""
        return np.asarray(self._in_one_thread().predict(x))[:, self.output]

    def predict_proba(self, x: Any) -> Any:
        """The probabilities of this label, [rows, classes]."""
        return self._in_one_thread().predict_proba(x)[self.output]

    def apply(self, x: Any) -> Any:
        """The leaves, which are the same for all outputs."""
        return self._in_one_thread().apply(x)


def one_output(obj: Any, output: int, place: str) -> Any:
    """An estimator of one output. Raises ModelError for single-output estimators and for unknown kinds."""
    kind = type(obj)
    try:
        if is_pipeline(obj):
            inside = copy.copy(obj)
            name, last = obj.steps[-1]
            inside.steps = [*obj.steps[:-1], (name, one_output(last, output, place))]
            return inside
        if not kind.__module__.startswith("sklearn.") or kind.__name__ not in (*_TREES, *_FORESTS, *_MULTIPLE):
            raise ModelError(f"single outputs of a {kind.__name__} are not supported", place=place, remedy=_GIVE_ONE)
        count = len(obj.estimators_) if kind.__name__ in _MULTIPLE else int(obj.n_outputs_)
        check_output(output, count, place)
        return OneOutput(obj, output)
    except AttributeError as error:
        message = f"the {kind.__name__} lacks `{error.name}`"
        raise ModelError(message, place=place, remedy="fit it first, with scikit-learn 1.4 or later") from None


def read_output(view: OneOutput, load: Callable[[Any], LoadedModel], source: ModelSource, name: str) -> LoadedModel:
    """The model of one output."""
    whole, output, place = view.whole, view.output, source.path
    of_trees = type(whole).__name__ not in _MULTIPLE
    count = int(whole.n_outputs_) if of_trees else len(whole.estimators_)
    note, found = note_of_output(output, count), source_of_output(source, output)
    if not of_trees:
        model = load(whole.estimators_[output])
        features = tuple(replace(f, name=n) for f, n in zip(model.ensemble.features, names_of(whole), strict=True))
        ensemble = replace(model.ensemble, name=name, source=found, features=features).validate()
        given = model.inputs if isinstance(model.inputs, RowMaker) else RowMaker({}, None)
        rows = replace(given, names=list(whole.feature_names_in_) if hasattr(whole, "feature_names_in_") else None)
        predicts = replayer(view, rows, ensemble)
        notes = (note, *model.notes)
        return replace(model, ensemble=ensemble, predicts=predicts, inputs=rows, notes=notes, monotone={})
    read = _read_trees(view, place)
    ensemble = ensemble_of(read.nodes, read.features, place, name=name, source=found, **read.facts())
    rows = RowMaker({}, list(view.feature_names_in_) if hasattr(view, "feature_names_in_") else None)
    margins = predictor(view, rows, read.margins, ensemble.n_outputs)
    leaves = predictor(view, rows, lambda e, x: e.apply(x), ensemble.n_trees)
    return LoadedModel(
        ensemble, "sklearn", margins, leaves, (note,), predicts=replayer(view, rows, ensemble), inputs=rows
    )


def _read_trees(view: OneOutput, place: str) -> Read:
    whole, output = view.whole, view.output
    trees = [whole] if type(whole).__name__ in _TREES else whole.estimators_
    classes = plain_classes(view, place) if hasattr(view, "classes_") else ()
    nodes = stack_trees([tree_nodes(tree, place, output=(output, max(1, len(classes)))) for tree in trees])
    return mean_of_trees(view, nodes, classes, lambda e, x: e.apply(x), place)
