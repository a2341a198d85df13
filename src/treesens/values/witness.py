"""Verified points: a witness is what `verify` makes of values that pass every replay."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from treesens.compiler.base.arrays import FloatArray, Int32Array


class Replay(StrEnum):
    """How far a witness was replayed: in the library's arithmetic bit for bit, or by the library itself."""

    EMULATED = "emulated"
    LIBRARY = "library"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False)
class Witness:
    """Verified concrete points.

    `values` float64[points, features] as typed into the model, `cells` int32 of the same shape, `margins[point]` the library's
    own raw outputs, `exact` the exact ones; `in_band` if a constraint holds by less than the numerical band. `classes[point]`
    is the position of the class that the library predicts: None for a regressor, and if emulation cannot tell which of two
    classes the library's own rounding chooses.
    """

    values: FloatArray
    cells: Int32Array
    margins: tuple[tuple[float, ...], ...]
    probabilities: tuple[tuple[float, ...], ...]
    exact: tuple[tuple[Fraction, ...], ...]
    replay: Replay
    in_band: bool
    classes: tuple[int | None, ...] = ()
