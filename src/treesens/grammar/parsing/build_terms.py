"""Converts parse trees to syntax nodes: names, numbers, sets and expressions.

The grammar accepts any function with any arguments and a bare name anywhere in an expression; this module checks arguments and
bare names, so that messages can name the expected arguments and the point to which a feature should belong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

from lark import Token, Tree

from treesens.compiler.base.diagnostics import Code, Diagnostics, Remedy, Source, Span, did_you_mean, write
from treesens.grammar.constructs.registry import functions, predicate
from treesens.grammar.tree import ast
from treesens.grammar.tree.words import NORMS, QUANTITIES, TYPICAL_WAYS

if TYPE_CHECKING:
    Branch: TypeAlias = Tree[Token]
else:
    Branch = Tree

Child: TypeAlias = "Branch | Token"
T = TypeVar("T")
_LARGEST: Final = 400
"""Maximum number of digits before and after the decimal point: more than any float needs, and cheap for exact arithmetic."""


def branches(tree: Branch) -> list[Child]:
    """The children that are present; Lark inserts None for an omitted optional part."""
    return [child for child in tree.children if child is not None]


class Malformed(Exception):
    """The error for an invalid node, whose message is in the diagnostics."""


class TermBuilder:
    """Builds the nodes of constraints. Each mistake adds one message to `diagnostics`."""

    def __init__(self, source: Source, diagnostics: Diagnostics, numbers: frozenset[str] | None = frozenset()) -> None:
        self.source = source
        self.diagnostics = diagnostics
        self.numbers = numbers  # the names of numbers; None if an included file may declare more
        self.points: tuple[str, ...] = ()  # the points of the current query, for the remedies
        self.percentages: list[Span] = []  # the percentages so far that are in the place of other numbers

    def fail(self, code: str | Code, message: str, span: Span, remedy: str = "") -> Malformed:
        """Records a mistake; the caller raises the returned exception."""
        self.diagnostics.error(code, message, span, remedy)
        return Malformed()

    def attempt(self, build: Callable[[], T]) -> T | None:
        """The result of `build`, or None after a mistake, so that sibling nodes are also checked."""
        try:
            return build()
        except Malformed:
            return None

    def every(self, build: Callable[[Branch], T], trees: list[Branch]) -> tuple[T, ...]:
        """Builds all of the trees, and reports the mistakes in each."""
        built = [self.attempt(lambda tree=tree: build(tree)) for tree in trees]  # type: ignore[misc]
        if any(item is None for item in built):
            raise Malformed
        return tuple(item for item in built if item is not None)

    # --- parse trees, for constructs, which are read before Lark is loaded ---------------------------------------------

    def tree(self, child: Child) -> Branch:
        """A child that is always a tree in the grammar."""
        assert isinstance(child, Tree)
        return child

    def parts(self, child: Child) -> list[Child]:
        """The children of a tree, without omitted parts."""
        return branches(self.tree(child))

    def rule(self, child: Child) -> str:
        """The rule of a tree; an empty text for a token."""
        return str(child.data) if isinstance(child, Tree) else ""

    # --- words and numbers --------------------------------------------------------------------------------------------

    def span(self, child: Child) -> Span:
        if isinstance(child, Token):
            return Span(self.source, child.start_pos or 0, child.end_pos or 0)
        return Span(self.source, child.meta.start_pos, child.meta.end_pos)

    def name(self, child: Child) -> ast.Name:
        """A name from its token, or from the tree of a rule that contains it."""
        span = self.span(child)
        text = span.text
        if text[:1] in ("`", '"'):
            text = text[1:-1]
        return ast.Name(text, span=span)

    def names(self, children: list[Child]) -> tuple[ast.Name, ...]:
        return tuple(self.name(child) for child in children)

    def features(self, tree: Branch) -> ast.Features:
        return ast.Features(self.names(branches(tree)), span=self.span(tree))

    def exact(self, token: str, span: Span | None = None) -> Fraction:
        """The exact value of a number token, or of the part of a token at `span`."""
        mantissa, _, exponent = token.lower().partition("e")
        if len(mantissa) > _LARGEST or len(exponent) > 5 or abs(int(exponent or "0")) > _LARGEST:
            span = span or self.span(cast("Token", token))
            raise self.fail("S006", "this number is too large or too long", span, "use fewer than 400 digits, or `inf`")
        return Fraction(str(token))

    def constant(self, name: Child, span: Span, factor: int | Fraction = 1, *, whole: bool = False) -> ast.Constant:
        """A name in the place of a number."""
        found = self.name(name)
        if self.numbers is not None and found.text not in self.numbers:
            raise self.fail(
                "E121", f"no number is called `{found.text}`", found.span, unknown_number(found, self.numbers)
            )
        return ast.Constant(found, Fraction(factor), whole, span=span)

    def bound(self, tree: Branch) -> ast.Bound:
        """The grammar's `number`: signed, may be infinite, or a `Constant`."""
        span = self.span(tree)
        if tree.data == "constant":
            return cast("ast.Number", self.constant(tree, span))
        sign, token = tree.children
        if isinstance(token, Tree):
            return cast("ast.Number", self.constant(token, span, -1))
        assert token is not None
        if token.type == "INF":
            return ast.Infinity(sign is not None, span=span)
        value = self._unsigned(token)
        return value if sign is None else cast("ast.Number", self._negated(value, span))

    def number(self, tree: Branch) -> ast.Number:
        """A finite number."""
        bound = self.bound(tree)
        if isinstance(bound, ast.Infinity):
            raise self.fail("S005", "`inf` is not a number here", bound.span, "write a finite number")
        return bound

    def _unsigned(self, token: Token) -> ast.Number:
        """A number or a percentage, which is recorded: the caller knows whether it is a probability."""
        if token.type != "PERCENT":
            return ast.Number(self.exact(token), span=self.span(token))
        self.percentages.append(self.span(token))
        return self.percent(token, 100)

    def probability(self, tree: Branch) -> ast.Number:
        """A finite number that may be written as a percentage."""
        known = len(self.percentages)
        number = self.number(tree)
        del self.percentages[known:]
        return number

    def percent(self, child: Child, divisor: int = 1) -> ast.Number:
        """A percentage, divided by `divisor`."""
        span = self.span(child)
        text = span.text.rstrip("% \t")
        if text[0] in "0123456789.":
            return ast.Number(self.exact(text, span) / divisor, span=span)
        name = Token("NAME", text, start_pos=span.start, end_pos=span.start + len(text))
        return cast("ast.Number", self.constant(name, span, Fraction(1, divisor)))

    def quoted_text(self, child: Child) -> ast.Text | None:
        """The text of a quoted term; None for other terms."""
        if self.rule(child) != "bare":
            return None
        (token,) = self.parts(cast("Branch", child))
        is_text = isinstance(token, Token) and token.type == "STRING"
        return ast.Text(str(token)[1:-1], span=self.span(child)) if is_text else None

    def whole(self, child: Child) -> ast.Whole:
        if self.rule(child) in ("constant", "name"):
            return cast("ast.Whole", self.constant(child, self.span(child), whole=True))
        if isinstance(child, Token):
            value, span = self.exact(child), self.span(child)
        else:
            number = self.number(child)
            if isinstance(number, ast.Constant):
                raise self.fail("S008", "a whole number is not negative", self.span(child), "write 0, 1, 2, ..")
            value, span = number.value, number.span
        if value.denominator != 1 or value < 0:
            raise self.fail("S008", f"`{span.text}` is not a whole number", span, "write 0, 1, 2, ..")
        return ast.Whole(int(value), span=span)

    def label(self, child: Child) -> ast.Label:
        """A class or a member of a set, as a name or a number."""
        if isinstance(child, Tree) and child.data == "class_label":
            child = branches(child)[0]
        if isinstance(child, Tree) and child.data == "number":
            return self.number(child)
        return self.name(child)

    def interval(self, tree: Branch) -> ast.Interval:
        left, low, high, right = branches(tree)
        assert isinstance(low, Tree)
        assert isinstance(high, Tree)
        names = [self.name(end) for end in (low, high) if end.data == "constant"]
        if len(names) == 2 and self.numbers is not None and not self.numbers & {name.text for name in names}:
            raise self.fail("E121", f"no number is called `{names[0].text}`", self.span(tree), listed(names))
        bounds = self.every(self.bound, [low, high])
        return ast.Interval(bounds[0], bounds[1], left == "(", right == ")", span=self.span(tree))

    # --- expressions --------------------------------------------------------------------------------------------------

    def expression(self, child: Child) -> ast.Expression:
        """One side of a comparison, or a part of it."""
        assert isinstance(child, Tree)
        parts, span = branches(child), self.span(child)
        match child.data:
            case "unsigned":
                token = parts[0]
                assert isinstance(token, Token)
                return ast.Infinity(False, span=span) if token.type == "INF" else self._unsigned(token)
            case "feature_of":
                return ast.FeatureOf(self.name(parts[0]), self.name(parts[1]), span=span)
            case "bare" | "word_as_name":
                return self.name(child)
            case "call":
                return self.call(child)
            case "negate":
                return self._negated(self.quantity(parts[1]), span)
            case "sum":
                return self._sum(parts, span)
            case "product":
                return self._product(parts, span)
            case "row":
                raise self.fail("S035", "a row is not a quantity", span, "write `a = row N of DATA` for a point `a`")
            case rule:
                raise AssertionError(f"rule {rule} is not an expression")

    def quantity(self, child: Child) -> ast.Expression:
        """An expression in which a bare name is a number."""
        expression = self.expression(child)
        return self.named_number(expression) if isinstance(expression, ast.Name) else expression

    def named_number(self, name: ast.Name) -> ast.Expression:
        """A bare name in the place of a quantity."""
        known = self.numbers is None or name.text in self.numbers
        if name.text in self.points or name.span.text[:1] == '"' or not known:
            raise self.no_point(name)
        return cast("ast.Number", ast.Constant(name, span=name.span))

    def no_point(self, name: ast.Name) -> Malformed:
        """The error for a bare name in the place of a quantity of a point."""
        if name.text in self.points:
            message = f"the point `{name.text}` is not a quantity"
            return self.fail("S033", message, name.span, f"write one of its features, `{name.span.text}.FEATURE`")
        point = self.points[0] if self.points else "a"
        message = f"`{name.text}` does not belong to a point"
        near = did_you_mean(name.text, self.numbers or ())
        written = f"{point}.{name.span.text}"
        near = f"; {near}" if near.startswith("did") else ""
        return self.fail("S033", message, name.span, Remedy(f"for a feature write `{written}`{near}", written))

    def _negated(self, operand: ast.Expression, span: Span) -> ast.Expression:
        match operand:
            case ast.Number(value):
                return ast.Number(-value, span=span)
            case ast.Infinity(negative):
                return ast.Infinity(not negative, span=span)
            case ast.Negate(inner):
                return inner
            case ast.Constant(name, factor):
                return cast("ast.Number", ast.Constant(name, -factor, span=span))
            case _:
                return ast.Negate(operand, span=span)

    def _sum(self, parts: list[Child], span: Span) -> ast.Expression:
        terms = [self.quantity(parts[0])]
        for sign, part in zip(parts[1::2], parts[2::2], strict=True):
            term = self.quantity(part)
            terms.append(self._negated(term, self.span(sign).to(term.span)) if sign == "-" else term)
        return ast.Sum(tuple(terms), span=span)

    def _product(self, parts: list[Child], span: Span) -> ast.Expression:
        factors = [self.quantity(parts[0])]
        for operator, part in zip(parts[1::2], parts[2::2], strict=True):
            factor = self.quantity(part)
            if operator == "*":
                factors.append(factor)
                continue
            factors = [ast.Quotient(self._multiplied(factors), factor, span=factors[0].span.to(factor.span))]
        return self._multiplied(factors, span)

    def _multiplied(self, factors: list[ast.Expression], span: Span | None = None) -> ast.Expression:
        if len(factors) == 1:
            return factors[0]
        return ast.Product(tuple(factors), span=span or factors[0].span.to(factors[-1].span))

    # --- functions ----------------------------------------------------------------------------------------------------

    def call(self, tree: Branch) -> ast.Expression:
        """A function of points, with its arguments."""
        function, arguments = branches(tree)
        assert isinstance(arguments, Tree)
        parts, span, text = branches(arguments), self.span(tree), str(function)
        kinds = [part.data for part in parts if isinstance(part, Tree)]
        match text, parts:
            case "prob" | "margin", [point, *label] if self._is_point(point) and len(label) <= 1:
                node = ast.Prob if text == "prob" else ast.Margin
                return node(self.name(point), self._class(label[0], text) if label else None, span=span)
            case "value" | "class", [point] if self._is_point(point):
                return (ast.ValueOf if text == "value" else ast.ClassOf)(self.name(point), span=span)
            case "likelihood" | "changes", [first, second] if self._is_point(first) and self._is_name(second):
                return (ast.Likelihood if text == "likelihood" else ast.Changes)(
                    self.name(first), self.name(second), span=span
                )
            case "typicality", [point, data, *way] if self._is_point(point) and self._is_name(data) and len(way) <= 1:
                known = self.way_of(way[0]) if way else None
                return ast.Typicality(self.name(point), self.name(data), known, span=span)
            case "abs", [operand] if not {"row", "nearest", "keyword_argument"} & set(kinds):
                return ast.Absolute(self.quantity(operand), span=span)
            case "distance", [point, target, *norm] if self._is_point(point) and len(norm) <= 1:
                return ast.Distance(self.name(point), self._target(target), self._norm(norm, span), span=span)
            case _ if text in functions() and text not in QUANTITIES:
                form = f"P avoid {functions()[text]}" if text == "cavities" else functions()[text]
                raise self.fail("S041", f"`{text}` is not a quantity", self.span(function), f"write `{form}` by itself")
            case _:
                raise self.wrong_call(function, span)

    def wrong_call(self, function: Child, span: Span) -> Malformed:
        """The error for an unknown function or wrong arguments."""
        found = predicate(str(function))
        forms = functions() if found is None else found.functions
        if str(function) not in forms:
            message = f"unknown function `{function}`"
            return self.fail("S040", message, self.span(function), did_you_mean(str(function), forms))
        return self.fail("S041", f"wrong arguments for `{function}`", span, f"write {forms[str(function)]}")

    def way_of(self, part: Child) -> str:
        """The method for typicality, by its word."""
        span = self.span(part)
        if span.text not in TYPICAL_WAYS:
            remedy = did_you_mean(span.text, TYPICAL_WAYS) or f"write {' or '.join(f'`{w}`' for w in TYPICAL_WAYS)}"
            raise self.fail("S053", f"`{span.text}` is not a method for typicality", span, remedy)
        return span.text

    def _is_point(self, child: Child) -> bool:
        return isinstance(child, Tree) and child.data == "bare"

    def _is_name(self, child: Child) -> bool:
        return isinstance(child, Tree) and child.data in ("bare", "word_as_name")

    def _class(self, child: Child, function: str) -> ast.Label:
        label = self.expression(child) if isinstance(child, Tree) and child.data in _LABELS else None
        if isinstance(label, ast.Name | ast.Number | ast.Constant):
            return label
        remedy = f"write `{function}(P, CLASS)` with the name or number of a class"
        raise self.fail("S041", "this is not a class", self.span(child), remedy)

    def _target(self, child: Child) -> ast.Name | ast.Row | ast.NearestRow:
        assert isinstance(child, Tree)
        if child.data == "row":
            return self.row(child)
        if child.data == "nearest":
            return ast.NearestRow(self.name(branches(child)[0]), span=self.span(child))
        if child.data == "bare":
            return self.name(child)
        raise self.fail(
            "S041", "a distance is measured to a point or a row", self.span(child), f"write {QUANTITIES['distance']}"
        )

    def _norm(self, norm: list[Child], span: Span) -> ast.Norm:
        remedy = "add the norm: l0, l1, l2 or linf"
        if not norm:
            raise self.fail("S042", "the distance has no norm", span, remedy)
        text = self.span(norm[0]).text
        for known in ("l0", "l1", "l2", "linf"):
            if text == known:
                return known
        raise self.fail("S042", f"`{text}` is not a norm", self.span(norm[0]), did_you_mean(text, NORMS))

    def row(self, tree: Branch) -> ast.Row:
        index, data = branches(tree)
        return ast.Row(self.whole(index), self.name(data), span=self.span(tree))


def unknown_number(name: ast.Name, known: Iterable[str]) -> str:
    """The remedy for an unknown name in the place of a number."""
    near = did_you_mean(name.text, known)
    written = name.span.text
    return (
        near
        if near.startswith("did")
        else f"for a feature write `a.{written}`; for a number declare `let {written} = 0.5`"
    )


def listed(names: Iterable[ast.Name]) -> Remedy:
    """The remedy for an interval between names that are no numbers: a list."""
    return write(f"{{{', '.join(name.span.text for name in names)}}}")


_LABELS: Final = ("bare", "word_as_name", "unsigned", "negate")
