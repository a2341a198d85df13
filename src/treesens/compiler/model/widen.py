"""An ensemble that compares float32, as one that compares float64: it reaches the same leaves on every float64.

Two models are compared over one set of inputs. A float64 goes left of a cut of float32 numbers if its nearest float32 does,
which holds for all float64 up to one of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from treesens.compiler.base.bisection import Float64, largest_true
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model.ensemble import Ensemble


def widened(ensemble: Ensemble) -> Ensemble:
    """The ensemble over float64; itself if it is one. ModelError never: what was valid stays valid."""
    if ensemble.number_type is NumberType.FLOAT64:
        return ensemble
    cuts = ensemble.node_cut
    ordered = np.flatnonzero(~np.isnan(cuts))
    threshold = np.zeros(ensemble.n_nodes)

    def left(x: Float64) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return np.asarray(ensemble.number_type.cast(x) < cuts[ordered])

    threshold[ordered] = largest_true(left, len(ordered))
    return replace(
        ensemble, number_type=NumberType.FLOAT64, comparison="<=", threshold=threshold, zero_band=0.0
    ).validate()
