"""The cells of an input space: an ensemble cannot distinguish two inputs in one cell (docs/semantics.md).

All cuts are strict: a cut c separates x < c from x >= c. A library's threshold, with any comparison and of any type, becomes a
strict cut without rounding (`strict_cut`), since the possible inputs are a discrete set: the floats of one type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import distinct, frozen
from treesens.compiler.base.floats import (
    NumberType,
    ceil_to,
    ceil_to_array,
    floor_to,
    floor_to_array,
    next_down,
    next_down_array,
    next_up,
    next_up_array,
)
from treesens.errors import DataError, ModelError

Comparison = Literal["<", "<="]


def strict_cut(threshold: Fraction | float, number_type: NumberType, comparison: Comparison) -> float:
    """The value c of the type such that, for every x of the type, `x comparison threshold` holds iff x < c.

    If c <= -max, no finite x satisfies the comparison; if c is infinity, every finite x satisfies it.
    """
    if comparison == "<":
        return ceil_to(threshold, number_type)
    return next_up(floor_to(threshold, number_type), number_type)


def strict_cut_array(thresholds: object, number_type: NumberType, comparison: Comparison) -> NDArray[np.float64]:
    """`strict_cut` for an array of float64 thresholds."""
    if comparison == "<":
        return ceil_to_array(thresholds, number_type)
    return next_up_array(floor_to_array(thresholds, number_type), number_type)


def category_codes(values: NDArray[np.float64], categories: object, truncates: object) -> NDArray[np.int64]:
    """The codes of categorical values; `categories` for every other value and for NaN. Both other arguments are broadcast."""
    with np.errstate(invalid="ignore"):
        known = (values >= 0) & (values < np.asarray(categories)) | (values > -1) & (values < 0) & np.asarray(truncates)
    return np.where(known, np.trunc(np.where(known, values, 0.0)), np.asarray(categories)).astype(np.int64)


_FEW_CUTS = 8
"""Maximum number of cuts that are inserted one by one."""


@dataclass(frozen=True, eq=False)
class FeatureGrid:
    """The cells of one feature.

    Ordered features (`categories == 0`): K strictly increasing `cuts` (a float64 array with values of the number type in (-max,
    max]) define K + 1 cells; cell j contains cuts[j-1] <= x < cuts[j]. Categorical features: codes 0..n-1 are cells 0..n-1, and
    cell n contains every other category. With `missing`, one more cell at the end contains NaN.
    """

    name: str
    number_type: NumberType
    cuts: NDArray[np.float64]
    categories: int = 0
    missing: bool = False
    truncates: bool = False

    def __post_init__(self) -> None:
        cuts = np.ascontiguousarray(self.cuts, dtype=np.float64) + 0.0
        limit = self.number_type.max
        if cuts.ndim != 1 or not (np.diff(cuts) > 0).all() or not self.number_type.holds(cuts).all():
            raise ModelError(f"cuts of feature `{self.name}` must increase strictly and be {self.number_type.value}")
        if cuts.size and not (-limit < cuts[0] and cuts[-1] <= limit):
            raise ModelError(f"cuts of feature `{self.name}` must be finite and leave both end cells non-empty")
        if self.categories < 0 or (self.categories and cuts.size):
            raise ModelError(f"feature `{self.name}` has cuts and categories at once")
        cuts.flags.writeable = False
        object.__setattr__(self, "cuts", cuts)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FeatureGrid)
            and (self.name, self.number_type, self.categories, self.missing, self.truncates)
            == (other.name, other.number_type, other.categories, other.missing, other.truncates)
            and np.array_equal(self.cuts, other.cuts)
        )

    def __hash__(self) -> int:
        return hash((self.name, self.number_type, self.categories, self.missing, self.truncates, self.cuts.tobytes()))

    @property
    def present_cells(self) -> int:
        """The number of cells, not counting the missing cell."""
        return self.categories + 1 if self.categories else len(self.cuts) + 1

    @property
    def n_cells(self) -> int:
        """The number of cells, including the missing cell."""
        return self.present_cells + self.missing

    @property
    def missing_cell(self) -> int:
        """The number of the missing cell (always the last); -1 without such a cell."""
        return self.present_cells if self.missing else -1

    def cell_of(self, values: object) -> NDArray[np.int32]:
        """The cell of each value (float64, any shape); values are first cast to the number type, as in the library.

        Infinities fall into the end cells. Categories are truncated as in C; codes that are negative (at most -1 if the feature
        `truncates`) or above the known codes belong to the other category. Raises DataError for NaN if there is no missing
        cell.
        """
        x = self.number_type.cast(values)
        absent = np.isnan(x)
        if not self.missing and absent.any():
            row = int(np.flatnonzero(absent.ravel())[0])
            raise DataError(
                f"value {row} of feature `{self.name}` is missing (NaN)",
                remedy="allow missing values for this feature, or leave such rows out",
            )
        if self.categories:
            cells = category_codes(x, self.categories, self.truncates).astype(np.int32)
        else:
            cells = np.searchsorted(self.cuts, x, side="right").astype(np.int32)
        return cast("NDArray[np.int32]", np.where(absent, np.int32(self.missing_cell), cells).astype(np.int32))

    def interval(self, cell: int) -> tuple[float, float]:
        """The closed bounds (lo, hi) of a cell, both finite values of the number type.

        The bounds are (code, code) for a category, (n, max) for the other category, and (nan, nan) for the missing cell.
        """
        if not 0 <= cell < self.n_cells:
            raise IndexError(f"feature `{self.name}` has cells 0..{self.n_cells - 1}, not {cell}")
        if cell == self.missing_cell:
            return math.nan, math.nan
        limit = self.number_type.max
        if self.categories:
            return float(cell), float(cell) if cell < self.categories else limit
        lo = -limit if cell == 0 else float(self.cuts[cell - 1])
        hi = limit if cell == len(self.cuts) else next_down(float(self.cuts[cell]), self.number_type)
        return lo, hi

    def intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """`interval` for all cells of an ordered feature except the missing cell: float64[len(cuts) + 1] each."""
        limit = self.number_type.max
        lows = np.concatenate(([-limit], self.cuts))
        return lows, np.concatenate((next_down_array(self.cuts, self.number_type), [limit]))

    def refined(self, extra_cuts: object) -> FeatureGrid:
        """The grid with additional strict cuts, of the number type; cuts that separate no finite values are dropped."""
        extra = np.asarray(extra_cuts, dtype=np.float64).ravel() + 0.0
        if self.categories and extra.size:
            raise ModelError(f"feature `{self.name}` is categorical and has no order to cut")
        extra = extra[(extra > -self.number_type.max) & (extra <= self.number_type.max)]
        if len(extra) > _FEW_CUTS or any(float(self.number_type.dtype.type(c)) != c for c in extra.tolist()):
            return replace(self, cuts=distinct(np.concatenate((self.cuts, extra))))
        return self._with_cuts([c for c in sorted(set(extra.tolist())) if not self.has_cut(c)])

    def has_cut(self, value: float) -> bool:
        """True if a value is a cut of the grid."""
        at = int(self.cuts.searchsorted(value))
        return at < len(self.cuts) and bool(self.cuts[at] == value)

    def _with_cuts(self, extra: list[float]) -> FeatureGrid:
        """The grid with a few additional cuts, which are valid, ascending and new."""
        if not extra:
            return self
        places = self.cuts.searchsorted(extra).tolist()
        cuts = np.empty(len(self.cuts) + len(extra))
        done = 0
        for number, (place, cut) in enumerate(zip(places, extra, strict=True)):
            cuts[done + number : place + number] = self.cuts[done:place]
            cuts[place + number] = cut
            done = place
        cuts[done + len(extra) :] = self.cuts[done:]
        cuts.flags.writeable = False
        made = object.__new__(FeatureGrid)  # the other invariants of the grid still hold
        made.__dict__.update(self.__dict__, cuts=cuts)
        return made

    def with_categories(self, count: int) -> FeatureGrid:
        """The grid with a separate cell for at least each code below `count`; the last cell contains every other code."""
        if not self.categories:
            raise ModelError(f"feature `{self.name}` is ordered and has no categories")
        return self if count <= self.categories else replace(self, categories=count)

    def with_missing(self, missing: bool) -> FeatureGrid:
        """The same grid with or without a missing cell."""
        return self if missing == self.missing else replace(self, missing=missing)


_FEW_ROWS = 64
"""Maximum number of rows of a matrix whose cells are computed by a plain loop over the features."""


@dataclass(frozen=True)
class Grid:
    """One FeatureGrid per feature, in the order of the ensemble's features."""

    features: tuple[FeatureGrid, ...]

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, feature: int) -> FeatureGrid:
        return self.features[feature]

    def __iter__(self) -> Iterator[FeatureGrid]:
        return iter(self.features)

    @cached_property
    def n_cells(self) -> NDArray[np.int32]:
        """Cells per feature, int32[F], read-only."""
        return frozen([f.n_cells for f in self.features], np.int32)

    @cached_property
    def missing_cells(self) -> NDArray[np.int32]:
        """The missing cell of each feature, or -1 if there is none, int32[F], read-only."""
        return frozen([f.missing_cell for f in self.features], np.int32)

    @cached_property
    def _ordered_type(self) -> NumberType | None:
        """The number type that all features share; None if the types differ or a feature is categorical."""
        types = {f.number_type for f in self.features}
        return types.pop() if len(types) == 1 and not any(f.categories for f in self.features) else None

    def cells(self, rows: object) -> NDArray[np.int32]:
        """Cells of a float64 matrix [rows, features], same shape. Raises DataError for a wrong width or an unexpected NaN."""
        x = np.asarray(rows, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != len(self.features):
            raise DataError(f"expected a matrix with {len(self.features)} columns, not an array of shape {x.shape}")
        result = np.empty(x.shape, dtype=np.int32)
        if len(x) <= _FEW_ROWS and self._ordered_type is not None:
            cast = self._ordered_type.cast(x)
            absent = np.isnan(cast)
            if not (absent & (self.missing_cells < 0)).any():
                for f, feature in enumerate(self.features):
                    result[:, f] = feature.cuts.searchsorted(cast[:, f], side="right")
                return np.where(absent, self.missing_cells, result)
        for f, feature in enumerate(self.features):
            result[:, f] = feature.cell_of(x[:, f])
        return result

    def refined(self, cuts: Sequence[Sequence[float]]) -> Grid:
        """The grid with additional cuts per feature; features without new cuts keep their FeatureGrid object."""
        pairs = zip(self.features, cuts, strict=True)
        return Grid(tuple(f.refined(extra) if len(extra) else f for f, extra in pairs))

    def with_missing(self, missing: bool | Sequence[bool]) -> Grid:
        """The grid with missing cells for all, none, or the flagged features."""
        flags = [missing] * len(self.features) if isinstance(missing, bool) else list(missing)
        if len(flags) != len(self.features):
            raise ModelError(f"{len(flags)} missing flags for {len(self.features)} features")
        return Grid(tuple(f.with_missing(bool(m)) for f, m in zip(self.features, flags, strict=True)))
