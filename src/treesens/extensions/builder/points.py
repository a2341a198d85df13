"""Points and rows: the operands of quantities and of equalities."""

from __future__ import annotations

from typing import Literal

from treesens.errors import UsageError
from treesens.extensions.builder.arguments import (
    Numeric,
    given_name_of,
    label_of,
    name_of,
    names_of,
    number_of,
    optional,
    path_of,
    whole_of,
    word_of,
    wrong,
)
from treesens.extensions.builder.terms import (
    Built,
    Constraint,
    Expression,
    Feature,
    PointDecision,
    PredictedClass,
    Quantity,
)
from treesens.grammar.constructs.avoid import Avoid, AvoidListed
from treesens.grammar.constructs.typical import Typical
from treesens.grammar.printing.print_terms import name_text
from treesens.grammar.tree import ast
from treesens.grammar.tree.words import NORMS, TYPICAL_WAYS


class Row(Built):
    """`row N of DATA`, for equality with a point or as the target of a distance."""

    __slots__ = ()
    node: ast.Row

    def except_(self, *features: str) -> Except:
        return Except(self, features)

    def __str__(self) -> str:
        return f"row {self.node.index.value} of {name_text(self.node.data)}"


class NearestRow(Built):
    """`nearest row of DATA`, as the target of a distance."""

    __slots__ = ()
    node: ast.NearestRow

    def __str__(self) -> str:
        return f"nearest row of {name_text(self.node.data)}"


class Except:
    """A point or a row with some features excepted, for equality with a point."""

    __slots__ = ("features", "target")

    def __init__(self, target: Point | Row, features: tuple[str, ...]) -> None:
        self.target = target
        flat = features[0] if len(features) == 1 else features
        self.features = ast.Features(names_of(flat, "features"))


class Point(Built):
    """An unknown input of the question: `a["age"]`, `a.prob()`, `a == b.except_("sex")`."""

    __slots__ = ()
    node: ast.Point
    what = "the point"
    __hash__ = Built.__hash__

    def __str__(self) -> str:
        return self.node.name.text

    @property
    def name(self) -> ast.Name:
        return self.node.name

    def __getitem__(self, feature: str) -> Feature:
        return Feature(ast.FeatureOf(self.name, given_name_of(feature, "feature")))

    def __eq__(self, other: object) -> Constraint:  # type: ignore[override]
        target, varied = (other.target, other.features) if isinstance(other, Except) else (other, None)
        match target:
            case Point():
                return Constraint(ast.PointsEqual(self.name, target.name, varied))
            case Row():
                return Constraint(ast.PointIsRow(self.name, target.node, varied))
            case _:
                remedy = f'for a feature write `{self}["FEATURE"] == ..`'
                raise wrong("the other side of =", "a point or a row", target, remedy)

    def __ne__(self, other: object) -> Constraint:  # type: ignore[override]
        raise UsageError("points can only be compared by `==`", remedy=f"write `{self}.changes(b) >= 1`")

    def except_(self, *features: str) -> Except:
        """The point without the features that may differ: `a == b.except_("sex", "race")`."""
        return Except(self, features)

    def prob(self, label: str | Numeric | None = None) -> Quantity:
        """The predicted probability, of the class `label` if passed."""
        return Expression(ast.Prob(self.name, optional(label_of, label, "label")))

    def margin(self, label: str | Numeric | None = None) -> Quantity:
        """The raw score, of the class `label` if passed."""
        return Expression(ast.Margin(self.name, optional(label_of, label, "label")))

    def value(self) -> Quantity:
        """The prediction of a regressor."""
        return Expression(ast.ValueOf(self.name))

    def predicted_class(self) -> PredictedClass:
        return PredictedClass(ast.ClassOf(self.name))

    def decision(self, name: str | None = None) -> PointDecision:
        """The outcome of a declared decision for the point, to be compared with an outcome or with another point's decision."""
        return PointDecision(self.name, optional(name_of, name, "name"))

    def likelihood(self, data: str) -> Quantity:
        """The product of the marginals of the model's cells in the data."""
        return Expression(ast.Likelihood(self.name, name_of(data, "data")))

    def typicality(self, data: str, *, by: str | None = None) -> Quantity:
        """The score that measures how typical the point is of the data."""
        way = None if by is None else word_of(by, TYPICAL_WAYS, "by")
        return Expression(ast.Typicality(self.name, name_of(data, "data"), way))

    def distance(self, target: Point | Row | NearestRow, norm: ast.Norm) -> Quantity:
        """The distance to another point or to a row, in widths of the domains."""
        kinds: tuple[ast.Norm, ...] = ("l0", "l1", "l2", "linf")
        assert kinds == NORMS
        if not isinstance(target, Point | Row | NearestRow):
            raise wrong("target", "a point or a row", target, "write `ts.query.row(N, DATA)` or `nearest_row(DATA)`")
        place = target.name if isinstance(target, Point) else target.node
        return Expression(ast.Distance(self.name, place, word_of(norm, kinds, "norm")))

    def changes(self, other: Point) -> Quantity:
        """The number of features in which two points differ."""
        return Expression(ast.Changes(self.name, point_of(other, "other").name))


def point_of(value: object, argument: str) -> ast.Point:
    """The node of a point."""
    if isinstance(value, Point):
        return value.node
    raise wrong(argument, "a point", value, 'make points with `a, b = ts.query.points("a", "b")`')


def point(name: str, *, model: str | None = None) -> Point:
    """A point; `model` names the point's model if a file has several models."""
    return Point(ast.Point(name_of(name, "name"), optional(name_of, model, "model")))


def points(*names: str, model: str | None = None) -> tuple[Point, ...]:
    """Points, one per name: `a, b = points("a", "b")`."""
    return tuple(point(name, model=model) for name in names)


def row(index: int, data: str) -> Row:
    """A row of the data, counted from 0."""
    return Row(ast.Row(whole_of(index, "index"), name_of(data, "data")))


def nearest_row(data: str) -> NearestRow:
    """The row of the data that is nearest to a point."""
    return NearestRow(ast.NearestRow(name_of(data, "data")))


def avoid_cavities(*points: Point, data: str, width: int, limit: int | Literal["all"] | None = None) -> Constraint:
    """The points avoid boxes of at most `width` features without a row of the data; `limit` is a number of boxes, or all."""
    names = tuple(point_of(p, f"point {i + 1}").name for i, p in enumerate(points))
    if not names:
        raise UsageError("no point is given", remedy='write `avoid_cavities(a, b, data="people", width=3)`')
    table, widest = name_of(data, "data"), whole_of(width, "width")
    if limit == "all":
        return Constraint(Avoid(names, table, widest, every=True))
    return Constraint(Avoid(names, table, widest, optional(whole_of, limit, "limit")))


def avoid_listed(*points: Point, file: str) -> Constraint:
    """No point is in a box listed in a file: each point satisfies all clauses of the file (docs/data.md)."""
    names = tuple(point_of(p, f"point {i + 1}").name for i, p in enumerate(points))
    if not names:
        raise UsageError("no point is given", remedy='write `avoid_listed(a, b, file="clauses.json")`')
    return Constraint(AvoidListed(names, path_of(file, "file")))


def typical(*points: Point, data: str, level: Numeric | None = None, by: str | None = None) -> Constraint:
    """The points are in a region that holds `level` percent (default 95) of new inputs, by chow-liu or isolation."""
    names = tuple(point_of(p, f"point {i + 1}").name for i, p in enumerate(points))
    if not names:
        raise UsageError("no point is given", remedy='write `typical(a, b, data="people", level=95)`')
    way = None if by is None else word_of(by, TYPICAL_WAYS, "by")
    share = optional(number_of, level, "level")
    if share is not None and not 0 < share.value < 100:
        raise UsageError(f"`level` is a percentage between 0 and 100, not {level}", remedy="write `level=95`")
    return Constraint(Typical(names, name_of(data, "data"), share, way))
