"""Reads XML from untrusted sources as elements, without document types, entities, or excessive depth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from treesens.errors import ModelError

MAX_DEPTH = 400
MAX_ELEMENTS = 20_000_000
_DAMAGED = "the file is damaged or has another format; export the model again"


@dataclass(eq=False)
class Element:
    """An element: its name without the namespace, its attributes, children and text, and its first line."""

    tag: str
    attributes: dict[str, str]
    line: int
    place: str
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def error(self, message: str, remedy: str = _DAMAGED) -> ModelError:
        """A ModelError about this element."""
        return ModelError(message, place=f"{self.place}:{self.line}: {self.tag}", remedy=remedy)

    def each(self, *tags: str) -> Iterator[Element]:
        """The children with these names, in order."""
        return (child for child in self.children if child.tag in tags)

    def child(self, *tags: str) -> Element | None:
        """The first child with one of these names, or None."""
        return next(self.each(*tags), None)

    def need(self, *tags: str) -> Element:
        """The first child with one of these names. Raises ModelError if no such child exists."""
        found = self.child(*tags)
        if found is None:
            raise self.error(f"there is no {' or '.join(tags)}")
        return found

    def get(self, name: str, default: str = "") -> str:
        return self.attributes.get(name, default)

    def require(self, name: str) -> str:
        """The text of an attribute. Raises ModelError if the attribute is missing."""
        if name not in self.attributes:
            raise self.error(f"the attribute `{name}` is missing")
        return self.attributes[name]

    def number(self, name: str, default: float | None = None) -> float:
        """The finite float64 in an attribute, or `default` if it is missing. Raises ModelError if both are missing."""
        if name not in self.attributes and default is not None:
            return default
        text = self.require(name)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.error(f"`{name}` is not a finite number: `{text[:40]}`")
        return value

    def only(self, *tags: str) -> None:
        """Refuses children with other names, which may change the element's meaning."""
        for child in self.children:
            if child.tag not in (*tags, "Extension"):
                raise child.error(f"{child.tag} in {self.tag} is not supported", "export the model without it")


def parse(data: bytes, place: str) -> Element:
    """The root of a document. Raises ModelError, with the line, for invalid XML and for XML features that no model needs."""
    reader = _Reader(place)
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        line = f"{place}:{error.lineno}"
        raise ModelError(f"this is not XML: {expat.ErrorString(error.code)}", place=line, remedy=_DAMAGED) from None
    except (LookupError, ValueError) as error:
        raise ModelError(f"this is not XML: {error}", place=place, remedy=_DAMAGED) from None
    assert reader.root is not None  # expat refuses documents without an element
    return reader.root


class _Reader:
    def __init__(self, place: str) -> None:
        self.place, self.count = place, 0
        self.root: Element | None = None
        self.open: list[Element] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._doctype

    def _at(self) -> str:
        return f"{self.place}:{self.parser.CurrentLineNumber}"

    def _doctype(self, *_: object) -> None:
        raise ModelError(
            "the file has a document type, which can define entities of any size",
            place=self._at(),
            remedy="remove the line with <!DOCTYPE",
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if len(self.open) >= MAX_DEPTH or self.count > MAX_ELEMENTS:
            limit = f"{MAX_DEPTH} levels" if len(self.open) >= MAX_DEPTH else f"{MAX_ELEMENTS} elements"
            raise ModelError(f"the file has more than {limit}", place=self._at(), remedy="use a smaller model")
        plain = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        element = Element(name.rpartition(" ")[2], plain, self.parser.CurrentLineNumber, self.place)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def _end(self, _: str) -> None:
        self.open.pop()

    def _text(self, text: str) -> None:
        self.open[-1].text += text
