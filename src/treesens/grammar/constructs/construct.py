"""The parts of a language construct, and the most common form: a word with one feature in brackets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from treesens.compiler.base.diagnostics import Code
from treesens.grammar.printing.phrases import value
from treesens.grammar.printing.print_terms import expression_text
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import node

if TYPE_CHECKING:
    from treesens.grammar.parsing.build_terms import Branch, TermBuilder


@dataclass(frozen=True)
class Construct:
    """A syntactic form of constraint.

    `build` creates a node, of a class in `nodes`, from a parse tree. `grammar` is the Lark rule, named like the file. Without a
    rule, the construct is a call, `WORD(..)`. If the construct is a call, or its rule starts with `PREDICATE`, `functions`
    includes the construct's word. `functions` lists all words that the construct calls, each with its call form.
    """

    nodes: tuple[type[ast.Predicate], ...]
    build: Callable[[TermBuilder, Branch], ast.Formula]
    grammar: str = ""
    functions: Mapping[str, str] = field(default_factory=dict)
    codes: tuple[Code, ...] = ()


@node
class Applied(ast.Predicate):
    """`NAME(ARGUMENT, ..)`: a constraint that `define` declares; expansion replaces it"""

    name: ast.Name
    arguments: tuple[ast.Expression, ...]

    def text(self) -> str:
        return f"{self.name.text}({', '.join(map(expression_text, self.arguments))})"


@node
class FeaturePredicate(ast.Predicate):
    """`WORD(P.f)`: a property of a feature at a point. A subclass defines the word and its English text."""

    word: ClassVar[str]
    meaning: ClassVar[str]
    feature: ast.FeatureOf

    def text(self) -> str:
        return f"{self.word}({expression_text(self.feature)})"

    def english(self) -> str:
        return f"{value(self.feature)} {self.meaning}"


def feature_predicate(kind: type[FeaturePredicate], *codes: Code) -> Construct:
    """The construct of a predicate about one feature."""

    def build(builder: TermBuilder, tree: Branch) -> ast.Formula:
        function, arguments = builder.parts(tree)
        given = builder.parts(arguments)
        if [builder.rule(part) for part in given] != ["feature_of"]:
            raise builder.wrong_call(function, builder.span(tree))
        feature = builder.expression(given[0])
        assert isinstance(feature, ast.FeatureOf)
        return kind(feature, span=builder.span(tree))

    return Construct((kind,), build, functions={kind.word: f"{kind.word}(P.f)"}, codes=codes)
