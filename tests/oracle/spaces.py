"""Small domains, complete: every value that an input can have, as the user types it and as the library reads it.

A real feature is represented by every threshold of the models, every constant of the questions and the ends of its domain,
each with one float below and above: between two of them neither a model nor a comparison with a constant can change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

PLAIN = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")
RESERVED = {"except", "of", "inf", "in", "a", "b", "p"}


def quoted(name: str) -> str:
    """A name as the language writes it."""
    plain = bool(name) and set(name) <= PLAIN and not name[0].isdigit() and name not in RESERVED
    return name if plain else f"`{name}`"


def number(value: float) -> str:
    """The exact decimal text of a float."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    from decimal import Decimal

    return str(Decimal(value))


@dataclass(frozen=True)
class Feature:
    """One feature: `typed`, `user` and `stored` are parallel lists of its values (None, NaN, NaN for missing).

    `user` is what relations and distances are about: numbers in the unit of the question, the position of a category.
    """

    name: str
    kind: str
    """integer, real or category."""
    typed: tuple[Any, ...]
    user: tuple[float, ...]
    stored: tuple[Any, ...]
    width: float | None
    """Of the domain, in the unit of the question; 1 for a category; None where no finite domain is declared."""
    declaration: str | None
    codes: str = "number"
    """How the model reads it: number, code (a categorical split over codes) or label (the model knows labels)."""
    constants: tuple[str, ...] = ()
    """Texts of numbers that a question may compare it with."""
    unit: tuple[float, float, float, float] | None = None
    """`in [lo, hi] stored as [lo, hi]`."""
    group: int | None = None
    """Its one-hot group."""
    labels: tuple[str, ...] = ()
    """All labels that the model knows, in the order of their codes, if it reads labels."""
    missing_text: bool = False

    @property
    def missing(self) -> bool:
        return self.typed[-1] is None

    @property
    def discrete(self) -> bool:
        return self.kind != "real"

    def text_of(self, value: Any) -> str:
        """A value of the feature as the language writes it."""
        return quoted(value) if isinstance(value, str) and not value.lstrip("-").isdigit() else str(value)

    def position(self, value: Any) -> int | None:
        """The place of a printed value among those of the domain; None if it is not one of them."""
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return len(self.typed) - 1 if self.missing else None
        for place, mine in enumerate(self.typed):
            if mine is not None and (str(mine) == str(value) if self.kind == "category" else mine == value):
                return place
        return None


@dataclass(frozen=True)
class Space:
    """The features, and the complete grid of their values: int32[points, features] of places."""

    features: tuple[Feature, ...]
    grid: np.ndarray = field(repr=False)

    @property
    def size(self) -> int:
        return len(self.grid)

    def user(self) -> np.ndarray:
        """float64[points, features] in the units of the question."""
        return np.stack([np.array(f.user, float)[self.grid[:, i]] for i, f in enumerate(self.features)], axis=1)

    def stored(self) -> list[np.ndarray]:
        """What the library reads, one array per feature."""
        return [column(f.stored)[self.grid[:, i]] for i, f in enumerate(self.features)]

    def index(self, name: str) -> int:
        return next(i for i, f in enumerate(self.features) if f.name == name)

    def declarations(self) -> str:
        """The declarations of the domains."""
        lines = [f"feature {quoted(f.name)}: {f.declaration}" for f in self.features if f.declaration]
        for group in sorted({f.group for f in self.features if f.group is not None}):
            names = ", ".join(quoted(f.name) for f in self.features if f.group == group)
            lines.append(f"onehot {{{names}}}")
        return "\n".join(lines)


def column(values: Sequence[Any]) -> np.ndarray:
    """Numbers as float64; labels as objects with None for missing."""
    if any(isinstance(v, str) for v in values):
        return np.array([v if isinstance(v, str) else None for v in values] + [None], dtype=object)[:-1]
    return np.array([np.nan if v is None else v for v in values], float)


def complete(features: Sequence[Feature]) -> Space:
    """Every combination of values in which each one-hot group has exactly one 1."""
    parts = units(features)
    chosen = np.indices([len(rows) for _, rows in parts]).reshape(len(parts), -1)
    grid = np.zeros((chosen.shape[1], len(features)), np.int32)
    for (members, rows), at in zip(parts, chosen, strict=True):
        grid[:, members] = rows[at]
    return Space(tuple(features), grid[np.lexsort(grid.T[::-1])])


def units(features: Sequence[Feature]) -> list[tuple[list[int], np.ndarray]]:
    """What is chosen independently: a feature, or a one-hot group; its features and int[choices, features] of places."""
    found: dict[int, tuple[list[int], np.ndarray]] = {}
    for i, f in enumerate(features):
        if f.group is None:
            found[i] = ([i], np.arange(len(f.typed), dtype=np.int32)[:, None])
        elif f.group not in {features[j].group for j in range(i)}:
            members = [j for j, other in enumerate(features) if other.group == f.group]
            found[i] = (members, np.eye(len(members), dtype=np.int32)[::-1])
    return list(found.values())


def combinations(features: Sequence[Feature]) -> int:
    return math.prod(len(rows) for _, rows in units(features))


def with_reals(space_features: Sequence[Feature], thresholds: dict[str, list[float]], kind: type) -> list[Feature]:
    """Real features with the values that represent them, once the thresholds of the models are known."""
    return [represented(f, thresholds.get(f.name, []), kind) if f.kind == "real" else f for f in space_features]


def represented(feature: Feature, thresholds: Sequence[float], kind: type) -> Feature:
    """A real feature by its thresholds and constants, each with one float below and above, within its domain."""
    low, high = float(feature.user[0]), float(feature.user[1])
    if feature.declaration is None:
        low = float(np.finfo(kind).min)
    if feature.declaration is None or "inf)" in feature.declaration:
        high = float(np.finfo(kind).max)
    around: set[float] = set()
    for value in [*thresholds, *(float(Fraction(c)) for c in feature.constants), low, high]:
        near = kind(value)
        around |= {float(x) for x in (near, np.nextafter(near, kind(-np.inf)), np.nextafter(near, kind(np.inf)))}
    values = sorted(v for v in around if low <= v <= high and np.isfinite(v))
    values = sorted({v + 0.0 for v in values})  # one zero
    end = [None] if feature.missing_text else []
    numbers = (*values, *(float("nan") for _ in end))
    return replace(feature, typed=(*values, *end), user=numbers, stored=numbers)
