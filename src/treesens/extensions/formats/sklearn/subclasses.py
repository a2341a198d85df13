"""Reads subclasses of scikit-learn's tree models that change the training alone, such as the models of imbalanced-learn.

A subclass is read as its parent if it overrides nothing that predictions may use: only the methods in `_OF_TRAINING`.
"""

from __future__ import annotations

from typing import Any

from treesens.errors import ModelError
from treesens.extensions.formats.sklearn.pipeline import is_pipeline, predicting
from treesens.frontends.sklearn.model import READERS

_OF_TRAINING = frozenset(
    ("__init__", "fit", "_fit", "_boost", "_get_estimator", "_validate_estimator", "_validate_y", "_compute_oob_predictions",
     "_set_oob_score_and_attributes", "_parameter_constraints", "__sklearn_tags__", "_more_tags", "score", "set_fit_request",
     "set_score_request", "__abstractmethods__", "_abc_impl", "__module__", "__doc__", "__annotations__", "__dict__",
     "__weakref__", "__firstlineno__", "__static_attributes__", "__repr__", "get_params", "set_params")
)  # fmt: skip


def as_parent(obj: Any, place: str) -> Any:
    """The object as an instance of the scikit-learn class that predicts for it; None unless it is of a subclass.

    Raises ModelError, which names a method, if the subclass may predict in its own way.
    """
    kinds = type(obj).__mro__
    own = [kind for kind in kinds if not kind.__module__.startswith(("sklearn.", "builtins", "abc"))]
    parent = next((kind for kind in kinds if kind.__module__.startswith("sklearn.")), None)
    if not own or kinds[0] is not own[0] or parent is None or parent.__name__ not in READERS:
        return None
    inherited = {name for kind in kinds if kind not in own and kind is not object for name in vars(kind)}
    changed = {name for kind in own for name in vars(kind) if name in inherited} - _OF_TRAINING
    changed |= {name for kind in own for name in vars(kind) if name in ("__getattr__", "__getattribute__")}
    if changed:
        raise ModelError(
            f"{kinds[0].__module__}.{kinds[0].__qualname__} is a {parent.__name__} with its own `{min(changed)}`",
            place=place,
            remedy=f"pass a {parent.__name__}, or a model that predicts as one",
        )
    made: Any = object.__new__(parent)
    vars(made).update(vars(obj))
    members = getattr(made, "estimators_", None)
    if isinstance(members, list) and any(map(is_pipeline, members)):
        made.estimators_ = [_final(member) for member in members]
    return made


def _final(member: Any) -> Any:
    """The last step of a pipeline that, apart from it, only resamples rows in training; other members as they are."""
    if not is_pipeline(member):
        return member
    kept = predicting(member)
    return kept.steps[0][1] if len(kept.steps) == 1 else kept
