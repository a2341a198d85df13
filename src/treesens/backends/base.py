"""The interface of a backend: pure `emit`, `solve` in a worker process, and facts instead of verdicts.

Termination, incumbent and bound are three separate facts (MathOptInterface): a time-out without an incumbent says nothing, and
no exception, crash, missing licence or limit ever becomes a verdict. Verdicts are formed in `solve/conclude.py`, from facts.
"""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import ClassVar, Final

from treesens.backends.text.formats import variable_names
from treesens.compiler.base.arrays import BoolArray, Int32Array
from treesens.compiler.base.packages import is_installed
from treesens.compiler.base.plugins import Registry
from treesens.compiler.base.tolerance import EXACT, Tolerance
from treesens.compiler.ir import Module
from treesens.compiler.result import NearMiss, Proof
from treesens.errors import BackendError

__all__ = [
    "BACKENDS",
    "Artifact",
    "Backend",
    "Capabilities",
    "InProcessBackend",
    "Limits",
    "OnIncumbent",
    "Proof",
    "RawOutcome",
    "Termination",
    "get_backend",
    "missing_module",
    "packages_of",
    "solver_names",
]


class Termination(Enum):
    """Why a solver stopped."""

    SATISFIED = "satisfied"
    """A feasible point was found and nothing more was asked."""
    OPTIMAL = "optimal"
    """The incumbent is optimal as far as the solver can tell, or within the tolerance of the limits."""
    INFEASIBLE = "infeasible"
    TIME = "time"
    MEMORY = "memory"
    LICENCE = "licence"
    INTERRUPTED = "interrupted"
    NUMERICAL = "numerical"
    """The solver answered, and its answer does not survive exact arithmetic."""
    UNSUPPORTED = "unsupported"
    CRASH = "crash"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Limits:
    """Wall time in seconds, memory in bytes (None: no limit), threads, random seed; and when an optimum is good enough.

    The tolerance is about the module's objective in its own units, its relative part about that objective plus `offset`.
    """

    seconds: float = 60.0
    memory: int | None = None
    threads: int = 1
    seed: int = 0
    tolerance: Tolerance = EXACT
    offset: float = 0.0

    def relative_gap(self, artifact: Artifact, least: float = 0.0) -> float:
        """The relative gap for a solver, which knows neither the offset nor the constant of the objective: with one of them the
        tolerance means something else there, and the optimum is asked for. At least `least`.
        """
        knows_all = self.offset == 0.0 and artifact.objective_constant == 0
        return max(self.tolerance.relative if knows_all else 0.0, least)


@dataclass(frozen=True)
class Capabilities:
    """What a backend takes and gives. Every field is read: by the driver, by `explain`, by the conformance kit."""

    proof: Proof
    warm_start: bool = False
    """Looks at `Artifact.warm_start` first."""
    native_ops: frozenset[str] = frozenset()
    """Op kinds taken as they are; all others are legalised to integer rows, or as `rewrites` says."""
    rewrites: Mapping[str, str] = field(default_factory=dict)
    """Op kinds that become something else than rows, in words."""


@dataclass(frozen=True)
class Artifact:
    """What a solver would get: `text` in `format`, the number of variables, and what is needed to read its answer.

    `relaxed` is true where rows were rounded outward: `infeasible` survives that, a feasible point must be replayed;
    `restricted` if they were tightened: `infeasible` proves nothing.
    `surrogate` marks an objective that only steers.
    """

    format: str
    text: str
    variables: int
    objective_shift: int = 0
    objective_constant: int = 0
    objective_dropped: int = 0
    has_objective: bool = False
    surrogate: bool = False
    relaxed: bool = False
    restricted: bool = False
    warm_start: BoolArray | None = None
    """bool[variables]: a solution to look at first, verified against the module; None if there is none."""

    @property
    def optimises(self) -> bool:
        """True if the best value is asked for; an objective may also only guide."""
        return self.has_objective and not self.surrogate

    @property
    def names(self) -> list[str]:
        """The names of the variables in the text, by their numbers."""
        return variable_names(self.format, self.variables)


@dataclass(frozen=True)
class RawOutcome:
    """The facts of one solve. `bound` is an upper bound of the (maximised) objective in its own units; None with an optimum
    of an exact backend means that the incumbent's value is the bound.
    """

    termination: Termination
    assignment: BoolArray | None = None
    bound: float | None = None
    detail: str = ""
    statistics: dict[str, float] = field(default_factory=dict)
    near_miss: NearMiss | None = None


OnIncumbent = Callable[[BoolArray], None]


class Backend(abc.ABC):
    """One solver. Instances carry no state."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    packages: ClassVar[tuple[str, ...]] = ()
    """Distributions whose versions an answer depends on; a journal keeps answers under them."""
    modules: ClassVar[tuple[str, ...]] = ()
    """Modules that `solve` imports: a process is made from one that has them loaded."""

    @abc.abstractmethod
    def available(self) -> str | None:
        """None where the solver can run here, otherwise the reason with its remedy. Imports nothing heavy."""

    @abc.abstractmethod
    def emit(self, module: Module, *, precision: int = 0) -> Artifact:
        """The module as this solver reads it; pure, and possible without the solver.

        `precision` counts refinements: if a witness failed exact replay the module is emitted again with more digits.
        """

    @abc.abstractmethod
    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        """Solves inside the current process, which is a worker's (`worker.py`)."""

    def exact_precision(self) -> int:
        """The highest `precision` that still changes what is emitted."""
        return 0


class InProcessBackend(Backend):
    """A backend without a worker process: it keeps its limits, releases the interpreter lock, never crashes (ADR 0003)."""

    @abc.abstractmethod
    def emit(self, module: Module, *, precision: int = 0, hints: Int32Array | None = None) -> Artifact:
        """As `Backend.emit`; `hints` int32[hints, points, features] are cells worth trying first."""

    @abc.abstractmethod
    def solve(
        self,
        artifact: Artifact,
        limits: Limits,
        on_incumbent: OnIncumbent | None = None,
        *,
        stop: threading.Event | None = None,
    ) -> RawOutcome:
        """As `Backend.solve`; returns soon after `stop` is set, with what it has."""


def solver_names() -> list[str]:
    """The files of `solvers/`: a backend in the tree is one file, and registered by being there."""
    return sorted(path.stem for path in Path(__file__).with_name("solvers").glob("[a-z]*.py"))


BACKENDS: Final = Registry(
    kind="backend",
    group="treesens.backends",
    builtin={
        "native": "treesens.backends.native.backend:NativeBackend",
        **{name: f"treesens.backends.solvers.{name}:BACKEND" for name in solver_names()},
    },
    error=BackendError,
    aliases={"search": "native"},
)


def get_backend(name: str) -> Backend:
    """An instance of a backend by name; raises `BackendError` if there is none."""
    made = BACKENDS.get(name)()
    if not isinstance(made, Backend):
        raise BackendError(f"the plug-in backend `{name}` is no subclass of treesens.backends.base.Backend")
    return made


def packages_of(name: str) -> tuple[str, ...]:
    """The distributions that answers of a backend depend on, that of a plug-in included; none if it cannot be imported."""
    try:
        packages = get_backend(name).packages
    except BackendError:
        packages = ()
    owner = BACKENDS.owner(name)
    return packages if owner is None else (owner, *packages)


def missing_module(name: str, extra: str = "", package: str = "") -> str | None:
    """The reason of `available` for a backend that needs the module `name`: of an extra, or of a package that a plain
    installation brings and a slim one leaves out.
    """
    wanted = f"'treesens[{extra}]'" if extra else package or name
    return None if is_installed(name) else f"{name} is not installed: pip install {wanted}"
