"""Records as dataclasses: their JSON output, and the JSON Schema of their class.

An optional field has the default ABSENT. Fields with names that Python reserves end in `_`; this suffix is stripped.
"""

from __future__ import annotations

import functools
import types
import typing
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from typing import Annotated, Any, Final, Generic, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

SCHEMA_VERSION = 1
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


class Absent(Enum):
    """The type of ABSENT."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""The value of an omitted field."""

RecordT = TypeVar("RecordT")


@dataclass(frozen=True)
class OneOf:
    """The permitted texts of a field, in `Annotated[str, OneOf(...)]`."""

    words: tuple[str, ...]


VerdictWord: TypeAlias = Annotated[str, OneOf(("found", "none", "unknown"))]
Value: TypeAlias = bool | float | str | None
"""A value of a feature: a number or a label, null if the value is missing."""
Points: TypeAlias = dict[str, dict[str, Value]]
"""Values by point and feature."""


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """A model: its file name as given, and the digest of its content."""

    file: str | None
    sha256: str | None


@dataclass(frozen=True, kw_only=True)
class Document(Generic[RecordT]):
    """The output of a study with --json: the model, and a record for each answer."""

    schema_version: int = SCHEMA_VERSION
    model: ModelFile
    interrupted: bool
    results: list[RecordT]


def plain(value: Any) -> Any:
    """A record as dictionaries, lists, texts and numbers, in the order of its fields."""
    if is_dataclass(value) and not isinstance(value, type):
        found = {_key(field): getattr(value, field.name) for field in fields(value)}
        return {key: plain(part) for key, part in found.items() if part is not ABSENT}
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def recorded(hint: Any, value: Any) -> Any:
    """Converts plain data to records of a type, the inverse of `plain`. Raises TypeError for an undeclared field."""
    origin, parts = get_origin(hint) or hint, get_args(hint)
    if origin is Annotated:
        return recorded(parts[0], value)
    if origin in (typing.Union, types.UnionType):
        return recorded(next((part for part in parts if _fits(part, value)), Any), value)
    if origin is list and isinstance(value, list):
        return [recorded(parts[0], part) for part in value]
    if origin is dict and isinstance(value, dict):
        return {key: recorded(parts[1], part) for key, part in value.items()}
    if not is_dataclass(hint) or not isinstance(value, dict):
        return value
    known = _fields_of(typing.cast(type, hint))
    if unknown := sorted(set(value) - set(known)):
        raise TypeError(f"{hint} declares no field {', '.join(unknown)}")
    return typing.cast(Any, hint)(**{known[key][0]: recorded(known[key][1], part) for key, part in value.items()})


def _fits(hint: Any, value: Any) -> bool:
    """True if a value fits a type that is more than a plain name."""
    origin = get_origin(hint) or hint
    return (isinstance(value, dict) and (origin is dict or is_dataclass(origin))) or (
        isinstance(value, list) and origin is list
    )


@functools.cache
def _fields_of(kind: type) -> dict[str, tuple[str, Any]]:
    """The fields of a record class by JSON name, each with its attribute name and type."""
    hints = get_type_hints(kind, include_extras=True)
    return {_key(field): (field.name, hints[field.name]) for field in fields(kind)}


def document_schema(kind: Any, title: str) -> dict[str, Any]:
    """The schema (draft 2020-12) of the documents of a class."""
    return {"$schema": _DRAFT, "title": title, **schema_of_type(kind)}


def schema_of_type(hint: Any) -> dict[str, Any]:
    """The schema of the values of a type: plain types, records, and lists, dictionaries and unions of them."""
    origin, parts = get_origin(hint) or hint, get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _schema_of_union([part for part in parts if part is not Absent])
    if origin is Annotated:
        return {"enum": list(parts[1].words)}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin in (list, tuple):
        return {"type": "array", "items": schema_of_type(parts[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of_type(parts[1])}
    if hint is Any:
        return {}
    if is_dataclass(origin):
        return _schema_of_record(origin, parts)
    return {"type": _NAMES[hint]}


_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def _schema_of_union(parts: list[Any]) -> dict[str, Any]:
    """The schema of a union: a `type` with its alternatives, or `anyOf` if several of them are more than plain types."""
    known = [schema_of_type(part) for part in parts]
    if len(known) == 1:
        return known[0]
    rich = [one for one in known if set(one) != {"type"}]
    names = [one["type"] for one in known if set(one) == {"type"}]
    if not rich:
        return {"type": names}
    if len(rich) == 1 and names == ["null"]:
        (one,) = rich
        return {"enum": [*one["enum"], None]} if "enum" in one else {**one, "type": [one["type"], "null"]}
    return {"anyOf": known}


def _schema_of_record(kind: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    shown: dict[str, Any] = {}
    for field in fields(kind):
        hint = hints[field.name]
        shown[_key(field)] = schema_of_type(hint[arguments] if getattr(hint, "__parameters__", ()) else hint)
    needed = [_key(field) for field in fields(kind) if field.default is not ABSENT]
    assert all(field.default_factory is MISSING for field in fields(kind))
    return {"type": "object", "properties": shown, "required": needed}


def _key(field: Field[Any]) -> str:
    return field.name.rstrip("_")
