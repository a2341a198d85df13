"""The vocabulary of models: kinds of features, tasks, orders of summation, and models inside a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.floats import NumberType

if TYPE_CHECKING:
    from treesens.compiler.model.ensemble import Ensemble


class FeatureKind(Enum):
    """The meaning of a feature's values. Splits interpret the values of CATEGORICAL features differently."""

    NUMERIC = "numeric"
    INTEGER = "integer"
    INDICATOR = "indicator"
    CATEGORICAL = "categorical"


class Task(Enum):
    BINARY = "binary"
    MULTICLASS = "multiclass"
    REGRESSION = "regression"
    RANKING = "ranking"


class Accumulation(Enum):
    """A library's summation: the type of every partial sum, and the position of the base; trees are added in order.

    Weights apply to single trees, or to the sum of an output's trees, which must then have equal weights.
    """

    FLOAT32_BASE_FIRST = "float32, from the base"
    FLOAT32_BASE_LAST = "float32, base last"
    FLOAT32_WIDE_BASE_LAST = "float32, float64 base last"
    FLOAT64_BASE_FIRST = "float64, from the base"
    FLOAT64_BASE_LAST = "float64, base last"
    FLOAT64_BASE_LAST_ROUNDED = "float64, base last, then rounded to float32"
    FLOAT64_SCALED_BASE_LAST = "float64, weighted as a whole, base last"
    FLOAT64_ANY_ORDER = "float64, in an order that depends on the machine"
    FLOAT32_ANY_ORDER = "float32, with products that are rounded or not, depending on the machine"

    @property
    def number_type(self) -> NumberType:
        return NumberType.FLOAT32 if self.value.startswith("float32") else NumberType.FLOAT64

    @property
    def base_type(self) -> NumberType:
        """The type of the base; a wider base is rounded to float64 and added exactly, and the sum is then rounded."""
        return NumberType.FLOAT64 if self is Accumulation.FLOAT32_WIDE_BASE_LAST else self.number_type

    @property
    def rounds_sums(self) -> bool:
        """True if the finished sum is rounded to float32."""
        return self is Accumulation.FLOAT64_BASE_LAST_ROUNDED

    @property
    def weighs_sums(self) -> bool:
        """True if the weight multiplies the sum instead of every leaf."""
        return self is Accumulation.FLOAT64_SCALED_BASE_LAST

    @property
    def any_order(self) -> bool:
        """True if the library's sum is known only up to a bound: emulated sums use one of the possible orders."""
        return self in (Accumulation.FLOAT64_ANY_ORDER, Accumulation.FLOAT32_ANY_ORDER)

    @property
    def base_first(self) -> bool:
        return self.value.endswith("from the base")


REST = "(every other text)"
"""The label of the category of all texts that a model does not name."""


@dataclass(frozen=True)
class Feature:
    """A column of the model. `categories` is n for codes 0..n-1, 0 for ordered features; `labels` holds their names, if known.

    Labels come from the training data, and are all numbers or all text. A numeric label is not a code. `levels` of an
    ordered feature are the texts for its numbers 0, 1, .. (an ordered category of pandas).

    `truncates`: fractions are truncated towards zero before the sign is tested, so that -0.5 is code 0 (LightGBM).
    `needs_value`: the library makes no prediction for an input without the value, so that questions must exclude such inputs.
    `unsure`: a number in a table may be a code or a category name, since the file does not state to which features its names
    belong. `mark`: None or NaN, if this is the only mark for a missing value and other marks are unknown categories.
    """

    name: str
    kind: FeatureKind = FeatureKind.NUMERIC
    categories: int = 0
    labels: tuple[str, ...] | tuple[int | float, ...] | None = None
    truncates: bool = False
    needs_value: bool = False
    unsure: bool = False
    mark: str | None = None
    levels: tuple[str, ...] = ()


LEARNT = "typical"
"""The format of trees that are learnt from rows and do not belong to a model."""


@dataclass(frozen=True)
class ModelSource:
    """The origin of an ensemble. `options` holds the choices at loading that change predictions (e.g. an iteration range)."""

    format: str
    version: str = ""
    sha256: str = ""
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


class Blend(ABC):
    """The member models of a combined model, which extensions combine.

    `members` have equal features; `shares` are exact. `trees` holds, for each member, its first tree in the whole ensemble and
    the tree after its last tree. If `is_sum`, the members' trees form one ensemble; otherwise each member has its own scores.
    """

    members: tuple[Ensemble, ...]
    shares: tuple[Fraction, ...]
    trees: tuple[tuple[int, int], ...]
    is_sum: bool

    @abstractmethod
    def margins(self, whole: Ensemble, reached: NDArray[np.int32]) -> FloatArray:
        """The library's raw output before the link of `whole`: leaves int32[rows, T] -> float64[rows, n_outputs]."""

    @abstractmethod
    def bands(self) -> tuple[Fraction, ...]:
        """Bounds on |library's margin - exact margin| per output of the whole."""

    @abstractmethod
    def sums(self) -> Sequence[Blend]:
        """The sums that are the scores of the whole model, one per output; empty if its scores are not sums of predictions."""

    def parts(self) -> Iterator[tuple[Ensemble, int, int]]:
        """Each member with its first score and the score after its last score; only for members with their own scores."""
        first = 0
        for member in self.members:
            yield member, first, first + member.n_outputs
            first += member.n_outputs
