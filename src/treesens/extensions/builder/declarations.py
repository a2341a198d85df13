"""Builds declarations as objects, and collects the live models and frames named in a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from treesens.errors import UsageError
from treesens.extensions.builder.arguments import (
    Ends,
    Numeric,
    given_name_of,
    interval_of,
    name_of,
    names_of,
    number_of,
    optional,
    path_of,
    whole_of,
    word_of,
    wrong,
)
from treesens.extensions.builder.terms import Built, Constraint, formula_of
from treesens.grammar.tree import ast
from treesens.grammar.tree.words import MEASURES


class Declaration(Built):
    """A declaration in a file; it prints as its line of the file."""

    __slots__ = ()
    node: ast.Declaration
    what = "the declaration"


def model(name: str, path: object, *, format: str | None = None) -> Declaration:
    """`model NAME from "FILE" [as FORMAT]`"""
    return Declaration(ast.Model(name_of(name, "name"), path_of(path, "path"), optional(name_of, format, "format")))


def data(name: str, path: object, *, label: str | None = None, rows: int | None = None) -> Declaration:
    """`data NAME from "FILE" [label COLUMN] [rows N]`"""
    clauses = optional(given_name_of, label, "label"), optional(whole_of, rows, "rows")
    return Declaration(ast.Data(name_of(name, "name"), path_of(path, "path"), *clauses))


def real(
    name: str,
    low: Numeric | None = None,
    high: Numeric | None = None,
    *,
    inclusive: Ends = "both",
    stored: tuple[Numeric, Numeric] | None = None,
    missing: bool = False,
) -> Declaration:
    """`feature NAME: real [in INTERVAL] [stored as [low, high]] [or missing]`"""
    return _numeric("real", name, (low, high), inclusive, stored, missing)


def integer(
    name: str,
    low: Numeric | None = None,
    high: Numeric | None = None,
    *,
    inclusive: Ends = "both",
    stored: tuple[Numeric, Numeric] | None = None,
    missing: bool = False,
) -> Declaration:
    """`feature NAME: integer [in INTERVAL] [stored as [low, high]] [or missing]`"""
    return _numeric("integer", name, (low, high), inclusive, stored, missing)


def _numeric(
    kind: Literal["real", "integer"],
    name: str,
    ends: tuple[Numeric | None, Numeric | None],
    inclusive: Ends,
    stored: tuple[Numeric, Numeric] | None,
    missing: bool,
) -> Declaration:
    if (ends[0] is None) != (ends[1] is None):
        absent = "low" if ends[0] is None else "high"
        raise UsageError(f"`{absent}` is missing", remedy="pass both ends, `math.inf` or `-math.inf` if unbounded")
    interval = None if ends[0] is None else interval_of(*ends, inclusive)
    if stored is not None and (isinstance(stored, str) or len(stored) != 2):
        raise wrong("stored", "a pair (low, high)", stored)
    unit = None if stored is None else interval_of(*stored, "both")
    return Declaration(ast.Feature(given_name_of(name, "name"), ast.Numeric(kind, interval), unit, bool(missing)))


def category(
    name: str,
    values: Mapping[str, Numeric] | Iterable[str | Numeric | tuple[str, Numeric]],
    *,
    missing: bool = False,
) -> Declaration:
    """`feature NAME: category {..}`: a mapping from category names to stored numbers, or a list of names, numbers and pairs."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise wrong("values", "a mapping or a list of categories", values)
    listed = values.items() if isinstance(values, Mapping) else values
    items = tuple(_category_item(value, f"values[{i}]") for i, value in enumerate(listed))
    if not items:
        raise UsageError("`values` is empty", remedy="pass at least one category")
    return Declaration(ast.Feature(given_name_of(name, "name"), ast.Category(items), None, bool(missing)))


def _category_item(value: object, argument: str) -> ast.CategoryItem:
    match value:
        case str():
            return ast.CategoryItem(given_name_of(value, argument), None)
        case (label, stored):
            return ast.CategoryItem(given_name_of(label, f"{argument}[0]"), number_of(stored, f"{argument}[1]"))
        case _:
            return ast.CategoryItem(None, number_of(value, argument))


def onehot(*features: str) -> Declaration:
    """`onehot {..}`: exactly one of the features is 1, and the others are 0."""
    return Declaration(ast.OneHot(names_of(features, "features")))


def domain_from(data: str) -> Declaration:
    """`domain from DATA`: features without a declaration range over the values of the data."""
    return Declaration(ast.DomainFrom(name_of(data, "data")))


def measure(
    name: str, kind: Literal["uniform", "cells", "marginals", "chow-liu", "rows"], data: str | None = None
) -> Declaration:
    """`measure NAME: KIND [of DATA]`: the measure of a share; the last three kinds need data."""
    kinds: tuple[ast.MeasureKind, ...] = ("uniform", "cells", "marginals", "chow-liu", "rows")
    assert kinds == MEASURES
    chosen: ast.MeasureKind = word_of(kind, kinds, "kind")
    if (chosen in MEASURES[2:]) != (data is not None):
        raise UsageError(
            f"`{chosen}` is a measure of {'no data' if data is not None else 'data'}",
            remedy="leave `data` out" if data is not None else "pass `data`",
        )
    return Declaration(ast.Measure(name_of(name, "name"), chosen, optional(name_of, data, "data")))


def decision(
    name: str, point: str, *cases: tuple[str, Constraint], otherwise: str, model: str | None = None
) -> Declaration:
    """`decision NAME of POINT [in MODEL]: OUTCOME when CONSTRAINT .. else OTHERWISE`"""
    if not cases:
        raise UsageError("`cases` is empty", remedy="pass at least one pair of an outcome and a constraint")
    built = []
    for number, case in enumerate(cases):
        if not (isinstance(case, tuple) and len(case) == 2):
            raise wrong(f"case {number + 1}", "a pair (outcome, constraint)", case)
        condition = formula_of(case[1], f"the constraint of case {number + 1}")
        built.append(ast.Case(given_name_of(case[0], f"the outcome of case {number + 1}"), condition))
    where = ast.Point(name_of(point, "point"), optional(name_of, model, "model"))
    return Declaration(ast.Decision(name_of(name, "name"), where, tuple(built), name_of(otherwise, "otherwise")))


# --- live models and frames -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Live:
    """The models and tables of a text (objects or paths), by name."""

    models: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)

    def joined(self, other: Live) -> Live:
        """Merges the objects of two texts. Raises UsageError if one name refers to two objects."""
        return Live(_joined(self.models, other.models), _joined(self.data, other.data))


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    for name in one.keys() & other.keys():
        if one[name] is not other[name]:
            raise UsageError(
                f"`{name}` refers to two different objects",
                remedy="use names in the questions, and pass the objects to `answers`",
            )
    return {**one, **other}


def live_or_name(given: Any, name: str, argument: str) -> tuple[ast.Name | None, dict[str, Any]]:
    """The name of a model or frame in the text, and the object, if passed."""
    if given is None:
        return None, {}
    if isinstance(given, str):
        return name_of(given, argument), {}
    return ast.Name(name), {name: given}


def by_name(given: Any, used: Iterable[str], argument: str) -> dict[str, Any]:
    """The objects by name: a passed mapping, or a single object under the only name in use."""
    if given is None:
        return {}
    if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        return dict(given)
    names = sorted(set(used)) or [argument.removesuffix("s")]
    if len(names) > 1:
        listed = ", ".join(f"`{name}`" for name in names)
        raise UsageError(f"`{argument}` is one object; the questions name {listed}", remedy="pass a mapping by name")
    return {names[0]: given}
