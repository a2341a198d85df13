"""Tree ensembles as columns, with everything that determines a library's arithmetic.

An `Ensemble` is a fidelity contract: on every input it reaches the same leaves as its library. Number type, comparison, missing
direction, order of summation and link are fields of the ensemble rather than special cases in frontends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray, Int64Array, distinct
from treesens.compiler.base.dyadic import ScaledIntegers, fractions_to_scaled, to_scaled
from treesens.compiler.base.floats import NumberType, next_up
from treesens.compiler.model import evaluate
from treesens.compiler.model.discretise import lay_on
from treesens.compiler.model.grid import Comparison, FeatureGrid, Grid, strict_cut_array
from treesens.compiler.model.kinds import Accumulation, Blend, Feature, ModelSource, Task
from treesens.compiler.model.numbers import (
    OpenNumber,
    check_closed,
    check_values,
    open_features,
)
from treesens.compiler.model.ties import Ties
from treesens.compiler.model.validate import validate
from treesens.errors import ModelError

if TYPE_CHECKING:
    from treesens.compiler.model.cells import CellEnsemble
    from treesens.links.link import Link

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Bools = NDArray[np.bool_]


def _no_sets() -> Int64:
    return np.zeros(1, dtype=np.int64)


def _no_codes() -> Int32:
    return np.zeros(0, dtype=np.int32)


def _no_flags() -> Bools:
    return np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """T trees with N nodes and L leaves, all concatenated, children after their parents.

    Shapes: tree_offset [T+1]; node arrays [N]; leaf_value [L, W]; leaf_tree and leaf_node [L]; tree_output [T]; tree_weight
    [T]; base [n_outputs]. node_feature is -1 at leaves; left and right are node numbers in the ensemble; default_left is true
    if NaN goes left; category_set is -1 or a row of the CSR sets of codes that go left, in which code n means any category that
    the feature does not list; node_leaf is the leaf number or -1; leaf_node is the library's own id of the leaf within its
    tree; tree_output is -1 if leaves have all W = n_outputs values. margin = base + (sum of tree_weight * leaf_value) /
    average. The predicted class is the first class with the greatest margin; with one output, it is the second class if the
    margin is above 0, and `class_at_zero` if the margin is 0. A library with `ranks_scores` compares the scores themselves;
    other libraries compare probabilities, which are rounded a second time. A library with `ranks_sums` compares the sums before
    they are divided by `average`, because quotients may tie. With a `cutoff`, the second of two classes is predicted if its
    probability is at least this number; without a `cutoff`, a calibrated model needs a probability above 1/2. With
    `decides_at`, the library compares only the last margin: it predicts the second of two classes if the margin is above this
    value (`probability_cut` is the corresponding probability, as users set it). With `ties` the scores do not determine the
    class at a tie: the library picks it by a hash of the input, or rounds scores divided by thresholds. With a `blend` the
    trees belong to several models, whose predictions are averaged in the library's own way. With a `number`, the only tree is a
    placeholder for a number; models that contain such a placeholder are open (`numbers.py`) and have no cells. `tables` holds
    the values of each feature that enters the score as a number: the domain over which the model was closed. Inputs with |x| <=
    zero_band are read as 0; at nodes flagged in zero_missing [N] they follow default_left instead.
    """

    name: str
    features: tuple[Feature, ...]
    number_type: NumberType
    comparison: Comparison
    tree_offset: Int64
    node_feature: Int32
    threshold: Float64
    left: Int32
    right: Int32
    default_left: Bools
    node_leaf: Int32
    leaf_value: Float64
    leaf_tree: Int32
    leaf_node: Int32
    tree_output: Int32
    tree_weight: Float64
    base: Float64
    link: Link
    task: Task
    accumulation: Accumulation
    source: ModelSource
    category_set: Int32 = field(default_factory=_no_codes)
    set_offset: Int64 = field(default_factory=_no_sets)
    set_codes: Int32 = field(default_factory=_no_codes)
    average: int = 1
    classes: tuple[str | int, ...] = ()
    class_at_zero: int = 0
    ranks_scores: bool = False
    ranks_sums: bool = False
    cutoff: Fraction | None = None
    decides_at: float | None = None
    probability_cut: Fraction | None = None
    blend: Blend | None = None
    ties: Ties | None = None
    number: OpenNumber | None = None
    tables: Mapping[str, FloatArray] = field(default_factory=dict)
    zero_band: float = 0.0
    zero_missing: Bools = field(default_factory=_no_flags)

    def __post_init__(self) -> None:
        if not len(self.category_set):
            object.__setattr__(self, "category_set", np.full(len(self.node_feature), -1, dtype=np.int32))
        if not len(self.zero_missing):
            object.__setattr__(self, "zero_missing", np.zeros(len(self.node_feature), dtype=np.bool_))
        types = {
            "tree_offset": np.int64, "node_feature": np.int32, "threshold": np.float64, "left": np.int32,
            "right": np.int32, "default_left": np.bool_, "node_leaf": np.int32, "leaf_value": np.float64,
            "leaf_tree": np.int32, "leaf_node": np.int32, "tree_output": np.int32, "tree_weight": np.float64,
            "base": np.float64, "category_set": np.int32, "set_offset": np.int64, "set_codes": np.int32,
            "zero_missing": np.bool_,
        }  # fmt: skip
        for name, dtype in types.items():
            array: NDArray[Any] = np.ascontiguousarray(getattr(self, name), dtype=dtype).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def n_trees(self) -> int:
        return len(self.tree_output)

    @property
    def n_nodes(self) -> int:
        return len(self.node_feature)

    @property
    def n_leaves(self) -> int:
        return len(self.leaf_tree)

    @property
    def n_features(self) -> int:
        return len(self.features)

    @property
    def n_outputs(self) -> int:
        return len(self.base)

    @cached_property
    def open_features(self) -> tuple[str, ...]:
        """The features that enter the score as numbers, which become tables only over a domain."""
        return open_features(self)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.features)

    @cached_property
    def node_tree(self) -> Int32:
        """The tree of every node, int32[N]."""
        return np.repeat(np.arange(self.n_trees, dtype=np.int32), np.diff(self.tree_offset))

    @cached_property
    def node_cut(self) -> Float64:
        """The strict cut of every ordered inner node (x goes left iff x < cut), NaN at other nodes, float64[N].

        A cut inside the zero band is replaced by an edge of the band such that 0 stays on the same side.
        """
        ordered = (self.node_feature >= 0) & (self.category_set < 0)
        cuts = np.full(self.n_nodes, np.nan)
        cuts[ordered] = strict_cut_array(self.threshold[ordered], self.number_type, self.comparison)
        if self.zero_band:
            low, high = self.zero_edges
            cuts[(cuts > low) & (cuts <= 0)] = low
            cuts[(cuts > 0) & (cuts < high)] = high
        return cuts

    @property
    def zero_edges(self) -> tuple[float, float]:
        """The strict cuts on both sides of the zero band."""
        return -self.zero_band, next_up(self.zero_band, self.number_type)

    @cached_property
    def zero_apart(self) -> Bools:
        """Marks nodes at which the zero band and the threshold disagree, so that left cells are not an interval, bool[N]."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.zero_missing & ((self.node_cut > 0) != self.default_left))

    @cached_property
    def leaf_contribution(self) -> Float64:
        """tree_weight * leaf_value, exact, float64[L, W]. Raises ModelError if a product is not a float64."""
        product = self.tree_weight[self.leaf_tree][:, None] * self.leaf_value
        if (self.tree_weight == 1.0).all():
            return self.leaf_value
        narrow = NumberType.FLOAT32.holds(self.tree_weight).all() and NumberType.FLOAT32.holds(self.leaf_value).all()
        # The product of two 24-bit significands has at most 48 bits, and float64 exponents cover all products of two float32.
        if not narrow and any(self._product(leaf, w) != product[leaf, w] for leaf, w in np.ndindex(product.shape)):
            raise ModelError(
                "a tree weight times a leaf value is not a float64",
                place=self.name,
                remedy="use `scaled_contributions`, which is exact for every model",
            )
        return product

    def _product(self, leaf: int, w: int) -> Fraction:
        return Fraction(self.tree_weight[self.leaf_tree[leaf]].item()) * Fraction(self.leaf_value[leaf, w].item())

    @cached_property
    def scaled_contributions(self) -> ScaledIntegers:
        """tree_weight * leaf_value of every leaf as exact integers, [L, W]."""
        try:
            return to_scaled(self.leaf_contribution)
        except ModelError:
            products = np.empty(self.leaf_value.shape, dtype=object)
            for leaf, w in np.ndindex(products.shape):
                products[leaf, w] = self._product(leaf, w)
            return fractions_to_scaled(products)

    @cached_property
    def scaled_base(self) -> ScaledIntegers:
        """The base of every output as exact integers, [outputs]."""
        return to_scaled(self.base)

    def contribution(self, leaf: int) -> tuple[Fraction, ...]:
        """The exact contribution of a leaf before averaging, one Fraction per value of the leaf."""
        return tuple(self._product(leaf, w) for w in range(self.leaf_value.shape[1]))

    def validate(self) -> Ensemble:
        """Checks all invariants of the columns; returns the ensemble. Raises ModelError for the first violated invariant."""
        validate(self)
        return self

    @property
    def used_features(self) -> list[str]:
        """The features on which some tree splits, in the model's order."""
        return [self.feature_names[f] for f in distinct(self.node_feature[self.node_feature >= 0])]

    def grid(self, missing: bool | Sequence[bool] = False) -> Grid:
        """The coarsest grid such that the ensemble is constant on each cell: all distinct cuts per feature."""
        check_closed(self)
        ordered = np.flatnonzero(~np.isnan(self.node_cut))
        order = ordered[np.lexsort((self.node_cut[ordered], self.node_feature[ordered]))]
        cuts = self.node_cut[order]
        # Cuts beyond the finite values split nothing; such nodes always go one way.
        inside = (cuts > -self.number_type.max) & (cuts <= self.number_type.max)
        cuts, owners = cuts[inside], self.node_feature[order][inside]
        if len(apart := distinct(self.node_feature[self.zero_apart])):
            cuts = np.concatenate([cuts, *(np.full(len(apart), edge) for edge in self.zero_edges)])
            owners = np.concatenate([owners, apart, apart])
            cuts, owners = cuts[by_owner := np.argsort(owners, kind="stable")], owners[by_owner]
        bounds = np.searchsorted(owners, np.arange(self.n_features + 1))
        grids = [
            FeatureGrid(
                f.name,
                self.number_type,
                distinct(cuts[bounds[i] : bounds[i + 1]]),
                f.categories,
                truncates=f.truncates,
            )
            for i, f in enumerate(self.features)
        ]
        return Grid(tuple(grids)).with_missing(missing)

    def on(self, grid: Grid) -> CellEnsemble:
        """The ensemble over a grid. Raises ModelError if the grid lacks cuts of the ensemble."""
        check_closed(self)
        return lay_on(self, grid)

    def leaves(self, rows: object) -> Int32:
        """Leaf numbers, by comparing floats as the library does: float64[rows, F] -> int32[rows, T]. NaN is missing."""
        check_closed(self)
        check_values(self, rows)
        return evaluate.leaves(self, rows)

    def margins_emulated(self, rows: object) -> NDArray[Any]:
        """Raw outputs in the library's number type and order of summation, bit for bit: [rows, n_outputs]."""
        return self.margins_of_leaves(self.leaves(rows))

    def margins_of_leaves(self, reached: Int32) -> NDArray[Any]:
        """As `margins_emulated`, for rows of leaves, int32[rows, T]."""
        check_closed(self)
        return evaluate.sum_emulated(self, reached) if self.blend is None else self.blend.margins(self, reached)

    def margins_exact(self, rows: object) -> NDArray[Any]:
        """Raw outputs as exact Fractions: object array [rows, n_outputs]."""
        sums = self.sums_exact(self.leaves(rows)).fractions()
        return sums if self.average == 1 else sums / self.average

    def sums_exact(self, leaves: Int32) -> ScaledIntegers:
        """`average` times the exact margins for rows of leaves: int32[rows, T] -> [rows, n_outputs]."""
        check_closed(self)
        return evaluate.sum_exact(self, leaves)

    def bands(self) -> tuple[Fraction, ...]:
        """A proved bound on |library's sum - exact sum| over all inputs, per output."""
        check_closed(self)
        return self._bands

    @cached_property
    def _bands(self) -> tuple[Fraction, ...]:
        if self.blend is not None:
            return self.blend.bands()
        return evaluate.bands(self)

    def band(self) -> Fraction:
        """The largest of `bands`."""
        return max(self.bands())

    def probabilities(self, margins: object) -> NDArray[Any]:
        """The library's predictions for margins [rows, n_outputs], for display: [rows, classes] or [rows, outputs]."""
        return evaluate.probabilities(self, margins)

    def predicted_classes(self, margins: FloatArray, rows: object = None) -> Int64Array:
        """The classes int64[rows] that the library predicts for its margins float64[rows, n_outputs], by position.

        `rows`, float64[rows, features], are needed if a hash of the input breaks ties; without them the first class wins.
        """
        return evaluate.predicted_classes(self, margins, rows)
