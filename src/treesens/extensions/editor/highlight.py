"""The Pygments lexer of the language, for `pygmentize file.sens`, Sphinx, mkdocs and notebooks, registered as an entry point.

Only Pygments imports this module, so treesens does not depend on Pygments.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pygments.lexer import RegexLexer
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
    _TokenType,
)

from treesens.extensions.editor.textmate import patterns
from treesens.grammar.constructs.registry import PLUGINS

_COLOURS: Final[dict[str, _TokenType]] = {
    "comment.line.number-sign": Comment.Single,
    "string.quoted.double": String.Double,
    "variable.other.quoted": Name.Variable,
    "variable.other.member": Name.Attribute,
    "constant.numeric": Number,
    "entity.name.function": Name.Function,
    "storage.type": Keyword.Type,
    "keyword.declaration": Keyword.Declaration,
    "keyword.control": Keyword,
    "keyword.operator.word": Operator.Word,
    "constant.language": Keyword.Constant,
    "keyword.other": Keyword.Pseudo,
    "keyword.operator": Operator,
    "variable.other": Name,
}


class SensLexer(RegexLexer):
    """Highlights `.sens` text with the patterns of the TextMate grammar."""

    name = "treesens"
    aliases: ClassVar[list[str]] = ["sens", "treesens"]
    filenames: ClassVar[list[str]] = ["*.sens"]
    url = "https://pypi.org/project/treesens/"
    tokens: ClassVar[dict[str, list[tuple[str, _TokenType]]]] = {
        "root": [
            (r"\s+", Whitespace),
            *((pattern, _COLOURS[scope]) for scope, pattern in patterns(PLUGINS.names())),
            (r"[(){}\[\],:;.]", Punctuation),
        ]
    }
