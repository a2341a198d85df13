"""Trees that were built by hand, with places in their own text."""

from __future__ import annotations

from treesens.grammar.parsing.parser import parse
from treesens.grammar.printing.print_terms import Unwritable
from treesens.grammar.printing.printer import to_text
from treesens.grammar.tree import ast


def placed(file: ast.File, name: str) -> ast.File:
    """The tree read back from its text, so that messages show lines of it.

    A name with a backquote or a line break is in no text: then it is the tree as it was built.
    """
    try:
        text = to_text(file)
    except Unwritable:
        return file
    return parse(text, name)
