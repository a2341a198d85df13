"""File formats without a Python library: there are no live models, and replay is emulated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.errors import ModelError
from treesens.frontends.base import LoadedModel


class OfFiles:
    """The methods that frontends of these formats share."""

    name: str
    library = ""

    def recognises_object(self, obj: object) -> bool:  # noqa: ARG002 - there are only files
        return False

    def from_object(self, obj: Any) -> LoadedModel:  # noqa: ARG002 - as above
        raise ModelError(f"`{self.name}` is a file format", remedy="save the model, and pass the path of the file")


def in_java(rows: NDArray[np.float64]) -> NDArray[Any]:
    """Replaces the margins of a Java library; always raises ModelError, because these margins are emulated instead."""
    raise ModelError(
        f"the library that scores these {len(rows)} rows runs in Java",
        remedy="use replay=emulated; `ensemble.margins_emulated` returns the same margins",
    )
