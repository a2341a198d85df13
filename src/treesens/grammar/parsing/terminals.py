"""Lark with the grammar of `sens.lark`, built on first use, since only commands that read questions need Lark.

The tables take 0.1 s to build and 0.015 s to load: they are cached in the user's cache directory, with a hash of the grammar
and the versions of Lark and Python, which Lark checks. Without a writable directory, the tables are built each time.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from treesens.grammar.constructs.registry import constructs, predicates
from treesens.grammar.tree.words import WITH_ROLE

if TYPE_CHECKING:
    from lark import Lark, Token
    from lark.lexer import BasicLexer

_NO_WORDS: Final = re.compile(r"\s*//|[A-Z_]+(\.-?\d+)?: */")
_WORD: Final = re.compile(r'"([a-z]+)"')

FAULTS: Final = ("FOREIGN", "SINGLE_QUOTED", "OPEN_QUOTE", "BAD_NUMBER", "UNREADABLE")
"""Terminals that no rule uses; they make tokens of unreadable text, for messages."""


class _KeepFaults:
    """A post-lexer whose only effect is that Lark keeps the terminals that no rule uses."""

    always_accept: ClassVar[tuple[str, ...]] = FAULTS

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return stream


def grammar_text() -> str:
    """The text of `sens.lark`, with the constructs' rules and words inserted."""
    text = Path(__file__).with_name("sens.lark").read_text("utf-8")
    rules = {name: found.grammar for name, found in constructs().items() if found.grammar}
    own = sorted(_words_in("\n".join(rules.values())) - _words_in(text))
    text = text.replace("| CONSTRUCTS |", f"| {' | '.join(rules)} |").replace(
        "PREDICATES)", f"{'|'.join(predicates())})"
    )
    text = text.replace("| OF_CONSTRUCTS |", "".join(f'| "{word}" ' for word in own) + "|")
    return "\n".join([text, *rules.values(), ""])


@functools.cache
def keywords() -> frozenset[str]:
    """The words of the language, including words of constructs: all quoted words of the grammar. Does not import Lark."""
    return _words_in(grammar_text())


@functools.cache
def operators() -> frozenset[str]:
    """The words that join two parts of a formula and have no other role."""
    return keywords() - WITH_ROLE


def _words_in(grammar: str) -> frozenset[str]:
    """The quoted words outside comments and regular expressions."""
    lines = (line for line in grammar.splitlines() if not _NO_WORDS.match(line))
    return frozenset(word for line in lines for word in _WORD.findall(line))


def build(cache: str | None = None, *, debug: bool = False) -> Lark:
    """Lark for the grammar, through the cache file if one is passed."""
    from lark import Lark

    return Lark(
        grammar_text(),
        parser="lalr",
        lexer="basic",
        start="declaration",
        propagate_positions=True,
        maybe_placeholders=True,
        postlex=_KeepFaults(),
        cache=cache or False,
        debug=debug,
    )


@functools.cache
def lark() -> Lark:
    """Lark for the grammar, built once per process."""
    return build(_cache_file())


@functools.cache
def _lexer() -> BasicLexer:
    """A lexer for all terminals, including those in `%ignore`: `Lark.lex` would create a lexer for every text."""
    lexer = lark()._build_lexer(dont_ignore=True)
    return lexer


def tokens(text: str, most: int | None = None) -> list[Token]:
    """The tokens of a text (at most `most`), including comments and unreadable text, without white space."""
    from lark.lexer import LexerThread

    found = (t for t in LexerThread.from_text(_lexer(), text).lex(None) if t.type != "SPACE")  # type: ignore[no-untyped-call]
    return list(islice(found, most))


def _cache_file() -> str | None:
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA", "")
    else:
        root = os.environ.get("XDG_CACHE_HOME", "") or os.path.expanduser("~/.cache")
    directory = Path(root, "treesens")
    if not directory.is_absolute():
        return None
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(directory, os.W_OK):
        return None
    key = hashlib.sha256(grammar_text().encode()).hexdigest()[:16]
    return str(directory / f"grammar-{key}-{sys.version_info.major}.{sys.version_info.minor}.lark")
