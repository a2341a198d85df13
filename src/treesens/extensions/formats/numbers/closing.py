"""Closes models over the domain of a question if numbers with coefficients enter the score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from treesens.binder.declarations import Declarations
from treesens.binder.domains import FeatureSpec
from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.model.numbers import MOST_VALUES
from treesens.compiler.query.domain import ValueDomain, whole_range
from treesens.errors import ModelError
from treesens.extensions.formats.numbers.tables import closed_over
from treesens.frontends.base import LoadedModel
from treesens.visible import declaration


def close_over(found: Declarations, model: LoadedModel, specs: Mapping[str, FeatureSpec], span: Span) -> LoadedModel:
    """The model, closed over the domains of its numbers (if any). If a domain is infinite, reports this and raises Unbound."""
    names = model.ensemble.open_features
    values = {name: values_of(specs[name]) for name in names}
    wrong = [name for name, known in values.items() if known is None]
    if wrong:
        raise found.fail("E314", _why(specs[wrong[0]], wrong), span, _remedy(specs[wrong[0]]))
    try:
        return replace(model, ensemble=closed_over(model.ensemble, {n: v for n, v in values.items() if v is not None}))
    except ModelError as error:
        raise found.fail(error.code, error.message, span, error.remedy) from None


def values_of(spec: FeatureSpec) -> FloatArray | None:
    """All values of a domain, float64[n], ascending; None if there are more than MOST_VALUES, as in a real interval."""
    domain = spec.domain
    if isinstance(domain, ValueDomain):
        return domain.values if len(domain.values) <= MOST_VALUES else None
    if domain.low == domain.high:
        return np.array([domain.low]) + 0.0
    low, high = whole_range(domain.low, domain.high)
    if not domain.whole or high - low >= MOST_VALUES:
        return None
    return np.arange(low, high + 1, dtype=np.float64) + 0.0


def _why(spec: FeatureSpec, names: list[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names[:5]) + (" and others" if len(names) > 5 else "")
    reaches = "reaches" if len(names) == 1 else "reach"
    many = f"more than {MOST_VALUES:,} values" if getattr(spec.domain, "whole", True) else "infinitely many values"
    if spec.width is not None and not getattr(spec.domain, "whole", True):
        many = "all real values between two ends"
    return f"{listed} {reaches} the score as a number that is multiplied by a coefficient, and `{spec.name}` has {many} here"


def _remedy(spec: FeatureSpec) -> str:
    whole = declaration(spec.name, "integer in [LOW, HIGH]")
    whole = f"declare whole numbers in a `.sens` file, {whole} (commands such as audit read the file with --domain)"
    return f"{whole}, or train with bins of the feature (KBinsDiscretizer)"
