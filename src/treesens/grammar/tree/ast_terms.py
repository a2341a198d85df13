"""The syntax nodes of constraints: names, numbers, expressions, formulas."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, TypeAlias

from treesens.grammar.tree.node import Node, node

# --- words and numbers ------------------------------------------------------------------------------------------------


@node
class Name(Node):
    """A name without its backquotes or string quotes."""

    text: str


@node
class Text(Node):
    """A string: a file path."""

    value: str


@node
class Number(Node):
    """An exact number; `0.1` is one tenth."""

    value: Fraction


@node
class Infinity(Node):
    """`inf` or `-inf`: an open end of a domain."""

    negative: bool


@node
class Whole(Node):
    """A whole number used as a count or an index, such as a row or a number of answers."""

    value: int


@node
class Constant(Node):
    """The name of a number, times a factor: `g`, `-g`, `g %`. Expansion replaces it by a `Number`, or by a `Whole` if `whole`.

    An unexpanded tree has this node wherever the types state a number; the types describe expanded trees.
    """

    name: Name
    factor: Fraction = Fraction(1)
    whole: bool = False


Bound: TypeAlias = Number | Infinity
Label: TypeAlias = Name | Number
"""A class or a category: by name, or by number."""


@node
class Interval(Node):
    """`[low, high]`, with `(` or `)` if an end is excluded."""

    low: Bound
    high: Bound
    low_open: bool = False
    high_open: bool = False


@node
class ValueSet(Node):
    """`{v1, v2}` after `in`: names or numbers."""

    values: tuple[Label, ...]


@node
class Features(Node):
    """One or more features after `except` or `to`, or in a `for each`; a parameter may represent several features."""

    names: tuple[Name, ...]


# --- expressions ------------------------------------------------------------------------------------------------------


@node
class FeatureOf(Node):
    """`P.f`"""

    point: Name
    feature: Name


@node
class Prob(Node):
    """`prob(P)` or `prob(P, CLASS)`"""

    point: Name
    label: Label | None = None


@node
class Margin(Node):
    """`margin(P)` or `margin(P, CLASS)`"""

    point: Name
    label: Label | None = None


@node
class ValueOf(Node):
    """`value(P)`: the prediction of a regressor"""

    point: Name


@node
class ClassOf(Node):
    """`class(P)`"""

    point: Name


@node
class Likelihood(Node):
    """`likelihood(P, DATA)`"""

    point: Name
    data: Name


@node
class Row(Node):
    """`row N of DATA`"""

    index: Whole
    data: Name


@node
class NearestRow(Node):
    """`nearest row of DATA`"""

    data: Name


Norm: TypeAlias = Literal["l0", "l1", "l2", "linf"]


@node
class Typicality(Node):
    """`typicality(P, DATA [, WAY])`: the typicality score of a point"""

    point: Name
    data: Name
    way: str | None = None


@node
class Distance(Node):
    """`distance(P, Q | row N of DATA | nearest row of DATA, NORM)`"""

    point: Name
    target: Name | Row | NearestRow
    norm: Norm


@node
class Changes(Node):
    """`changes(P, Q)`: the number of features that differ"""

    first: Name
    second: Name


@node
class Absolute(Node):
    """`abs(E)`"""

    operand: Expression


@node
class Negate(Node):
    """`-E`. The operand is never a number (a `Number` includes its sign) and never another `Negate`."""

    operand: Expression


@node
class Sum(Node):
    """`E + E - E`, at least two terms; a subtracted term is a `Negate` or a negative `Number`."""

    terms: tuple[Expression, ...]


@node
class Product(Node):
    """`E * E`, at least two factors."""

    factors: tuple[Expression, ...]


@node
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
    | Typicality
    | Distance
    | Changes
    | Absolute
    | Negate
    | Sum
    | Product
    | Quotient
)

# --- constraints ------------------------------------------------------------------------------------------------------

Operator: TypeAlias = Literal["<", "<=", "=", "!=", ">=", ">"]


@node
class PointsEqual(Node):
    """`P = Q [except F]`"""

    left: Name
    right: Name
    varied: Features | None = None


@node
class PointIsRow(Node):
    """`P = row N of DATA [except F]`"""

    point: Name
    row: Row
    varied: Features | None = None


@node
class ClassIs(Node):
    """`class(P) = C [by factor g] [by margin m]`; `class(P) != C` and `class(P) = class(Q)` are each a `Comparison`."""

    point: Name
    label: Label
    factor: Number | None = None
    margin: Number | None = None


@node
class Comparison(Node):
    """`E OP E`: every comparison without a separate node above"""

    left: Expression
    operator: Operator
    right: Expression


@node
class Predicate(Node):
    """A constraint that is defined in its own file in `grammar/constructs/`."""

    def text(self) -> str:
        """The canonical text of the constraint."""
        raise NotImplementedError

    def negated_text(self) -> str:
        """[negated_text] The canonical text of the constraint's negation."""
        return f"not {self.text()}"

    def english(self) -> str:
        """The constraint as a clause of an English sentence."""
        raise NotImplementedError


@node
class Not(Node):
    """`not A`; `E not in S` is parsed as `not E in S`"""

    operand: Formula


@node
class And(Node):
    """`A and B and C` on one line; the lines of a query are its `constraints`."""

    items: tuple[Formula, ...]


@node
class Or(Node):
    """`A or B or C`"""

    items: tuple[Formula, ...]


@node
class Implies(Node):
    """`A implies B`; right-associative: `A implies B implies C` is `A implies (B implies C)`"""

    premise: Formula
    conclusion: Formula


Atom: TypeAlias = PointsEqual | PointIsRow | ClassIs | Comparison | Predicate
Formula: TypeAlias = Atom | Not | And | Or | Implies
