"""The interface of a backend: a pure `emit`, and a `solve` in a worker process that returns facts, not verdicts.

Termination, incumbent and bound are separate facts (MathOptInterface): a time-out without an incumbent proves nothing, and an
exception, crash, missing licence or limit is never a verdict. `solve/conclude.py` forms verdicts from facts.
"""

from __future__ import annotations

import abc
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from math import isfinite, nan
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final

from treesens.backends.text.formats import format_named, variable_names
from treesens.compiler.base.arrays import BoolArray, Int32Array
from treesens.compiler.base.budget import StopEvent
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.dyadic import Unit, nearest_double
from treesens.compiler.base.packages import is_installed
from treesens.compiler.base.plugins import Registry
from treesens.compiler.base.tolerance import EXACT, Tolerance
from treesens.compiler.ir import Module
from treesens.compiler.result import Moment, NearMiss, Proof
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
    """The reason why a solver stopped."""

    SATISFIED = "satisfied"
    """A feasible point was found for a problem without an objective."""
    OPTIMAL = "optimal"
    """The incumbent is optimal according to the solver, or its gap is within the tolerance that the limits specify."""
    INFEASIBLE = "infeasible"
    TIME = "time"
    MEMORY = "memory"
    LICENCE = "licence"
    INTERRUPTED = "interrupted"
    NUMERICAL = "numerical"
    """The solver's answer is invalid in exact arithmetic."""
    UNSUPPORTED = "unsupported"
    CRASH = "crash"
    UNKNOWN = "unknown"


def report_nothing(bound: float | None, value: float | None) -> None:
    """A report of a solver: its bound and the incumbent's objective, in units of the text that it reads (None: unchanged). This
    function drops the report.
    """


@dataclass(frozen=True)
class Limits:
    """The limits of a solve: wall time in seconds, memory in bytes (None: no limit), threads, random seed, and tolerances.

    The absolute tolerance is in units of the module's objective; the relative tolerance refers to the objective plus `offset`.
    If `watch` is set, the solver calls `report` during the search, and at its end. `log` is the file of the solver's own log:
    the worker's standard output.
    """

    seconds: float = 60.0
    memory: int | None = None
    threads: int = 1
    seed: int = 0
    tolerance: Tolerance = EXACT
    offset: float = 0.0
    watch: bool = False
    log: Path | None = None
    report: Callable[[float | None, float | None], None] = report_nothing

    def relative_gap(self, artifact: Artifact, least: float = 0.0) -> float:
        """The relative gap to set in a solver; never below `least`. Solvers ignore the objective's offset and constant, which
        would change the meaning of a relative tolerance: if offset or constant is non-zero, the exact optimum is required.
        """
        knows_all = self.offset == 0.0 and artifact.objective_constant == 0
        return max(self.tolerance.relative if knows_all else 0.0, least)


@dataclass(frozen=True)
class Capabilities:
    """A backend's capabilities. Every field is used by the driver, `explain` or the conformance kit."""

    proof: Proof
    warm_start: bool = False
    """True if the backend tries `Artifact.warm_start` first."""
    native_ops: frozenset[str] = frozenset()
    """Op kinds supported directly; all others are legalised to integer rows, or rewritten as in `rewrites`."""
    rewrites: Mapping[str, str] = field(default_factory=dict)
    """Op kinds that are not rewritten as rows, each with a description of the form that replaces them."""


@dataclass(frozen=True)
class Artifact:
    """A solver's input: `text` in `format`, the number of variables, and the data for reading the solver's answer.

    `relaxed` is True if rows were rounded outward: `infeasible` remains valid; a point must be replayed. `restricted` is True
    if rows were tightened: `infeasible` proves nothing. `surrogate` marks an objective that only guides the search.
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
    """bool[variables]: a solution to try first, verified against the module, or None."""

    @property
    def optimises(self) -> bool:
        """True if the optimum is required, False if the objective is missing or only guides the search."""
        return self.has_objective and not self.surrogate

    @property
    def names(self) -> list[str]:
        """The variable names in the text, by variable number."""
        return variable_names(self.format, self.variables)

    def value_of(self, told: float) -> float:
        """The module's objective, from the text's objective."""
        known = format_named(self.format)
        size = 1 if known.scaled else Unit(self.objective_shift - self.objective_dropped).size
        constant = Unit(self.objective_shift).value(self.objective_constant)
        return nearest_double(constant + (-1 if known.minimised else 1) * size * Fraction(told))


class Trace:
    """Collects reports of one solve as moments, in units of the module's objective; `send` takes each change."""

    def __init__(self, artifact: Artifact, send: Callable[[Moment], object]) -> None:
        self._artifact, self._send, self._started = artifact, send, time.monotonic()
        self._known: tuple[float | None, float | None] = (None, None)

    def __call__(self, bound: float | None, value: float | None) -> None:
        """As `report_nothing`; solvers write infinity as 1e20 or more."""
        new = (self._artifact.value_of(x) if x is not None and abs(x) < 1e20 else nan for x in (bound, value))
        bound, value = (x if isfinite(x) else old for old, x in zip(self._known, new, strict=True))
        if (bound, value) != self._known:
            self._known = (bound, value)
            self.end()

    def end(self) -> None:
        """Sends the current bound and incumbent, if either is known."""
        if self._known != (None, None):
            self._send((round(time.monotonic() - self._started, 6), *self._known))


@dataclass(frozen=True)
class RawOutcome:
    """The facts of one solve. `bound` is an upper bound on the (maximised) objective in its own units. If an exact backend
    reports an optimum without a bound (None), the incumbent's value is also the bound.
    """

    termination: Termination
    assignment: BoolArray | None = None
    bound: float | None = None
    detail: str = ""
    statistics: dict[str, float] = field(default_factory=dict)
    near_miss: NearMiss | None = None
    trajectory: tuple[Moment, ...] | None = None
    """Bound and incumbent over time, as the solver reported them; None if they were not watched or not reported."""


EMPTY = RawOutcome(Termination.CRASH, detail="the solver read no variables from the file")
"""The outcome for a file that a lenient reader takes for an empty problem."""
OnIncumbent = Callable[[BoolArray], None]


class Backend(abc.ABC):
    """A solver. Instances are stateless."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    packages: ClassVar[tuple[str, ...]] = ()
    """Distributions whose versions affect an answer; their versions are part of a journal's keys."""
    modules: ClassVar[tuple[str, ...]] = ()
    """Modules that `solve` imports: they are loaded before worker processes are forked."""
    reads: ClassVar[tuple[str, ...]] = ()
    """Formats of files (`lp`, `mps`, `smt2`) that `solve` accepts as the text of an artifact without variables."""
    options: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The solver's own options, as text by name; `name` contains them, e.g. `highs{presolve=off}`."""
    reserved: ClassVar[frozenset[str]] = frozenset()
    """Options of the solver that treesens sets, and options that would change the meaning of `infeasible` or of a bound."""

    @abc.abstractmethod
    def available(self) -> str | None:
        """None if the solver can run here, otherwise the reason with its remedy. Imports nothing heavy."""

    @abc.abstractmethod
    def emit(self, module: Module, *, precision: int = 0) -> Artifact:
        """Writes the module in the solver's format; a pure function that does not need the solver.

        `precision` counts refinements: if a witness fails exact replay, the module is emitted again with more digits.
        """

    @abc.abstractmethod
    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        """Solves in the current process, which is a worker process (`worker.py`)."""

    def exact_precision(self) -> int:
        """The highest `precision` that changes the output."""
        return 0

    def fresh(self) -> Any:
        """A solver without a model, in a worker process: `configure` tries the options on it."""
        raise BackendError(f"the backend `{self.name.partition('{')[0]}` has no options", remedy="omit the braces")

    def known_options(self, solver: Any) -> Mapping[str, type]:
        """The solver's own list of its options, with the type of each value (bool, int, float or str)."""
        return {}

    def set_option(self, solver: Any, name: str, value: bool | int | float | str) -> bool:
        """Sets one option; False, or any exception, if the solver rejects the value."""
        return False

    def configure(self, solver: Any) -> None:
        """Sets `options` on a solver. Raises BackendError for an unknown or reserved name, and for a rejected value."""
        known = self.known_options(solver) if self.options else {}
        solver_name = self.name.partition("{")[0]
        for name, text in self.options.items():
            if name in self.reserved:
                raise BackendError(
                    f"`{name}` of {solver_name} is set by treesens",
                    remedy="omit it; see the options of `treesens check`",
                )
            if name not in known:
                raise BackendError(f"{solver_name} has no option `{name}`", remedy=did_you_mean(name, known))
            try:
                accepted = self.set_option(solver, name, typed_option(text, known[name]))
            except Exception as error:
                raise BackendError(f"{solver_name} rejects {name}={text}: {error}", remedy=_SEE) from error
            if not accepted:
                raise BackendError(f"{solver_name} rejects {name}={text}", remedy=_SEE)


class InProcessBackend(Backend):
    """A backend without a worker: it obeys its limits, releases the interpreter lock, and never crashes (ADR 0003)."""

    @abc.abstractmethod
    def emit(self, module: Module, *, precision: int = 0, hints: Int32Array | None = None) -> Artifact:
        """As `Backend.emit`; `hints`, int32[hints, points, features], are cells to try first."""

    @abc.abstractmethod
    def solve(
        self,
        artifact: Artifact,
        limits: Limits,
        on_incumbent: OnIncumbent | None = None,
        *,
        stop: StopEvent | None = None,
    ) -> RawOutcome:
        """As `Backend.solve`; returns soon after `stop` is set, with the results found so far."""


def solver_names() -> list[str]:
    """The names of the built-in solvers, one per file in `solvers/`; a new file is registered automatically."""
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


_SEE = "see the solver's documentation of this option"
_SPEC = re.compile(r"\s*([^{}]*[^{}\s])\s*\{([^{}]*)\}\s*")
_OPTION = re.compile(r"\s*([\w./-]+)\s*=\s*([\w.+-]+)\s*")


def split_options(text: str) -> tuple[str, dict[str, str]]:
    """The name and the solver's options in a text such as `highs{presolve=off,mip_max_nodes=100}`. Raises BackendError."""
    match = _SPEC.fullmatch(text)
    if match is None:
        return text, {}
    options: dict[str, str] = {}
    for part in match[2].split(","):
        pair = _OPTION.fullmatch(part)
        if pair is None or pair[1] in options:
            what = f"repeats `{pair[1]}`" if pair else f"contains `{{{part.strip()}}}`, which is not OPTION=VALUE"
            raise BackendError(f"the backend `{text[:80]}` {what}", remedy="write e.g. highs{presolve=off}")
        options[pair[1]] = pair[2]
    return match[1], options


def typed_option(text: str, kind: type) -> bool | int | float | str:
    """The value of an option: `kind` is bool, int, float or str. Raises ValueError."""
    if kind is bool:
        words = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
        if text.lower() not in words:
            raise ValueError("true or false is expected")
        return words[text.lower()]
    value: int | float | str = kind(text)
    return value


def get_backend(name: str) -> Backend:
    """An instance of a backend by its name, or by its name with the solver's own options: `highs{presolve=off}`.

    Raises `BackendError` for an unknown name and for text that is not OPTION=VALUE; `worker.check_options` asks the solver.
    """
    plain, options = split_options(name)
    made = BACKENDS.get(plain)()
    if not isinstance(made, Backend):
        raise BackendError(f"the plug-in backend `{plain}` is not a subclass of treesens.backends.base.Backend")
    if not options:
        return made
    kind = type(made)
    spec = ",".join(f"{option}={value}" for option, value in options.items())
    names = {"name": f"{kind.name}{{{spec}}}", "options": MappingProxyType(options), "__module__": kind.__module__}
    steered: Backend = type(kind.__name__, (kind,), names)()
    return steered


def packages_of(name: str) -> tuple[str, ...]:
    """The distributions that affect a backend's answers, including a plug-in's own; empty if the backend cannot be imported."""
    try:
        packages = get_backend(name).packages
    except BackendError:
        packages = ()
    owner = BACKENDS.owner(name)
    return packages if owner is None else (owner, *packages)


def missing_module(name: str, extra: str = "", package: str = "") -> str | None:
    """None if the module `name` is installed, otherwise the reason with its remedy: install the extra `extra` or, if `package`
    is passed, this distribution, which slim installations omit.
    """
    wanted = f"'treesens[{extra}]'" if extra else package or name
    return None if is_installed(name) else f"{name} is not installed: pip install {wanted}"
