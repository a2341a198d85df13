"""What a library itself says of inputs: its margins, and what its `predict` and `predict_proba` return.

The class of an input is the one that the library predicts. `Ensemble.predicted_classes` follows its rule; `LibraryReplay` asks
the library, so that a rule that was read wrongly is noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import Int64Array


@dataclass(frozen=True, eq=False)
class Predicted:
    """What a library predicts for rows.

    `probabilities` [rows, n] is what the link of the ensemble makes of its margins, as the library computes it: one column for
    one margin (of the second class), one per class or target otherwise. None if the library has none of this shape. `classes`
    int64[rows] are positions in `Ensemble.classes`, -1 for a label that is none of them; None for models without classes.
    """

    probabilities: NDArray[Any] | None
    classes: Int64Array | None


@dataclass(frozen=True, eq=False)
class LibraryReplay:
    """A library that is asked again: it is called for margins [rows, n_outputs], and `predicts` is its own predict.

    `predicts` is None for a frontend that has margins alone; the rule of the ensemble then decides.
    """

    margins: Callable[[NDArray[np.float64]], NDArray[Any]]
    predicts: Callable[[NDArray[np.float64]], Predicted] | None = None

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        return self.margins(rows)

    def on(self, change: Callable[[NDArray[np.float64]], Any]) -> LibraryReplay:
        """The same library over rows that are changed first."""
        predicts = self.predicts
        return LibraryReplay(
            lambda rows: self.margins(change(rows)),
            None if predicts is None else lambda rows: predicts(change(rows)),
        )


def positions(labels: NDArray[Any], classes: tuple[Any, ...]) -> Int64Array:
    """The positions of predicted labels among the classes, int64[rows]; -1 for a label that is none of them."""
    place = {str(c): i for i, c in enumerate(classes)}
    return np.array([place.get(str(label), -1) for label in np.ravel(labels).tolist()], dtype=np.int64)
