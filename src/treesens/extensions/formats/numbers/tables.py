"""Closes models with coefficients of numbers over a domain: each number becomes a table of its values.

The image of a value in the library (scaled, imputed) is computed elementwise in the library's arithmetic, so that a cell
contains exactly the float that the library multiplies. The library's order of additions depends on the machine, so the error
band of the model covers every order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Accumulation, Ensemble, Feature, ModelSource, Task
from treesens.compiler.model.numbers import OpenNumber
from treesens.errors import ModelError
from treesens.extensions.formats.additive import Axis, Numbers, term_tree
from treesens.extensions.formats.blending import blend_of
from treesens.extensions.formats.links.blend import Way, members_of
from treesens.frontends.columns import ensemble_of
from treesens.links import Identity

MOST_TERMS = 2000
"""The maximum number of coefficients of numbers in a file; the time to read a file grows with its square."""
_TREES = (
    "tree_offset", "node_feature", "threshold", "left", "right", "default_left", "node_leaf", "leaf_value", "leaf_tree",
    "leaf_node", "tree_output", "tree_weight", "category_set", "set_offset", "set_codes", "zero_missing", "base",
    "average", "blend", "number_type", "comparison", "zero_band",
)  # fmt: skip
"""Fields of an ensemble that depend on its members."""


def number_term(number: OpenNumber, features: tuple[Feature, ...], place: str) -> Ensemble:
    """An open model of a single number."""
    return replace(_table(number, features, place, np.zeros(1)), number=number)


def closed_over(ensemble: Ensemble, values: Mapping[str, FloatArray]) -> Ensemble:
    """See `compiler.model.numbers.closed_over`."""
    if not ensemble.open_features:
        return ensemble
    place = ensemble.source.path
    if ensemble.number is not None:
        own = values[ensemble.feature_names[ensemble.number.feature]]
        table = _table(ensemble.number, ensemble.features, place, own)
        return replace(ensemble, number=None, **{key: getattr(table, key) for key in _TREES})
    blend = members_of(ensemble)
    assert blend is not None
    whole = blend_of(
        [closed_over(_renamed(member, ensemble.feature_names), values) for member in blend.members],
        blend.shares,
        blend.way,
        ensemble.feature_names,
        place,
        weights=blend.weights,
        intercept=blend.intercept,
        is_sum=blend.is_sum,
        name=ensemble.name,
        source=ensemble.source,
        classes=ensemble.classes,
        # Steps after the sum belong to the ensemble rather than to its members.
        link=Identity() if blend.is_sum else ensemble.link,
        task=ensemble.task,
    )
    tables = {name: values[name] for name in ensemble.open_features}
    closed = replace(ensemble, tables=tables, **{key: getattr(whole, key) for key in _TREES})
    if blend.way is Way.SINGLE:
        # Raises ModelError if a float32 sum may be infinite.
        closed.bands()
    return closed.validate()


def _renamed(member: Ensemble, names: Sequence[str]) -> Ensemble:
    """A member with the feature names of the ensemble; usually the member has these names already."""
    if member.feature_names == tuple(names):
        return member
    return replace(
        member, features=tuple(replace(own, name=name) for own, name in zip(member.features, names, strict=True))
    )


def _table(number: OpenNumber, features: tuple[Feature, ...], place: str, values: FloatArray) -> Ensemble:
    """A tree with one cell per value; the cells between neighbouring values contain no value of the domain."""
    made = _made(number, features, place, values)
    after = np.nextafter(values, np.inf)
    cuts = np.unique(np.concatenate([values[1:], after[:-1]]))
    table = made[np.searchsorted(values, np.concatenate([values[:1], cuts]), side="right") - 1]
    return _tree(number, features, place, cuts, table)


def _made(number: OpenNumber, features: tuple[Feature, ...], place: str, values: FloatArray) -> FloatArray:
    """The library's images of values, float64[n]. Raises ModelError if an image is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        made = np.asarray(number.made(np.asarray(values, np.float64)), np.float64)
    if not np.isfinite(made).all():
        name, wrong = features[number.feature].name, float(values[np.flatnonzero(~np.isfinite(made))[0]])
        message = f"the library's image of the value {wrong:g} of `{name}` is not finite"
        raise ModelError(message, place=place, remedy="declare a smaller domain for the feature")
    return made


def _tree(
    number: OpenNumber, features: tuple[Feature, ...], place: str, cuts: FloatArray, table: FloatArray
) -> Ensemble:
    """A model of one tree over one feature, with the values `table`, float64[cuts + 1], in the cells between the cuts."""
    return table_of_feature(Numbers(number.feature, cuts), table, number.missing, features, place)


def table_of_feature(
    axis: Axis, values: FloatArray, missing: float, features: tuple[Feature, ...], place: str
) -> Ensemble:
    """A model of one tree over one feature; `values`, float64[bins], holds the values in the bins of `axis`, and `missing` is
    the value for a missing value (NaN if the library makes no prediction in that case).
    """
    missing = 0.0 if np.isnan(missing) else missing
    nodes = term_tree([axis], np.concatenate([[missing], values])[:, None])
    return ensemble_of(
        nodes,
        features,
        place,
        name=features[axis.feature].name,
        number_type=NumberType.FLOAT64,
        comparison="<",
        tree_output=np.zeros(1, np.int32),
        tree_weight=np.ones(1),
        base=np.zeros(1),
        link=Identity(),
        task=Task.REGRESSION,
        accumulation=Accumulation.FLOAT64_BASE_LAST,
        source=ModelSource(format="sklearn"),
    )
