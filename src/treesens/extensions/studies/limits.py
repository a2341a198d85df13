"""Limits on changes of a person's features: fixed features, directions, and permitted values.

Recourse must not demand impossible changes (Ustun, Spangher and Liu, FAT* 2019). A feature may always keep its value, even if
the value is not permitted; a feature with a missing value stays missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.query.domain import ValueDomain, pick_value
from treesens.compiler.query.query import Query, Space
from treesens.data.tables import decimal_of
from treesens.errors import UsageError
from treesens.extensions.answers.evaluate_rows import holds_everywhere, many_inputs
from treesens.grammar.constructs.membership import InInterval, InSet
from treesens.grammar.tree import ast

DIRECTIONS = ("up", "down")


@dataclass(frozen=True)
class Range:
    """The ends of the permitted range of a number."""

    low: Fraction
    high: Fraction


Permission = Range | tuple[str | Fraction, ...]
"""Permitted values of a feature: a range of numbers or a list of values, depending on the notation and not on the feature."""


@dataclass(frozen=True)
class Limits:
    """Limits on a change. Features in `held` keep their values; `directions` maps features to `up` or `down`; `permitted` maps
    features to their permitted values.
    """

    held: frozenset[str] = frozenset()
    directions: Mapping[str, str] | None = None
    permitted: Mapping[str, Permission] | None = None

    @property
    def bounded(self) -> bool:
        """True if the limits include more than held features."""
        return bool(self.directions or self.permitted)

    @property
    def names(self) -> Iterable[str]:
        """All features that the limits mention."""
        return (*sorted(self.held), *(self.directions or ()), *(self.permitted or ()))

    def check(self, space: Space) -> None:
        """Raises UsageError for unknown features, and for a direction of an unordered feature."""
        for name in self.names:
            if name not in space.names:
                raise UsageError(f"the model has no feature `{name}`", remedy=did_you_mean(name, space.names))
        for name, way in (self.directions or {}).items():
            if way not in DIRECTIONS:
                raise UsageError(f"`{way}` is not a direction of `{name}`", remedy="write up or down")
            if space.grid[space.names.index(name)].categories:
                raise UsageError(
                    f"`{name}` is a category, and categories have no direction", remedy="list the permitted values"
                )
        for name, permission in (self.permitted or {}).items():
            if isinstance(permission, Range):
                _check_range(space, name, permission)
            elif not permission:
                raise UsageError(f"no value of `{name}` is permitted", remedy="list it in `fixed` if it cannot change")

    def formulas(self, space: Space, row: int, values: NDArray[np.float64]) -> Iterator[ast.Formula]:
        """The constraints on a change of a row with these `values`, float64[features], where NaN means missing."""
        held = set(self.held)
        for name in (*(self.directions or ()), *(self.permitted or ())):
            if np.isnan(values[space.names.index(name)]):
                held.add(name)
        if held:
            yield _as_row(row, (name for name in space.names if name not in held))
        for name, way in (self.directions or {}).items():
            own = values[space.names.index(name)]
            if name not in held:
                yield ast.Comparison(_feature(name), ">=" if way == "up" else "<=", ast.Number(Fraction(float(own))))
        for name, allowed in (self.permitted or {}).items():
            if name not in held:
                same = _as_row(row, (other for other in space.names if other != name))
                yield ast.Or((same, _inside(space, name, allowed)))


def permitted_cells(
    query: Query, limited: Query, row: NDArray[np.float64], features: Iterable[int]
) -> list[NDArray[np.bool_]]:
    """For each feature of `query`, bool[n_cells]: the legal cells; for `features`, those to which the row float64[1, features]
    may change by the constraints of `limited`. The cells of `query` respect these constraints.
    """
    legal = [one.copy() for one in query.space.legal]
    for f in features:
        options = np.flatnonzero(legal[f])
        changed = np.repeat(row, len(options), axis=0)
        grid, domain = query.space.grid[f], query.space.domains[f]
        changed[:, f] = [pick_value(domain, grid, cell) for cell in options.tolist()]
        inputs = many_inputs(limited, changed[None], limited.space.grid.cells(changed).astype(np.int32)[None])
        legal[f][options] = holds_everywhere(limited.constraints, inputs)
    return legal


_A = ast.Name("a")


def _feature(name: str) -> ast.FeatureOf:
    return ast.FeatureOf(_A, ast.Name(name))


def _as_row(row: int, but: Iterable[str]) -> ast.Formula:
    """Builds the formula that states that the input equals the row in all features except the features in `but`."""
    varied = tuple(map(ast.Name, but))
    return ast.PointIsRow(_A, ast.Row(ast.Whole(row), ast.Name("d")), ast.Features(varied) if varied else None)


def _check_range(space: Space, name: str, permitted: Range) -> None:
    if space.grid[space.names.index(name)].categories:
        raise UsageError(f"`{name}` is a category, and categories have no ends", remedy="list the permitted values")
    if permitted.low > permitted.high:
        raise UsageError(f"the permitted range of `{name}` is empty", remedy="give its lower end first")


def _inside(space: Space, name: str, allowed: Permission) -> ast.Formula:
    """Builds the formula that states that a number is in its range, or that a feature has one of the values."""
    if isinstance(allowed, Range):
        return InInterval(_feature(name), ast.Interval(ast.Number(allowed.low), ast.Number(allowed.high)))
    domain = space.domains[space.names.index(name)]
    names = domain.labels if isinstance(domain, ValueDomain) else ()
    return InSet(_feature(name), ast.ValueSet(tuple(_label(value, names) for value in allowed)))


def _label(value: str | Fraction, names: Sequence[str | int | float]) -> ast.Label:
    """A value as a label: text that can be read as a number becomes a number unless it is the name of a category."""
    if isinstance(value, str):
        number = None if value in names else decimal_of(value)
        return ast.Name(value) if number is None else ast.Number(number)
    return ast.Number(value)
