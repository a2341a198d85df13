"""How a question is answered: backend, pipeline, limits, and what is already known."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from treesens.backends.base import BACKENDS
from treesens.compiler.base.arrays import FloatArray, Int32Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.tolerance import RELATIVE, Tolerance
from treesens.compiler.model.evaluate import LibraryReplay


@dataclass(frozen=True)
class Options:
    """How a question is answered. Times in seconds, memory in bytes.

    `library_predict` holds the library's own predict per model, for replay. An optimum may be `tolerance` of its value, or
    `absolute_tolerance`, away from its bound: 0 for both asks for the last unit.
    """

    backend: str = "auto"
    pipeline: str = "default"
    time_limit: float = 60.0
    threads: int = 1
    memory_limit: int | None = None
    seed: int = 0
    library_predict: Sequence[LibraryReplay] | None = None
    near: FloatArray | None = None
    hints: Int32Array | None = None
    verify_each: bool = False
    regions: bool = True
    """Whether a witness comes with its region if no table asks for it: records have it, a text does not show it."""
    certificates: Path | None = None
    """The folder for certificates of answers (docs/certificates.md)."""
    require_certificate: bool = False
    """Whether a `none` without an accepted certificate becomes `unknown`."""
    tolerance: float = RELATIVE
    absolute_tolerance: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "backend", BACKENDS.canonical(self.backend))

    def budget(self, stop: threading.Event | None = None, *, spent: float = 0.0) -> Budget:
        """The budget of one question, for all work on it; `spent` seconds of it are gone.

        It is made where a question begins and passed on: no step of a question starts its limit again.
        """
        return Budget.of(max(0.0, self.time_limit - spent), stop)

    @property
    def closeness(self) -> Tolerance:
        """Both tolerances."""
        return Tolerance(self.tolerance, self.absolute_tolerance)

    def asking_for(self, closeness: Tolerance) -> Options:
        """The same with another tolerance."""
        return replace(self, tolerance=closeness.relative, absolute_tolerance=closeness.absolute)


class EngineOptions(TypedDict):
    """What a search of the native engine takes by name."""

    hints: Int32Array | None
    seed: int
    memory_limit: int | None
    verify_each: bool


def for_engine(options: Options) -> EngineOptions:
    """The options that `IncrementalSearch` takes."""
    return {
        "hints": options.hints,
        "seed": options.seed,
        "memory_limit": options.memory_limit,
        "verify_each": options.verify_each,
    }
