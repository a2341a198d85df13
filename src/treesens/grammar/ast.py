"""The syntax tree of a `.sens` file: frozen nodes in closed unions, each with its place in the text.

Nothing is resolved here: a `Name` may turn out to be a feature, a class, a category or the parameter of a `for each`. Two trees
are equal when they say the same; spans do not take part, so that `parse(print(tree)) == tree`. Numbers are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

from treesens.compiler.base.diagnostics import Source, Span

NOWHERE = Span(Source("<built>", ""), 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Base of all nodes. `span` covers the text of the node; nodes built by hand stand nowhere."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


# --- words and numbers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name as it is meant, without backquotes or string quotes."""

    text: str


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A string: the path of a file."""

    value: str


@dataclass(frozen=True, slots=True)
class Number(Node):
    """An exact number; `0.1` is one tenth."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Infinity(Node):
    """`inf` or `-inf`: the open end of a domain."""

    negative: bool


@dataclass(frozen=True, slots=True)
class Whole(Node):
    """A whole number that counts or indexes: a row, a number of answers."""

    value: int


Bound: TypeAlias = Number | Infinity
Label: TypeAlias = Name | Number
"""A class or a category: by name, or by number."""


@dataclass(frozen=True, slots=True)
class Interval(Node):
    """`[low, high]`, with `(` or `)` where an end does not belong to it."""

    low: Bound
    high: Bound
    low_open: bool = False
    high_open: bool = False


@dataclass(frozen=True, slots=True)
class ValueSet(Node):
    """`{v1, v2}` after `in`: names or numbers."""

    values: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class Features(Node):
    """One or more features, after `except`, `to` or in a `for each`; a name may be a parameter that stands for several."""

    names: tuple[Name, ...]


# --- declarations ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Model(Node):
    """`model NAME from "FILE" [as FORMAT]`"""

    name: Name
    path: Text
    format: Name | None = None


@dataclass(frozen=True, slots=True)
class Data(Node):
    """`data NAME from "FILE" [label COLUMN] [rows N]`"""

    name: Name
    path: Text
    label: Name | None = None
    rows: Whole | None = None


@dataclass(frozen=True, slots=True)
class Numeric(Node):
    """`real [in INTERVAL]` or `integer [in INTERVAL]`"""

    kind: Literal["real", "integer"]
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class CategoryItem(Node):
    """One value of a category: `Female = 0` (both), `Female` (no number) or `0` (no name)."""

    name: Name | None
    value: Number | None


@dataclass(frozen=True, slots=True)
class Category(Node):
    """`category {NAME = value, ...}`"""

    items: tuple[CategoryItem, ...]


FeatureType: TypeAlias = Numeric | Category


@dataclass(frozen=True, slots=True)
class Feature(Node):
    """`feature NAME: TYPE [stored as INTERVAL] [or missing]`"""

    name: Name
    type: FeatureType
    stored: Interval | None = None
    missing: bool = False


@dataclass(frozen=True, slots=True)
class OneHot(Node):
    """`onehot {f1, f2, f3}`"""

    features: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class DomainFrom(Node):
    """`domain from DATA`"""

    data: Name


# --- expressions -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FeatureOf(Node):
    """`P.f`"""

    point: Name
    feature: Name


@dataclass(frozen=True, slots=True)
class Prob(Node):
    """`prob(P)` or `prob(P, CLASS)`"""

    point: Name
    label: Label | None = None


@dataclass(frozen=True, slots=True)
class Margin(Node):
    """`margin(P)` or `margin(P, CLASS)`"""

    point: Name
    label: Label | None = None


@dataclass(frozen=True, slots=True)
class ValueOf(Node):
    """`value(P)`: the prediction of a regressor"""

    point: Name


@dataclass(frozen=True, slots=True)
class ClassOf(Node):
    """`class(P)`"""

    point: Name


@dataclass(frozen=True, slots=True)
class Likelihood(Node):
    """`likelihood(P, DATA)`"""

    point: Name
    data: Name


@dataclass(frozen=True, slots=True)
class Row(Node):
    """`row N of DATA`"""

    index: Whole
    data: Name


@dataclass(frozen=True, slots=True)
class NearestRow(Node):
    """`nearest row of DATA`"""

    data: Name


Norm: TypeAlias = Literal["l0", "l1", "l2", "linf"]


@dataclass(frozen=True, slots=True)
class Distance(Node):
    """`distance(P, Q | row N of DATA | nearest row of DATA, NORM)`"""

    point: Name
    target: Name | Row | NearestRow
    norm: Norm


@dataclass(frozen=True, slots=True)
class Changes(Node):
    """`changes(P, Q)`: how many features differ"""

    first: Name
    second: Name


@dataclass(frozen=True, slots=True)
class Absolute(Node):
    """`abs(E)`"""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Negate(Node):
    """`-E`; never around a number (that is a negative `Number`) and never around another `Negate`."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Sum(Node):
    """`E + E - E`: at least two terms; a term that is subtracted is a `Negate` or a negative `Number`."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Product(Node):
    """`E * E`: at least two factors."""

    factors: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Quotient(Node):
    """`E / E`"""

    numerator: Expression
    denominator: Expression


Expression: TypeAlias = (
    Number
    | Infinity
    | Name  # a category or a class, only as a whole side of a comparison
    | FeatureOf
    | Prob
    | Margin
    | ValueOf
    | ClassOf
    | Likelihood
    | Distance
    | Changes
    | Absolute
    | Negate
    | Sum
    | Product
    | Quotient
)

# --- constraints -------------------------------------------------------------------------------------------------------------

Operator: TypeAlias = Literal["<", "<=", "=", "!=", ">=", ">"]


@dataclass(frozen=True, slots=True)
class PointsEqual(Node):
    """`P = Q [except F]`"""

    left: Name
    right: Name
    varied: Features | None = None


@dataclass(frozen=True, slots=True)
class PointIsRow(Node):
    """`P = row N of DATA [except F]`"""

    point: Name
    row: Row
    varied: Features | None = None


@dataclass(frozen=True, slots=True)
class ClassIs(Node):
    """`class(P) = C [by factor g] [by margin m]`; `class(P) != C` and `class(P) = class(Q)` are a `Comparison`."""

    point: Name
    label: Label
    factor: Number | None = None
    margin: Number | None = None


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """`E OP E`, every comparison that is none of the forms above"""

    left: Expression
    operator: Operator
    right: Expression


@dataclass(frozen=True, slots=True)
class InInterval(Node):
    """`E in [lo, hi]`"""

    operand: Expression
    interval: Interval


@dataclass(frozen=True, slots=True)
class InSet(Node):
    """`E in {v1, v2}`"""

    operand: Expression
    values: ValueSet


@dataclass(frozen=True, slots=True)
class IsMissing(Node):
    """`missing(P.f)`"""

    feature: FeatureOf


@dataclass(frozen=True, slots=True)
class Avoid(Node):
    """`P, Q avoid cavities(DATA, width = w [, limit = n])`"""

    points: tuple[Name, ...]
    data: Name
    width: Whole
    limit: Whole | None = None


@dataclass(frozen=True, slots=True)
class Not(Node):
    """`not A`; `E not in S` reads as `not E in S`"""

    operand: Formula


@dataclass(frozen=True, slots=True)
class And(Node):
    """`A and B and C` on one line; lines of a query are its own `constraints`."""

    items: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """`A or B or C`"""

    items: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Implies(Node):
    """`A implies B`; to the right: `A implies B implies C` is `A implies (B implies C)`"""

    premise: Formula
    conclusion: Formula


Atom: TypeAlias = PointsEqual | PointIsRow | ClassIs | Comparison | InInterval | InSet | IsMissing | Avoid
Formula: TypeAlias = Atom | Not | And | Or | Implies

# --- queries -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Objective(Node):
    """`maximize E` or `minimize E`"""

    sense: Literal["maximize", "minimize"]
    expression: Expression


@dataclass(frozen=True, slots=True)
class Top(Node):
    """`top N [diverse]`: the N best answers"""

    number: Whole
    diverse: bool = False


@dataclass(frozen=True, slots=True)
class Expect(Node):
    """`expect none` or `expect some`"""

    verdict: Literal["none", "some"]


@dataclass(frozen=True, slots=True)
class Point(Node):
    """A point of a query, `P [in MODEL]`; in `find a, b in M` both are in M."""

    name: Name
    model: Name | None = None


@dataclass(frozen=True, slots=True)
class Find(Node):
    """`find P, Q [in MODEL] such that CONSTRAINTS [OBJECTIVE] [top N] [expect ..]`"""

    points: tuple[Point, ...]
    constraints: tuple[Formula, ...]
    objective: Objective | None = None
    top: Top | None = None
    expect: Expect | None = None


@dataclass(frozen=True, slots=True)
class Count(Node):
    """`count rows of DATA as P[, Q] [in MODEL] such that CONSTRAINTS [expect ..]`

    The number of rows that P can stand for; with a second point, of those for which some Q exists.
    """

    data: Name
    points: tuple[Point, ...]
    constraints: tuple[Formula, ...]
    expect: Expect | None = None


@dataclass(frozen=True, slots=True)
class Flip(Node):
    """`from CLASS to CLASS`"""

    source: Label
    target: Label


@dataclass(frozen=True, slots=True)
class Near(Node):
    """`near DATA [using likelihood|cavities|both|distance]`; without `using` it means `both`."""

    data: Name
    using: Literal["likelihood", "cavities", "both", "distance"] = "both"


@dataclass(frozen=True, slots=True)
class Sensitive(Node):
    """`sensitive [MODEL] to F [gap G | margin M] [from C to C [factor G]] [near DATA [using ..]] [top N] [expect ..]`"""

    model: Name | None
    features: Features
    gap: Number | None = None
    margin: Number | None = None
    flip: Flip | None = None
    factor: Number | None = None
    near: Near | None = None
    top: Top | None = None
    expect: Expect | None = None


Body: TypeAlias = Find | Count | Sensitive


@dataclass(frozen=True, slots=True)
class Each(Node):
    """`for each f in {..} | features | pairs:`

    With one parameter over `pairs` it stands for both features; with two (`for each f, g in pairs`) each for one.
    """

    parameters: tuple[Name, ...]
    choices: tuple[Features, ...] | Literal["features", "pairs"]


@dataclass(frozen=True, slots=True)
class Query(Node):
    """`query NAME: [for each ..:] BODY`; the sweeps from the outermost to the innermost"""

    name: Name
    body: Body
    sweeps: tuple[Each, ...] = ()


Declaration: TypeAlias = Model | Data | Feature | OneHot | DomainFrom | Query


@dataclass(frozen=True, slots=True)
class File(Node):
    """A whole file, in the order of its text."""

    declarations: tuple[Declaration, ...]

    @property
    def queries(self) -> tuple[Query, ...]:
        return tuple(d for d in self.declarations if isinstance(d, Query))
