"""`decision(P) = OUTCOME`, `decision(P) in {..}`, `decision(P) != decision(Q)`: the outcome of a decision for a point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treesens.grammar.constructs.construct import Construct
from treesens.grammar.printing.phrases import list_words
from treesens.grammar.printing.print_terms import name_text, point_name_text
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import node

if TYPE_CHECKING:
    from treesens.grammar.parsing.build_terms import Branch, Child, TermBuilder

GRAMMAR = """decided: PREDICATE arguments (EQUAL | ORDER) (point_name | PREDICATE arguments)
    | PREDICATE arguments [NOT] "in" set"""
WORD = "decision"
FORM = "decision(P) = OUTCOME, or decision(P, DECISION) = OUTCOME"


@node
class Decided(ast.Predicate):
    """`decision(P [, DECISION]) = OUTCOME`, or `in {..}`: the outcome of a point is one of several outcomes"""

    point: ast.Name
    decision: ast.Name | None
    outcomes: tuple[ast.Name, ...]

    def text(self) -> str:
        return self._text("=", "in")

    def negated_text(self) -> str:
        return self._text("!=", "not in")

    def _text(self, one: str, several: str) -> str:
        names = [point_name_text(name) for name in self.outcomes]
        if len(names) == 1:
            return f"{_call(self.point, self.decision)} {one} {names[0]}"
        return (
            f"{_call(self.point, self.decision)} {several} {{{', '.join(name_text(name) for name in self.outcomes)}}}"
        )

    def english(self) -> str:
        return f"{_phrase(self.point, self.decision)} is {list_words([name.text for name in self.outcomes], 'or')}"


@node
class DecidedAlike(ast.Predicate):
    """`decision(P) = decision(Q)`: two points, or one point under two decisions, have the same outcome"""

    left: ast.Name
    left_decision: ast.Name | None
    right: ast.Name
    right_decision: ast.Name | None

    def text(self) -> str:
        return self._text("=")

    def negated_text(self) -> str:
        return self._text("!=")

    def _text(self, operator: str) -> str:
        return f"{_call(self.left, self.left_decision)} {operator} {_call(self.right, self.right_decision)}"

    def english(self) -> str:
        return f"{_phrase(self.left, self.left_decision)} is {_phrase(self.right, self.right_decision)}"


def _call(point: ast.Name, decision: ast.Name | None) -> str:
    return f"{WORD}({point_name_text(point)}{f', {name_text(decision)}' if decision is not None else ''})"


def _phrase(point: ast.Name, decision: ast.Name | None) -> str:
    return f"the decision {f'{decision.text} ' if decision is not None else ''}about {point.text}"


def build(builder: TermBuilder, tree: Branch) -> ast.Formula:
    span, (function, arguments, *rest) = builder.span(tree), builder.parts(tree)
    if str(function) != WORD:
        raise builder.fail("S032", f"`{function}(..)` cannot be compared", span, "write it by itself")
    if not rest:
        remedy = f"write `{span.text} = OUTCOME`"
        raise builder.fail("S032", "this constraint has no comparison", span, remedy)
    asked = _asked(builder, function, arguments)
    if builder.rule(rest[-1]) == "set":
        names = tuple(_outcome(builder, child) for child in builder.parts(rest[-1]))
        found: ast.Formula = Decided(*asked, names, span=span)
        return ast.Not(found, span=span) if len(rest) > 1 else found
    operator, other, *more = rest
    if str(operator) not in ("=", "!="):
        raise builder.fail("E205", "outcomes have no order", span, "use `=` or `!=`")
    found = (
        DecidedAlike(*asked, *_asked(builder, other, more[0]), span=span)
        if more
        else Decided(*asked, (_outcome(builder, other),), span=span)
    )
    return found if str(operator) == "=" else ast.Not(found, span=span)


def _asked(builder: TermBuilder, function: Child, arguments: Child) -> tuple[ast.Name, ast.Name | None]:
    """The point, and the named decision (None if no decision is named)."""
    point, *name = builder.parts(arguments) or [arguments]
    named = all(builder.rule(part) in ("bare", "word_as_name") for part in name)
    if str(function) != WORD or builder.rule(point) != "bare" or len(name) > 1 or not named:
        raise builder.wrong_call(function, builder.span(function).to(builder.span(arguments)))
    return builder.name(point), builder.name(name[0]) if name else None


def _outcome(builder: TermBuilder, child: Child) -> ast.Name:
    if builder.rule(child) == "number":
        raise builder.fail("S041", "this is not an outcome", builder.span(child), f"write {FORM}")
    return builder.name(child)


CONSTRUCT = Construct((Decided, DecidedAlike), build, GRAMMAR, {WORD: FORM})
