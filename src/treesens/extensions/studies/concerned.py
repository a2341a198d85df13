"""Who is concerned: how inputs that a change flips differ from all inputs, feature by feature, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int32Array
from treesens.compiler.query.domain import ValueDomain, cell_range
from treesens.compiler.query.query import Space
from treesens.extensions.studies.count import TraitRecord
from treesens.records.answers import label_of

_LEAST_DIFFERENCE = 0.03
"""Of shares that are worth a line."""
_LISTED = 6


@dataclass(frozen=True)
class Trait:
    """A statement about one feature that holds for more of those concerned (`concerned`) than of all inputs (`all`)."""

    feature: str
    words: str
    concerned: float
    all: float

    @property
    def strength(self) -> float:
        """Information about the statement, in nats, that "is concerned" carries: the relative entropy of the two shares."""
        return _entropy(self.concerned, self.all) + _entropy(1 - self.concerned, 1 - self.all)

    def record(self) -> TraitRecord:
        """The facts for JSON."""
        shares = round(self.concerned, 4), round(self.all, 4)
        return TraitRecord(feature=self.feature, words=self.words, concerned=shares[0], all=shares[1])


def _entropy(one: float, two: float) -> float:
    return 0.0 if one <= 0 else one * log(one / max(two, 1e-12))


def traits_of(
    space: Space, varied: Collection[int], everyone: Sequence[FloatArray], drawn: Int32Array, weights: FloatArray
) -> list[Trait]:
    """The statement about each feature that tells those concerned from all best, the strongest first.

    `everyone[f]` float64[n_cells] are the shares of all inputs, `drawn` int32[rows, features] inputs that are concerned, with
    weights float64[rows] that add up to 1.
    """
    found = []
    for f in range(len(space.names)):
        if f in varied or len(drawn) == 0:
            continue
        mine: FloatArray = np.bincount(drawn[:, f], weights, minlength=len(everyone[f])).astype(np.float64)
        more = [t for t in _statements(space, f, mine, everyone[f]) if t.concerned - t.all >= _LEAST_DIFFERENCE]
        if more:
            found.append(max(more, key=lambda trait: trait.strength))
    return sorted(found, key=lambda trait: -trait.strength)[:_LISTED]


def _statements(space: Space, f: int, mine: FloatArray, everyone: FloatArray) -> Iterator[Trait]:
    """Everything that is said of a feature: each category, or each end of an order."""
    name, grid = space.names[f], space.grid[f]
    legal = np.flatnonzero(space.legal[f])
    if grid.missing and space.legal[f][grid.missing_cell]:
        yield Trait(name, f"`{name}` missing", float(mine[-1]), float(everyone[-1]))
    if unordered(space, f):
        for cell in legal[legal < grid.present_cells].tolist():
            words = f"`{name}` {values_in(space, f, cell, cell)}"
            yield Trait(name, words, float(mine[cell]), float(everyone[cell]))
        return
    present = legal[legal < grid.present_cells]
    for last, first in zip(present[:-1].tolist(), present[1:].tolist(), strict=True):
        below, above = slice(0, last + 1), slice(first, grid.present_cells)
        up, down = values_in(space, f, first, int(present[-1])), values_in(space, f, int(present[0]), last)
        yield Trait(name, f"`{name}` {up}", float(mine[above].sum()), float(everyone[above].sum()))
        yield Trait(name, f"`{name}` {down}", float(mine[below].sum()), float(everyone[below].sum()))


def unordered(space: Space, f: int) -> bool:
    """True if values of a feature are names."""
    domain = space.domains[f]
    return bool(space.grid[f].categories) or (
        isinstance(domain, ValueDomain) and any(isinstance(label, str) for label in domain.labels)
    )


def values_in(space: Space, f: int, first: int, last: int) -> str:
    """The legal values of a run of present cells as people read them."""
    domain, grid = space.domains[f], space.grid[f]
    kind = grid.number_type.dtype
    if isinstance(domain, ValueDomain):
        cells = grid.cell_of(domain.values)
        inside = [label for label, c in zip(domain.labels, cells.tolist(), strict=True) if first <= c <= last]
        labels = list(dict.fromkeys(inside))
        if unordered(space, f) or len(labels) == 1:
            return f"= {_listed(labels)}"
        least, most, low, high = labels[0], labels[-1], domain.labels[0], domain.labels[-1]
    else:
        present = np.flatnonzero(space.legal[f][: grid.present_cells])
        low, high = (label_of(domain, v, kind) for v in (domain.low, domain.high))  # type: ignore[assignment]
        least = label_of(domain, cell_range(domain, grid, first)[0], kind)  # type: ignore[assignment]
        most = label_of(domain, cell_range(domain, grid, last)[1], kind)  # type: ignore[assignment]
        low = least if first <= present[0] else low
        high = most if last >= present[-1] else high
    if least == most:
        return f"= {least}"
    if most == high:
        return f">= {least}"
    return f"<= {most}" if least == low else f"in [{least}, {most}]"


def _listed(labels: Sequence[Any]) -> str:
    shown = ", ".join(map(str, labels[:4])) + (", …" if len(labels) > 4 else "")
    return shown if len(labels) == 1 else f"one of {shown}"


def where(space: Space, varied: Collection[int], low: Int32Array, high: Int32Array) -> dict[str, str]:
    """A box in words: the features that it restricts, and to what."""
    found = {}
    for f, name in enumerate(space.names):
        legal = np.flatnonzero(space.legal[f])
        if f in varied or (low[f] <= legal[0] and high[f] >= legal[-1]):
            continue
        last = space.grid[f].present_cells - 1
        missing = " or missing" if high[f] > last and space.legal[f][-1] else ""
        if low[f] > last:
            found[name] = "missing"
            continue
        present = legal[(legal >= low[f]) & (legal <= min(int(high[f]), last))]
        if len(present):
            found[name] = values_in(space, f, int(present[0]), int(present[-1])) + missing
    return found
