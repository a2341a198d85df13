"""Converts an XGBoost model's document to an Ensemble: objective, base margin and features. Trees are in trees.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from treesens.builtin import service
from treesens.compiler.base.floats import NumberType, float32_of_decimals, libm_float32, round_to_float32
from treesens.compiler.model import Accumulation, Ensemble, Feature, ModelSource, Task
from treesens.frontends.base import check_output, of_output
from treesens.frontends.documents import Field, check_document
from treesens.frontends.xgboost.known import EARLY_TABLE, LINEAR_TABLE, TABLE
from treesens.frontends.xgboost.trees import read_features, read_trees, to_float32
from treesens.links import Exp, Identity, Link, Logistic, Raw, Softmax

# A larger number indicates a damaged file.
_MAX_OUTPUTS = 100_000


class LinearBoosters(Protocol):
    """The interface of the service "numbers" (`builtin.SERVICES`)."""

    def read_linear(
        self,
        model: Field,
        features: tuple[Feature, ...],
        base: NDArray[np.float64],
        place: str,
        narrow: Callable[[NDArray[np.float64], Field], NDArray[np.float64]],
        **facts: Any,
    ) -> Ensemble:
        """The open ensemble of a linear booster. Raises ModelError if the booster cannot be represented."""


class _Inverse(Enum):
    """The conversion of base_score, stored on the scale of predictions, to a margin (ProbToMargin of each objective)."""

    NONE = "none"
    LOGIT = "logit"
    LOG = "log"


@dataclass(frozen=True)
class _Objective:
    task: Task
    link: Link
    inverse: _Inverse


_IDENTITY = _Objective(Task.REGRESSION, Identity(), _Inverse.NONE)
_LOG = _Objective(Task.REGRESSION, Exp(), _Inverse.LOG)
_SOFTMAX = _Objective(Task.MULTICLASS, Softmax(), _Inverse.NONE)
_RANK = _Objective(Task.RANKING, Identity(), _Inverse.NONE)
_OBJECTIVES = {
    "binary:logistic": _Objective(Task.BINARY, Logistic(), _Inverse.LOGIT),
    "binary:logitraw": _Objective(Task.BINARY, Identity(), _Inverse.NONE),
    # Predicts 1 for positive margins and 0 otherwise.
    "binary:hinge": _Objective(Task.BINARY, Raw(), _Inverse.NONE),
    "reg:logistic": _Objective(Task.REGRESSION, Logistic(), _Inverse.LOGIT),
    "multi:softmax": _SOFTMAX,
    "multi:softprob": _SOFTMAX,
    "reg:squarederror": _IDENTITY,
    "reg:linear": _IDENTITY,
    "reg:squaredlogerror": _IDENTITY,
    "reg:absoluteerror": _IDENTITY,
    "reg:pseudohubererror": _IDENTITY,
    "reg:quantileerror": _IDENTITY,
    "count:poisson": _LOG,
    "reg:gamma": _LOG,
    "reg:tweedie": _LOG,
    "survival:cox": _LOG,
    "survival:aft": _LOG,
    "rank:pairwise": _RANK,
    "rank:ndcg": _RANK,
    "rank:map": _RANK,
}


def read_ensemble(
    root: Field, name: str, source: ModelSource, iteration_end: int | None = None, output: int | None = None
) -> Ensemble:
    """The ensemble in a document, limited to its first `iteration_end` rounds and to the output number `output` if these are
    passed. The ModelError names the field.
    """
    if not isinstance(root.value, dict) or "learner" not in root:
        raise root.error(
            "this is not an XGBoost model: it has no field `learner`",
            "pass a file written by Booster.save_model as .json or .ubj",
        )
    version = [int(v) for v in root["version"].integers()[:3]] if "version" in root else []
    version = version or [0]
    if version[0] > 3:
        raise root["version"].error(
            f"files of XGBoost {version[0]} are not known here", "save the model with XGBoost 3, or update treesens"
        )
    learner = root["learner"]
    parameters = learner["learner_model_param"]
    named = learner["objective"]["name"]
    objective = _OBJECTIVES.get(named.text())
    if objective is None:
        raise named.error(
            f"objective `{named.text()[:80]}` is not supported", f"supported: {', '.join(sorted(_OBJECTIVES))}"
        )
    outputs = count_outputs(parameters)
    if output is not None:
        check_output(output, 1 if objective.task is Task.MULTICLASS else outputs, source.path)
    elif objective.task is Task.BINARY and outputs > 1:
        raise parameters["num_target"].error(
            f"several labels at once are not one model: `{named.text()}` with {outputs} targets",
            f"name one: format `xgboost:output=0`, up to {outputs - 1}",
        )
    if (
        output is None
        and (objective.task is Task.MULTICLASS) != (outputs > 1)
        and objective.task is not Task.REGRESSION
    ):
        raise parameters.error(f"objective `{named.text()}` with {outputs} outputs is not possible")
    features = read_features(learner, parameters["num_feature"])
    if is_linear(learner):
        return _linear(root, objective, features, version, outputs, name, source)
    trees = read_trees(learner["gradient_booster"], features, outputs, version, iteration_end)
    objective = _at_start(objective, parameters, trees.in_file)
    base = _base_margin(parameters["base_score"], objective, named.text(), version, outputs)
    check_document(TABLE if version == [0] or version >= [1, 3] else EARLY_TABLE, root.value, root.place)
    classes = tuple(range(outputs)) if outputs > 1 and objective.task is Task.MULTICLASS else (0, 1)
    made = Ensemble(
        name=name,
        features=trees.features,
        number_type=NumberType.FLOAT32,
        comparison="<",
        tree_offset=trees.order.tree_offset,
        node_feature=trees.node_feature,
        threshold=trees.threshold,
        left=trees.order.left,
        right=trees.order.right,
        default_left=trees.default_left,
        node_leaf=trees.order.node_leaf,
        leaf_value=trees.leaf_value,
        leaf_tree=trees.order.leaf_tree,
        leaf_node=trees.order.leaf_id,
        tree_output=trees.tree_output,
        tree_weight=trees.tree_weight,
        base=base,
        link=objective.link,
        task=objective.task,
        accumulation=Accumulation.FLOAT32_BASE_FIRST,
        source=source,
        category_set=trees.category_set,
        set_offset=trees.set_offset,
        set_codes=trees.set_codes,
        classes=classes if objective.task in (Task.BINARY, Task.MULTICLASS) else (),
        # XGBClassifier compares any prediction with 1/2; here the prediction is the raw score.
        decides_at=0.5 if named.text() == "binary:logitraw" else None,
    )
    return (made if output is None else of_output(made, output)).validate()


def is_linear(learner: Field) -> bool:
    """True if the booster is linear."""
    return learner["gradient_booster"]["name"].text() == "gblinear"


def _linear(
    root: Field,
    objective: _Objective,
    features: tuple[Feature, ...],
    version: list[int],
    outputs: int,
    name: str,
    source: ModelSource,
) -> Ensemble:
    """The ensemble of a linear booster, which has no rounds, so that early stopping changes nothing."""
    learner = root["learner"]
    parameters, model = learner["learner_model_param"], learner["gradient_booster"]["model"]
    named = learner["objective"]["name"]
    rounds = model.get("boosted_rounds")
    objective = _at_start(objective, parameters, rounds.integer() if rounds is not None else 0)
    base = _base_margin(parameters["base_score"], objective, named.text(), version, outputs)
    check_document(LINEAR_TABLE, root.value, root.place)
    boosters: LinearBoosters = service("numbers")
    return boosters.read_linear(
        model,
        features,
        base,
        source.path,
        to_float32,
        name=name,
        source=source,
        classes=(0, 1) if objective.task is Task.BINARY else (),
        link=objective.link,
        task=objective.task,
        decides_at=0.5 if named.text() == "binary:logitraw" else None,
        # A hinge predicts 1 for positive sums.
        ranks_scores=not objective.link.is_known,
    )


def _at_start(objective: _Objective, parameters: Field, rounds: int) -> _Objective:
    """The objective. A base_score that is still to be estimated is a margin for the library before the first round.

    Files of XGBoost 1.6 and earlier do not state whether the base is to be estimated, and files of linear boosters of 1.3 do
    not record the number of rounds.
    """
    if rounds or objective.inverse is _Inverse.NONE:
        return objective
    estimated = parameters.get("boost_from_average")
    if estimated is None:
        raise parameters["base_score"].error(
            "this file counts no rounds: XGBoost before 1.7 read its base_score as a prediction, later versions as a margin",
            "load the model with XGBoost 1.7 or later, check its predictions, and save it again",
        )
    return replace(objective, inverse=_Inverse.NONE) if estimated.integer() else objective


def count_outputs(parameters: Field) -> int:
    classes = parameters["num_class"].integer()
    target = parameters.get("num_target")
    targets = target.integer() if target else 1
    if classes < 0 or targets < 0 or max(classes, targets) > _MAX_OUTPUTS:
        raise parameters.error(f"num_class {classes} or num_target {targets} is out of range")
    return max(classes, targets, 1)


def _base_margin(
    field: Field, objective: _Objective, name: str, version: list[int], outputs: int
) -> NDArray[np.float64]:
    """base_score in its three forms (number, text, text of a list), in float32, through the inverse link in float32."""
    scores = _base_scores(field)
    if len(scores) not in (1, outputs):
        raise field.error(f"base_score has {len(scores)} values for {outputs} outputs")
    if name == "binary:logitraw" and version < [3, 1]:
        # Before 3.1 it was a probability, since then it is a margin: the result depends on the reading version.
        raise field.error(
            "XGBoost 3.1 changed the meaning of base_score for binary:logitraw, and this file is older",
            "load the model with XGBoost 3.1 or later, check its predictions, and save it again",
        )
    match objective.inverse:
        case _Inverse.NONE:
            margins = scores
        case _Inverse.LOGIT:
            margins = np.array([_logit(field, score, version) for score in scores])
        case _Inverse.LOG:
            if not (scores > 0).all():
                raise field.error(f"base_score must be positive for `{name}`", "the library would start from -infinity")
            margins = np.array([libm_float32("logf", score) for score in scores.tolist()])
    if not np.isfinite(margins).all():
        raise field.error("base_score is not finite")
    return np.asarray(np.broadcast_to(margins, (outputs,)) + 0.0, dtype=np.float64)


def _base_scores(field: Field) -> NDArray[np.float64]:
    value = field.value
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise field.error(f"`{field.value[:60]}` is neither a number nor a list of numbers") from None
    scores = Field(value if isinstance(value, list) else [value], field.place, field.path).floats()
    if not scores.size:
        raise field.error("base_score is an empty list")
    narrow, unsure = float32_of_decimals(scores)
    if unsure.any():
        # The text, not its float64 value, decides between two float32 numbers.
        texts = str(field.value).strip().strip("[]").split(",")
        narrow = np.array([round_to_float32(Fraction(text.strip())) for text in texts])
    return narrow


def _logit(field: Field, score: float, version: list[int]) -> float:
    """-logf(1 / p - 1) in float32, with p clipped to [1e-6, 1 - 1e-6] from version 3.1 on (regression_obj.cu, ProbToMargin)."""
    one, p = np.float32(1), np.float32(score)
    low, high = np.float32(1e-6), one - np.float32(1e-6)
    if version >= [3, 1] and 0 <= p <= 1:
        p = min(max(p, low), high)
    elif not 0 < p < 1:
        raise field.error(f"base_score {score} is not a probability strictly between 0 and 1")
    elif not low <= p <= high:
        raise field.error(
            f"XGBoost 3.1 and later clip base_score {score} to a number further from 0 and 1, and this file is older",
            "load the model with XGBoost 3.1 or later, check its predictions, and save it again",
        )
    return -libm_float32("logf", float(one / p - one))
