"""One reader per scikit-learn estimator: the leaf values, their summation, and the estimator's own predict.

Histogram boosting evaluates trees in float64; all other estimators cast inputs to float32 and compare `x <= threshold` with
float64 thresholds. All sums are float64, from the first tree to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.builtin import WHOLE, has_extensions
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Accumulation, Feature, Task
from treesens.errors import ModelError
from treesens.frontends.columns import MAX_FEATURES, Nodes, as_categorical, bits_of, feature_tuple, stack_trees
from treesens.frontends.sklearn.rows import NAN_ALONE
from treesens.frontends.sklearn.trees import check_outputs, histogram_nodes, member_nodes, tree_nodes
from treesens.links import Exp, Identity, Link, Logistic, Raw, Softmax

Call = Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False)
class Read:
    """An estimator as nodes and facts (see Ensemble), with functions for the margins and leaf ids."""

    nodes: Nodes
    features: tuple[Feature, ...]
    outputs: int
    task: Task
    link: Link
    margins: Call
    leaf_ids: Call | None = None
    number_type: NumberType = NumberType.FLOAT32
    accumulation: Accumulation = Accumulation.FLOAT64_BASE_LAST
    average: int = 1
    classes: tuple[str | int, ...] = ()
    class_at_zero: int = 0
    ranks_scores: bool = True
    tree_output: NDArray[Any] | None = None
    tree_weight: NDArray[Any] | None = None
    base: NDArray[Any] | None = None
    categories: Mapping[int, Sequence[Any]] = field(default_factory=dict)
    marks: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Fields of the Ensemble other than nodes and features."""
        trees = len(self.nodes.tree_offset) - 1
        vector = self.nodes.leaf_value.shape[1] > 1
        output = np.full(trees, -1 if vector else 0) if self.tree_output is None else self.tree_output
        return {
            "number_type": self.number_type,
            "comparison": "<=",
            "tree_output": output,
            "tree_weight": np.ones(trees) if self.tree_weight is None else self.tree_weight,
            "base": np.zeros(self.outputs) if self.base is None else self.base,
            "link": self.link,
            "task": self.task,
            "accumulation": self.accumulation,
            "average": self.average,
            "classes": self.classes,
            "class_at_zero": self.class_at_zero,
            "ranks_scores": self.ranks_scores,
        }


def read_estimator(estimator: Any, place: str) -> Read:
    """Reads a fitted tree model. Raises a ModelError that names the class of an unsupported object."""
    kind = type(estimator)
    reader = READERS.get(kind.__name__) if kind.__module__.startswith("sklearn.") else None
    if reader is None:
        raise ModelError(
            f"{kind.__module__}.{kind.__qualname__} is not supported",
            place=place,
            remedy=_OTHERS.get(kind.__name__) or _remedy_of(kind),
        )
    width = getattr(estimator, "n_features_in_", 1)
    if not isinstance(width, int | np.integer) or not 0 < width <= MAX_FEATURES:
        raise ModelError(f"the number of features, {str(width)[:40]}, is out of range", place=place)
    if not hasattr(estimator, "n_features_in_"):
        raise ModelError("the model has not been fitted", place=place, remedy="fit it first")
    try:
        return reader(estimator, place)
    except AttributeError as error:
        raise ModelError(
            f"the {kind.__name__} lacks `{error.name}`, which scikit-learn 1.4 and later have",
            place=place,
            remedy="fit the model again with the installed scikit-learn",
        ) from None


_OF_NUMBERS = (
    "a coefficient times a number takes any value; a model behind bins and encoders is supported: "
    "make_pipeline(KBinsDiscretizer(), LogisticRegression())"
)
_PARTS = {
    "TransformedTargetRegressor": "pass its `regressor_`, and ask in the units of the transformed target",
    "OneVsRestClassifier": "pass one of its `estimators_`: each separates one class from all others",
    "OneVsOneClassifier": "pass one of its `estimators_`: each separates two classes",
    "OutputCodeClassifier": "pass one of its `estimators_`",
    "MultiOutputClassifier": "name one label (format `sklearn:output=0` for the first), or pass one of its `estimators_`",
    "MultiOutputRegressor": "name one target (format `sklearn:output=0` for the first), or pass one of its `estimators_`",
    "ClassifierChain": "pass one of its `estimators_`; all but the first use earlier labels as input columns",
    "RegressorChain": "pass one of its `estimators_`; all but the first use earlier targets as input columns",
    "SelfTrainingClassifier": "pass its `estimator_` (`base_estimator_` before scikit-learn 1.6), which makes the predictions",
    "_ConstantPredictor": "this estimator was fitted on a single class and predicts the same for every row;"
    " give another one of `estimators_`",
}
"""Models composed of parts that can be read one by one, each with the remedy."""
_OTHERS = {
    "ExponentiatedGradient": "it draws a model for every prediction: pass one of its `predictors_`",
    "AdaBoostRegressor": "a weighted median is not a sum over trees",
    "IsolationForest": "its score is not a sum of leaf values compared with a bound; use a supervised model",
}


def _remedy_of(kind: type) -> str:
    if not has_extensions():
        return f"supported: {', '.join(sorted(READERS))}; for pipelines, linear models and models of models {WHOLE}"
    if kind.__module__.startswith("sklearn.linear_model") or kind.__name__ in ("LinearSVC", "LinearSVR"):
        return _OF_NUMBERS
    if kind.__name__ in _PARTS:
        return _PARTS[kind.__name__]
    known = f"{', '.join(sorted(READERS))}, and pipelines, votes, stacks and linear models"
    return f"supported: {known}" if kind.__module__.startswith("sklearn.") else f"pass a model of {known}"


def names_of(estimator: Any) -> list[str]:
    """Column names as in training; f0, f1, … if the model was trained without a data frame."""
    given = getattr(estimator, "feature_names_in_", None)
    return [f"f{i}" for i in range(estimator.n_features_in_)] if given is None else [str(name) for name in given]


def plain_classes(estimator: Any, place: str) -> tuple[str | int, ...]:
    """Class labels as Python values. Raises ModelError if there is only one class."""
    labels = [c.item() if isinstance(c, np.generic) else c for c in estimator.classes_]
    if len(labels) < 2:
        raise ModelError("the model has only one class", place=place, remedy="train it on at least two classes")
    return tuple(c if isinstance(c, (int, str)) else str(c) for c in labels)


def _is_classifier(estimator: Any) -> bool:
    return hasattr(estimator, "classes_")


def _task(classes: tuple[str | int, ...]) -> Task:
    return {0: Task.REGRESSION, 2: Task.BINARY}.get(len(classes), Task.MULTICLASS)


def _averaged(estimator: Any, trees: Sequence[Any], place: str) -> Read:
    """Reads decision trees and forests."""
    if trees:
        check_outputs(estimator, trees[0].tree_.value.shape[1], place)
    nodes = stack_trees([tree_nodes(tree, place) for tree in trees])
    classes = plain_classes(estimator, place) if _is_classifier(estimator) else ()
    return mean_of_trees(estimator, nodes, classes, lambda e, x: e.apply(x), place)


def mean_of_trees(estimator: Any, nodes: Nodes, classes: tuple[str | int, ...], leaf_ids: Call, place: str) -> Read:
    """Reads a mean of leaf values; for classifiers, these are probabilities per class."""
    call: Call = (lambda e, x: e.predict_proba(x)) if classes else (lambda e, x: e.predict(x))
    return Read(
        nodes=nodes,
        features=feature_tuple(names_of(estimator), place),
        outputs=nodes.leaf_value.shape[1],
        task=_task(classes),
        link=Identity(),
        margins=call,
        leaf_ids=leaf_ids,
        average=len(nodes.tree_offset) - 1,
        classes=classes,
    )


def _tree(estimator: Any, place: str) -> Read:
    return _averaged(estimator, [estimator], place)


def _forest(estimator: Any, place: str) -> Read:
    return _averaged(estimator, estimator.estimators_, place)


def _bagging(estimator: Any, place: str) -> Read:
    """Reads a mean of trees trained on samples of the rows, and possibly of the columns (Breiman 1996)."""
    others = [kind for member in estimator.estimators_ if (kind := type(member).__name__) not in SINGLE_TREES]
    if others:
        raise ModelError(f"a bag of {others[0]} is a model of models", place=place, remedy=WHOLE)
    classes = plain_classes(estimator, place) if _is_classifier(estimator) else ()
    columns = [np.asarray(used, dtype=np.int64) for used in estimator.estimators_features_]
    members = zip(estimator.estimators_, columns, strict=True)
    nodes = stack_trees([member_nodes(tree, used, len(classes), place) for tree, used in members])
    return mean_of_trees(estimator, nodes, classes, _bagged_leaves, place)


def _bagged_leaves(estimator: Any, x: Any) -> NDArray[Any]:
    matrix = np.asarray(x, dtype=np.float64)
    members = zip(estimator.estimators_, estimator.estimators_features_, strict=True)
    return np.stack([tree.apply(matrix[:, used]) for tree, used in members], axis=1)


def _gradient_boosting(estimator: Any, place: str) -> Read:
    """Reads a sum of learning_rate * leaf value plus a constant; non-constant init estimators are refused."""
    init = estimator.init_
    if isinstance(init, str):
        base = np.zeros(estimator.estimators_.shape[1])
    elif type(init).__module__ == "sklearn.dummy":
        base = np.ravel(estimator._raw_predict_init(np.zeros((1, estimator.n_features_in_), dtype=np.float32)))
    else:
        raise ModelError(
            f"the initial estimator {type(init).__name__} is not a constant",
            place=f"{place}.init",
            remedy="train with init=None or init='zero'",
        )
    classes = plain_classes(estimator, place) if _is_classifier(estimator) else ()
    rounds, outputs = estimator.estimators_.shape
    scaled = bool(classes) and estimator.loss == "exponential"
    link = Identity() if not classes else Softmax() if outputs > 1 else Raw() if scaled else Logistic()
    nodes = stack_trees([tree_nodes(tree, place) for tree in estimator.estimators_.ravel()])
    return Read(
        nodes=nodes,
        features=feature_tuple(names_of(estimator), place),
        outputs=outputs,
        task=_task(classes),
        link=link,
        margins=(lambda e, x: e.decision_function(x)) if classes else (lambda e, x: e.predict(x)),
        leaf_ids=lambda e, x: e.apply(x).reshape(len(x), -1),
        accumulation=Accumulation.FLOAT64_BASE_FIRST,
        classes=classes,
        class_at_zero=1
        if classes
        else 0,  # its `predict` is `raw_predictions >= 0`, unlike that of every other booster
        tree_output=np.tile(np.arange(outputs), rounds),
        tree_weight=np.full(rounds * outputs, float(estimator.learning_rate)),
        base=base,
        notes=("exponential loss: the probability is the logistic function of twice the margin",) if scaled else (),
    )


def _histogram_boosting(estimator: Any, place: str) -> Read:
    """Reads histogram boosting: float64 thresholds, already scaled leaves, and categories that the model itself encodes."""
    preprocessor = estimator._preprocessor
    n = estimator.n_features_in_
    features = list(feature_tuple(names_of(estimator), place))
    columns = np.arange(n, dtype=np.int64)
    categories: dict[int, Sequence[Any]] = {}
    known: dict[int, NDArray[np.bool_]] = {}
    marks: dict[int, str] = {}
    if preprocessor is not None:
        coded = np.asarray(estimator.is_categorical_, dtype=np.bool_)
        # The preprocessor puts the encoded columns first.
        columns = np.concatenate([np.flatnonzero(coded), np.flatnonzero(~coded)]).astype(np.int64)
        bitsets, row_of = estimator._bin_mapper.make_known_categories_bitsets()
        for i, values in enumerate(preprocessor.named_transformers_["encoder"].categories_):
            column = int(columns[i])
            present = [v for v in values if not _is_missing(v)]
            categories[column] = present
            # For the encoder None is one more category, whose code is the last, and NaN is not a category.
            if none := sum(v is None for v in values):
                if len(values) > len(present) + none:
                    raise ModelError("None and NaN are two categories", place=place, remedy=NAN_ALONE)
                marks[column] = "None"
            known[column] = bits_of(bitsets[row_of[i]])[: len(present) + none]
            features[column] = as_categorical(features[column], max(1, len(present)), present, mark=marks.get(column))
    classes = plain_classes(estimator, place) if _is_classifier(estimator) else ()
    outputs = int(estimator.n_trees_per_iteration_)
    predictors = [p for iteration in estimator._predictors for p in iteration]
    if classes:
        link: Link = Softmax() if outputs > 1 else Logistic()
    else:
        link = {"LogLink": Exp(), "IdentityLink": Identity()}[type(estimator._loss.link).__name__]
    return Read(
        nodes=stack_trees([histogram_nodes(p, columns, known, marks, place) for p in predictors]),
        features=tuple(features),
        outputs=outputs,
        task=_task(classes),
        link=link,
        margins=lambda e, x: e._raw_predict(x, n_threads=1),
        number_type=NumberType.FLOAT64,
        ranks_scores=False,  # older versions compare probabilities
        accumulation=Accumulation.FLOAT64_BASE_FIRST,
        classes=classes,
        tree_output=np.tile(np.arange(outputs), len(estimator._predictors)),
        base=np.ravel(estimator._baseline_prediction).astype(np.float64),
        categories=categories,
        marks=marks,
    )


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _ada_boost(estimator: Any, place: str) -> Read:
    """Reads SAMME: every tree votes, with its weight, for one class. Margins are the votes, not divided by their total."""
    if getattr(estimator, "algorithm", "SAMME") == "SAMME.R":
        raise ModelError(
            "SAMME.R adds logarithms of probabilities",
            place=f"{place}.algorithm",
            remedy="train with algorithm='SAMME'",
        )
    classes = plain_classes(estimator, place)
    k = len(classes)
    trees = []
    for tree, weight in zip(estimator.estimators_, estimator.estimator_weights_, strict=False):
        if type(tree).__name__ not in ("DecisionTreeClassifier", "ExtraTreeClassifier"):
            raise ModelError(
                f"AdaBoost over {type(tree).__name__} is not supported", place=place, remedy="use decision trees"
            )
        # Row i: the votes of a tree that predicts class number i.
        votes = np.where(tree.classes_[:, None] == estimator.classes_[None, :], weight, -1 / (k - 1) * weight)
        # Two classes: decision_function is the second vote minus the first, which are opposite numbers.
        votes = 2 * votes[:, 1:] if k == 2 else votes
        trees.append(tree_nodes(tree, place, votes=votes.astype(np.float64)))
    total = float(np.sum(estimator.estimator_weights_))
    return Read(
        nodes=stack_trees(trees),
        features=feature_tuple(names_of(estimator), place),
        outputs=1 if k == 2 else k,
        task=_task(classes),
        link=Raw(),
        margins=_ada_boost_votes,
        leaf_ids=lambda e, x: np.stack([tree.apply(x) for tree in e.estimators_], axis=1),
        classes=classes,
        notes=(f"margins are votes; decision_function divides the votes by the sum of the weights, {total!r}",),
    )


def _ada_boost_votes(estimator: Any, x: Any) -> NDArray[Any]:
    """The decision_function of AdaBoostClassifier before its last division."""
    x = estimator._check_X(x)
    k = len(estimator.classes_)
    classes = estimator.classes_[:, np.newaxis]
    votes = sum(
        np.where((tree.predict(x) == classes).T, w, -1 / (k - 1) * w)
        for tree, w in zip(estimator.estimators_, estimator.estimator_weights_, strict=False)
    )
    result = np.asarray(votes)
    return np.asarray(-result[:, 0] + result[:, 1]) if k == 2 else result


SINGLE_TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")

READERS: dict[str, Callable[[Any, str], Read]] = {
    "DecisionTreeClassifier": _tree,
    "DecisionTreeRegressor": _tree,
    "ExtraTreeClassifier": _tree,
    "ExtraTreeRegressor": _tree,
    "BaggingClassifier": _bagging,
    "BaggingRegressor": _bagging,
    "RandomForestClassifier": _forest,
    "RandomForestRegressor": _forest,
    "ExtraTreesClassifier": _forest,
    "ExtraTreesRegressor": _forest,
    "GradientBoostingClassifier": _gradient_boosting,
    "GradientBoostingRegressor": _gradient_boosting,
    "HistGradientBoostingClassifier": _histogram_boosting,
    "HistGradientBoostingRegressor": _histogram_boosting,
    "AdaBoostClassifier": _ada_boost,
}
