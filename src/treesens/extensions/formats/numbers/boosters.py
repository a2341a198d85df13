"""Linear boosters of XGBoost as ensembles in which each feature is an open number.

How XGBoost evaluates linear boosters (gblinear.cc of versions 1.3 to 3.2): the sum starts at bias + base margin; the products
of weights and non-missing values are added in column order, and each addition is rounded to float32. The C++ compiler
determines whether products are rounded as well, so the sum is known only up to an error bound.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Ensemble, Feature, FeatureKind
from treesens.compiler.model.numbers import OpenNumber
from treesens.extensions.formats.blending import blend_of
from treesens.extensions.formats.links.blend import Way
from treesens.extensions.formats.numbers.tables import MOST_TERMS, number_term
from treesens.frontends.documents import Field

_ONE = "train one model for each output, or train trees"


def read_linear(
    model: Field,
    features: tuple[Feature, ...],
    base: NDArray[np.float64],
    place: str,
    narrow: Callable[[NDArray[np.float64], Field], NDArray[np.float64]],
    **facts: Any,
) -> Ensemble:
    """A linear booster's open ensemble with `base`, float32[outputs]. Raises ModelError for categories or several outputs."""
    field = model["weights"]
    if len(base) != 1:
        raise field.error("a linear booster of several outputs is not supported", _ONE)
    if len(features) > MOST_TERMS:
        raise field.error(f"a linear booster of more than {MOST_TERMS} features is not supported", "leave some out")
    if any(feature.kind is FeatureKind.CATEGORICAL for feature in features):
        raise field.error("a linear booster on categorical data is not supported", "encode them as columns of 0 and 1")
    weights = narrow(field.floats(), field)
    if not len(weights):
        raise field.error("a linear booster without training rounds has no weights", "train it for at least one round")
    if len(weights) != len(features) + 1:
        raise field.error(f"there are {len(weights)} weights for {len(features)} features and a bias")
    if not np.isfinite(weights).all():
        raise field.error("a weight is not finite")
    numbers = [number_term(OpenNumber(f, _as_read, 0.0), features, place) for f in range(len(features))]
    return blend_of(
        numbers,
        [Fraction(w) for w in weights[:-1].tolist()],
        Way.SINGLE,
        [feature.name for feature in features],
        place,
        weights=weights[:-1].tolist(),
        intercept=float(np.float32(weights[-1]) + np.float32(base[0])),
        is_sum=True,
        **facts,
    )


def _as_read(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers in the precision of the library, float32."""
    return NumberType.FLOAT32.cast(values).astype(np.float64)
