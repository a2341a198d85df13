"""Turns the position at which the parser stopped into a message that names the mistake.

The rules below are tried in order; each rule examines the unexpected token, the tokens before it, and the set of terminals that
were expected. The first rule that recognises a mistake reports it; the last rule applies to every position.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from treesens.compiler.base.diagnostics import Diagnostic, Remedy, Source, Span, write
from treesens.grammar.parsing.layout import (
    CLOSER,
    CLOSERS,
    TAIL,
    VALUES,
    is_name,
    is_word,
    may_end,
    near_declaration,
    starts_line,
)
from treesens.grammar.parsing.terminals import keywords
from treesens.grammar.tree.words import DECLARATIONS

if TYPE_CHECKING:
    from lark import Token

_SYMBOLS: Final = {
    **{
        "COLON": "`:`",
        "COMMA": "`,`",
        "EQUAL": "`=`",
        "ORDER": "a comparison",
        "LPAR": "`(`",
        "RPAR": "`)`",
        "LSQB": "`[`",
    },
    **{"RSQB": "`]`", "LBRACE": "`{`", "RBRACE": "`}`", "PLUS": "`+`", "MINUS": "`-`", "TIMES": "`*`", "OVER": "`/`"},
    **{"DOT": "`.`", "NAME": "a name", "STRING": "a string", "NUMBER": "a number", "FUNCTION": "a function"},
    **{"PERCENT": "a percentage", "CHOW_LIU": "`chow-liu`"},
    **{"_SEP": "a new line", "$END": "the end"},
}
_SAID_BY_NAME: Final = ("QUOTED", "PREDICATE", "INF")
_WHERE: Final = ("where", "with", "st", "so", "subject", "when", "if")


@dataclass(frozen=True, slots=True)
class Stop:
    """The position at which the parser stopped: `tokens[index]`, or the end if `index` is the number of tokens."""

    source: Source
    tokens: list[Token]
    index: int
    fits: frozenset[str]
    brackets: tuple[Token, ...]

    @property
    def token(self) -> Token | None:
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    @property
    def previous(self) -> Token | None:
        return self.tokens[self.index - 1] if self.index else None

    @property
    def at_break(self) -> bool:
        """True if the text ends here or continues on a new line."""
        return self.token is None or starts_line(self.tokens, self.index)

    @property
    def span(self) -> Span:
        """The location of the unexpected token; at the end of the text, the position right after the last token."""
        token = self.token
        if token is not None:
            return span_of(self.source, token)
        end = self.previous.end_pos or 0 if self.previous else 0
        return Span(self.source, end, end)

    @property
    def gap(self) -> Span:
        """The position right after the previous token."""
        end = self.previous.end_pos or 0 if self.previous else 0
        return Span(self.source, end, end)


Rule: TypeAlias = Callable[[Stop], Diagnostic | None]


def span_of(source: Source, token: Token) -> Span:
    """The location of a token."""
    return Span(source, token.start_pos or 0, token.end_pos or 0)


def diagnose(stop: Stop) -> Diagnostic:
    """The message for a position at which the parser stopped."""
    return next(found for rule in _RULES if (found := rule(stop)))


def _other_comment(stop: Stop) -> Diagnostic | None:
    """`// a comment`, as in other languages; the parser stops at the first or the second slash."""
    for first in (stop.index - 1, stop.index):
        pair = stop.tokens[max(first, 0) : first + 2]
        if [token.type for token in pair] == ["OVER", "OVER"] and pair[0].end_pos == pair[1].start_pos:
            where = span_of(stop.source, pair[0]).to(span_of(stop.source, pair[1]))
            return Diagnostic("S001", "`//` does not start a comment", where, Remedy("a comment starts with `#`", "#"))
    return None


_UNITS: Final = ("missing", "null", "none", "nan", "na", "empty")


def _other_language(stop: Stop) -> Diagnostic | None:
    """Constraints in the words of SQL and of programming languages."""
    token, tokens, i = stop.token, stop.tokens, stop.index
    if token is None or stop.previous is None:
        return None
    word, left = token.lower(), _left_side(stop)
    message = f"unexpected `{token}`"
    if word == "between" and "ORDER" in stop.fits:
        ends = [str(t) for t in tokens[i + 1 : i + 4]]
        spread = len(ends) == 3 and ends[1].lower() == "and"
        interval = f"in [{ends[0]}, {ends[2]}]" if spread else "in [LOW, HIGH]"
        remedy = f"write `{left} {interval}`"
        where = stop.span.to(span_of(stop.source, tokens[i + 3])) if spread else stop.span
        return Diagnostic("S001", message, stop.span, Remedy(remedy, interval, where=where) if spread else remedy)
    if word == "is" and "ORDER" in stop.fits:
        negated = i + 1 < len(tokens) and tokens[i + 1].lower() == "not"
        last = tokens[min(i + 1 + negated, len(tokens) - 1)]
        meant = f"{'' if negated else 'not '}present({left})"
        if last.lower() in _UNITS:
            where = Span(stop.source, stop.gap.end - len(left), last.end_pos or 0)
            return Diagnostic("S001", message, stop.span, write(meant, where))
        return Diagnostic("S001", message, stop.span, write("!=" if negated else "="))
    if token.type in ("ORDER", "EQUAL") and stop.previous.type in ("AND", "OR"):
        remedy = Remedy(f"repeat the left side: `{left} {token} ..`", f"{left} {token}")
        return Diagnostic("S018", f"`{token}` has no left side", stop.span, remedy)
    if token.type == "STRING" and stop.previous.type == "DOT":
        return Diagnostic("S001", message, stop.span, Remedy(f"write `{left}{_name(token)}`", _name(token)))
    if token.type == "DOT" and stop.previous.type == "STRING":
        following = tokens[i + 1 : i + 2]
        where = span_of(stop.source, stop.previous).to(span_of(stop.source, following[0]) if following else stop.span)
        feature = ".".join(map(_name, [stop.previous, *following]))
        return Diagnostic("S001", f"`{stop.previous}` is a string, and no point", where, write(feature))
    if stop.previous.type in ("LPAR", "LSQB") and i > 1 and tokens[i - 2].type == "IN" and token.type == "STRING":
        end = next((t for t in tokens[i:] if t.type in CLOSERS), tokens[-1])
        where = span_of(stop.source, stop.previous).to(span_of(stop.source, end))
        return Diagnostic(
            "S001", f"{message}: the ends of an interval are numbers", where, write(f"{{{where.text[1:-1]}}}")
        )
    if stop.fits == {"EACH"}:
        return Diagnostic("S001", message, stop.span, Remedy(f"write `for each {token}`", f"each {token}"))
    if stop.fits == {"FROM"} and token.type in ("EQUAL", "STRING"):
        return Diagnostic("S001", message, stop.span, write("from" if token.type == "EQUAL" else f"from {token}"))
    objective = any(t.type in ("MAXIMIZE", "MINIMIZE") for t in tokens)
    if token.type == "COMMA" and {"TOP", "EXPECT"} <= stop.fits and "_SEP" not in stop.fits and objective:
        remedy = "add the quantities with `+`, or write a query for each"
        return Diagnostic("S001", "a query has one objective", stop.span, remedy)
    return None


def _left_side(stop: Stop) -> str:
    """The text before the unexpected token, back to the start of its comparison."""
    start = stop.index
    if stop.previous is not None and stop.previous.type in ("AND", "OR"):
        start = next((i for i in range(start - 1, 0, -1) if stop.tokens[i].type in ("ORDER", "EQUAL")), start)
    end = stop.tokens[start - 1].end_pos or 0
    while start > 1 and stop.tokens[start - 1].type not in _BEFORE_SIDE and not starts_line(stop.tokens, start):
        start -= 1
    start += stop.tokens[start].type in _BEFORE_SIDE
    return stop.source.text[stop.tokens[start].start_pos or 0 : end]


_BEFORE_SIDE: Final = ("AND", "OR", "NOT", "IMPLIES", "THAT", "_SEP", "LPAR", "WHEN")


def _name(token: Token) -> str:
    """A name that is written as a string, as a name."""
    text = token.strip('"')
    return text if text.isidentifier() and text not in keywords() else f"`{text}`"


def _decimal_comma(stop: Stop) -> Diagnostic | None:
    """`0,1` where a list is not allowed."""
    token, before = stop.token, stop.previous
    after = stop.tokens[stop.index + 1] if stop.index + 1 < len(stop.tokens) else None
    if token is None or before is None or after is None or token.type != "COMMA":
        return None
    if (
        before.type != "NUMBER"
        or after.type != "NUMBER"
        or (before.end_pos, token.end_pos)
        != (
            token.start_pos,
            after.start_pos,
        )
    ):
        return None
    where = span_of(stop.source, before).to(span_of(stop.source, after))
    remedy: str = Remedy(f"write a point: `{before}.{after}`", f"{before}.{after}")
    if len(after) == 3:
        remedy = f"write `{before}{after}`, or a point: `{before}.{after}`"
    return Diagnostic("S001", f"`{where.text}` is not a number", where, remedy)


def _bracket_not_closed(stop: Stop) -> Diagnostic | None:
    if not stop.brackets:
        return None
    opener = stop.brackets[-1]
    wanted = CLOSER[opener.type]
    token = stop.token
    crossed = token is not None and token.type in CLOSERS and token.type not in wanted
    if crossed or (_closes(stop) and not any(t.type in wanted for t in _rest_of_line(stop))):
        return Diagnostic(
            "S020",
            f"`{opener}` is not closed",
            span_of(stop.source, opener),
            f"write {_SYMBOLS[wanted[0]]} where it ends",
        )
    return None


def _closes(stop: Stop) -> bool:
    return stop.token is None or any(kind in stop.fits for kind in CLOSER[stop.brackets[-1].type])


def _rest_of_line(stop: Stop) -> Iterator[Token]:
    for index in range(stop.index, len(stop.tokens)):
        if starts_line(stop.tokens, index):
            return
        yield stop.tokens[index]


def _bracket_not_opened(stop: Stop) -> Diagnostic | None:
    if stop.token is not None and stop.token.type in CLOSERS and not stop.brackets:
        return Diagnostic("S021", f"`{stop.token}` closes a bracket that was not opened", stop.span, "remove it")
    return None


def _empty_braces(stop: Stop) -> Diagnostic | None:
    token, previous = stop.token, stop.previous
    if token is None or previous is None or (previous.type, token.type) != ("LBRACE", "RBRACE"):
        return None
    where = span_of(stop.source, previous).to(stop.span)
    return Diagnostic("S022", "the braces are empty", where, "write at least one member, or leave the clause out")


def _empty_query(stop: Stop) -> Diagnostic | None:
    if stop.previous is not None and stop.previous.type == "COLON" and "FIND" in stop.fits and stop.token is None:
        name = stop.tokens[1] if stop.tokens[0].type == "QUERY" else "it"
        remedy = "write `find a, b such that ..` or `sensitive MODEL to FEATURE ..` after the colon"
        return Diagnostic("S014", f"query `{name}` is empty", span_of(stop.source, stop.tokens[0]).to(stop.gap), remedy)
    if stop.previous is not None and stop.previous.type == "THAT" and (stop.token is None or stop.token.type in TAIL):
        remedy = "write a constraint after `such that`, for instance `prob(a) >= 0.6`"
        if stop.token is not None and stop.token.type in ("MAXIMIZE", "MINIMIZE"):
            remedy += "; or leave `such that` out"
        where = span_of(stop.source, stop.previous)
        return Diagnostic("S014", "the query has no constraints", where, remedy)
    return None


def _misspelt_word(stop: Stop) -> Diagnostic | None:
    words = [fit.lower() for fit in stop.fits if fit.lower() in keywords()]
    token = stop.token
    if token is not None and (token.type in ("NAME", "FUNCTION") or is_word(token)):
        near = difflib.get_close_matches(token.lower(), words, 1, 0.8 if is_word(token) else 0.6)
        if near:
            return _misspelt(span_of(stop.source, token), str(token), near[0])
    return None


def _misspelt_clause(stop: Stop) -> Diagnostic | None:
    """`minimise margin(a)`: the misspelt word has been parsed as a name, and the next token does not fit."""
    if stop.index == 0:
        return None
    before = stop.tokens[stop.index - 1]
    if before.type == "NAME" and before.lower() == "not":
        return _misspelt(span_of(stop.source, before), str(before), "not")
    if before.type == "NAME" and before.lower() == "if":
        remedy = "write `CONSTRAINT implies CONSTRAINT`: `implies` stands for `then`"
        return Diagnostic("S001", f"`{before}` does not start a constraint", span_of(stop.source, before), remedy)
    if before.type == "NAME" and starts_line(stop.tokens, stop.index - 1) and not stop.at_break:
        near = difflib.get_close_matches(before.lower(), [t.lower() for t in TAIL], 1, 0.7)
        if near:
            return _misspelt(span_of(stop.source, before), str(before), near[0])
    return None


def _misspelt(where: Span, text: str, meant: str) -> Diagnostic:
    return Diagnostic("S015", f"unexpected `{text}`", where, Remedy(f"did you mean `{meant}`?", meant))


def _declaration_in_line(stop: Stop) -> Diagnostic | None:
    token = stop.token
    if token is not None and "$END" in stop.fits and is_word(token) and str(token) in DECLARATIONS:
        return Diagnostic("S024", f"`{token}` starts a declaration", stop.span, "start a new line before it")
    return None


def _needs_backquotes(stop: Stop) -> Diagnostic | None:
    """`capital-gain` in place of a name, where neither a difference nor a path is possible."""
    token, previous = stop.token, stop.previous
    if token is None or previous is None or token.type not in ("MINUS", "DOT", "OVER", "PLUS"):
        return None
    if not is_name(previous) or token.start_pos != previous.end_pos:
        return None
    end = stop.index + 1
    while end < len(stop.tokens) and stop.tokens[end].start_pos == stop.tokens[end - 1].end_pos:
        if not is_name(stop.tokens[end]) and stop.tokens[end].type not in ("MINUS", "DOT", "OVER", "PLUS", "NUMBER"):
            break
        end += 1
    where = span_of(stop.source, previous).to(span_of(stop.source, stop.tokens[end - 1]))
    message = f"`{where.text}` is not a plain name (letters, digits and `_`)"
    return Diagnostic("S017", message, where, Remedy(f"put it in backquotes: `` `{where.text}` ``", f"`{where.text}`"))


def _constraint_after_names(stop: Stop) -> Diagnostic | None:
    """`a = b except sex, a.age >= 30`: the comma continues the names, and another constraint follows."""
    before = stop.tokens[: stop.index]
    kind = None if stop.token is None else stop.token.type
    if kind == "DOT" and before[-1:] and before[-1] in before[:-1]:
        before.pop()  # a point that occurs above, so not a name with a dot
    elif kind not in ("FUNCTION", "PREDICATE", "NOT", "LPAR"):
        return None
    if stop.brackets or not before or before[-1].type != "COMMA" or "EXCEPT" not in {token.type for token in before}:
        return None
    where = span_of(stop.source, before[-1])
    remedy = Remedy("separate constraints by `;`, by `and` or by a new line", ";", where=where)
    return Diagnostic("S001", "`,` cannot continue the constraint", where, remedy)


def _missing_colon(stop: Stop) -> Diagnostic | None:
    if "COLON" not in stop.fits:
        return None
    said = f"a colon is missing after `{stop.previous}`" if stop.previous else "a colon is missing"
    remedy = f"write `{stop.previous}:`"
    if stop.token is not None and stop.token.type == "NAME" and not stop.at_break:
        remedy += "; write a name that contains a space in backquotes"
    remedied = Remedy(remedy, ":", where=stop.gap)
    return Diagnostic("S012", said, stop.gap if stop.at_break else stop.span, remedied)


def _other_such_that(stop: Stop) -> Diagnostic | None:
    """`where` or another word in place of `such that`."""
    token = stop.token
    if token is None or not stop.fits & {"SUCH", "THAT"} or "NAME" in stop.fits or token.lower() not in _WHERE:
        return None
    return Diagnostic("S013", f"`{token}` does not start the constraints", stop.span, write("such that"))


def _missing_such_that(stop: Stop) -> Diagnostic | None:
    if not stop.fits & {"SUCH", "THAT"} or "NAME" in stop.fits:
        return None
    token = stop.token
    if token is not None and [t.type for t in stop.tokens[stop.index :][:2]] in (["NAME", "SUCH"], ["NAME", "NAME"]):
        return _before(stop, token, "separate points with `,`")
    if token is not None and token.type not in (
        *VALUES,
        "FUNCTION",
        "PREDICATE",
        "NOT",
        "LPAR",
        *TAIL,
        "_SEP",
        "COLON",
    ):
        return None
    where = stop.gap if stop.at_break else stop.span
    return Diagnostic(
        "S013", "`such that` is missing before the constraints", where, "write `such that` after the points"
    )


def _chained(stop: Stop) -> Diagnostic | None:
    if stop.token is not None and stop.token.type in ("ORDER", "EQUAL") and {"AND", "OR"} <= stop.fits:
        for index in range(stop.index - 1, 0, -1):
            if stop.tokens[index - 1].type in ("ORDER", "EQUAL") and starts_line(stop.tokens, index):
                # The line above ended with a comparison operator, so this line was parsed as the other side.
                return _missing_after(replace(stop, index=index), "write the other side of the comparison")
        remedy = "write two comparisons joined by `and`, or `in [lo, hi]`"
        return Diagnostic("S031", "a comparison has two sides only", stop.span, remedy)
    return None


def _no_comparison(stop: Stop) -> Diagnostic | None:
    if "ORDER" not in stop.fits or stop.previous is None:
        return None
    token = stop.token
    if stop.at_break or (token is not None and token.type in ("AND", "OR", "IMPLIES", "_SEP", *CLOSERS)):
        remedy = "add a comparison, for instance `>= 0.5`"
        message, kinds = "this constraint has no comparison", [t.type for t in stop.tokens[: stop.index]]
        if kinds[-4:-3] == ["EQUAL"] and kinds[-2:-1] == ["OR"]:
            message = f"`{stop.previous}` is a value, not a constraint"
            remedy = f"write `in {{{stop.tokens[stop.index - 3]}, {stop.previous}}}` in place of `=`"
        return Diagnostic("S032", message, span_of(stop.source, stop.previous), remedy)
    return None


def _after_objective(stop: Stop) -> Diagnostic | None:
    token = stop.token
    if token is None or not {"TOP", "EXPECT"} <= stop.fits or "_SEP" in stop.fits or not stop.at_break:
        return None
    if any(t.type == "SENSITIVE" for t in stop.tokens[: stop.index]) or not (token.type in VALUES or is_name(token)):
        return None
    return Diagnostic(
        "S051",
        "a constraint after the objective",
        stop.span,
        "move the constraint up, before `maximize`, `minimize`, `top`, `share` and `expect`",
    )


def _missing_comma(stop: Stop) -> Diagnostic | None:
    token = stop.token
    if token is not None and "COMMA" in stop.fits and stop.brackets and (token.type in VALUES or is_name(token)):
        return _before(stop, token, "separate the members with `,`")
    return None


def _before(stop: Stop, token: Token, remedy: str) -> Diagnostic:
    return Diagnostic("S019", f"a comma is missing before `{token}`", stop.span, Remedy(remedy, ",", where=stop.gap))


def _word_as_name(stop: Stop) -> Diagnostic | None:
    token = stop.token
    if token is not None and is_word(token) and "NAME" in stop.fits and not stop.at_break:
        remedy = Remedy(f"write `` `{token}` `` to use it as a name", f"`{token}`")
        return Diagnostic("S016", f"`{token}` is a word of the language", stop.span, remedy)
    return None


def _not_a_string(stop: Stop) -> Diagnostic | None:
    if stop.fits == {"STRING"}:
        where = stop.gap if stop.at_break else stop.span
        return Diagnostic(
            "S023", "the path of a file is missing", where, 'write the path in double quotes: `from "FILE"`'
        )
    return None


def _unfinished(stop: Stop) -> Diagnostic | None:
    previous = stop.previous
    if previous is None or "$END" in stop.fits or (not stop.at_break and (stop.token is None or may_end(stop.token))):
        return None
    return _missing_after(stop, f"expected {_listed(stop.fits)}")


def _missing_after(stop: Stop, remedy: str) -> Diagnostic:
    where = stop.gap if stop.at_break else stop.span
    return Diagnostic("S018", f"something is missing after `{stop.previous}`", where, remedy)


def _unknown_declaration(stop: Stop) -> Diagnostic | None:
    if stop.index or stop.token is None:
        return None
    near = near_declaration(stop.token)
    if stop.token.type == "NAME" or near:
        message = f"`{stop.token}` does not start a declaration"
    else:
        message = f"a declaration cannot start with `{stop.token}`"
    remedy = f"start the line with {', '.join(f'`{w}`' for w in DECLARATIONS[:-1])} or `for each`"
    if near:
        remedy = Remedy(f"did you mean `{near}`?", near)
    elif stop.token == "/":
        remedy = "a comment starts with `#`"
    elif stop.token.type in ("FIND", "SENSITIVE", "COUNT"):
        remedy = f"write `query NAME:` before `{stop.token}`"
    return Diagnostic("S011", message, stop.span, remedy)


def _ends_before(stop: Stop) -> Diagnostic | None:
    if stop.token is None or not {"AND", "OR", "_SEP"} <= stop.fits:
        return None
    remedy = "start a new line before it, or join the two with `and`"
    if stop.token.type == "COMMA":
        remedy = "separate constraints by `;`, by `and` or by a new line"
    return Diagnostic("S001", f"`{stop.token}` cannot continue the constraint", stop.span, remedy)


def _percentage(stop: Stop) -> Diagnostic | None:
    if stop.token is None or stop.token.type != "PERCENT" or "NUMBER" not in stop.fits:
        return None
    return Diagnostic("S001", f"`{stop.token}` is a percentage", stop.span, "write a whole number")


def _unexpected(stop: Stop) -> Diagnostic:
    what = f"`{stop.token}`" if stop.token is not None else "the end of the declaration"
    return Diagnostic("S001", f"unexpected {what}", stop.span, f"expected {_listed(stop.fits)}")


def _listed(fits: frozenset[str]) -> str:
    """The expected terminals in words; `a name` includes all words that may be names."""
    shown = fits - set(_SAID_BY_NAME)
    if "NAME" in shown:
        shown = frozenset(f for f in shown if f.lower() not in keywords())
    texts = sorted({_SYMBOLS.get(f, f"`{f.lower()}`") for f in shown}, key=lambda text: (text.startswith("`"), text))
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}" if texts else "nothing more"


_RULES: Final[tuple[Rule, ...]] = (
    _unknown_declaration,
    _other_comment,
    _other_language,
    _decimal_comma,
    _bracket_not_opened,
    _empty_braces,
    _bracket_not_closed,
    _empty_query,
    _other_such_that,
    _misspelt_word,
    _misspelt_clause,
    _declaration_in_line,
    _constraint_after_names,
    _needs_backquotes,
    _missing_colon,
    _missing_such_that,
    _not_a_string,
    _chained,
    _no_comparison,
    _after_objective,
    _missing_comma,
    _word_as_name,
    _ends_before,
    _percentage,
    _unfinished,
    _unexpected,
)
