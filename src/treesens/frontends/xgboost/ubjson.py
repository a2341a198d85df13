"""A reader of XGBoost's UBJSON (draft 12): iterative, with memory bounded by the file size.

Typed arrays become numpy arrays (each a view, copied once). No length in the file is trusted: before anything is allocated,
every count is compared with the number of bytes that remain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treesens.errors import ModelError

_TYPES = {
    b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8",
}  # fmt: skip
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}
_MAX_DEPTH = 64


class _Reader:
    def __init__(self, data: bytes, place: str) -> None:
        self.data, self.at, self.place = data, 0, place

    def error(self, message: str) -> ModelError:
        place = f"{self.place}: byte {self.at}"
        return ModelError(message, place=place, remedy="the file is cut off or damaged; save the model again")

    def take(self, count: int) -> bytes:
        if count < 0 or count > len(self.data) - self.at:
            raise self.error(f"the file ends in the middle of the model ({count} more bytes are missing)")
        self.at += count
        return self.data[self.at - count : self.at]

    def marker(self) -> bytes:
        """The next type marker; no-ops are skipped."""
        while True:
            mark = self.take(1)
            if mark != b"N":
                return mark

    def peek(self) -> bytes:
        return self.data[self.at : self.at + 1]

    def count(self) -> int:
        """A length: a non-negative integer of any width."""
        mark = self.marker()
        if mark not in _TYPES or mark in (b"d", b"D"):
            raise self.error("a length is not a whole number")
        value = int(self.number(mark))
        if value < 0:
            raise self.error("a length is negative")
        return value

    def number(self, mark: bytes) -> int | float:
        kind = np.dtype(_TYPES[mark])
        value: int | float = np.frombuffer(self.take(kind.itemsize), dtype=kind)[0].item()
        return value

    def text(self) -> str:
        try:
            return self.take(self.count()).decode("utf-8")
        except UnicodeDecodeError:
            raise self.error("a text is not UTF-8") from None

    def scalar(self, mark: bytes) -> Any:
        if mark in _CONSTANTS:
            return _CONSTANTS[mark]
        if mark in _TYPES:
            return self.number(mark)
        if mark == b"S":
            return self.text()
        if mark == b"C":
            return self.take(1).decode("latin-1")
        if mark == b"H":
            return self.text()
        raise self.error(f"unknown type marker {mark!r}")

    def header(self) -> tuple[bytes, int]:
        """The type and count that a container states; b"" for an unstated type, and -1 for an unstated count."""
        kind, count = b"", -1
        if self.peek() == b"$":
            self.take(1)
            kind = self.take(1)
            if self.peek() != b"#":
                raise self.error("a typed list has no length")
        if self.peek() == b"#":
            self.take(1)
            count = self.count()
        return kind, count


def parse_ubjson(data: bytes, place: str) -> Any:
    """The value in `data`: dicts, lists, numpy arrays, texts and numbers. Raises ModelError with the position of an error."""
    reader = _Reader(data, place)
    # Open containers: the value, its remaining count (-1: until the closing mark), its element type.
    stack: list[tuple[Any, list[int], bytes]] = []
    root: Any = None
    started = False
    while True:
        key: str | None = None
        if stack:
            container, left, kind = stack[-1]
            is_object = isinstance(container, dict)
            closing = b"}" if is_object else b"]"
            if left[0] == 0 or (left[0] < 0 and _closes(reader, closing)):
                stack.pop()
                if stack:
                    continue
                break
            left[0] -= left[0] > 0
            if is_object:
                key = reader.text()
                if key in container:
                    raise reader.error(f"the field `{key[:60]}` appears twice")
            mark = kind or reader.marker()
        else:
            mark = reader.marker()
            if mark not in (b"{", b"["):
                raise reader.error("the file does not start with an object")
        value = _open(reader, mark, stack) if mark in (b"{", b"[") else reader.scalar(mark)
        opened = bool(stack) and stack[-1][0] is value
        parent = stack[-2][0] if opened and len(stack) > 1 else (stack[-1][0] if stack and not opened else None)
        if parent is None:
            root, started = value, True
            if not opened:
                break
        elif isinstance(parent, dict):
            assert key is not None
            parent[key] = value
        else:
            parent.append(value)
    assert started
    if reader.at != len(data):
        raise reader.error("the file continues after the end of the model")
    return root


def _closes(reader: _Reader, closing: bytes) -> bool:
    while reader.peek() == b"N":
        reader.take(1)
    if reader.peek() == closing:
        reader.take(1)
        return True
    return False


def _open(reader: _Reader, mark: bytes, stack: list[tuple[Any, list[int], bytes]]) -> Any:
    """Reads the header of a container: a typed array is read completely; any other container is pushed on the stack."""
    if len(stack) >= _MAX_DEPTH:
        raise reader.error(f"objects and lists are nested more than {_MAX_DEPTH} deep")
    kind, count = reader.header()
    if mark == b"[" and kind in _TYPES:
        dtype = np.dtype(_TYPES[kind])
        raw = np.frombuffer(reader.take(count * dtype.itemsize), dtype=dtype)
        return raw.astype(dtype.newbyteorder("="))
    if kind and kind not in _TYPES and kind not in (b"S", b"C", b"{", b"["):
        # Elements of constant types take no bytes, so their count could not be checked.
        raise reader.error(f"lists of type {kind!r} are not used by models")
    if count > len(reader.data) - reader.at:
        raise reader.error(f"a list announces {count} elements, but the file has fewer bytes")
    container: Any = {} if mark == b"{" else []
    stack.append((container, [count], kind))
    return container
