"""`P, Q avoid cavities(DATA, width = w [, limit = n|all])`: no point is in a cavity, a box that contains no row of the data.

`P, Q avoid cavities("FILE")`: no point is in any of the file's boxes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from treesens.grammar.constructs.construct import Construct
from treesens.grammar.printing.phrases import list_words
from treesens.grammar.printing.print_terms import name_text, number_text, point_name_text
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import node

if TYPE_CHECKING:
    from treesens.grammar.parsing.build_terms import Branch, TermBuilder

GRAMMAR = 'avoid: point_name ("," point_name)* "avoid" call'
FORM = 'cavities(DATA, width = W), the same with `limit = N` or `limit = all`, or cavities("FILE")'


@node
class Avoid(ast.Predicate):
    """`P, Q avoid cavities(DATA, width = w [, limit = n|all])`; `every` is True for `limit = all`."""

    points: tuple[ast.Name, ...]
    data: ast.Name
    width: ast.Whole
    limit: ast.Whole | None = None
    every: bool = False

    def text(self) -> str:
        names = ", ".join(point_name_text(p) for p in self.points)
        extra = ", limit = all" if self.every else f", limit = {number_text(self.limit)}" if self.limit else ""
        return f"{names} avoid cavities({name_text(self.data)}, width = {number_text(self.width)}{extra})"

    def english(self) -> str:
        tried = f", of which {self.limit.value} are looked at" if self.limit else ""
        return (
            f"{list_words(p.text for p in self.points)} lie in no box over at most {self.width.value} features that "
            f"holds no row of {self.data.text}{tried}"
        )


@node
class AvoidListed(ast.Predicate):
    """`P, Q avoid cavities("FILE")`"""

    points: tuple[ast.Name, ...]
    path: ast.Text

    def text(self) -> str:
        return f'{", ".join(point_name_text(p) for p in self.points)} avoid cavities("{self.path.value}")'

    def english(self) -> str:
        return f"{list_words(p.text for p in self.points)} satisfy every clause of {self.path.value}"


def build(builder: TermBuilder, tree: Branch) -> ast.Formula:
    *points, call = builder.parts(tree)
    function, arguments = builder.parts(call)
    if function != "cavities":
        raise builder.fail("S040", f"points cannot avoid `{function}`", builder.span(function), f"write {FORM}")
    data, *options = builder.parts(arguments) or [call]
    names = builder.names(points)
    if (path := builder.quoted_text(data)) is not None and not options:
        return AvoidListed(names, path, span=builder.span(tree))
    given: dict[str, ast.Whole] = {}
    every = False
    for option in options:
        if builder.rule(option) != "keyword_argument":
            raise builder.wrong_call(function, builder.span(option))
        key, value = builder.parts(option)
        if key not in ("width", "limit") or key in given or (key == "limit" and every):
            raise builder.fail("S041", f"`cavities` takes no `{key}` here", builder.span(key), f"write {FORM}")
        if key == "limit" and builder.rule(value) == "name" and builder.name(value).text == "all":
            every = True
        else:
            given[str(key)] = builder.whole(value)
    if "width" not in given or builder.rule(data) not in ("bare", "word_as_name"):
        raise builder.wrong_call(function, builder.span(call))
    return Avoid(names, builder.name(data), given["width"], given.get("limit"), every, span=builder.span(tree))


CONSTRUCT = Construct((Avoid, AvoidListed), build, GRAMMAR, {"cavities": FORM})
