"""`E in [lo, hi]`, `E in {v1, v2}`, and `not in`: a quantity is in an interval, or equals one of several values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treesens.grammar.constructs.construct import Construct
from treesens.grammar.printing.phrases import label, list_words, value
from treesens.grammar.printing.print_terms import expression_text, interval_text, label_text
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import node

if TYPE_CHECKING:
    from treesens.grammar.parsing.build_terms import Branch, TermBuilder

GRAMMAR = 'membership: _sum [NOT] "in" (interval | set)'


@node
class InInterval(ast.Predicate):
    """`E in [lo, hi]`"""

    operand: ast.Expression
    interval: ast.Interval

    def text(self) -> str:
        return f"{expression_text(self.operand)} in {interval_text(self.interval)}"

    def negated_text(self) -> str:
        return f"{expression_text(self.operand)} not in {interval_text(self.interval)}"

    def english(self) -> str:
        low, high = expression_text(self.interval.low), expression_text(self.interval.high)
        opened = ((low, self.interval.low_open), (high, self.interval.high_open))
        ends = [f"{end} itself not" for end, is_open in opened if is_open]
        return f"{value(self.operand)} lies between {low} and {high}" + (f" ({list_words(ends)})" if ends else "")


@node
class InSet(ast.Predicate):
    """`E in {v1, v2}`"""

    operand: ast.Expression
    values: ast.ValueSet

    def text(self) -> str:
        return f"{expression_text(self.operand)} in {_set(self.values)}"

    def negated_text(self) -> str:
        return f"{expression_text(self.operand)} not in {_set(self.values)}"

    def english(self) -> str:
        return f"{value(self.operand)} is {list_words([label(v) for v in self.values.values], 'or')}"


def _set(values: ast.ValueSet) -> str:
    return f"{{{', '.join(label_text(v) for v in values.values)}}}"


def build(builder: TermBuilder, tree: Branch) -> ast.Formula:
    operand_tree, *negation, where = builder.parts(tree)
    span = builder.span(tree)
    operand = builder.quantity(operand_tree)
    inside: ast.Formula
    if builder.rule(where) == "interval":
        inside = InInterval(operand, builder.interval(builder.tree(where)), span=span)
    else:
        values = ast.ValueSet(tuple(builder.label(value) for value in builder.parts(where)), span=builder.span(where))
        inside = InSet(operand, values, span=span)
    return ast.Not(inside, span=span) if negation else inside


CONSTRUCT = Construct((InInterval, InSet), build, GRAMMAR)
