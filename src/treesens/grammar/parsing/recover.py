"""Parses one declaration from its tokens, and continues after a mistake to find all mistakes.

Inside a query's constraints, parsing continues with the next line that can start a conjunct; a mistake before `such that` skips
the rest of that header; elsewhere a declaration has at most one message. To continue, the parser receives the harmless `a = a`
in place of the unreadable part; the resulting tree is used to find more mistakes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from treesens.compiler.base.diagnostics import Diagnostics, Source
from treesens.grammar.messages.faults import Stop, diagnose, span_of
from treesens.grammar.parsing.layout import (
    BROKEN,
    CLOSER,
    CLOSERS,
    TAIL,
    may_end,
    may_start,
    starts_constraints,
    starts_line,
)
from treesens.grammar.parsing.terminals import lark

if TYPE_CHECKING:
    from lark import ParseTree, Token

    class InteractiveParser(Protocol):
        """Lark's class of the same name, whose methods are untyped."""

        def feed_token(self, token: Token) -> object: ...
        def feed_eof(self, last_token: Token) -> ParseTree: ...
        def accepts(self) -> set[str]: ...
        def copy(self, deepcopy_values: bool) -> InteractiveParser: ...


_HEADER: Final = ("QUERY", "NAME", "COLON", "FIND", "NAME", "SUCH", "THAT")
_CONJUNCT: Final = ("NAME", "EQUAL", "NAME")
_DEEPEST: Final = 64
_MOST_MESSAGES: Final = 100
_NESTING: Final = ("NOT", "MINUS", "IMPLIES", "OVER", "EACH")


def _new_parser() -> InteractiveParser:
    return cast("InteractiveParser", lark().parse_interactive())


class DeclarationParser:
    """Feeds the tokens of one declaration to the LALR parser, with the separators defined in `layout`."""

    def __init__(self, source: Source, tokens: list[Token], diagnostics: Diagnostics) -> None:
        self.source = source
        self.tokens = tokens
        self.diagnostics = diagnostics
        self.parser = _new_parser()
        self.brackets: list[Token] = []
        self.in_constraints = False
        self.conjunct_start = 0  # index of the first token of the current conjunct
        self.before_conjunct: InteractiveParser | None = None  # the parser's state before this token
        self.nested = 0
        self.failed = False

    def parse(self) -> ParseTree | None:
        """The tree of the declaration. After a mistake (in `diagnostics`), it is the tree of the readable parts, or None."""
        index = 0
        most = len(self.diagnostics.items) + _MOST_MESSAGES
        while index < len(self.tokens) and len(self.diagnostics.items) < most:
            index = self._step(index)
        return self._finish()

    def fits(self, *, new_line: bool) -> frozenset[str]:
        """The terminals that may come next, for editors; `new_line` is True if the terminals are to start a new line."""
        index = 0
        while index < len(self.tokens):
            index = self._step(index)
        found = self.parser.accepts()
        if new_line and self.in_constraints and not self.brackets and "_SEP" in found:
            found |= self._after_separator()
        return frozenset(found)

    def _after_separator(self) -> set[str]:
        from lark import Token

        ahead = self.parser.copy(deepcopy_values=False)
        ahead.feed_token(Token("_SEP", ";", start_pos=0, line=1, column=1, end_line=1, end_column=1, end_pos=0))
        return ahead.accepts()

    def _step(self, index: int) -> int:
        """Consumes the token at `index` and returns the next index."""
        token = self.tokens[index]
        if self.in_constraints and not self.brackets:
            if token.type == "_SEP":
                return self._semicolon(index)
            if token.type in TAIL and may_end(self.tokens[index - 1]):
                self.in_constraints = False
            elif self._breaks(index) and not self._separate(index, token):
                return self._go_on(index)
        if not self._feed(token):
            return self._go_on(index)
        if self._too_deep(token):
            return self._recover(index)
        if token.type in CLOSER:
            self.brackets.append(token)
        elif token.type in CLOSERS and self.brackets:
            self.brackets.pop()
        elif starts_constraints(self.tokens, index):
            self._expect_conjunct(index + 1)
        return index + 1

    def _breaks(self, index: int) -> bool:
        """True if a line break before this token separates two conjuncts."""
        if index == self.conjunct_start or not starts_line(self.tokens, index) or not may_start(self.tokens, index):
            return False
        if not may_end(self.tokens[index - 1]):
            return False
        return self.tokens[index].type != "MINUS" or "_SEP" in self.parser.accepts()

    def _semicolon(self, index: int) -> int:
        following = index + 1
        if following == len(self.tokens) or not may_start(self.tokens, following):
            return following  # a break after the last conjunct separates nothing
        return following if self._separate(following, self.tokens[index]) else self._go_on(index)

    def _separate(self, index: int, token: Token) -> bool:
        separator = token.update(type="_SEP", value=";")
        if not self._feed(separator):
            return False
        self._expect_conjunct(index)
        return True

    def _expect_conjunct(self, index: int) -> None:
        self.in_constraints = True
        self.conjunct_start = index
        self.nested = 0
        # The values on the stack belong to completed conjuncts, and are not modified any more.
        self.before_conjunct = self.parser.copy(deepcopy_values=False)

    def _feed(self, token: Token) -> bool:
        from lark.exceptions import UnexpectedToken

        # A name may follow a constraint only in a decision. If it does not fit, the parser has already completed the
        # constraint: its possible continuations are those of the previous state.
        before = self.parser.copy(deepcopy_values=False) if token.type in ("NAME", "QUOTED") else self.parser
        try:
            self.parser.feed_token(token)
        except UnexpectedToken:
            self.parser = before
            return False
        return True

    def _too_deep(self, token: Token) -> bool:
        # The tree of a conjunct is traversed recursively, and only these tokens deepen it.
        self.nested += token.type in _NESTING
        if len(self.brackets) < _DEEPEST and self.nested <= _DEEPEST:
            return False
        where = span_of(self.source, token)
        self.diagnostics.error("S007", "this is nested too deeply", where, "split the constraint into several")
        return True

    def _go_on(self, index: int) -> int:
        """Reports the unexpected token at `index`, and returns where parsing continues."""
        self._report(index)
        return self._recover(index)

    def _recover(self, index: int) -> int:
        self.failed = True
        if self.before_conjunct is None:
            return self._after_header(index)
        resume = self._next_line(index)
        self.parser = self.before_conjunct.copy(deepcopy_values=False)
        self._feed_kinds(_CONJUNCT)
        self.brackets.clear()
        self.conjunct_start = len(self.tokens)
        return resume

    def _next_line(self, index: int) -> int:
        """The index of the next line that starts a conjunct or a clause; `index` itself if a line starts there."""
        start = index if index > self.conjunct_start else index + 1
        for i in range(start, len(self.tokens)):
            if self.tokens[i].type == "_SEP" or (starts_line(self.tokens, i) and self._starts_again(i)):
                return i
        return len(self.tokens)

    def _starts_again(self, index: int) -> bool:
        return self.tokens[index].type in TAIL or (self.in_constraints and may_start(self.tokens, index))

    def _after_header(self, index: int) -> int:
        """Continues after `such that`, or at the constraints if `such that` is missing."""
        kinds = [t.type for t in self.tokens]
        for i in range(index, len(kinds) - 1):
            if kinds[i] == "SUCH" and kinds[i + 1] == "THAT":
                self._pretend(*_HEADER)
                self._expect_conjunct(i + 2)
                return i + 2
        if self.diagnostics.items[-1].code == "S013" and index < len(self.tokens):
            start = index if starts_line(self.tokens, index) else index + 1
            self._pretend(*_HEADER)
            self._expect_conjunct(start)
            return start
        return len(self.tokens)

    def _pretend(self, *kinds: str) -> None:
        self.parser = _new_parser()
        self._feed_kinds(kinds)

    def _feed_kinds(self, kinds: tuple[str, ...]) -> None:
        from lark import Token

        for kind in kinds:
            # Trees made of this text need a location: the start of the file, to which no message will point.
            text = "=" if kind == "EQUAL" else "a"
            self._feed(Token(kind, text, start_pos=0, line=1, column=1, end_line=1, end_column=1, end_pos=0))

    def _report(self, index: int) -> None:
        if index == len(self.tokens) or self.tokens[index].type != BROKEN:
            fits = frozenset(self.parser.accepts())
            stop = Stop(self.source, self.tokens, index, fits, tuple(self.brackets))
            self.diagnostics.items.append(diagnose(stop))

    def _finish(self) -> ParseTree | None:
        from lark.exceptions import UnexpectedToken

        if self.failed and self.before_conjunct is None:
            return None
        try:
            return self.parser.feed_eof(self.tokens[-1])
        except UnexpectedToken:
            self._report(len(self.tokens))
        self._recover(len(self.tokens))
        return self.parser.feed_eof(self.tokens[-1]) if self.before_conjunct is not None else None
