"""The words that describe a model: kinds of features, tasks, and how a library adds up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from treesens.compiler.base.floats import NumberType


class FeatureKind(Enum):
    """What values of a feature mean; only CATEGORICAL changes how splits read them."""

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
    """How the library adds up: the type of every partial sum, and where the base comes in; trees in their order.

    Weights are those of trees, or of the sum of all trees of an output, which then have one weight.
    """

    FLOAT32_BASE_FIRST = "float32, from the base"
    FLOAT32_BASE_LAST = "float32, base last"
    FLOAT32_WIDE_BASE_LAST = "float32, float64 base last"
    FLOAT64_BASE_FIRST = "float64, from the base"
    FLOAT64_BASE_LAST = "float64, base last"
    FLOAT64_BASE_LAST_ROUNDED = "float64, base last, then rounded to float32"
    FLOAT64_SCALED_BASE_LAST = "float64, weighted as a whole, base last"
    FLOAT64_ANY_ORDER = "float64, in an order that depends on the machine"
    FLOAT32_ANY_ORDER = "float32, with products that are rounded or not, as the machine does it"

    @property
    def number_type(self) -> NumberType:
        return NumberType.FLOAT32 if self.value.startswith("float32") else NumberType.FLOAT64

    @property
    def base_type(self) -> NumberType:
        """The type of the base; a wider one is added exactly, but for the rounding to float64, and then rounded."""
        return NumberType.FLOAT64 if self is Accumulation.FLOAT32_WIDE_BASE_LAST else self.number_type

    @property
    def rounds_sums(self) -> bool:
        """True if the finished sum is rounded to float32."""
        return self is Accumulation.FLOAT64_BASE_LAST_ROUNDED

    @property
    def weighs_sums(self) -> bool:
        """Whether the sum is multiplied, and not every leaf."""
        return self is Accumulation.FLOAT64_SCALED_BASE_LAST

    @property
    def any_order(self) -> bool:
        """True if only a bound is known of what the library adds up: emulated sums are those of one order."""
        return self in (Accumulation.FLOAT64_ANY_ORDER, Accumulation.FLOAT32_ANY_ORDER)

    @property
    def base_first(self) -> bool:
        return self.value.endswith("from the base")


@dataclass(frozen=True)
class Feature:
    """A column of the model. `categories` is n for codes 0..n-1 (0 if ordered); `labels` names them if they are known.

    Labels are what the training data held: all numbers, or all text. A label that is a number is no code.

    `truncates`: fractions are cut off towards zero before the sign is looked at, so that -0.5 is code 0 (LightGBM).
    `needs_value`: the library predicts nothing for an input in which it is missing, so that no question may let it be.
    `unsure`: a number in a table may be a code or the name of a category, since the file does not state whose names it holds.
    `mark`: None or NaN, if the model takes every other mark of a missing value for an unknown category.
    """

    name: str
    kind: FeatureKind = FeatureKind.NUMERIC
    categories: int = 0
    labels: tuple[str, ...] | tuple[int | float, ...] | None = None
    truncates: bool = False
    needs_value: bool = False
    unsure: bool = False
    mark: str | None = None


LEARNT = "typical"
"""The format of trees that are no model, but learnt from rows."""


@dataclass(frozen=True)
class ModelSource:
    """Where an ensemble came from. `options` are choices at loading that change predictions (iteration range)."""

    format: str
    version: str = ""
    sha256: str = ""
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
