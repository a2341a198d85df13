"""Tables of the fields that files of a library have: used, irrelevant because of something, or refused.

A field that no table has may change what a model means, so that the model is refused by the name of the field. So is a model
without a field that is used, unless the table says what the library makes of a file that lacks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from treesens.errors import ModelError

ANY = "*"
"""Stands for all names that an object may have besides the others: names of features, attributes of a user."""


@dataclass(frozen=True)
class Meaning:
    """What becomes of a field: it is `used` (objects in it are of `kind`), or not, and why.

    A used field is required unless `absent` says in words what a file without it means to the library. `since` is then the
    first version that writes the field, or empty if files of every version may lack it.
    """

    what: Literal["used", "irrelevant", "refused"]
    why: str = ""
    kind: str | None = None
    absent: str = ""
    since: str = ""

    @property
    def required(self) -> bool:
        """Whether a file must have it."""
        return self.what == "used" and not self.absent


USED = Meaning("used")
Table = Mapping[str, Mapping[str, Meaning]]
"""Per kind of object what each of its fields means."""


def inside(kind: str) -> Meaning:
    """Used; the object, or the objects of the list, are of this kind."""
    return Meaning("used", kind=kind)


def irrelevant(because: str, names: Iterable[str]) -> dict[str, Meaning]:
    """Fields that no prediction depends on."""
    return dict.fromkeys(names, Meaning("irrelevant", because))


def refused(because: str, names: Iterable[str]) -> dict[str, Meaning]:
    """Fields that a model must not have, unless they are empty."""
    return dict.fromkeys(names, Meaning("refused", because))


def used(*names: str) -> dict[str, Meaning]:
    """Fields that the reader reads."""
    return dict.fromkeys(names, USED)


def optional(absent: str, fields: Mapping[str, Meaning], since: str = "") -> dict[str, Meaning]:
    """The same fields, which a file may lack: what that means to the library, and the first version that writes them."""
    return {name: replace(meaning, absent=absent, since=since) for name, meaning in fields.items()}


def check_document(table: Table, document: Any, place: str, kind: str = "model") -> None:
    """Refuses a document with a field that the table does not have, or without one that it needs. ModelError names the field
    and where it is.
    """
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
    """Refuses fields of one object that its kind does not have, or that must be empty, and an object that lacks a field."""
    known, start = table[kind], f"{place}: {path}." if path else f"{place}: "
    for name, value in fields.items():
        meaning = known.get(name) or known.get(ANY)
        at = f"{start}{name}"
        if meaning is None:
            raise ModelError(
                f"this field is not known here: `{name[:60]}`",
                place=at,
                remedy="it may change the model's meaning; report the version",
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
