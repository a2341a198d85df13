"""Reads models of models in scikit-learn: votes, stacks, bags of any model, and the folds of a calibration.

These models average probabilities or values, some with learnt coefficients. Members may be of any library. A mean of forests is
a sum, like a forest. Models with a link or a calibration keep separate scores (`treesens.extensions.formats.links.blend`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble, ModelSource, Task
from treesens.errors import ModelError
from treesens.extensions.formats.blending import blend_of
from treesens.extensions.formats.links.blend import Way
from treesens.extensions.formats.links.calibration import Sigmoid
from treesens.extensions.formats.links.several import Mean
from treesens.extensions.formats.sklearn.calibrated import (
    calibrated,
    calibration_of,
    folds_of,
    is_calibrated,
    last_of,
    read_calibrated_classes,
    read_fold,
)
from treesens.extensions.formats.sklearn.columns import rows_of_members
from treesens.extensions.formats.sklearn.hard_votes import counts_votes, read_hard_votes, weights_of
from treesens.extensions.formats.sklearn.linear import LINEAR, LOGISTIC, check_finite, is_softmax
from treesens.frontends.base import LoadedModel
from treesens.frontends.sklearn.model import SINGLE_TREES, names_of, plain_classes
from treesens.frontends.sklearn.rows import predictor, replayer
from treesens.links import Identity, Logistic, Softmax

_BOOSTED_INSIDE = "a stack over boosted models applies a logistic function to sums of logistic functions"
_ONE_BY_ONE = "pass the inner models one by one"
_STACK_FORESTS = f"stack forests, vote (VotingClassifier, voting='soft'), or {_ONE_BY_ONE}"
_VOTING, _STACKING = ("VotingClassifier", "VotingRegressor"), ("StackingClassifier", "StackingRegressor")
_BAGGING = ("BaggingClassifier", "BaggingRegressor")


@dataclass(frozen=True, eq=False)
class _Parts:
    """The members, their weights, and the way in which the library combines their predictions."""

    members: Sequence[LoadedModel]
    shares: Sequence[Fraction]
    way: Way
    weights: Sequence[float] | None = None
    intercept: float = 0.0
    decides: bool = False
    """True if a logistic function follows the sum."""


def is_blend(obj: Any) -> bool:
    """True if an estimator combines predictions of several other estimators."""
    kind = type(obj)
    if not kind.__module__.startswith("sklearn."):
        return False
    if is_calibrated(obj):
        return len(folds_of(obj)) > 1 or len(getattr(obj, "classes_", ())) > 2
    if kind.__name__ in _BAGGING:
        return any(type(member).__name__ not in SINGLE_TREES for member in getattr(obj, "estimators_", ()))
    return kind.__name__ in (*_VOTING, *_STACKING)


def read_blend(obj: Any, load: Callable[[Any], LoadedModel], source: ModelSource, name: str) -> LoadedModel:
    """The model of a fitted vote, stack, bag or calibration. Raises ModelError for unsupported parts."""
    place, kind = source.path, type(obj).__name__
    if is_calibrated(obj) and len(obj.classes_) > 2 and len(folds_of(obj)) < 2:
        return read_calibrated_classes(obj, load, source, name)
    if not is_calibrated(obj) and not hasattr(obj, "estimators_"):
        raise ModelError("the model has not been fitted", place=place, remedy="fit it first")
    classes = plain_classes(obj, place) if hasattr(obj, "classes_") else ()
    try:
        if counts_votes(obj):
            return read_hard_votes(obj, load, source, name)
        parts = _parts_of(obj, load, source, name)
    except AttributeError as error:
        message = f"the {kind} lacks `{error.name}`, which exists in scikit-learn 1.4 and later"
        raise ModelError(message, place=place, remedy="fit it again with the installed scikit-learn") from None
    for model in parts.members:
        _check(model.ensemble, len(classes), place)
    if parts.decides and len(classes) > 2:
        return _of_classes(obj, parts, classes, source, name)
    shown = [model.ensemble for model in parts.members]
    is_sum = all(_is_sum(e) for e in shown)
    if parts.decides and not is_sum:
        raise ModelError(_BOOSTED_INSIDE, place=place, remedy=_STACK_FORESTS)
    if not classes and not is_sum:
        raise ModelError("a mean of exponentials is not supported", place=place, remedy=_ONE_BY_ONE)
    members = list(parts.members)
    if not is_sum and len(classes) == 2:
        members = [_of_second_class(model) for model in members]
    link = (Logistic() if parts.decides else Identity()) if is_sum else Mean()
    names = names_of(obj)
    ensemble = blend_of(
        [model.ensemble for model in members],
        parts.shares,
        parts.way,
        names,
        place,
        weights=parts.weights,
        intercept=parts.intercept,
        is_sum=is_sum,
        name=name,
        source=source,
        classes=classes,
        link=link,
        task={0: Task.REGRESSION, 2: Task.BINARY}.get(len(classes), Task.MULTICLASS),
        ranks_scores=is_sum,
    )
    rows = rows_of_members(obj, members, ensemble, place)
    margins = predictor(_in_one_thread(obj), rows, _predict(parts, classes), ensemble.n_outputs) if is_sum else None
    note = f"{kind} over {len(members)} models: {_few([m.ensemble.source.format for m in members])}"
    others = tuple(note for model in members for note in model.notes)
    return LoadedModel(
        ensemble,
        "sklearn",
        margins or (lambda x: np.concatenate([np.asarray(m.margins(x), np.float64) for m in members], axis=1)),
        None,
        tuple(dict.fromkeys((note, *others))),
        predicts=replayer(obj, rows, ensemble),
        inputs=rows,
    )


def _of_classes(obj: Any, parts: _Parts, classes: tuple[str | int, ...], source: ModelSource, name: str) -> LoadedModel:
    """The model of a stack with one score per class."""
    place, names = source.path, names_of(obj)
    if not all(_is_sum(model.ensemble) for model in parts.members):
        raise ModelError(_BOOSTED_INSIDE, place=place, remedy=_STACK_FORESTS)
    shown = [model.ensemble for model in parts.members]
    ensemble = stack_of_classes(shown, obj.final_estimator_, names, place, name=name, source=source, classes=classes)
    rows = rows_of_members(obj, parts.members, ensemble, place)
    margins = predictor(_in_one_thread(obj), rows, _predict(parts, classes), len(classes))
    note = f"{type(obj).__name__} over {len(shown)} models: {_few([e.source.format for e in shown])}"
    return LoadedModel(ensemble, "sklearn", margins, None, (note,), predicts=replayer(obj, rows, ensemble), inputs=rows)


def _parts_of(obj: Any, load: Callable[[Any], LoadedModel], source: ModelSource, name: str) -> _Parts:
    kind, place = type(obj).__name__, source.path
    if is_calibrated(obj):
        return _folds_of_classes(obj, load, source, name) if len(obj.classes_) > 2 else _folds(obj, load, place)
    if kind in _VOTING:
        return _votes(obj, load, place)
    return _stack(obj, load, place) if kind in _STACKING else _bag(obj, load, place)


def _few(formats: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(formats))


def _predict(parts: _Parts, classes: Sequence[Any]) -> Callable[[Any, Any], Any]:
    if parts.decides:
        return lambda e, x: e.decision_function(x)
    return (lambda e, x: e.predict_proba(x)) if classes else (lambda e, x: e.predict(x))


def _in_one_thread(obj: Any) -> Any:
    """A copy of the estimator in which forests add up their trees in one thread, in a fixed order."""
    fixed = copy.copy(obj)
    fixed.estimators_ = [copy.copy(member) for member in obj.estimators_]
    for member in fixed.estimators_:
        if getattr(member, "n_jobs", None) is not None:
            member.n_jobs = 1
    return fixed


def _is_sum(e: Ensemble) -> bool:
    """True if the prediction of the model is a sum of leaves."""
    return e.link.is_linear and e.n_outputs == max(1, len(e.classes))


def _check(e: Ensemble, classes: int, place: str) -> None:
    if len(e.classes) != classes:
        message = f"a model inside has {len(e.classes)} classes, but the whole model {classes}"
        raise ModelError(message, place=place, remedy="train every model on all classes")
    votes = e.link.votes and not e.link.compares_members
    if not e.link.is_known or votes or (isinstance(e.link, Logistic) and e.n_outputs > 1):
        message = f"a model inside ({e.source.format}) has probabilities that are not functions of its scores"
        remedy = "leave it out (AdaBoost of several classes, exponential loss, counted votes), or " + _ONE_BY_ONE
        raise ModelError(message, place=place, remedy=remedy)
    if not classes and e.n_outputs > 1:
        raise ModelError("multi-target models are not supported", place=place, remedy="pass one model per target")


def _of_second_class(model: LoadedModel) -> LoadedModel:
    """A forest of two classes, reduced to the second class's share of the votes."""
    e = model.ensemble
    if not _is_sum(e):
        return model
    trees = e.tree_output if e.leaf_value.shape[1] == 1 else np.full(e.n_trees, 1)
    if (trees != 1).any() or e.blend is not None:
        raise ModelError("a nested vote with boosted models is not supported", remedy=_ONE_BY_ONE)
    second = replace(e, leaf_value=e.leaf_value[:, 1:], tree_output=np.zeros(e.n_trees, np.int32), base=e.base[1:])
    return replace(model, ensemble=second, margins=lambda rows: np.asarray(model.margins(rows))[:, 1:])


# --- members and weights ------------------------------------------------------------------------------------------------------


def _folds(obj: Any, load: Callable[[Any], LoadedModel], place: str) -> _Parts:
    folds = folds_of(obj)
    members = []
    for number in range(len(folds)):
        inner, calibration = calibration_of(obj, place, number)
        members.append(calibrated(load(inner), calibration, place))
    return _Parts(members, [Fraction(1, len(folds))] * len(folds), Way.SUM)


def _folds_of_classes(obj: Any, load: Callable[[Any], LoadedModel], source: ModelSource, name: str) -> _Parts:
    """Reads the folds of a calibration; each fold divides the calibrated scores of its classes by their sum."""
    count = len(folds_of(obj))
    members = [read_fold(obj, load, source, name, fold) for fold in range(count)]
    inside = [replace(m, ensemble=replace(m.ensemble, source=replace(source, format=m.notes[0]))) for m in members]
    return _Parts([replace(m, notes=m.notes[1:]) for m in inside], [Fraction(1, count)] * count, Way.SUM)


def _votes(obj: Any, load: Callable[[Any], LoadedModel], place: str) -> _Parts:
    classifier = type(obj).__name__ == "VotingClassifier"
    weights = weights_of(obj, place)
    written = [Fraction(repr(w)) for w in weights or [1.0] * len(obj.estimators_)]
    shares = [w / sum(written) for w in written]
    members = [_member(e, load, place) for e in obj.estimators_]
    return _Parts(members, shares, Way.AVERAGE if classifier else Way.ROWS, weights)


def _stack(obj: Any, load: Callable[[Any], LoadedModel], place: str) -> _Parts:
    classifier, final = type(obj).__name__ == "StackingClassifier", obj.final_estimator_
    known = LOGISTIC if classifier else LINEAR
    if type(final).__name__ not in known or not type(final).__module__.startswith("sklearn."):
        raise ModelError(
            f"its last model is {type(final).__name__}, which combines the predictions of the other models",
            place=f"{place}.final_estimator",
            remedy=f"use one of {', '.join(known)}, or {_ONE_BY_ONE}",
        )
    if obj.passthrough:
        message = "the last model also uses the original columns (passthrough=True)"
        raise ModelError(message, place=place, remedy="use passthrough=False")
    if classifier and set(obj.stack_method_) != {"predict_proba"}:
        message = "a stack over decision functions, or over predicted classes, is not supported"
        raise ModelError(message, place=place, remedy="use stack_method='predict_proba'")
    if classifier and len(obj.classes_) > 2:
        if not is_softmax(final, len(obj.classes_)):
            message = "the last model compares each class with all others"
            raise ModelError(message, place=place, remedy="use plain LogisticRegression(): a softmax of all classes")
        members = [load(e) for e in obj.estimators_]
        return _Parts(members, [Fraction(1)] * len(members), Way.MATRIX, None, 0.0, True)
    check_finite(final, place)
    weights = np.ravel(final.coef_).astype(np.float64)
    members = [load(e) for e in obj.estimators_]
    if len(weights) != len(members):
        raise ModelError(f"{len(weights)} coefficients for {len(members)} models", place=place, remedy="fit it again")
    shares = [Fraction(w) for w in weights.tolist()]
    intercept = float(np.ravel(final.intercept_)[0]) if np.size(final.intercept_) else 0.0
    way = Way.DECISION if classifier else Way.LINEAR
    return _Parts(members, shares, way, weights.tolist(), intercept, classifier)


def _member(estimator: Any, load: Callable[[Any], LoadedModel], place: str) -> LoadedModel:
    """The model of a member. Votes of AdaBoost for two classes, whose sum has no link, get the probability of the library:
    the logistic function of the votes' difference over the sum of all weights (Zhu, Zou, Rosset and Hastie 2009, equation 15).
    """
    model, last = load(estimator), last_of(estimator)
    if any(kind.__name__ == "AdaBoostClassifier" for kind in type(last).__mro__) and model.ensemble.n_outputs == 1:
        probable = Sigmoid(-1.0 / float(np.sum(last.estimator_weights_)), 0.0)
        return calibrated(replace(model, notes=()), probable, place)  # its note is about margins
    return model


def _bag(obj: Any, load: Callable[[Any], LoadedModel], place: str) -> _Parts:
    names, count = names_of(obj), len(obj.estimators_)
    members = []
    for estimator, used in zip(obj.estimators_, obj.estimators_features_, strict=True):
        members.append(_over_all(_member(estimator, load, place), np.asarray(used, np.int64), names))
    return _Parts(members, [Fraction(1, count)] * count, Way.SUM)


def _over_all(model: LoadedModel, used: NDArray[np.int64], names: Sequence[str]) -> LoadedModel:
    """Converts a model of the columns `used` to a model of all columns."""
    e = model.ensemble
    if np.array_equal(used, np.arange(len(names))):
        return model
    if e.open_features:
        message = "an inner linear model uses only some columns (max_features, or repeated columns)"
        raise ModelError(message, place=e.source.path, remedy="bag it over all columns, or pass its models one by one")
    features = [replace(e.features[0], name=name, categories=0, labels=None) for name in names]
    for own, f in zip(e.features, used.tolist(), strict=True):
        features[f] = replace(own, name=names[f])
    feature = np.where(e.node_feature >= 0, used[np.maximum(e.node_feature, 0)], -1)
    ensemble = replace(e, features=tuple(features), node_feature=feature)
    return replace(model, ensemble=ensemble, margins=lambda rows: model.margins(rows[:, used]), leaf_ids=None)


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
    """The ensemble of a stack with one score for each class; the members' probabilities are sums of leaves.

    The last model computes class k's score as b_k + the sum over members i and classes j of w_kij p_ij. The probability p_ij of
    a forest is a sum of leaves; thus class k's score is such a sum: an ensemble with one output over the columns (i, j).
    """
    check_finite(final, place)
    weights, intercepts = np.asarray(final.coef_, np.float64), np.ravel(final.intercept_).astype(np.float64)
    columns = [_column(member, j) for member in members for j in range(len(classes))]
    if weights.shape != (len(classes), len(columns)) or len(intercepts) not in (1, len(classes)):
        message = f"there are {weights.shape[0]} x {weights.shape[1]} coefficients for {len(columns)} probabilities"
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
    """The probability of class `j`, for a model whose probabilities are sums of leaves."""
    if e.blend is not None:
        raise ModelError("a vote inside a stack of several classes is not supported", remedy="stack its members")
    if e.leaf_value.shape[1] > 1:
        value = e.leaf_value[:, j : j + 1]
    else:
        value = np.where((e.tree_output == j)[e.leaf_tree][:, None], e.leaf_value, 0.0)
    trees = np.zeros(e.n_trees, np.int32)
    base = e.base[j : j + 1]
    return replace(e, leaf_value=value, tree_output=trees, base=base, classes=(), task=Task.REGRESSION, cutoff=None)
