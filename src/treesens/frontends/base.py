"""The interface of a frontend: from a model file or a live object to an `Ensemble`, and back to the library for
replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble

LibraryPredict = Callable[[NDArray[np.float64]], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """An ensemble with the way back to the library that made it.

    `margins(X)` is the library's own raw output for float64[rows, features] with NaN for missing, [rows, n_outputs] in
    the library's type; `leaf_ids(X)` its leaf ids [rows, trees] (None if the library has no such function). Both
    import the library on first use. `notes` are sentences a user should see.
    """

    ensemble: Ensemble
    frontend: str
    margins: LibraryPredict
    leaf_ids: LibraryPredict | None = None
    notes: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Frontend(Protocol):
    """What an entry point of group `treesens.frontends` names: an object (or a class without arguments) like this."""

    name: str
    """Short lower-case name of the format, for `--format` and messages."""

    library: str
    """The module that replay in the library imports; also named in messages when it is not installed.

    A frontend whose reader needs a package names it in `reads_with`, for `treesens doctor`.
    """

    def recognises_bytes(self, head: bytes) -> bool:
        """Whether a file that starts with these bytes (up to 64 KiB) may be of this format."""
        ...

    def recognises_object(self, obj: object) -> bool:
        """Whether a live object is a model of this library; must not import the library."""
        ...

    def load(self, path: Path, data: bytes) -> LoadedModel:
        """The model of a file whose content is `data`; ModelError with place and remedy for anything else."""
        ...

    def from_object(self, obj: Any) -> LoadedModel:
        """The model of a live object; ModelError for anything it cannot represent."""
        ...


@runtime_checkable
class VariantFrontend(Protocol):
    """A frontend whose files may hold several models, one of which `FORMAT:VARIANT` names."""

    variants: tuple[str, ...]

    def load_variant(self, path: Path, data: bytes, variant: str) -> LoadedModel:
        """As `load`; ModelError if this file does not hold that variant."""
        ...
