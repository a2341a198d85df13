"""Numbers that enter a score with a coefficient: the model has finitely many cells only if a question declares a domain.

Models are defined over cells, but a coefficient times a number takes infinitely many values. So the ensemble of such a model is
*open*: a one-leaf tree is the placeholder of the number. Over a domain of finitely many values the number becomes a normal
table, with a cell for each value; numbers between two values are outside the domain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from treesens.builtin import service
from treesens.compiler.base.arrays import FloatArray
from treesens.errors import DataError, ModelError
from treesens.visible import declaration

if TYPE_CHECKING:
    from treesens.compiler.model.ensemble import Ensemble

MOST_VALUES = 1 << 12
"""Maximum number of values of one feature; each value is a separate cell, and so is each gap between two values."""


@dataclass(frozen=True, eq=False)
class OpenNumber:
    """A placeholder tree for a number: `made` maps stored values, float64[n], elementwise, as the library does.

    `missing` is the result for a missing value; NaN if the model makes no prediction for a missing value.
    """

    feature: int
    made: Callable[[FloatArray], FloatArray]
    missing: float


class Numbers(Protocol):
    """The interface of the service "numbers" (`builtin.SERVICES`)."""

    def closed_over(self, ensemble: Ensemble, values: Mapping[str, FloatArray]) -> Ensemble:
        """The implementation of the function `closed_over`."""


def closed_over(ensemble: Ensemble, values: Mapping[str, FloatArray]) -> Ensemble:
    """The ensemble over a domain: `values`, float64[n] ascending, by the name of each feature that enters as a number.

    A closed ensemble is unchanged. Raises ModelError if the library maps a value to infinity.
    """
    if not ensemble.open_features:
        return ensemble
    numbers: Numbers = service("numbers")
    return numbers.closed_over(ensemble, values)


def open_features(ensemble: Ensemble) -> tuple[str, ...]:
    """The features that enter the score as numbers, in the model's order; empty if the ensemble is closed."""
    places = sorted(set(_places(ensemble)))
    return tuple(ensemble.feature_names[f] for f in places)


def _places(ensemble: Ensemble) -> list[int]:
    own = [] if ensemble.number is None else [ensemble.number.feature]
    return own + [f for member in (ensemble.blend.members if ensemble.blend else ()) for f in _places(member)]


def check_closed(ensemble: Ensemble) -> None:
    """Raises ModelError for an open ensemble: without a domain, the ensemble has no cells and therefore no scores of cells."""
    names = ensemble.open_features
    if names:
        listed = ", ".join(f"`{name}`" for name in names[:5]) + (" and others" if len(names) > 5 else "")
        reaches = "reaches" if len(names) == 1 else "reach"
        raise ModelError(
            f"{listed} {reaches} the score as a number: a coefficient times a number takes infinitely many values",
            place=ensemble.name,
            remedy="ask a question with a domain of whole numbers, `feature F: integer in [LOW, HIGH]`; or put it in "
            "bins (KBinsDiscretizer)",
        )


def check_values(ensemble: Ensemble, rows: object) -> None:
    """Raises DataError if `rows`, float64[n, features], contain a number outside the domain over which the model was closed."""
    for name, known in ensemble.tables.items():
        column = np.asarray(rows, np.float64)[:, ensemble.feature_names.index(name)]
        wrong = column[~np.isnan(column) & ~np.isin(column, known)]
        if len(wrong):
            raise DataError(
                f"{wrong[0]:g} is not a value of the domain of `{name}`, which reaches the score as a number",
                place=ensemble.name,
                remedy=f"widen the domain, {declaration(name, 'integer in [LOW, HIGH]')}, or leave such rows out",
            )
