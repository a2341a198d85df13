"""Common parts of all syntax nodes: a source location, equality without the location, and a short text form.

Nodes are frozen, slotted dataclasses, but comparison, hash, text form and immutability are implemented once here: Python
compiles these methods for each dataclass separately; for sixty classes, this takes longer than reading a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import FrozenInstanceError, dataclass, field
from typing import ClassVar, TypeVar, dataclass_transform

from treesens.compiler.base.diagnostics import NOWHERE, Span

__all__ = ["NOWHERE", "Node", "node", "nodes_in"]
N = TypeVar("N")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def node(cls: type[N]) -> type[N]:
    """Makes a class a syntax node."""
    return dataclass(slots=True, eq=False, repr=False)(cls)


@node
class Node:
    """Base of all nodes. `span` covers the text of the node; nodes built by hand have no location."""

    __match_args__: ClassVar[tuple[str, ...]]

    span: Span = field(default=NOWHERE, kw_only=True)

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(self, name):
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _parts(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__match_args__)

    def __eq__(self, other: object) -> bool:
        """True if two nodes are equal apart from their locations."""
        if not isinstance(other, Node) or type(other) is not type(self):
            return NotImplemented
        return self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self), self._parts()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__name__}({shown})"


def nodes_in(item: object) -> Iterator[Node]:
    """All nodes of a tree, or of several trees."""
    parts: Iterable[object] = item if isinstance(item, tuple) else ()
    if isinstance(item, Node):
        yield item
        parts = (getattr(item, name) for name in item.__match_args__)
    for part in parts:
        yield from nodes_in(part)
