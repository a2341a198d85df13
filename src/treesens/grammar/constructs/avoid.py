"""`P, Q avoid cavities(DATA, width = w [, limit = n])`: the points lie in no box that holds no row of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treesens.grammar.constructs.construct import Construct
from treesens.grammar.printing.phrases import list_words
from treesens.grammar.printing.print_terms import name_text, point_name_text
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import node

if TYPE_CHECKING:
    from treesens.grammar.parsing.build_terms import Branch, TermBuilder

GRAMMAR = 'avoid: point_name ("," point_name)* "avoid" call'
FORM = "cavities(DATA, width = W) or cavities(DATA, width = W, limit = N)"


@node
class Avoid(ast.Predicate):
    """`P, Q avoid cavities(DATA, width = w [, limit = n])`"""

    points: tuple[ast.Name, ...]
    data: ast.Name
    width: ast.Whole
    limit: ast.Whole | None = None

    def text(self) -> str:
        names = ", ".join(point_name_text(p) for p in self.points)
        extra = f", limit = {self.limit.value}" if self.limit else ""
        return f"{names} avoid cavities({name_text(self.data)}, width = {self.width.value}{extra})"

    def english(self) -> str:
        tried = f", of which {self.limit.value} are looked at" if self.limit else ""
        return (
            f"{list_words(p.text for p in self.points)} lie in no box over at most {self.width.value} features that holds "
            f"no row of {self.data.text}{tried}"
        )


def build(builder: TermBuilder, tree: Branch) -> ast.Formula:
    *points, call = builder.parts(tree)
    function, arguments = builder.parts(call)
    if function != "cavities":
        raise builder.fail("S040", f"points cannot avoid `{function}`", builder.span(function), f"write {FORM}")
    data, *options = builder.parts(arguments) or [call]
    given: dict[str, ast.Whole] = {}
    for option in options:
        if builder.rule(option) != "keyword_argument":
            raise builder.wrong_call(function, builder.span(option))
        key, value = builder.parts(option)
        if key not in ("width", "limit") or key in given:
            raise builder.fail("S041", f"`cavities` takes no `{key}` here", builder.span(key), f"write {FORM}")
        given[str(key)] = builder.whole(value)
    if "width" not in given or builder.rule(data) not in ("bare", "word_as_name"):
        raise builder.wrong_call(function, builder.span(call))
    names = builder.names(points)
    return Avoid(names, builder.name(data), given["width"], given.get("limit"), span=builder.span(tree))


CONSTRUCT = Construct((Avoid,), build, GRAMMAR, {"cavities": FORM})
