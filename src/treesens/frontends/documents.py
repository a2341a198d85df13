"""Model files in JSON or UBJSON: parsing within limits, and access to nested fields, with errors that state the location.

Tables list the fields of a library's files as used, irrelevant (with the reason) or refused. An unlisted field may change a
model's meaning, so the model is refused, and the error names the field. A model that lacks a used field is also refused, unless
the table states the library's behaviour without the field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import round_to_float32, whole_of
from treesens.errors import ModelError
from treesens.frontends.xgboost.ubjson import parse_ubjson

_BLANK = b" \t\r\n"


def is_ubjson(head: bytes) -> bool:
    """True if a document that starts with `{` is binary: a length marker, not a quote, precedes its first key."""
    return head[:1] == b"{" and head[1:2] in (b"i", b"U", b"I", b"l", b"L", b"$", b"#")


def is_json(head: bytes) -> bool:
    """True if bytes may be the start of a JSON object."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK)
    return start[:1] == b"{" and start[1:].lstrip(_BLANK)[:1] in (b'"', b"}", b"")


def parse_document(data: bytes, place: str, *, float32_text: bool = False) -> Any:
    """The document in a JSON or UBJSON file as dicts, lists, texts and numbers (typed arrays of UBJSON become numpy arrays).

    With `float32_text`, every decimal of a JSON file is rounded directly to float32 (slow; needed if rounding through float64
    is not safe). Raises ModelError with line and column, or the byte, of the first error; duplicate fields in an object are
    errors, because readers resolve them differently.
    """
    if is_ubjson(data[:3]):
        return parse_ubjson(data, place)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(
            "the file is neither UTF-8 JSON nor UBJSON",
            place=f"{place}: byte {error.start}",
            remedy="pass a model saved as .json or .ubj",
        ) from None
    # The default is C's float, which json calls without executing Python code.
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
    # Exponents are limited before a Fraction expands them to digits.
    rough = float(text)
    if rough == 0.0 or abs(rough) > 1e39 or abs(rough) < 1e-60:
        return rough
    return round_to_float32(Fraction(text))


_LARGEST = 2**62
_DAMAGED = "the file is damaged or of another format; save the model again"


@dataclass(frozen=True)
class Field:
    """A value, with its path, inside a parsed JSON-like document."""

    value: Any
    place: str
    path: str = ""

    def error(self, message: str, remedy: str = _DAMAGED) -> ModelError:
        """A ModelError at this field."""
        return ModelError(message, place=f"{self.place}: {self.path}" if self.path else self.place, remedy=remedy)

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def __getitem__(self, key: str) -> Field:
        path = f"{self.path}.{key}" if self.path else key
        if not isinstance(self.value, dict):
            raise self.error(f"expected an object, found {_kind(self.value)}")
        if key not in self.value:
            raise Field(None, self.place, path).error("this field is missing")
        return Field(self.value[key], self.place, path)

    def get(self, key: str) -> Field | None:
        """The field, or None."""
        return self[key] if isinstance(self.value, dict) and key in self.value else None

    def items(self) -> Iterator[Field]:
        """The elements of a list."""
        if not isinstance(self.value, list):
            raise self.error(f"expected a list, found {_kind(self.value)}")
        for i, value in enumerate(self.value):
            yield Field(value, self.place, f"{self.path}[{i}]")

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error(f"expected a text, found {_kind(self.value)}")
        return self.value

    def integer(self) -> int:
        """An integer, or a text that represents an integer."""
        value = self.value
        if isinstance(value, str):
            whole = whole_of(value)
            if whole is None:  # including thousands of digits
                raise self.error(f"`{value[:40]}` is not a whole number")
            value = whole
        if isinstance(value, (bool, float)) or not isinstance(value, (int, np.integer)):
            raise self.error(f"expected a whole number, found {_kind(value)}")
        if not -_LARGEST <= value <= _LARGEST:
            raise self.error(f"a number of {len(str(abs(int(value))))} digits is out of range")
        return int(value)

    def number(self) -> float:
        """A number (NaN and infinities included) as float64."""
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float, np.integer, np.floating)):
            raise self.error(f"expected a number, found {_kind(self.value)}")
        try:
            return float(self.value)
        except OverflowError:
            raise self.error("a number is beyond float64") from None

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.error(f"expected true or false, found {_kind(self.value)}")
        return self.value

    def texts(self) -> list[str]:
        return [item.text() for item in self.items()]

    def floats(self) -> NDArray[np.float64]:
        """A flat array of numbers (NaN and infinities included) as float64."""
        return self._array("numbers", "biuf").astype(np.float64)

    def integers(self) -> NDArray[np.int64]:
        """A flat array of whole numbers (or booleans) as int64."""
        return self._array("whole numbers", "biu").astype(np.int64)

    def _array(self, what: str, kinds: str) -> NDArray[Any]:
        if not isinstance(self.value, (list, np.ndarray)):
            raise self.error(f"expected a list of {what}, found {_kind(self.value)}")
        if len(self.value) == 0:
            return np.zeros(0)
        try:
            array = np.asarray(self.value)
        except (ValueError, OverflowError):
            raise self.error(f"expected a flat list of {what}") from None
        # numpy would convert ["1"] to texts and [[1]] to a matrix; both are refused.
        if array.ndim != 1 or array.dtype.kind not in kinds:
            raise self.error(f"expected a flat list of {what}")
        return array


def _kind(value: object) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return "nothing" if value is None else names.get(type(value), f"a {type(value).__name__}")


ANY = "*"
"""Any other field name in an object, such as the names of features or user attributes."""


@dataclass(frozen=True)
class Meaning:
    """The treatment of a field: used (objects in the field are of `kind`) or, for the reason `why`, not used.

    A used field is required unless `absent` describes the library's behaviour without the field. In that case, `since` is the
    first version that writes the field, or empty if files of every version may lack the field.
    """

    what: Literal["used", "irrelevant", "refused"]
    why: str = ""
    kind: str | None = None
    absent: str = ""
    since: str = ""

    @property
    def required(self) -> bool:
        """True if a file must have the field."""
        return self.what == "used" and not self.absent


USED = Meaning("used")
Table = Mapping[str, Mapping[str, Meaning]]
"""The meaning of each field, for every kind of object."""


def inside(kind: str) -> Meaning:
    """A used field that contains an object, or a list of objects, of this kind."""
    return Meaning("used", kind=kind)


def irrelevant(because: str, names: Iterable[str]) -> dict[str, Meaning]:
    """Fields that do not affect predictions."""
    return dict.fromkeys(names, Meaning("irrelevant", because))


def refused(because: str, names: Iterable[str]) -> dict[str, Meaning]:
    """Fields that are refused unless empty."""
    return dict.fromkeys(names, Meaning("refused", because))


def used(*names: str) -> dict[str, Meaning]:
    """Fields used by the reader."""
    return dict.fromkeys(names, USED)


def optional(absent: str, fields: Mapping[str, Meaning], since: str = "") -> dict[str, Meaning]:
    """Optional used fields: the library's behaviour without them, and the first version that writes them."""
    return {name: replace(meaning, absent=absent, since=since) for name, meaning in fields.items()}


def check_document(table: Table, document: Any, place: str, kind: str = "model") -> None:
    """Refuses documents with unlisted fields, or without required fields. The ModelError states the field and its location."""
    todo: list[tuple[Any, str, str]] = [(document, kind, "")]
    while todo:
        value, kind, path = todo.pop()
        if isinstance(value, list):
            todo += [(item, kind, f"{path}[{i}]") for i, item in enumerate(value) if isinstance(item, dict | list)]
            continue
        if not isinstance(value, dict):
            continue
        check_names(table, value, place, kind, path)
        for name, inner in value.items():
            meaning = table[kind].get(name) or table[kind][ANY]
            if meaning.kind is not None:
                todo.append((inner, meaning.kind, f"{path}.{name}" if path else name))


def check_names(table: Table, fields: Mapping[str, Any], place: str, kind: str, path: str = "") -> None:
    """Raises ModelError for unlisted fields of an object, non-empty refused fields, and missing required fields."""
    known, start = table[kind], f"{place}: {path}." if path else f"{place}: "
    for name, value in fields.items():
        meaning = known.get(name) or known.get(ANY)
        at = f"{start}{name}"
        if meaning is None:
            raise ModelError(
                f"this field is not known here: `{name[:60]}`",
                place=at,
                remedy="the field may change the model's meaning; report the version",
            )
        if meaning.what == "refused" and not _is_empty(value):
            raise ModelError(f"`{name}` is not supported: {meaning.why}", place=at, remedy="train the model without it")
    for name, known_as in known.items():
        if known_as.required and name not in fields and name != ANY:
            raise ModelError(
                "this field is missing", place=f"{start}{name}", remedy="the file is damaged; save the model again"
            )


def _is_empty(value: Any) -> bool:
    return value is None or value is False or (hasattr(value, "__len__") and len(value) == 0)
