"""The syntax tree of a `.sens` file: frozen nodes in closed unions, each node with its source location.

Nothing is resolved here: a `Name` may be a feature, a class, a category or the parameter of a `for each`. Equality ignores
spans, so that `parse(print(tree)) == tree`. Numbers are exact.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

# Users of the tree import this file only; the nodes of constraints are in a separate file because of their number.
from treesens.grammar.tree.ast_terms import (
    Absolute,
    And,
    Atom,
    Bound,
    Changes,
    ClassIs,
    ClassOf,
    Comparison,
    Constant,
    Distance,
    Expression,
    FeatureOf,
    Features,
    Formula,
    Implies,
    Infinity,
    Interval,
    Label,
    Likelihood,
    Margin,
    Name,
    NearestRow,
    Negate,
    Norm,
    Not,
    Number,
    Operator,
    Or,
    PointIsRow,
    PointsEqual,
    Predicate,
    Prob,
    Product,
    Quotient,
    Row,
    Sum,
    Text,
    Typicality,
    ValueOf,
    ValueSet,
    Whole,
)
from treesens.grammar.tree.node import NOWHERE, Node, node

__all__ = [
    "NOWHERE",
    "Absolute",
    "And",
    "Atom",
    "Body",
    "Bound",
    "Case",
    "Category",
    "CategoryItem",
    "Changes",
    "ClassIs",
    "ClassOf",
    "Comparison",
    "Constant",
    "Count",
    "Data",
    "Decision",
    "Declaration",
    "Define",
    "Distance",
    "DomainFrom",
    "Each",
    "Expect",
    "ExpectShare",
    "Explain",
    "Expression",
    "Feature",
    "FeatureOf",
    "FeatureType",
    "Features",
    "File",
    "Find",
    "Flip",
    "Formula",
    "Implies",
    "Include",
    "Infinity",
    "Interval",
    "Label",
    "Let",
    "Likelihood",
    "Margin",
    "Measure",
    "Model",
    "Monotone",
    "Name",
    "Near",
    "NearestRow",
    "Negate",
    "Node",
    "Norm",
    "Not",
    "Number",
    "Numeric",
    "Objective",
    "OneHot",
    "Operator",
    "Or",
    "Point",
    "PointIsRow",
    "PointsEqual",
    "Predicate",
    "Prob",
    "Product",
    "Query",
    "Quotient",
    "Range",
    "Row",
    "Sensitive",
    "Sum",
    "Text",
    "Top",
    "Typicality",
    "ValueOf",
    "ValueSet",
    "Whole",
]

# --- names that expansion replaces ------------------------------------------------------------------------------------


@node
class Include(Node):
    """`include "FILE"`"""

    path: Text


@node
class Let(Node):
    """`let NAME = E`, or `param NAME = E`, whose number a caller may replace"""

    name: Name
    value: Expression
    replaceable: bool = False


@node
class Define(Node):
    """`define NAME(PARAMETER, ..) = CONSTRAINTS`"""

    name: Name
    parameters: tuple[Name, ...]
    constraints: tuple[Formula, ...]


@node
class Range(Node):
    """`INTERVAL by STEP` in a `for each`"""

    interval: Interval
    step: Number


# --- declarations -----------------------------------------------------------------------------------------------------


@node
class Model(Node):
    """`model NAME from "FILE" [as FORMAT]`"""

    name: Name
    path: Text
    format: Name | None = None


@node
class Data(Node):
    """`data NAME from "FILE" [label COLUMN] [rows N]`"""

    name: Name
    path: Text
    label: Name | None = None
    rows: Whole | None = None


@node
class Numeric(Node):
    """`real [in INTERVAL]` or `integer [in INTERVAL]`"""

    kind: Literal["real", "integer"]
    interval: Interval | None = None


@node
class CategoryItem(Node):
    """One value of a category: `Female = 0` (both), `Female` (no number) or `0` (no name)."""

    name: Name | None
    value: Number | None


@node
class Category(Node):
    """`category {NAME = value, ...}`"""

    items: tuple[CategoryItem, ...]


FeatureType: TypeAlias = Numeric | Category


@node
class Feature(Node):
    """`feature NAME: TYPE [stored as INTERVAL] [or missing]`"""

    name: Name
    type: FeatureType
    stored: Interval | None = None
    missing: bool = False


@node
class OneHot(Node):
    """`onehot {f1, f2, f3}`"""

    features: tuple[Name, ...]


@node
class DomainFrom(Node):
    """`domain from DATA`"""

    data: Name


MeasureKind: TypeAlias = Literal["uniform", "cells", "marginals", "chow-liu", "rows"]


@node
class Measure(Node):
    """`measure NAME: uniform | cells | marginals of DATA | chow-liu of DATA | rows of DATA`"""

    name: Name
    kind: MeasureKind
    data: Name | None = None


# --- queries ----------------------------------------------------------------------------------------------------------


@node
class Objective(Node):
    """`maximize E` or `minimize E`"""

    sense: Literal["maximize", "minimize"]
    expression: Expression


@node
class Top(Node):
    """`top N [diverse]`: finds the N best answers"""

    number: Whole
    diverse: bool = False


@node
class Expect(Node):
    """`expect none` or `expect some`"""

    verdict: Literal["none", "some"]


@node
class ExpectShare(Node):
    """`expect share <= 1 %`: the bound is a fraction of 1"""

    operator: Literal["<", "<=", ">", ">="]
    bound: Number


@node
class Point(Node):
    """A point of a query, `P [in MODEL]`; in `find a, b in M` both points are in M."""

    name: Name
    model: Name | None = None


@node
class Find(Node):
    """`find P, Q [in MODEL] [such that CONSTRAINTS] [OBJECTIVE] [top N] [share of MEASURE] [expect ..]`

    A query without constraints needs an objective.
    """

    points: tuple[Point, ...]
    constraints: tuple[Formula, ...]
    objective: Objective | None = None
    top: Top | None = None
    share: Name | None = None
    expect: Expect | ExpectShare | None = None


@node
class Count(Node):
    """`count rows of DATA as P[, Q] [in MODEL] such that CONSTRAINTS [expect ..]`

    The number of rows that P can equal; with a second point, the number of rows for which a point Q exists.
    """

    data: Name
    points: tuple[Point, ...]
    constraints: tuple[Formula, ...]
    expect: Expect | None = None


@node
class Explain(Node):
    """`explain row N of DATA [in MODEL] [without F] [smallest] [expect ..]`

    Features outside F whose values alone determine the class of the row.
    """

    row: Row
    model: Name | None = None
    without: Features | None = None
    smallest: bool = False
    expect: Expect | None = None


@node
class Flip(Node):
    """`from CLASS to CLASS`"""

    source: Label
    target: Label


@node
class Near(Node):
    """`near DATA [using likelihood|cavities|both|distance]`; the default is `both`."""

    data: Name
    using: Literal["likelihood", "cavities", "both", "distance"] = "both"


@node
class Sensitive(Node):
    """`sensitive [MODEL] to F [gap G | margin M] [from C to C [factor G]] [near D [using ..]] [top N] [share of MEASURE]
    [expect ..]`
    """

    model: Name | None
    features: Features
    gap: Number | None = None
    margin: Number | None = None
    flip: Flip | None = None
    factor: Number | None = None
    near: Near | None = None
    top: Top | None = None
    share: Name | None = None
    expect: Expect | ExpectShare | None = None


@node
class Monotone(Node):
    """`expect increasing(MODEL, F [, CLASS])` or `decreasing`: the score never decreases (increases) if F alone increases."""

    direction: Literal["increasing", "decreasing"]
    model: Name
    features: Features
    label: Label | None = None

    @property
    def expect(self) -> Expect:
        """The expectation that no pair violates the direction."""
        return Expect("none", span=self.span)


Body: TypeAlias = Find | Count | Explain | Sensitive | Monotone


Many: TypeAlias = Literal["features", "pairs", "protected"]
"""Words that select features."""


@node
class Each(Node):
    """`for each f in {..} | features | pairs | protected:`

    A single parameter over `pairs` represents both features; in `for each f, g in pairs`, each represents one feature. In an
    unexpanded tree, a choice may also be a number, and the choices a `Range`.
    """

    parameters: tuple[Name, ...]
    choices: tuple[Features, ...] | Many


@node
class Query(Node):
    """`query NAME: [for each ..:] BODY`; the sweeps are listed from the outermost to the innermost

    `expanded` is True if names were replaced in the query, and `parameters` are those on which its answers depend.
    """

    name: Name
    body: Body
    sweeps: tuple[Each, ...] = ()
    expanded: bool = field(default=False, kw_only=True)
    parameters: tuple[tuple[str, Number], ...] = field(default=(), kw_only=True)


@node
class Case(Node):
    """`OUTCOME when CONSTRAINT`"""

    outcome: Name
    condition: Formula


@node
class Decision(Node):
    """`decision NAME of P [in MODEL]: OUTCOME when CONSTRAINT .. else OUTCOME`: the first outcome whose constraint holds"""

    name: Name
    point: Point
    cases: tuple[Case, ...]
    otherwise: Name


Declaration: TypeAlias = (
    Model | Data | Feature | OneHot | DomainFrom | Measure | Decision | Query | Include | Let | Define
)


@node
class File(Node):
    """A whole file; its declarations are in the order of the text.

    `expanded` is True if names were replaced in the file. `numbers` are the names read as numbers where the name of a class or
    a category is possible, and `choices` those read as numbers where the name of a feature is possible.
    """

    declarations: tuple[Declaration, ...]
    expanded: bool = field(default=False, kw_only=True)
    numbers: tuple[Name, ...] = field(default=(), kw_only=True)
    choices: tuple[Name, ...] = field(default=(), kw_only=True)

    @property
    def queries(self) -> tuple[Query, ...]:
        return tuple(d for d in self.declarations if isinstance(d, Query))
