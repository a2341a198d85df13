"""Makes text from files visible: control and invisible characters are written as escapes.

Names of features, classes, questions and files come from untrusted files. Everything that treesens prints passes through
`visible` (docs/trust.md), so that a name can neither move the cursor nor recolour, reorder or hide adjacent text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

_STEERING = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))
"""Unicode's general categories of control characters, format characters (including text direction), lone surrogates, private
use, and line and paragraph separators.
"""
_JOINERS = "\u200c\u200d"
"""Format characters that words of some languages contain."""
_UNUSUAL = re.compile(r"[^\t -~]")
_UNUSUAL_IN_LINES = re.compile(r"[^\t\n -~]")
"""Characters that need a closer check, and that occur in almost no text."""
RESERVED = frozenset(("except", "of", "inf"))
"""Words of the language that, as names, need backquotes everywhere except after a dot."""
PLAIN = re.compile(r"[^\W\d]\w*")
_NO_LABEL = re.compile(r"[^\w.+-]+", re.ASCII)
_LONGEST_LABEL = 80


def visible(text: str, *, lines: bool = False) -> str:
    r"""The text with control characters written as `\x1b`, `\u202e`, ..; tabs are kept, and so are line breaks with `lines`."""
    return (_UNUSUAL_IN_LINES if lines else _UNUSUAL).sub(lambda found: _shown(found[0], _escaped), text)


def visible_json(text: str) -> str:
    """Equivalent JSON text in which control characters inside strings are JSON escapes."""
    return _UNUSUAL_IN_LINES.sub(lambda found: _shown(found[0], _json_escaped), text)


def label(text: str) -> str:
    """The text as a name in comments of solver texts: ASCII letters, digits, `.`, `+`, `-` and `_`, at most 80 characters."""
    return _NO_LABEL.sub("_", text)[:_LONGEST_LABEL] or "_"


def declaration(feature: str, domain: str) -> str:
    """`feature NAME: DOMAIN` for a remedy, ready to copy, with backquotes around names that are not plain."""
    if PLAIN.fullmatch(feature) and feature not in RESERVED:
        return f"`feature {feature}: {domain}`"
    return f"`` feature `{feature}`: {domain} ``"


def spreadsheet(text: str) -> str:
    """A text as a CSV cell: a text that a spreadsheet would parse as a formula is preceded by an apostrophe."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") else text


def _shown(character: str, escaped: Callable[[str], str]) -> str:
    steers = unicodedata.category(character) in _STEERING and character not in _JOINERS
    return escaped(character) if steers else character


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _json_escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
