"""Reading nested fields of a parsed file with errors that name the field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.numbers import whole_of
from treesens.errors import ModelError

_LARGEST = 2**62
_DAMAGED = "the file is damaged or not what its name says; save the model again"


@dataclass(frozen=True)
class Field:
    """A value inside a parsed JSON-like document, with its path."""

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
        """The field, or None if it is absent."""
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
        """An integer, also one written as a text."""
        value = self.value
        if isinstance(value, str):
            whole = whole_of(value)
            if whole is None:  # thousands of digits included
                raise self.error(f"`{value[:40]}` is not a whole number")
            value = whole
        if isinstance(value, (bool, float)) or not isinstance(value, (int, np.integer)):
            raise self.error(f"expected a whole number, found {_kind(value)}")
        if not -_LARGEST <= value <= _LARGEST:
            raise self.error(f"numbers of {len(str(abs(int(value))))} digits make no sense here")
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
        # numpy would read ["1"] as texts and [[1]] as a matrix; both are refused here.
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
