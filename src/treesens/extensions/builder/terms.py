"""Points, quantities and constraints: Python's operators build the same nodes as the parser.

`a["age"] >= 30` is an object that prints as `a.age >= 30`. Such an object has no truth value: `and`, `or`, `not`, `in` and
chained comparisons, which Python reserves for truth values, raise an error that suggests the right form.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from treesens.errors import UsageError
from treesens.extensions.builder.arguments import (
    Ends,
    Numeric,
    bound_of,
    given_name_of,
    interval_of,
    label_of,
    number_of,
    optional,
    wrong,
)
from treesens.grammar.constructs.decided import Decided, DecidedAlike
from treesens.grammar.constructs.membership import InInterval, InSet
from treesens.grammar.constructs.missing import IsMissing
from treesens.grammar.constructs.present import IsPresent
from treesens.grammar.printing.print_terms import Unwritable
from treesens.grammar.printing.printer import to_text
from treesens.grammar.tree import ast


class Built:
    """A wrapper of a syntax node; it prints as `.sens` text and has the hash of the node."""

    __slots__ = ("node",)
    node: Any
    what: ClassVar[str] = "this"

    def __init__(self, node: ast.Node) -> None:
        self.node = node

    def __hash__(self) -> int:
        return hash(self.node)

    def __bool__(self) -> bool:
        remedy = "write `x & y`, `x | y`, `~x` and `q.between(low, high)`; Python's `and`, `or`, `not`, `in` and chains differ"
        raise UsageError(f"{self.what} `{self.shown()}` has no truth value in Python", remedy=remedy)

    def __str__(self) -> str:
        return to_text(self.node)

    def __repr__(self) -> str:
        return f"<{self.shown()}>"

    def shown(self) -> str:
        """The text of the node, or the reason why a name cannot be written."""
        try:
            return str(self)
        except Unwritable as error:
            return f"({error.message})"


class Constraint(Built):
    """A constraint of a question: `x & y`, `x | y`, `~x`, `x.implies(y)`."""

    __slots__ = ()
    node: ast.Formula
    what = "the constraint"

    def __and__(self, other: Constraint) -> Constraint:
        items = self.node.items if isinstance(self.node, ast.And) else (self.node,)
        return Constraint(ast.And((*items, formula_of(other, "the right side of &"))))

    def __or__(self, other: Constraint) -> Constraint:
        items = self.node.items if isinstance(self.node, ast.Or) else (self.node,)
        return Constraint(ast.Or((*items, formula_of(other, "the right side of |"))))

    def __invert__(self) -> Constraint:
        return Constraint(ast.Not(self.node))

    def implies(self, conclusion: Constraint) -> Constraint:
        return Constraint(ast.Implies(self.node, formula_of(conclusion, "conclusion")))


class ClassConstraint(Constraint):
    """`class(P) = C`, optionally with a lead (a factor or a margin) over each of the other classes."""

    __slots__ = ()
    node: ast.ClassIs

    def by(self, *, factor: Numeric | None = None, margin: Numeric | None = None) -> Constraint:
        by = optional(number_of, factor, "factor"), optional(number_of, margin, "margin")
        return Constraint(ast.ClassIs(self.node.point, self.node.label, *by))


def formula_of(value: object, argument: str) -> ast.Formula:
    """The node of a constraint."""
    if isinstance(value, Constraint):
        return value.node
    raise wrong(argument, "a constraint", value, "compare a quantity of a point, for instance `a.prob() >= 0.6`")


def all_of(*constraints: Constraint) -> Constraint:
    """`A and B and ..`, of at least one constraint."""
    return _joined(ast.And, constraints)


def any_of(*constraints: Constraint) -> Constraint:
    """`A or B or ..`, of at least one constraint."""
    return _joined(ast.Or, constraints)


def _joined(kind: type[ast.And] | type[ast.Or], constraints: tuple[Constraint, ...]) -> Constraint:
    items = tuple(formula_of(item, f"constraint {i + 1}") for i, item in enumerate(constraints))
    if not items:
        raise UsageError("no constraint is given", remedy="pass at least one")
    return Constraint(kind(items) if len(items) > 1 else items[0])


# --- quantities -------------------------------------------------------------------------------------------------------


class Quantity(Built):
    """A number that depends on points: a feature, a score, a distance, or a sum of these.

    Kinds of quantities are sibling classes, because Python would swap `x <= y` if the class of y were a subclass of x's.
    """

    __slots__ = ()
    node: ast.Expression
    what = "the quantity"
    __hash__ = Built.__hash__

    def __add__(self, other: Quantity | Numeric) -> Quantity:
        terms = self.node.terms if isinstance(self.node, ast.Sum) else (self.node,)
        return Expression(ast.Sum((*terms, quantity_of(other, "the right side of +"))))

    def __radd__(self, other: Numeric) -> Quantity:
        return Expression(ast.Sum((quantity_of(other, "the left side of +"), self.node)))

    def __sub__(self, other: Quantity | Numeric) -> Quantity:
        terms = self.node.terms if isinstance(self.node, ast.Sum) else (self.node,)
        return Expression(ast.Sum((*terms, _negated(quantity_of(other, "the right side of -")))))

    def __rsub__(self, other: Numeric) -> Quantity:
        return Expression(ast.Sum((quantity_of(other, "the left side of -"), _negated(self.node))))

    def __mul__(self, other: Quantity | Numeric) -> Quantity:
        factors = self.node.factors if isinstance(self.node, ast.Product) else (self.node,)
        return Expression(ast.Product((*factors, quantity_of(other, "the right side of *"))))

    def __rmul__(self, other: Numeric) -> Quantity:
        return Expression(ast.Product((quantity_of(other, "the left side of *"), self.node)))

    def __truediv__(self, other: Quantity | Numeric) -> Quantity:
        return Expression(ast.Quotient(self.node, quantity_of(other, "the right side of /")))

    def __rtruediv__(self, other: Numeric) -> Quantity:
        return Expression(ast.Quotient(quantity_of(other, "the left side of /"), self.node))

    def __neg__(self) -> Quantity:
        return Expression(_negated(self.node))

    def __abs__(self) -> Quantity:
        return Expression(ast.Absolute(self.node))

    def __eq__(self, other: object) -> Constraint:  # type: ignore[override]
        return self._compared("=", other)

    def __ne__(self, other: object) -> Constraint:  # type: ignore[override]
        return self._compared("!=", other)

    def __lt__(self, other: Quantity | Numeric) -> Constraint:
        return self._compared("<", other)

    def __le__(self, other: Quantity | Numeric) -> Constraint:
        return self._compared("<=", other)

    def __gt__(self, other: Quantity | Numeric) -> Constraint:
        return self._compared(">", other)

    def __ge__(self, other: Quantity | Numeric) -> Constraint:
        return self._compared(">=", other)

    def between(self, low: Numeric, high: Numeric, *, inclusive: Ends = "both") -> Constraint:
        """`in [low, high]`; `inclusive` names the ends that are included."""
        return Constraint(InInterval(self.node, interval_of(low, high, inclusive)))

    def is_in(self, values: Iterable[str | Numeric]) -> Constraint:
        """`in {v1, v2}`, with names of categories or numbers."""
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise wrong("values", "a list of categories or numbers", values, "write `[value]`")
        labels = tuple(label_of(value, f"values[{i}]") for i, value in enumerate(values))
        if not labels:
            raise UsageError("`values` is empty", remedy="pass at least one")
        return Constraint(InSet(self.node, ast.ValueSet(labels)))

    def _compared(self, operator: ast.Operator, other: object) -> Constraint:
        if isinstance(other, str):
            if not isinstance(self.node, ast.FeatureOf | ast.ClassOf):
                remedy = "only features and classes are compared with names"
                raise wrong(f"the other side of {operator}", "a number or a quantity", other, remedy)
            right: ast.Expression = given_name_of(other, f"the other side of {operator}")
        else:
            right = quantity_of(other, f"the other side of {operator}")
        if isinstance(self.node, ast.ClassOf) and operator == "=" and isinstance(right, ast.Name | ast.Number):
            return ClassConstraint(ast.ClassIs(self.node.point, right))
        return Constraint(ast.Comparison(self.node, operator, right))


class Expression(Quantity):
    """Any quantity that is neither a feature nor a class."""

    __slots__ = ()


class Feature(Quantity):
    """`P.f`"""

    __slots__ = ()
    node: ast.FeatureOf

    def is_missing(self) -> Constraint:
        return Constraint(IsMissing(self.node))

    def is_present(self) -> Constraint:
        return Constraint(IsPresent(self.node))


class PredictedClass(Quantity):
    """`class(P)`; a comparison with `==` gives a constraint that has the method `by`."""

    __slots__ = ()
    node: ast.ClassOf
    __hash__ = Built.__hash__

    def __eq__(self, other: object) -> ClassConstraint:  # type: ignore[override]
        return super().__eq__(other)  # type: ignore[return-value]


class PointDecision:
    """`decision(P [, NAME])`, for comparisons: `a.decision() == "approve"`, `a.decision() != b.decision()`."""

    __slots__ = ("decision", "point")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, point: ast.Name, decision: ast.Name | None) -> None:
        self.point, self.decision = point, decision

    def __repr__(self) -> str:
        return f"<decision of {self.point.text}>"

    def __eq__(self, other: object) -> Constraint:  # type: ignore[override]
        if isinstance(other, PointDecision):
            return Constraint(DecidedAlike(self.point, self.decision, other.point, other.decision))
        return self.is_in([other])

    def __ne__(self, other: object) -> Constraint:  # type: ignore[override]
        return ~(self == other)

    def is_in(self, outcomes: Iterable[object]) -> Constraint:
        """`in {O1, O2}`: the outcome is one of several outcomes."""
        if isinstance(outcomes, str):
            raise wrong("outcomes", "a list of names of outcomes", outcomes, "write `[outcome]`")
        names = tuple(given_name_of(name, f"outcomes[{i}]") for i, name in enumerate(outcomes))
        if not names:
            raise UsageError("`outcomes` is empty", remedy="pass at least one")
        return Constraint(Decided(self.point, self.decision, names))


def quantity_of(value: object, argument: str) -> ast.Expression:
    """The node of a quantity or of a number."""
    if isinstance(value, Quantity):
        return value.node
    if isinstance(value, Built | str):
        raise wrong(
            argument, "a number or a quantity", value, "a point has features, `a[FEATURE]`, and scores, `a.prob()`"
        )
    return bound_of(value, argument)


def number(value: Numeric) -> Quantity:
    """A number on its own, possibly infinite, for the left side of an operator."""
    return Expression(bound_of(value, "value"))


def _negated(node: ast.Expression) -> ast.Expression:
    match node:
        case ast.Number(value):
            return ast.Number(-value)
        case ast.Infinity(negative):
            return ast.Infinity(not negative)
        case ast.Negate(inner):
            return inner
        case _:
            return ast.Negate(node)
