"""Numbers that reach a score by a coefficient: no two inputs are the same to such a model, until a question gives a domain.

A model is over cells. A coefficient times a number has a value of its own for each number, and so the ensemble of such a model
is *open*: a tree of one leaf keeps the place of the number. Over a domain of finitely many values the number is a table like
any other, each value in a cell of its own; what lies between two values is in no domain. Over an interval it is a table of
steps, and sums are known up to half of a step: only the service "numbers" asks about such an ensemble.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np

from treesens.builtin import service
from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.model.blend import Way
from treesens.errors import DataError, ModelError
from treesens.visible import declaration

if TYPE_CHECKING:
    from treesens.compiler.model.ensemble import Ensemble

MOST_VALUES = 1 << 12
"""Of one feature; each is a cell of its own, and so are the numbers between two of them."""
LEVELS = (64, 512, 4096)
"""Steps of an interval: a question that these leave open is asked with those that come next."""


@dataclass(frozen=True, eq=False)
class Steps:
    """An interval in steps: step k holds the numbers from edges[k] on, below edges[k + 1]; the last one holds its end, too.

    `edges` float64[steps + 1] ascend. In a step one value stands for all, and the band of the ensemble holds how far they are.
    """

    edges: FloatArray


@dataclass(frozen=True, eq=False)
class OpenNumber:
    """A tree that stands for a number: `made` gives what the library makes of stored values float64[n], element by element.

    `missing` is what it makes of a missing value; NaN if it predicts nothing then.
    """

    feature: int
    made: Callable[[FloatArray], FloatArray]
    missing: float


class Numbers(Protocol):
    """The service "numbers", as readers and records use it."""

    def closed_over(self, ensemble: Ensemble, values: Mapping[str, FloatArray | Steps]) -> Ensemble:
        """As `closed_over`."""


def closed_over(ensemble: Ensemble, values: Mapping[str, FloatArray | Steps]) -> Ensemble:
    """The ensemble over a domain: `values` float64[n], ascending, by the name of each feature that reaches it as a number, or
    the steps of an interval. Itself if it is closed. ModelError for a value of which the library makes an infinity.
    """
    if not ensemble.open_features:
        return ensemble
    numbers: Numbers = service("numbers")
    return numbers.closed_over(ensemble, values)


def open_features(ensemble: Ensemble) -> tuple[str, ...]:
    """The features that reach the score as numbers, in the order of the model; none if the ensemble is closed."""
    places = sorted(set(_places(ensemble)))
    return tuple(ensemble.feature_names[f] for f in places)


def _places(ensemble: Ensemble) -> list[int]:
    own = [] if ensemble.number is None else [ensemble.number.feature]
    return own + [f for member in (ensemble.blend.members if ensemble.blend else ()) for f in _places(member)]


@dataclass(frozen=True)
class Stepped:
    """A number with steps in a sum: score `output` has `weight` times what the library makes of it, which differs by at most
    `apart` from that of its step. `column` tells the columns that are made of one feature apart; the scores share them.
    """

    output: int
    column: int
    feature: str
    weight: Fraction
    apart: Fraction


def stepped_numbers(ensemble: Ensemble) -> tuple[Stepped, ...]:
    """The numbers with steps of which the scores of an ensemble are sums, the only one or those of classes, by columns."""
    blend = ensemble.blend
    if blend is None:
        return ()
    sums = [blend] if blend.is_sum and ensemble.n_outputs == 1 else []
    if blend.way is Way.MATRIX:
        # The members are the scores, and each is a sum over the same columns.
        sums = [member.blend for member in blend.members if member.blend is not None]
    return tuple(
        Stepped(output, column, member.used_features[0], share, member.spread)
        for output, one in enumerate(sums)
        for column, (member, share) in enumerate(zip(one.members, one.shares, strict=True))
        if member.spread
    )


def check_closed(ensemble: Ensemble) -> None:
    """ModelError for an open ensemble: it has no cells, and no scores of cells, before it has a domain."""
    names = ensemble.open_features
    if names:
        listed = ", ".join(f"`{name}`" for name in names[:5]) + (" and others" if len(names) > 5 else "")
        reaches = "reaches" if len(names) == 1 else "reach"
        raise ModelError(
            f"{listed} {reaches} the score as a number: a coefficient times a number has no end of values",
            place=ensemble.name,
            remedy="ask a question with a domain of whole numbers, `feature F: integer in [LOW, HIGH]`; or put it into "
            "bins (KBinsDiscretizer)",
        )


def check_values(ensemble: Ensemble, rows: object) -> None:
    """DataError for a number in rows float64[n, features] that is none of those over which an ensemble was closed."""
    for name, known in ensemble.tables.items():
        column = np.asarray(rows, np.float64)[:, ensemble.feature_names.index(name)]
        wrong = column[~np.isnan(column) & ~np.isin(column, known)]
        if len(wrong):
            raise DataError(
                f"{wrong[0]:g} is no value of the domain of `{name}`, which reaches the score as a number",
                place=ensemble.name,
                remedy=f"widen the domain, {declaration(name, 'integer in [LOW, HIGH]')}, or leave such rows out",
            )
