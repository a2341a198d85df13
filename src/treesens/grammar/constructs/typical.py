"""`P, Q typical of DATA [at 95 %] [by chow-liu | isolation]`: the points are in the region of typical inputs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from treesens.compiler.base.diagnostics import Code
from treesens.grammar.constructs.construct import Construct
from treesens.grammar.printing.phrases import list_words
from treesens.grammar.printing.print_terms import expression_text, name_text, point_name_text
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import node

if TYPE_CHECKING:
    from treesens.grammar.parsing.build_terms import Branch, Child, TermBuilder

GRAMMAR = r"""typical: point_name ("," point_name)* "typical" "of" name [typical_level] [typical_way]
typical_level: "at" (PERCENT | NUMBER)
typical_way: "by" (CHOW_LIU | name)
CHOW_LIU.3: /chow-liu(?![\w-])/
PERCENT.3: /([0-9]+(\.[0-9]*)?|\.[0-9]+|[^\W\d]\w*)[ \t]*%(?![ \t]*([\d.(`]|[^\W\d]\w*\.))/
"""
DEFAULT_LEVEL = Fraction(95)
LEVEL_OUT_OF_RANGE = Code(
    "E222",
    "level out of range",
    "a region of typical inputs must contain more than 0 % and less than 100 % of the inputs",
    "write a number between 0 and 100, such as `at 95 %`",
)
TOO_FEW_ROWS = Code(
    "E407",
    "too few rows for the level",
    "typicality is learnt from one half of the rows and checked on the other half, which must be large enough",
    "use more rows, or a lower level",
)


@node
class Typical(ast.Predicate):
    """`P, Q typical of DATA [at LEVEL %] [by WAY]`"""

    points: tuple[ast.Name, ...]
    data: ast.Name
    level: ast.Number | None = None
    way: str | None = None

    @property
    def percent(self) -> Fraction:
        return DEFAULT_LEVEL if self.level is None else self.level.value

    def text(self) -> str:
        names = ", ".join(point_name_text(p) for p in self.points)
        at = f" at {expression_text(self.level)} %" if self.level is not None else ""
        return f"{names} typical of {name_text(self.data)}{at}" + (f" by {self.way}" if self.way else "")

    def english(self) -> str:
        verb = "lies" if len(self.points) == 1 else "each lie"
        by = "the cuts of an isolation forest" if self.way == "isolation" else "a tree of pairs of features"
        share = expression_text(ast.Number(self.percent))
        return (
            f"{list_words(p.text for p in self.points)} {verb} in the region that holds {share} % of"
            f" fresh inputs like the rows of {self.data.text}, by {by}"
        )


def build(builder: TermBuilder, tree: Branch) -> ast.Formula:
    points, data, level, way = [], None, None, None
    for part in builder.parts(tree):
        match builder.rule(part):
            case "typical_level":
                level = _level(builder, builder.parts(part)[0])
            case "typical_way":
                way = builder.way_of(builder.parts(part)[0])
            case "point_name":
                points.append(part)
            case _:
                data = part
    assert data is not None
    return Typical(builder.names(points), builder.name(data), level, way, span=builder.span(tree))


def _level(builder: TermBuilder, part: Child) -> ast.Number:
    span = builder.span(part)
    if not span.text.endswith("%"):
        raise builder.fail(LEVEL_OUT_OF_RANGE, "a level is a percentage", span, f"write `at {span.text} %`")
    return builder.percent(part)


CONSTRUCT = Construct((Typical,), build, GRAMMAR, codes=(LEVEL_OUT_OF_RANGE, TOO_FEW_ROWS))
