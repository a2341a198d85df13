"""Finds the occurrences of names in a file, their declarations, and the names that may be renamed.

Names of models, data, measures, decisions, queries and features are global in a file; points and parameters of `for each` are
local to their query (and the point of a decision is local to the decision).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from treesens.errors import QueryError
from treesens.grammar.constructs.avoid import Avoid, AvoidListed
from treesens.grammar.constructs.construct import Applied
from treesens.grammar.constructs.decided import Decided, DecidedAlike
from treesens.grammar.constructs.typical import Typical
from treesens.grammar.printing.print_terms import name_text, point_name_text
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import nodes_in
from treesens.visible import PLAIN

Role = Literal[
    "model", "data", "measure", "decision", "query", "number", "definition", "point", "parameter", "feature", "outside"
]
"""The kinds of names; `outside` covers outcomes, and names from models and data: columns, classes, categories, formats."""

ROLES: Final[dict[tuple[type[ast.Node], str], Role]] = {
    (ast.Let, "name"): "number",
    (ast.Constant, "name"): "number",
    (ast.Define, "name"): "definition",
    (ast.Define, "parameters"): "parameter",
    (Applied, "name"): "definition",
    (Applied, "arguments"): "outside",
    (ast.Model, "name"): "model",
    (ast.Model, "format"): "outside",
    (ast.Data, "name"): "data",
    (ast.Data, "label"): "outside",
    (ast.CategoryItem, "name"): "outside",
    (ast.Feature, "name"): "feature",
    (ast.OneHot, "features"): "feature",
    (ast.DomainFrom, "data"): "data",
    (ast.Measure, "name"): "measure",
    (ast.Measure, "data"): "data",
    (ast.Decision, "name"): "decision",
    (ast.Decision, "otherwise"): "outside",
    (ast.Case, "outcome"): "outside",
    (ast.Point, "name"): "point",
    (ast.Point, "model"): "model",
    (ast.Find, "share"): "measure",
    (ast.Count, "data"): "data",
    (ast.Explain, "model"): "model",
    (ast.Flip, "source"): "outside",
    (ast.Flip, "target"): "outside",
    (ast.Near, "data"): "data",
    (ast.Sensitive, "model"): "model",
    (ast.Sensitive, "share"): "measure",
    (ast.Monotone, "model"): "model",
    (ast.Monotone, "label"): "outside",
    (ast.Each, "parameters"): "parameter",
    (ast.Query, "name"): "query",
    (ast.ValueSet, "values"): "outside",
    (ast.Features, "names"): "feature",
    (ast.FeatureOf, "point"): "point",
    (ast.FeatureOf, "feature"): "feature",
    (ast.Prob, "point"): "point",
    (ast.Prob, "label"): "outside",
    (ast.Margin, "point"): "point",
    (ast.Margin, "label"): "outside",
    (ast.ValueOf, "point"): "point",
    (ast.ClassOf, "point"): "point",
    (ast.Likelihood, "point"): "point",
    (ast.Likelihood, "data"): "data",
    (ast.Row, "data"): "data",
    (ast.NearestRow, "data"): "data",
    (ast.Typicality, "point"): "point",
    (ast.Typicality, "data"): "data",
    (ast.Distance, "point"): "point",
    (ast.Distance, "target"): "point",
    (ast.Changes, "first"): "point",
    (ast.Changes, "second"): "point",
    (ast.PointsEqual, "left"): "point",
    (ast.PointsEqual, "right"): "point",
    (ast.PointIsRow, "point"): "point",
    (ast.ClassIs, "point"): "point",
    (ast.ClassIs, "label"): "outside",
    (Avoid, "points"): "point",
    (Avoid, "data"): "data",
    (AvoidListed, "points"): "point",
    (Decided, "point"): "point",
    (Decided, "decision"): "decision",
    (Decided, "outcomes"): "outside",
    (DecidedAlike, "left"): "point",
    (DecidedAlike, "left_decision"): "decision",
    (DecidedAlike, "right"): "point",
    (DecidedAlike, "right_decision"): "decision",
    (Typical, "points"): "point",
    (Typical, "data"): "data",
}
"""The kinds by node and field. A name that is an entire side of a comparison is a category or a class, so it is `outside`."""

DECLARES: Final = frozenset(
    [
        (ast.Let, "name"),
        (ast.Define, "name"),
        (ast.Define, "parameters"),
        (ast.Model, "name"),
        (ast.Data, "name"),
        (ast.Feature, "name"),
        (ast.Measure, "name"),
        (ast.Decision, "name"),
        (ast.Point, "name"),
        (ast.Each, "parameters"),
        (ast.Query, "name"),
    ]
)
"""The fields that declare a name."""

RENAMED: Final[tuple[Role, ...]] = (
    *("model", "data", "measure", "decision", "query", "number", "definition", "point", "parameter"),
)
"""The kinds of names that a file chooses freely."""


_OWN: Final = "models, data, measures, decisions, queries, numbers, definitions, points and parameters"


@dataclass(frozen=True)
class Occurrence:
    """A name in a text. `query` is the index of the query to which the name is local; None for global names."""

    name: ast.Name
    role: Role
    declares: bool
    query: int | None

    def means_the_same(self, other: Occurrence) -> bool:
        return (self.name.text, self.role, self.query) == (other.name.text, other.role, other.query)


def occurrences(file: ast.File, numbers: Iterable[str] = ()) -> list[Occurrence]:
    """All names of a file with their places in the text, in text order; `numbers` are names of numbers of included files."""
    found: dict[tuple[int, int], Occurrence] = {}
    known = {*numbers, *(node.name.text for node in file.declarations if isinstance(node, ast.Let))}
    for number, declaration in enumerate(file.declarations):
        sweeps = declaration.sweeps if isinstance(declaration, ast.Query) else ()
        parameters = {name.text for sweep in sweeps for name in sweep.parameters}
        parameters |= {name.text for name in declaration.parameters} if isinstance(declaration, ast.Define) else set()
        names = list(_names(declaration))
        points = {name.text for name, role, declares in names if role == "point" and declares}
        choices = {id(node) for sweep in sweeps for node in nodes_in(sweep.choices) if isinstance(node, ast.Name)}
        for name, role, declares in names:
            meant: Role = role
            if name.text in parameters and role in ("feature", "point", "number", "outside"):
                meant = "parameter"
            elif role == "feature" and name.text in known and id(name) in choices:
                meant = "number"
            elif role == "outside" and name.text in (known | points) and name.span.text[:1] != '"':
                meant = "number" if name.text in known else "point"
            query = number if meant in ("point", "parameter") else None
            # `find a, b in m` has one model node, which both points share.
            found.setdefault((name.span.start, name.span.end), Occurrence(name, meant, declares, query))
    return [found[place] for place in sorted(found)]


def _names(node: ast.Node) -> Iterator[tuple[ast.Name, Role, bool]]:
    for field in node.__match_args__:
        value = getattr(node, field)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, ast.Name):
                key = (type(node), field)
                yield item, ROLES.get(key, "outside"), key in DECLARES
            elif isinstance(item, ast.Node):
                yield from _names(item)


def occurrence_at(found: list[Occurrence], offset: int) -> Occurrence | None:
    """The name under a cursor, or directly before the cursor; None if there is no name."""
    inside = [one for one in found if one.name.span.start <= offset <= one.name.span.end]
    return next((one for one in inside if offset < one.name.span.end), inside[0] if inside else None)


def same(found: list[Occurrence], one: Occurrence) -> list[Occurrence]:
    """All occurrences of a name with the same meaning, in text order; empty for names that are defined outside the file."""
    return [] if one.role == "outside" else [other for other in found if one.means_the_same(other)]


def renamed(file: ast.File, one: Occurrence, new: str) -> dict[tuple[int, int], str]:
    """The replacement of each occurrence, by its place.

    Raises:
        QueryError: a model or a table defines the name, or the new name is invalid or already used.
    """
    if one.role not in RENAMED:
        raise QueryError(
            f"`{one.name.text}` is a name of the model or its data",
            remedy=f"rename it there; in this file, only {_OWN} can be renamed",
        )
    found = occurrences(file)
    mine = same(found, one)
    new = new.strip().strip("`")
    if not any(other.declares for other in mine):
        raise QueryError(f"`{one.name.text}` is declared in another file", remedy="rename it there")
    if one.role == "definition" and not PLAIN.fullmatch(new):
        raise QueryError(f"`{new}` is not a plain name", remedy="write letters, digits and `_`")
    space = ("point", "parameter", "feature", "number") if one.role in ("point", "parameter") else (one.role,)
    taken = [o for o in found if o.name.text == new and o.role in space and o.query in (one.query, None)]
    if taken and new != one.name.text:
        place = taken[0].name.span
        line, _ = place.source.position(place.start)
        raise QueryError(f"`{new}` is a {taken[0].role} already, in line {line}", remedy="take another name")
    writes = point_name_text if one.role in ("point", "parameter", "number") else name_text
    text = writes(ast.Name(new))
    return {(o.name.span.start, o.name.span.end): text for o in mine}
