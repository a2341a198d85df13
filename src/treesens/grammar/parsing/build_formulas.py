"""Converts parse trees to syntax nodes: constraints."""

from __future__ import annotations

from typing import Final, cast

from lark import Tree

from treesens.grammar.constructs.construct import Applied
from treesens.grammar.constructs.registry import constructs, predicate
from treesens.grammar.parsing.build_terms import Branch, Child, Malformed, TermBuilder, branches
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import nodes_in

_QUANTITIES: Final = (
    *(ast.Prob, ast.Margin, ast.ValueOf, ast.ClassOf, ast.FeatureOf, ast.Likelihood, ast.Typicality, ast.Distance),
    *(ast.Changes, Applied),
)


def _trees(children: list[Child]) -> list[Branch]:
    return [child for child in children if isinstance(child, Tree)]


class FormulaBuilder(TermBuilder):
    """Builds constraints; the kind of a comparison depends on its two sides."""

    def formula(self, tree: Branch) -> ast.Formula:
        """The node of a constraint. Percentages are accepted if all its quantities are probabilities."""
        known = len(self.percentages)
        try:
            node = self._formula(tree)
        except Malformed:
            del self.percentages[known:]
            raise
        quantities = {type(part) for part in nodes_in(node) if isinstance(part, _QUANTITIES)}
        if quantities == {ast.Prob} and not isinstance(node, ast.And | ast.Or | ast.Implies):
            del self.percentages[known:]
        return node

    def _formula(self, tree: Branch) -> ast.Formula:
        parts, span = branches(tree), self.span(tree)
        match tree.data:
            case "and":
                return ast.And(self.every(self.formula, _trees(parts)), span=span)
            case "or":
                return ast.Or(self.every(self.formula, _trees(parts)), span=span)
            case "implies":
                premise, conclusion = self.every(self.formula, _trees(parts))
                return ast.Implies(premise, conclusion, span=span)
            case "not":
                return ast.Not(self.formula(_trees(parts)[0]), span=span)
            case "comparison":
                return self._comparison(tree)
            case "predicate":
                found = predicate(str(parts[0]))
                return found.build(self, tree) if found is not None else self._applied(tree)
            case rule:
                return constructs()[rule].build(self, tree)

    def _applied(self, tree: Branch) -> ast.Formula:
        """A constraint that is declared by `define`."""
        function, arguments = branches(tree)
        given: list[ast.Expression] = []
        for part in branches(self.tree(arguments)):
            if self.rule(part) in ("", "row", "nearest", "keyword_argument"):
                message = f"`{function}` takes points, features and numbers"
                raise self.fail("S041", message, self.span(part), "leave this out")
            given.append(self.expression(part))
        return Applied(self.name(function), tuple(given), span=self.span(tree))

    def _comparison(self, tree: Branch) -> ast.Formula:
        left_tree, operator, right_tree, *suffixes = branches(tree)
        span = self.span(tree)
        left = self.expression(left_tree)
        extras = self._suffixes(_trees(suffixes))
        if isinstance(left, ast.Name):
            found = self._of_point(left, str(operator), right_tree, extras, tree)
            if found is not None:
                return found
            left = self.named_number(left)
        if "except" in extras:
            remedy = "write `a = b except {..}` for two points"
            raise self.fail("S043", "`except` requires an equality of two points", self.span(extras["except"]), remedy)
        right = self.expression(right_tree)
        if (
            isinstance(left, ast.ClassOf)
            and operator == "="
            and isinstance(right, ast.Name | ast.Number | ast.Constant)
        ):
            by = {key: self.number(_trees(branches(extra))[0]) for key, extra in extras.items()}
            return ast.ClassIs(left.point, right, by.get("by_factor"), by.get("by_margin"), span=span)
        if extras:
            where = self.span(next(iter(extras.values())))
            raise self.fail("S043", "`by` may only follow `class(P) = CLASS`", where, "remove `by`, or name the class")
        if isinstance(right, ast.Name) and not isinstance(left, ast.FeatureOf | ast.ClassOf):
            right = self.named_number(right)
        return ast.Comparison(left, cast(ast.Operator, str(operator)), right, span=span)

    def _suffixes(self, suffixes: list[Branch]) -> dict[str, Branch]:
        """Maps each rule to its suffix (`except`, `by factor` or `by margin`); each suffix may appear at most once."""
        found: dict[str, Branch] = {}
        for suffix in suffixes:
            if suffix.data in found:
                raise self.fail(
                    "S050", f"`{suffix.data.replace('_', ' ')}` is given twice", self.span(suffix), "keep one"
                )
            found[suffix.data] = suffix
        return found

    def _of_point(
        self, point: ast.Name, operator: str, right: Child, extras: dict[str, Branch], tree: Branch
    ) -> ast.Formula | None:
        """The equality of a point; None if the name on the left can only be a number."""
        assert isinstance(right, Tree)
        span = self.span(tree)
        varied = self.features(_trees(branches(extras["except"]))[0]) if "except" in extras else None
        is_equality = operator == "=" and not extras.keys() - {"except"}
        if is_equality and right.data == "row":
            return ast.PointIsRow(point, self.row(right), varied, span=span)
        if is_equality and right.data == "bare":
            return ast.PointsEqual(point, self.name(right), varied, span=span)
        if right.data == "bare" and self.span(right).text in self.points and point.text in self.points:
            remedy = f"write `{point.text} = {self.span(right).text} except {{..}}`, or `changes(..) >= 1`"
            raise self.fail("S034", "points can only be compared by `=`", span, remedy)
        return None
