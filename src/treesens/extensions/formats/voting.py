"""Models that count predicted classes. Each member keeps its scores, and the class is a formula (`binder/classes.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import Any

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Ensemble, Task
from treesens.errors import ModelError
from treesens.extensions.formats.blending import blend_of
from treesens.extensions.formats.links.blend import Way
from treesens.extensions.formats.links.several import Votes
from treesens.links import Logistic

MOST_COMBINATIONS = 1024
"""The maximum number of combinations of predicted classes that the formula of a vote enumerates."""


def task_of(classes: Sequence[Any]) -> Task:
    """The task of a classifier."""
    return Task.BINARY if len(classes) == 2 else Task.MULTICLASS


def adds_up(weights: Sequence[float] | None) -> bool:
    """True if exact sums of weights compare just like float64 sums, where adding 0.1 eight times gives less than 0.8.

    Rounded sums of equal weights still increase with the number of votes; sums of different weights must be exact in float64.
    """
    if weights is None or len(set(weights)) == 1:
        return True
    exact = [Fraction(weight) for weight in weights]
    return sum(exact) * lcm(*(weight.denominator for weight in exact)) <= 1 << NumberType.FLOAT64.precision


def vote_of(
    members: Sequence[Ensemble],
    weights: Sequence[float] | None,
    way: Way,
    names: Sequence[str],
    place: str,
    *,
    classes: tuple[str | int, ...],
    remedy: str,
    **facts: Any,
) -> Ensemble:
    """The ensemble of models that vote for `classes`, weighted by `weights` (None: one vote each). `way` breaks ties.

    `facts` holds the name and the source. Raises ModelError, with `remedy`, if a member's scores do not determine its class.
    """
    for member in members:
        _check(member, len(classes), place, remedy)
    if len(classes) ** len(members) > MOST_COMBINATIONS:
        raise ModelError(
            f"{len(members)} models can vote for {len(classes)} classes in too many ways",
            place=place,
            remedy=f"{remedy}; at most {MOST_COMBINATIONS} combinations are supported, that is, 10 models of two classes",
        )
    shares = [Fraction(1)] * len(members) if weights is None else [Fraction(w) for w in weights]
    return blend_of(
        members,
        shares,
        way,
        names,
        place,
        weights=weights,
        is_sum=False,
        classes=classes,
        link=Votes(),
        task=task_of(classes),
        **facts,
    )


def _check(e: Ensemble, classes: int, place: str, remedy: str) -> None:
    if len(e.classes) != classes:
        message = f"a model inside has {len(e.classes)} classes, but the whole model {classes}"
        raise ModelError(message, place=place, remedy="train every model on all classes")
    cut = e.cutoff is not None and not isinstance(e.link, Logistic) and not (e.link.is_linear and e.n_outputs > 1)
    if cut or e.link.compares_members or e.link.prefers_gaps:
        message = f"a model inside ({e.source.format}) predicts a class by calibrated or averaged probabilities"
        raise ModelError(message, place=place, remedy=f"leave it out, or {remedy}")
