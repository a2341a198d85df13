"""Model files that are JSON or UBJSON documents: parsing within limits, and errors that name the place."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from treesens.compiler.base.floats import round_to_float32
from treesens.errors import ModelError
from treesens.frontends.xgboost.ubjson import parse_ubjson

_BLANK = b" \t\r\n"


def is_ubjson(head: bytes) -> bool:
    """Whether a document that starts with `{` is binary: its first key then has a length marker and not a quote."""
    return head[:1] == b"{" and head[1:2] in (b"i", b"U", b"I", b"l", b"L", b"$", b"#")


def is_json(head: bytes) -> bool:
    """Whether bytes may be the start of a JSON object."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK)
    return start[:1] == b"{" and start[1:].lstrip(_BLANK)[:1] in (b'"', b"}", b"")


def parse_document(data: bytes, place: str, *, float32_text: bool = False) -> Any:
    """The document in a JSON or UBJSON file as dicts, lists, texts and numbers (UBJSON: numpy arrays where typed).

    With `float32_text`, every decimal of a JSON file is rounded straight to float32 (slow; needed where rounding
    through float64 is not safe). Raises ModelError with line and column, or the byte, of the first mistake, and for an
    object that has a field twice: readers take either one.
    """
    if is_ubjson(data[:3]):
        return parse_ubjson(data, place)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(
            "the file is neither UTF-8 JSON nor UBJSON",
            place=f"{place}: byte {error.start}",
            remedy="give a model saved as .json or .ubj",
        ) from None
    # The default is C's float, which json then calls without Python code in between.
    parse_float: Callable[[str], Any] | None = _to_float32 if float32_text else None

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            remedy = "save the model again with the library"
            raise ModelError(f"the field `{twice[:60]}` appears twice in an object", place=place, remedy=remedy)
        return found

    try:
        return json.loads(text, parse_float=parse_float, object_pairs_hook=object_of)
    except json.JSONDecodeError as error:
        ended = error.pos >= len(text.rstrip())
        raise ModelError(
            "the file ends in the middle of the model" if ended else f"not valid JSON: {error.msg}",
            place=f"{place}:{error.lineno}:{error.colno}",
            remedy="the file is cut off; copy or save it again" if ended else "save the model again with the library",
        ) from None
    except RecursionError:
        raise ModelError("objects and lists are nested too deeply", place=place, remedy="this is not a model") from None
    except ValueError as error:  # an integer with thousands of digits
        raise ModelError(f"not valid JSON: {error}", place=place, remedy="save the model again") from None


def _to_float32(text: str) -> float:
    # Exponents are bounded before a Fraction spells them out in digits.
    rough = float(text)
    if rough == 0.0 or abs(rough) > 1e39 or abs(rough) < 1e-60:
        return rough
    return round_to_float32(Fraction(text))
